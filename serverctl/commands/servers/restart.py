"""`mai-server up --restart`: gives a running server other settings while its clients wait at its door."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from foundation.errors import MaiError, StoppedError, UsageError
from serverctl.commands.options import own_settings, parse_screen
from serverctl.commands.progress import StartProgress
from serverctl.commands.servers.found import report
from serverctl.models.find import whole_name
from serverctl.plan.goal import Goal
from serverctl.plan.render import render
from serverctl.plan.user_flags import absorbed
from serverctl.planning import load_presets, plan_for, resolve
from serverctl.process import control
from serverctl.process.request import ServerRequest, read_request
from serverctl.process.state import LIVE, Folder, State, current_state
from serverctl.vllm.capabilities import installed

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
    _check(request)
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


def _check(request: ServerRequest) -> None:
    """Raise MaiError if no plan works even with the memory of the running server free."""
    hardware = request.hardware()
    cards = tuple(replace(gpu, free_bytes=None) for gpu in hardware.gpus)
    hardware = replace(hardware, gpus=cards, cpu=replace(hardware.cpu, free_bytes=hardware.cpu.memory_bytes))
    capabilities = installed(Path(request.vllm_python))
    render(plan_for(hardware, request.goal, capabilities.version), capabilities, 1, request.served_name)
