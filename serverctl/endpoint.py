"""The one thing `agent` asks this package for: an endpoint that is ready, with the limits it was started with."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from foundation.errors import EnvironmentLacksError, MaiError
from serverctl.process import control
from serverctl.process.state import LIVE, Folder, State, current_state

#: Is told what happens, in sentences.
Tell: TypeAlias = Callable[[str], None]
#: Raises when the person wants to stop.
CheckStop: TypeAlias = Callable[[], None]
#: Asks a yes-or-no question; None where nobody can be asked.
Ask: TypeAlias = Callable[[str], bool]

#: On a stage that only counts percents, how often it is told again, seconds.
_TELL_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class ReadyServer:
    """A server of ours that answers.

    Args:
        name: its name for `mai-server`.
        base_url: of the API, on loopback.
        api_key: made at its start.
        model: what it calls the model.
        family: the agent's family, None where not known.
        images, context, max_pixels: what one request may hold.
        started: whether it was started for this.
    """

    name: str
    base_url: str
    api_key: str = field(repr=False)
    model: str
    family: str | None
    images: int | None
    context: int | None
    max_pixels: int | None
    started: bool


@dataclass(frozen=True, slots=True)
class ServerNow:
    """A server's condition, for a client whose request failed."""

    condition: Literal["ready", "coming", "gone"]
    words: str


def has_accelerator() -> bool:
    """Whether there is a card that vLLM can serve on."""
    from serverctl.hardware.detect import detect
    from serverctl.plan.gate import usable_cards

    return bool(usable_cards(detect()))


def why_no_accelerator() -> str:
    """One sentence on why there is none: no card, a broken driver, a card that is no longer served."""
    from serverctl.hardware.detect import detect
    from serverctl.plan.gate import usable_cards
    from serverctl.plan.goal import CannotPlanError

    hardware = detect()
    try:
        return "" if usable_cards(hardware) else " ".join(hardware.problems) or "This machine has no graphics card."
    except CannotPlanError as error:
        return error.what


def running_server(model: str | None = None) -> str | None:
    """The name of a server that runs or is on its way: the least busy of those that serve the named model."""
    found: list[tuple[bool, int, str]] = []
    for name in control.ordered_names():
        state = current_state(Folder(name))
        if state.phase not in LIVE or state.phase == "stopping":
            continue
        if model is not None and model.casefold() not in (state.model.casefold(), state.source.casefold()):
            continue
        found.append((state.phase != "ready", _load(state), name))
    return min(found)[2] if found else None


def _load(state: State) -> int:
    """Requests of a server now; replicas are told apart by it."""
    if state.port is None or state.phase != "ready" or len(control.ordered_names()) < 2:
        return 0
    from serverctl.metrics import read_metrics

    metrics = read_metrics(state.port, Folder(state.name).key(), 1.0)
    return 0 if metrics is None else (metrics.running or 0) + (metrics.waiting or 0)


def ready_server(
    model: str | None = None,
    preset: str | None = None,
    screen: tuple[int, int] | None = None,
    tell: Tell = lambda _: None,
    check_stop: CheckStop = lambda: None,
    ask: Ask | None = None,
) -> ReadyServer:
    """The server to use: one that runs, or one that is started now and waited for.

    Args:
        model: a known name, a repository or a folder; None for the running one's, or by memory.
        preset: for a new server.
        screen: width and height in pixels of the screen that will be looked at.
        tell: is told what happens.
        check_stop: raises when the person wants to stop; a start of ours is then stopped too.
        ask: asks whether vLLM may be installed.

    Raises:
        MaiError: it could not be started, or cannot be on this machine.
    """
    name = running_server(model)
    started = name is None
    if name is None:
        name = _launch(model, preset, screen, tell, ask)
    try:
        state = _wait(name, tell, check_stop)
    except BaseException:
        if started:
            tell("Stopping the server that was starting.")
            control.stop(name)
        raise
    target = control.target_of(state)
    if target is None:
        raise control.failure_of(state)
    return _ready(state, target, started)


def _ready(state: State, target: control.Target, started: bool) -> ReadyServer:
    limits: Mapping[str, Any] = state.limits
    return ReadyServer(
        name=state.name,
        base_url=target.base_url,
        api_key=target.api_key,
        model=target.model,
        family=target.family,
        images=limits.get("images"),
        context=limits.get("context"),
        max_pixels=limits.get("max_pixels"),
        started=started,
    )


def _launch(model: str | None, preset: str | None, screen: tuple[int, int] | None, tell: Tell, ask: Ask | None) -> str:
    """Starts a server in the background and gives its name."""
    from serverctl.commands.options import request_for
    from serverctl.process.request import server_request

    other = current_state(Folder(control.DEFAULT_NAME))
    if other.phase in LIVE:
        raise MaiError(
            f"A server with {other.model or other.source} runs already, and {model} was asked for.",
            "`mai-server down` stops it; or leave --model out to use it.",
        )
    request = request_for(model, preset, screen)
    plan = request.plan()
    if request.vllm is None:
        _install(request.build(), tell, ask)
        request = request.with_installed()
    for text in plan.warnings:
        tell(text)
    control.launch(control.DEFAULT_NAME, server_request(request, plan))
    return control.DEFAULT_NAME


def _install(build: Any, tell: Tell, ask: Ask | None) -> None:
    """Installs vLLM if the person agrees. Raises EnvironmentLacksError otherwise."""
    text = f"vLLM is not installed: {build.packages[0]}, about {build.disk_gib:.0f} GiB."
    if ask is None or not ask(f"{text} Install it now?"):
        raise EnvironmentLacksError(text, "`mai-server install` installs it.")
    from serverctl.install import install

    last = ""

    def report(what: str, done: int | None, whole: int | None) -> None:
        nonlocal last
        del done, whole
        if what != last:
            last = what
            tell(what)

    install(build, report)


def _wait(name: str, tell: Tell, check_stop: CheckStop) -> State:
    """Waits for a server, telling of its stages and of what happened on the way."""
    told, stage, next_time = time.time() - 1.0, "", 0.0

    def progress(state: State) -> None:
        nonlocal told, stage, next_time
        check_stop()
        for when, sentence in state.events:
            if when > told:
                told = when
                tell(sentence)
        now = time.monotonic()
        words = state.stage
        if state.download and state.download["bytes"] < state.download["total"]:
            there, whole = (state.download[key] / 1024**3 for key in ("bytes", "total"))
            words = f"{words or 'downloading'}: {there:.1f} of {whole:.1f} GiB downloaded"
        if words and (words.split(",")[0].split(":")[0] != stage or now >= next_time) and state.phase == "starting":
            if words.split(",")[0].split(":")[0] != stage or "%" in words or "GiB" in words:
                tell(words)
            stage, next_time = words.split(",")[0].split(":")[0], now + _TELL_EVERY

    return control.wait_ready(name, progress)


def server_now(name: str) -> ServerNow:
    """What became of a server whose client lost it: ready again, on its way, or gone."""
    state = current_state(Folder(name))
    if state.phase == "ready":
        return ServerNow("ready", state.message)
    if state.phase in LIVE and state.phase != "stopping":
        words = state.stage if state.phase == "starting" and state.stage else state.message
        return ServerNow("coming", words.rstrip("."))
    if state.phase == "failed":
        return ServerNow("gone", str(control.failure_of(state)))
    return ServerNow("gone", "The server was stopped.")


def server_load(name: str) -> str:
    """A server's stage and load in a few words; what is not known is left out."""
    from serverctl.metrics import read_metrics

    state = current_state(Folder(name))
    if state.phase != "ready" or state.port is None:
        return f"server {state.stage or state.phase}"
    metrics = read_metrics(state.port, Folder(name).key(), 1.0)
    if metrics is None:
        return "server ready"
    words = [
        f"{value}{unit} {what}"
        for value, unit, what in (
            (metrics.running, "", "running"),
            (metrics.waiting or None, "", "waiting"),
            (_percent(metrics.kv_usage), "%", "KV"),
            (_percent(metrics.prefix_hit_rate), "%", "prefix hits"),
        )
        if value is not None
    ]
    return f"server {', '.join(words) or 'ready'}"


def _percent(share: float | None) -> int | None:
    return None if share is None else round(100 * share)


@contextmanager
def served(preset: str, model: str | None, tell: Tell = lambda _: None) -> Iterator[ReadyServer]:
    """A server of a preset for the time of a block, beside none of ours: two would share the card's memory.

    Raises:
        MaiError: another server runs, or this one did not become ready.
    """
    busy = [name for name in control.ordered_names() if current_state(Folder(name)).phase in LIVE]
    if busy:
        raise MaiError(
            f"The server {busy[0]!r} is running and holds memory.", "`mai-server down --all` stops it first."
        )
    name = f"bench-{preset}"
    from serverctl.commands.options import request_for
    from serverctl.process.request import server_request

    request = request_for(model, preset, None)
    plan = request.plan()
    if request.vllm is None:
        raise EnvironmentLacksError("vLLM is not installed.", "`mai-server install` installs it.")
    try:
        control.launch(name, server_request(request, plan))
        state = _wait(name, tell, lambda: None)
        target = control.target_of(state)
        if target is None:
            raise control.failure_of(state)
        yield _ready(state, target, started=True)
    finally:
        control.stop(name)
