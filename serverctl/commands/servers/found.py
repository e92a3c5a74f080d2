"""What `mai-server up` does when a server with this name already runs, and how it reports servers."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from foundation.errors import ExitStatus, MaiError, StoppedError
from foundation.printing import counted, put, put_json
from serverctl.commands.options import own_settings, parse_screen
from serverctl.commands.progress import StartProgress
from serverctl.commands.servers.status import to_json
from serverctl.plan.goal import Goal
from serverctl.plan.user_flags import absorbed
from serverctl.planning import load_presets
from serverctl.process import control
from serverctl.process.request import read_request
from serverctl.process.state import LIVE, Folder, State, current_state

#: The part of a server's status that a program needs to use it.
_OF_A_SERVER = (
    "name", "phase", "endpoint", "api_key", "model", "source", "family", "limits", "vllm", "ready_after_s",
)  # fmt: skip


def report(states: list[State], as_json: bool) -> int:
    """Print the servers that became ready. Raises MaiError for the first server that did not."""
    for state in states:
        control.ready(state)
    if as_json:
        documents = [server_json(state) for state in states]
        put_json(documents if len(documents) > 1 else documents[0], indent=1)
        return ExitStatus.DONE
    for state in states:
        put(f"{state.name}: {state.model} answers at {state.url} (ready after {state.ready_after or 0:.0f} s).")
    return ExitStatus.DONE


def server_json(state: State) -> dict[str, object]:
    """Return the data that a program needs to use a server, its key included."""
    known = to_json(state, None)
    return {name: known[name] for name in _OF_A_SERVER}


def found(options: argparse.Namespace, flags: Sequence[str]) -> int:
    """Report the servers that run already under these names. Ctrl-C ends the waiting, not the servers.

    Raises MaiError if the running server is not what the command line asks for.
    """
    names = [options.name, *_found_beside(options)]
    states = [current_state(Folder(name)) for name in names]
    _check(options, flags, states[0])
    for state in states:
        if state.phase == "asleep":
            control.wake(state.name)
    if all(state.is_ready for state in states):
        if options.json:
            return report(states, True)
        put(*(f"Already running: {state.model} at {state.url}." for state in states))
        return ExitStatus.DONE
    if options.no_wait:
        return ExitStatus.DONE
    try:
        with StartProgress(quiet=options.json) as show:
            show.say("A server is already on its way; waiting for it.")
            states = [control.wait_ready(name, show.update) for name in names]
    except KeyboardInterrupt:
        raise StoppedError("Stopped waiting: Ctrl-C.", "The start goes on: `mai-server down` stops it.") from None
    _check(options, flags, states[0])
    return report(states, options.json)


def _found_beside(options: argparse.Namespace) -> list[str]:
    """Return the servers of the --beside models, by name. Raises MaiError if one is missing: the first server was
    planned alone, and would have to give up memory.
    """
    names: list[str] = []
    for model in options.beside:
        name = next((one.name for one in control.live_servers(model) if one.name not in (options.name, *names)), None)
        if name is None:
            raise MaiError(
                f"The server {options.name!r} already runs, and none with {model} beside it.",
                "`mai-server down --all` and the same command again plans both together; "
                "`mai-server up --name second --model NAME` starts it in the free memory.",
            )
        names.append(name)
    return names


def _check(options: argparse.Namespace, flags: Sequence[str], state: State) -> None:
    """Raise MaiError if the running server has another model or other settings than the command line names.

    A server that is still planning has no model yet, so its request is compared instead of its plan.
    """
    wanted, known = options.model, control.model_names(state)
    if wanted is not None and state.phase in LIVE and known and not control.serves(state, wanted):
        raise MaiError(
            f"The server {options.name!r} already runs with {state.model or state.source or min(known)}.",
            f"`mai-server down` stops it, or give the new one a name: --name {Path(wanted).name.lower()}.",
        )
    other = list(_differences(options, flags, state)) if state.phase in LIVE else []
    if other:
        raise MaiError(
            f"The server {options.name!r} already runs, but not as asked: {'; '.join(other)}.",
            "Add --restart to change its settings while clients wait, or run `mai-server down` first to start anew; "
            "without these options, `up` uses the server as it is.",
        )


def _differences(options: argparse.Namespace, flags: Sequence[str], state: State) -> Iterator[str]:
    """Yield each option of a command line that differs from the running server's, as a clause."""
    request = read_request(Folder(state.name).request_file)
    goal, running = absorbed(Goal(overrides=own_settings(options), extra=tuple(flags))), absorbed(request.goal)
    has = {**running.overrides, **state.plan.get("settings", {})}
    named = {
        "preset": (options.preset, request.goal.preset or load_presets().default),
        "port": (options.port, state.port or request.port),
        "name-as": (options.name_as, request.served_name),
        "idle": (options.idle, request.idle_seconds),
        "screen": (options.screen and parse_screen(options.screen), request.goal.screen),
        "vllm-python": (options.vllm_python, request.vllm_python),
        "cpu": (options.cpu or None, request.processor),
        **{name: (value, has.get(name)) for name, value in goal.overrides.items()},
    }
    for name, (wanted, found) in named.items():
        if wanted is not None and wanted != found:
            yield f"{name} is {_spoken(found)}, not {_spoken(wanted)}"
    if options.key and options.key != Folder(state.name).key():
        yield "it has another key"
    if options.gpus is not None and len(request.cards) > options.gpus:
        yield f"it uses {counted(len(request.cards), 'card')}, not {options.gpus}"
    words = list(goal.extra)
    if words and not any(words == list(running.extra[at : at + len(words)]) for at in range(len(running.extra))):
        yield f"it was started without {' '.join(words)}"


def _spoken(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "not set" if value is None else "on" if value else "off"
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return f"{value:.10g}" if isinstance(value, float) else str(value)
