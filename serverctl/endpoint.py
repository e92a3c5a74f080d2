"""The interface for `agent`: returns a ready server with its limits, starting one if needed."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any, Literal, TypeAlias

from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from serverctl.hardware.detect import detect
from serverctl.hardware.facts import CannotPlanError, Hardware, usable_cards
from serverctl.load.health import worst
from serverctl.planning import load_presets, resolve
from serverctl.process import control, probe
from serverctl.process.control import ReadyServer
from serverctl.process.request import read_request, server_request, with_swapped_models
from serverctl.process.state import LIVE, Folder, State, current_state
from serverctl.vllm.packages import Progress, Report
from serverctl.watch import Watch

__all__ = [
    "ReadyServer", "ready_server", "running_server", "served", "server_load", "server_now", "why_no_accelerator",
]  # fmt: skip

#: Receives sentences about the progress.
Tell: TypeAlias = Callable[[str], None]
#: Raises if the user wants to stop.
CheckStop: TypeAlias = Callable[[], None]
#: Asks the user a yes-or-no question.
Ask: TypeAlias = Callable[[str], bool]


#: Seconds for requests that run before their model is swapped.
_SWAP_S = 300.0


def why_no_accelerator() -> str:
    """Return why there is no usable card: none, a broken driver, an old card. "" if there is one."""
    hardware = detect()
    try:
        return "" if usable_cards(hardware) else " ".join(hardware.problems) or "This machine has no graphics card."
    except CannotPlanError as error:
        return error.what


def running_server(model: str | None = None) -> str | None:
    """Return the name of a running or starting server, the least busy one with the model if given; None without one."""
    found = control.live_servers(model)

    def burden(state: State) -> tuple[bool, int, str]:
        metrics = probe.read_metrics(control.endpoint_of(state), 1.0) if state.is_ready else None
        requests = 0 if metrics is None else (metrics.running or 0) + (metrics.waiting or 0)
        return state.phase != "ready", requests, state.name

    return (found[0] if len(found) == 1 else min(found, key=burden)).name if found else None


def ready_server(
    model: str | None,
    preset: str | None = None,
    tell: Tell = lambda _: None,
    check_stop: CheckStop = lambda: None,
    ask: Ask | None = None,
    beside: Sequence[str] = (),
) -> ReadyServer:
    """Return a running server, or start one and wait until it is ready.

    `model` is a known name, a repository or a folder; None for any running server, or a choice by memory. If
    `check_stop` raises, a server started here is stopped. `ask` asks whether to install vLLM; None if nobody can be
    asked. A new server leaves the models `beside` it their share of the cards. Raises MaiError if the server cannot be
    started, or runs with another preset.
    """
    name = running_server(model)
    if name is not None and preset is not None:
        now = control.as_before(name).goal.preset or load_presets().default
        if now != preset:
            raise UsageError(
                f"The server {name!r} runs with the preset {now}, not with {preset}.",
                f"Leave out --preset, or end the server first: mai-server down --name {name}.",
            )
    if name is None:
        for other in control.live_servers():
            if not other.is_ready:  # its model and its memory use are not known yet
                tell(f"Waiting for the server {other.name!r}, which is not ready yet.")
                control.wait_ready(other.name, lambda _: check_stop())
        name = running_server(model)
    started = False
    if name is None and (name := _swapped(model, tell) or _woken(model, preset, tell)) is None:
        name, started = _launch(model, preset, tell, check_stop, ask, beside)
    try:
        state = _wait(name, tell, check_stop)
    except BaseException:
        if started:
            tell("Stopping the server that was starting.")
            control.stop(name)
        raise
    return control.ready(state, started)


def _swapped(model: str | None, tell: Tell) -> str | None:
    """Swap in a model at a server that offers it, and return the server's name; None without such a server."""
    for state in control.live_servers():
        request = read_request(Folder(state.name).request_file).for_model(model or "")
        if request is not None:
            tell(f"The server {state.name!r} swaps {state.model} for {request.served_name}.")
            control.change(state.name, request, wait=_SWAP_S)
            return state.name
    return None


def _woken(model: str | None, preset: str | None, tell: Tell) -> str | None:
    """Wake a server that sleeps after a time without requests, and return its name; None without such a server."""
    for state in control.sleeping(model):
        if preset is None or control.as_before(state.name).goal.preset == preset:
            tell(f"Waking the server {state.name!r} ({state.model}) as it was.")
            control.wake(state.name)
            return state.name
    return None


def _launch(
    model: str | None,
    preset: str | None,
    tell: Tell,
    check_stop: CheckStop,
    ask: Ask | None,
    beside: Sequence[str],
) -> tuple[str, bool]:
    """Start a server in the background, under the default name or, beside others, the model's name.

    Return its name, and whether it was started here: another program may have been faster. Raises MaiError if other
    servers leave too little memory.
    """
    others = control.live_servers()
    resolved = resolve(model, preset)
    resolved = replace(resolved, hardware=_not_used_by(others, resolved.hardware))
    try:
        if beside and not others:
            resolved = resolved.beside(beside)[0]
        plan = resolved.plan()
    except CannotPlanError as error:
        if not others:
            raise
        names = " and ".join(state.model or state.source for state in others)
        raise MaiError(
            f"A server with {names} runs already, and {model} does not fit beside it: {error.what}",
            "`mai-server down --all` stops what runs; or leave --model out to use it.",
        ) from error
    resolved = resolved.with_vllm(ask, _told_once(tell, check_stop))
    for text in plan.warnings:
        tell(text)
    request = server_request(resolved, plan)
    if resolved.config.swap and not others and not beside:
        request = with_swapped_models(request, resolved, resolved.config.swap)
    if request.port in [state.port for state in others]:
        request = replace(request, port=None)
    own = control.name_of_model(plan.model.name)
    for name in (control.DEFAULT_NAME, own, *(f"{own}-{number}" for number in range(2, 100))):
        if control.launch(name, request):
            return name, True
        if control.serves(current_state(Folder(name)), model or plan.model.name):
            return name, False
    raise MaiError(f"There is no name left for a server with {plan.model.name}.", "`mai-server down --all` stops all.")


def _not_used_by(others: Sequence[State], hardware: Hardware) -> Hardware:
    """Return the hardware with only the unused cards, or with all if none is unused: they may have memory left."""
    used: set[str] = set()
    for state in others:
        with suppress(MaiError):
            used.update(read_request(Folder(state.name).request_file).cards)
    unused = tuple(gpu for gpu in hardware.gpus if not used & {gpu.uuid, str(gpu.index)})
    return replace(hardware, gpus=unused) if unused else hardware


def _told_once(tell: Tell, check_stop: CheckStop) -> Report:
    """Return a progress callback that reports each step of an installation once and calls `check_stop`."""
    last = ""

    def report(now: Progress) -> None:
        nonlocal last
        check_stop()
        if now.what != last:
            last = now.what
            tell(now.what)

    return report


def _wait(name: str, tell: Tell, check_stop: CheckStop) -> State:
    """Wait for a server, and report its stages and events."""
    announcer = control.Announcer(time.time() - 1.0)

    def progress(state: State) -> None:
        check_stop()
        for sentence in announcer.events(state):
            tell(sentence)
        if state.phase == "starting" and (words := announcer.stage(state)):
            tell(words)

    return control.wait_ready(name, progress)


def server_now(name: str) -> tuple[Literal["ready", "coming", "gone"], str]:
    """Return the status of a server that a client lost the connection to, with an explanation."""
    folder = Folder(name)
    restarting = folder.is_restarting  # read before the state: the mark is set first and removed last
    state = current_state(folder)
    if state.phase == "ready" and restarting:
        return "coming", "another setting is tried"
    if state.phase in ("ready", "asleep"):  # the next request wakes it
        return "ready", state.message
    if state.phase in LIVE and state.phase != "stopping":
        words = state.stage if state.phase == "starting" and state.stage else state.message
        return "coming", words.rstrip(".")
    if restarting:
        return "coming", "it is restarted with another setting"
    if state.phase == "failed":
        return "gone", str(control.failure_of(state))
    return "gone", "The server was stopped."


def server_load(name: str) -> str:
    """Return a server's stage and load as short text. A number that misses its target comes first."""
    look = _watch(name).look()
    state, metrics = look.state, look.metrics
    if state.phase != "ready":
        return f"server {state.stage or state.phase}"
    if metrics is None:
        return "server ready"
    shares = [
        (metrics.kv_usage, "KV"), (metrics.prefix_hit_rate, "prefix hits"), (metrics.image_hit_rate, "image hits"),
        *((gpu.busy, f"GPU {gpu.index}") for gpu in look.gpus),
    ]  # fmt: skip
    words = [] if metrics.running is None else [f"{metrics.running} running"]
    words += [f"{metrics.waiting} waiting"] if metrics.waiting else []
    words += [f"{round(100 * share)}% {label}" for share, label in shares if share is not None]
    spoken = {"first token", "each request", "all requests"}
    words += [f"{each.name} {each.value}" for each in look.judged if each.name in spoken and each.value != "?"]
    missed = worst(look.judged)
    if missed is not None:  # first, as lines are cut at their end
        words.insert(0, f"! {missed.name} {missed.value}: {missed.advice}")
    return f"server {', '.join(words) or 'ready'}"


@cache
def _watch(name: str) -> Watch:
    """Return the cached watch of a server, which keeps metrics between calls."""
    return Watch(name)


@contextmanager
def served(
    preset: str | None,
    model: str | None,
    tell: Tell = lambda _: None,
    overrides: Mapping[str, Any] | None = None,
) -> Iterator[ReadyServer]:
    """Run a server for the duration of a block.

    Raises MaiError if another server runs, because both would share the card's memory.
    """
    busy = control.live_servers()
    if busy:
        raise MaiError(
            f"The server {busy[0].name!r} is running and holds memory.", "`mai-server down --all` stops it first."
        )
    name = f"bench-{preset or 'usual'}"
    resolved = resolve(model, preset, overrides=overrides)
    plan = resolved.plan()
    if resolved.vllm is None:
        raise EnvironmentLacksError("vLLM is not installed.", "`mai-server install` installs it.")
    try:
        control.launch(name, replace(server_request(resolved, plan), passing=True))
        yield control.ready(_wait(name, tell, lambda: None), started=True)
    finally:
        control.stop(name)
