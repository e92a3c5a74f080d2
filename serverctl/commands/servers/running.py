"""Uses or changes the server if `mai-server up` finds it running already, and prints the ready servers."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from foundation.errors import ExitStatus, MaiError, StoppedError, UsageError
from foundation.printing import counted, put, put_json
from serverctl.commands.options import own_settings, parse_screen
from serverctl.commands.progress import StartProgress
from serverctl.commands.servers.status import to_json
from serverctl.models.find import whole_name
from serverctl.plan.goal import Goal
from serverctl.plan.render import render
from serverctl.plan.user_flags import absorbed
from serverctl.planning import load_presets, plan_for, resolve
from serverctl.process import control
from serverctl.process.request import ServerRequest, read_request
from serverctl.process.state import LIVE, Folder, State, current_state
from serverctl.vllm.capabilities import installed

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
    """Return the names of the servers for the --beside models. Raises MaiError if one of them does not run.

    It cannot be added later: the first server was planned alone, and would have to give up memory.
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


#: Options that belong to a server's address, its cards, or its neighbours: a change needs `down` and `up`.
_FIXED = ("port", "key_file", "keep_key", "cpu", "gpus", "beside", "foreground", "no_wait", "again", "swap")


def restart(options: argparse.Namespace, flags: Sequence[str]) -> int:
    """Change what the command line names, keep the rest, and wait until the server is ready again.

    Raises MaiError if no start succeeds with the change. The server then runs as before.
    """
    for name in _FIXED:
        if getattr(options, name) not in (None, False, []):
            raise UsageError(
                f"--{name.replace('_', '-')} cannot be changed by --restart.",
                "To change it, run `mai-server down`, then `mai-server up`.",
            )
    before = current_state(Folder(options.name))
    if before.phase not in LIVE or before.phase == "stopping":
        raise MaiError(f"The server {options.name!r} does not run.", "`mai-server up` starts it.")
    first = read_request(Folder(options.name).request_file)
    states = []
    try:
        with StartProgress(quiet=options.json) as show:
            for name in _alike(options.name, first):
                states.append(_replace(name, options, flags, show))
    except KeyboardInterrupt:
        text = "The restart goes on: `mai-server status` tells how it is."
        raise StoppedError("Stopped waiting: Ctrl-C.", text) from None
    return report(states, options.json)


def _alike(name: str, first: ServerRequest) -> list[str]:
    """Return a server and its replicas, which are restarted one after the other."""
    others = [other for other in first.together if other != name and current_state(Folder(other)).phase in LIVE]
    return [name, *(other for other in others if read_request(Folder(other).request_file).goal == first.goal)]


def _replace(name: str, options: argparse.Namespace, flags: Sequence[str], show: StartProgress) -> State:
    request = changed(read_request(Folder(name).request_file), options, flags)
    _check_plan(request)
    show.say("Clients wait at the door from now on; requests that run may end first.")
    control.change(name, request, options.wait)
    state = control.wait_ready(name, show.update)
    if (refusal := control.refusal_of(state)) is not None:
        raise MaiError(f"The server {name!r} runs as before: {refusal.what}", refusal.remedy)
    return state


def changed(request: ServerRequest, options: argparse.Namespace, flags: Sequence[str]) -> ServerRequest:
    """Return a request changed as a command line says. Another model or preset begins without earlier repairs."""
    if request.models and options.model is not None:
        return _of_several(request, options.model)
    goal = request.goal
    model = None if options.model is None else whole_name(options.model)
    if model is not None and model != goal.model:  # the settings of the previous model do not apply
        goal = replace(resolve(model, goal.preset, hardware=request.hardware()).goal, screen=goal.screen)
    if options.preset is not None:
        load_presets().get(options.preset)
    if options.preset is not None and options.preset != goal.preset:
        goal = replace(goal, preset=options.preset, adjustments={}, adjusted_because={})
    own = absorbed(Goal(overrides=own_settings(options), extra=tuple(flags)))
    goal = replace(
        goal,
        overrides={**goal.overrides, **own.overrides},
        extra=(*goal.extra, *own.extra),
        adjustments={name: value for name, value in goal.adjustments.items() if name not in own.overrides},
        screen=parse_screen(options.screen) if options.screen else goal.screen,
        force=goal.force or options.force,
    )
    if request.models:
        own_name = request.served_name
        models = tuple(replace(each, goal=goal) if each.name == own_name else each for each in request.models)
        request = replace(request, models=models)
    return replace(
        request,
        goal=goal,
        served_name=options.name_as or request.served_name,
        idle_seconds=options.idle or request.idle_seconds,
        vllm_python=options.vllm_python or request.vllm_python,
    )


def _of_several(request: ServerRequest, model: str) -> ServerRequest:
    """Return the request with this model loaded. Raises UsageError if the server does not offer it."""
    if (chosen := request.for_model(model)) is not None:
        return chosen
    names = ", ".join(each.name for each in request.models)
    raise UsageError(
        f"This server swaps {names}, and not {model}.", "`mai-server down`, then `up --swap` names others."
    )


def _check_plan(request: ServerRequest) -> None:
    """Raise MaiError if no plan works even with the memory of the running server free."""
    hardware = request.hardware()
    cards = tuple(replace(gpu, free_bytes=None) for gpu in hardware.gpus)
    hardware = replace(hardware, gpus=cards, cpu=replace(hardware.cpu, free_bytes=hardware.cpu.memory_bytes))
    capabilities = installed(Path(request.vllm_python))
    render(plan_for(hardware, request.goal, capabilities.version), capabilities, 1, request.served_name)
