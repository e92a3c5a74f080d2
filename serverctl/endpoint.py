"""The one thing `agent` asks this package for: an endpoint that is ready, with the limits it was started with."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any, Literal, TypeAlias

from foundation.errors import EnvironmentLacksError, MaiError
from serverctl.hardware.detect import detect
from serverctl.hardware.facts import Hardware
from serverctl.hardware.supported import CannotPlanError, usable_cards
from serverctl.load.health import worst
from serverctl.process import control
from serverctl.process.control import ReadyServer
from serverctl.process.request import read_request, server_request
from serverctl.process.state import LIVE, Folder, State, current_state
from serverctl.resolve import resolve
from serverctl.vllm.packages import Progress, Report
from serverctl.watch import Watch

__all__ = [
    "ReadyServer", "ready_server", "running_server", "served", "server_load", "server_now", "why_no_accelerator",
]  # fmt: skip

#: Receives sentences about the progress.
Tell: TypeAlias = Callable[[str], None]
#: Raises when the person wants to stop.
CheckStop: TypeAlias = Callable[[], None]
#: Asks a yes-or-no question; None without a person to ask.
Ask: TypeAlias = Callable[[str], bool]


def why_no_accelerator() -> str:
    """Return why there is no usable card: none, a broken driver, an old card. "" if there is one."""
    hardware = detect()
    try:
        return "" if usable_cards(hardware) else " ".join(hardware.problems) or "This machine has no graphics card."
    except CannotPlanError as error:
        return error.what


def running_server(model: str | None = None) -> str | None:
    """The name of a server that runs or is on its way: the least busy of those that serve the named model."""
    found = control.live_servers(model)
    if len(found) < 2:
        return found[0].name if found else None
    return min(found, key=lambda state: (state.phase != "ready", _load(state), state.name)).name


def _load(state: State) -> int:
    """Requests of a server now; replicas are told apart by it."""
    metrics = control.metrics_of(state)
    return 0 if metrics is None else (metrics.running or 0) + (metrics.waiting or 0)


def ready_server(
    model: str | None,
    preset: str | None = None,
    tell: Tell = lambda _: None,
    check_stop: CheckStop = lambda: None,
    ask: Ask | None = None,
    beside: Sequence[str] = (),
) -> ReadyServer:
    """Return the server to use: a running one, or one that is started now and waited for.

    Args:
        model: a known name, a repository or a folder; None for the running one's, or by memory.
        preset: for a new server.
        tell: is told what happens.
        check_stop: a start of ours is stopped when it raises.
        ask: asks whether vLLM may be installed.
        beside: models that will be asked for next: a new server leaves them their share of the cards.

    Raises MaiError where it could not be started, or cannot be on this machine.
    """
    name = running_server(model)
    if name is None:
        for other in control.live_servers():
            if not other.is_ready:  # nobody knows yet what it serves, and what memory it leaves
                tell(f"Waiting for the server {other.name!r}, which is not ready yet.")
                control.wait_ready(other.name, lambda _: check_stop())
        name = running_server(model)
    name, started = (name, False) if name else _launch(model, preset, tell, check_stop, ask, beside)
    try:
        state = _wait(name, tell, check_stop)
    except BaseException:
        if started:
            tell("Stopping the server that was starting.")
            control.stop(name)
        raise
    server = control.as_ready(state, started)
    if server is None:
        raise control.failure_of(state)
    return server


def _launch(
    model: str | None,
    preset: str | None,
    tell: Tell,
    check_stop: CheckStop,
    ask: Ask | None,
    beside: Sequence[str],
) -> tuple[str, bool]:
    """Starts a server in the background: under the default name, or the model's own beside others.

    Gives its name, and whether it was started here: another program may have been quicker. Raises MaiError where others
    run, and the memory that they leave does not hold this one.
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
    if request.port in [state.port for state in others]:
        request = replace(request, port=None)
    for name in _names_for(plan.model.name):
        if control.launch(name, request):
            return name, True
        if control.serves(current_state(Folder(name)), model or plan.model.name):
            return name, False
    raise MaiError(f"There is no name left for a server with {plan.model.name}.", "`mai-server down --all` stops all.")


def _not_used_by(others: Sequence[State], hardware: Hardware) -> Hardware:
    """The cards that no server of ours uses; all cards where each is used: they may have room left."""
    used: set[str] = set()
    for state in others:
        with suppress(MaiError):
            used.update(read_request(Folder(state.name).request_file).cards)
    unused = tuple(gpu for gpu in hardware.gpus if not used & {gpu.uuid, str(gpu.index)})
    return replace(hardware, gpus=unused) if unused else hardware


def _names_for(model: str) -> Iterator[str]:
    """Names for a server, the best first: the default one, the model's, the model's with a number."""
    own = control.name_of_model(model)
    yield from (control.DEFAULT_NAME, own, *(f"{own}-{number}" for number in range(2, 100)))


def _told_once(tell: Tell, check_stop: CheckStop) -> Report:
    """Tells each step of an installation once; it ends when `check_stop` raises."""
    last = ""

    def report(now: Progress) -> None:
        nonlocal last
        check_stop()
        if now.what != last:
            last = now.what
            tell(now.what)

    return report


def _wait(name: str, tell: Tell, check_stop: CheckStop) -> State:
    """Waits for a server, telling of its stages and of what happened on the way."""
    announcer = control.Announcer(time.time() - 1.0)

    def progress(state: State) -> None:
        check_stop()
        for sentence in announcer.events(state):
            tell(sentence)
        if state.phase == "starting" and (words := announcer.stage(state)):
            tell(words)

    return control.wait_ready(name, progress)


def server_now(name: str) -> tuple[Literal["ready", "coming", "gone"], str]:
    """What became of a server whose client lost it, and a sentence about it."""
    folder = Folder(name)
    restarting = folder.is_restarting  # before its state: who ends it says so first, and takes it back last
    state = current_state(folder)
    if state.phase == "ready" and restarting:
        return "coming", "another setting is tried"
    if state.phase == "ready":
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
    """A server's stage and load in a few words, first a number that misses its target; the unknown is left out."""
    look = _watch(name).look()
    state, metrics = look.state, look.metrics
    if state.phase != "ready" or state.port is None:
        return f"server {state.stage or state.phase}"
    if metrics is None:
        return "server ready"
    words = [
        f"{value}{unit} {what}"
        for value, unit, what in (
            (metrics.running, "", "running"),
            (metrics.waiting or None, "", "waiting"),
            (_percent(metrics.kv_usage), "%", "KV"),
            (_percent(metrics.prefix_hit_rate), "%", "prefix hits"),
            (_percent(metrics.image_hit_rate), "%", "image hits"),
            *((_percent(gpu.busy), "%", f"GPU {gpu.index}") for gpu in look.gpus),
        )
        if value is not None
    ]
    spoken = {"first token", "each request", "all requests"}
    words += [f"{each.name} {each.value}" for each in look.judged if each.name in spoken and each.value != "?"]
    missed = worst(look.judged)
    if missed is not None:  # first, as lines are cut at their end
        words.insert(0, f"! {missed.name} {missed.value}: {missed.advice}")
    return f"server {', '.join(words) or 'ready'}"


@cache
def _watch(name: str) -> Watch:
    """What is remembered of a server from look to look."""
    return Watch(name)


def _percent(share: float | None) -> int | None:
    return None if share is None else round(100 * share)


@contextmanager
def served(
    preset: str | None,
    model: str | None,
    tell: Tell = lambda _: None,
    overrides: Mapping[str, Any] | None = None,
    *,
    purpose: str = "bench",
    flags: Sequence[str] = (),
    vllm_python: str | None = None,
    idle_seconds: float | None = None,
) -> Iterator[ReadyServer]:
    """Start a server of a preset for the time of a block, beside none of ours: two would share the card's memory.

    Args:
        preset, model: of the server; None for the usual one.
        tell: is told what happens.
        overrides: settings by name that win over the preset's.
        purpose: the first part of the server's name.
        flags: vLLM's own.
        vllm_python: the Python of an environment that has vLLM.
        idle_seconds: the server ends after so long without a request, should this program be killed.
    """
    busy = control.live_servers()
    if busy:
        raise MaiError(
            f"The server {busy[0].name!r} is running and holds memory.", "`mai-server down --all` stops it first."
        )
    name = f"{purpose}-{preset or 'usual'}"
    resolved = resolve(model, preset, overrides=overrides, flags=flags, vllm_python=vllm_python)
    plan = resolved.plan()
    if resolved.vllm is None:
        raise EnvironmentLacksError("vLLM is not installed.", "`mai-server install` installs it.")
    try:
        control.launch(name, server_request(resolved, plan, idle_seconds=idle_seconds))
        state = _wait(name, tell, lambda: None)
        server = control.as_ready(state, started=True)
        if server is None:
            raise control.failure_of(state)
        yield server
    finally:
        control.stop(name)
