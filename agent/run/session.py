"""Puts a run together: screen, engine, family, hand and loop, from what the person asked for; and takes it apart.

This is the one place that knows all the rooms. Its events are those of the loop, with `RunStarted` first.
"""

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.desktop.apps.launcher import Launcher
from agent.desktop.checked_hand import CheckedHand, receiver
from agent.desktop.hand import Hand, RecordingHand
from agent.desktop.mss_screen import MssScreen
from agent.desktop.own_windows import MaskedScreen, Own, find_own
from agent.desktop.surroundings import DesktopSurroundings
from agent.desktop.takeover import OurWindows, Rest, Takeover
from agent.desktop.x11.display_watch import DisplayWatch
from agent.desktop.x11.stop_key import DEFAULT_CHORD, StopKey
from agent.families.base import Family
from agent.families.registry import DEFAULT_FAMILY, detect_family, get_family
from agent.geometry import DesktopPoint, Viewport
from agent.model.client import ChatClient, Patience
from agent.model.endpoint import Endpoint, Limits
from agent.model.engine import Engine
from agent.run.consent import Consent
from agent.run.events import RunFinished, RunStarted, Warned
from agent.run.history import History
from agent.run.loop import Loop, Parts, Person
from agent.run.observe import Eye
from agent.run.race import Race
from agent.run.settings import RunSettings
from agent.run.sink import Emit
from agent.run.steering import Steering
from agent.run.think import Mind, answer_tokens
from agent.safety.policy import Approver, Grants, Policy
from agent.safety.running import Registered
from agent.safety.stop import StopSwitch
from agent.screen.capture import Screen
from foundation.errors import UsageError

#: Installed applications named to the model; more would cost more tokens than they are worth.
_MOST_APPS = 60


@dataclass(frozen=True, slots=True)
class Request:
    """One run as asked for.

    Args:
        settings: how it is done.
        engine: what drives it.
        policy: what needs approval.
        family: the family's name; None to find it out.
        monitor: which monitor; None for the primary one.
        environ: the environment that applications are started in; None for this process's own.
        sandbox: whether the desktop is a throw-away one.
        bundle: where the run is recorded.
        patience: how long to wait for the model.
        grants: what the person allowed for good in this session.
        stop_key: the chord that stops it anywhere; "none" for none.
        title: what it is called in lists of running runs, secrets masked; the instruction unless given.
    """

    settings: RunSettings
    engine: Engine
    policy: Policy
    family: str | None = None
    monitor: int | None = None
    environ: dict[str, str] | None = None
    sandbox: bool = False
    bundle: str = ""
    patience: Patience = Patience()  # noqa: RUF009 -- frozen
    grants: Grants = field(default_factory=Grants)
    stop_key: str = DEFAULT_CHORD
    title: str = ""


async def run(
    request: Request,
    approver: Approver,
    person: Person,
    stop: StopSwitch,
    emit: Emit,
    steering: Steering | None = None,
) -> RunFinished:
    """Carry out a run; its events go to `emit`, from `RunStarted` to the `RunFinished` that is returned too.

    Raises:
        MaiError: the run could not even begin.
        Exception: what `emit` raised.
    """
    race = Race(stop)
    client = ChatClient(request.engine.endpoint, request.patience, request.engine.condition)
    opened = ExitStack()
    registered = Registered(Path(request.bundle).name, request.title or request.settings.instruction)
    opened.callback(registered.close)
    try:
        endpoint = await race(client.discover())
        family, remarks = _family(request, endpoint)
        settings = _settled(request, endpoint, family)
        screen: Screen = MssScreen(request.monitor)
        viewport = screen.grab().viewport
        own = Own() if request.sandbox else find_own()  # a sandbox is another display than the terminal's
        if own.windows:
            screen = MaskedScreen(screen, own.windows)
        region = viewport.region
        home = DesktopPoint(region.left + region.width / 2, region.top + region.height / 2)
        launcher = Launcher(request.environ)
        apps = tuple(launcher.catalogue.names()[:_MOST_APPS])
        hand = _hand(request, stop, home, launcher)
        rest: Rest | None = getattr(hand, "rest", None)  # a dry run's hand has none
        facts = family.facts
        eye = Eye(
            screen, facts.image.capped(settings.max_pixels), settings.image_format or facts.image_format, facts.quality
        )
        limits = endpoint.limits
        history = History(settings.history, limits, answer_tokens(family, limits.context), _images(settings, family))
        mind = Mind(client, family, history, settings, apps if settings.style == "desktop" else ())
        if hand.touches:
            from agent.desktop.focus import FocusKeeper

            approver = FocusKeeper(approver)
        around = DesktopSurroundings(screen, launcher, home, lambda windows: receiver(windows, own.windows))
        if hand.touches:
            hand = CheckedHand(hand, own.windows, home, lambda: around.judged)
        consent = Consent(request.policy, approver, steering or Steering(), around, request.grants)
        parts = Parts(eye, hand, mind, history, consent, person, stop)
        emit(_started(request, settings, endpoint, family, viewport))
        told = _watch(opened, request, stop, steering, rest, own)
        opened.callback(around.close)
        remarks += [own.remark, *_blind(request), registered.remark, told]
        for remark in (request.engine.remark, *remarks):
            if remark:
                emit(Warned(remark))
        return await Loop(settings, parts).run(emit)
    finally:
        opened.close()
        await client.aclose()


def _watch(
    opened: ExitStack, request: Request, stop: StopSwitch, steering: Steering | None, rest: Rest | None, own: Own
) -> str:
    """Watch for what the person does besides the terminal, until `opened` is closed; a remark or ""."""
    stop_key = StopKey(stop, request.stop_key)
    opened.callback(stop_key.close)
    opened.callback(DisplayWatch(stop).close)
    if steering is not None and rest is not None:  # without a person who can resume it, it would rest for good
        opened.callback(Takeover(steering, rest, OurWindows(own.windows)).close)
    return stop_key.remark


def _blind(request: Request) -> list[str]:
    """What the policy cannot know here."""
    return [] if request.policy.mode == "never" else [DesktopSurroundings.remark()]


def _family(request: Request, endpoint: Endpoint) -> tuple[Family, list[str]]:
    remarks: list[str] = []
    if os.environ.get("WAYLAND_DISPLAY") and not request.sandbox:
        remarks.append(
            "This is a Wayland session: only X11 applications can be seen and used, the rest of the screen is black."
        )
    if not endpoint.is_local:
        remarks.append(f"Screenshots are sent to {endpoint.host}, because you named that endpoint.")
    name = (
        request.family
        or request.engine.family
        or ("mai-ui" if endpoint.kind == "literal" else detect_family(endpoint.model or ""))
    )
    if name is None:
        remarks.append(
            f"The model {endpoint.model!r} is of no known family; it is asked in the format of {DEFAULT_FAMILY} "
            "(choose with --family)."
        )
        name = DEFAULT_FAMILY
    return get_family(name), remarks


def _settled(request: Request, endpoint: Endpoint, family: Family) -> RunSettings:
    """The settings, with what the endpoint's limits and kind imply."""
    settings = request.settings
    if endpoint.kind == "literal":  # it reads the desktop style's notes, and wants every pixel
        settings = replace(settings, style="desktop", history="block")
    budget = min(settings.max_pixels or _default_pixels(endpoint), family.facts.image.max_pixels)
    if endpoint.limits.max_pixels is not None:
        budget = min(budget, endpoint.limits.max_pixels)
    if endpoint.limits.context is not None:
        budget = min(budget, _pixels_for(endpoint.limits, family))
    if budget < family.facts.image.min_pixels:
        raise UsageError(
            f"A context of {endpoint.limits.context} tokens or {budget} pixels leaves no room for a screenshot.",
            "Start the server with a longer --max-model-len, or raise --max-pixels.",
        )
    return replace(settings, max_pixels=budget)


#: About 2 Mpx: the floor under which small targets are lost (facts/vllm.md, section 5); holds a 1080p screen whole.
DEFAULT_MAX_PIXELS = 2_097_152


def _default_pixels(endpoint: Endpoint) -> int:
    return endpoint.limits.max_pixels or DEFAULT_MAX_PIXELS


def _pixels_for(limits: Limits, family: Family) -> int:
    """The largest screenshot that leaves half of the room to the text."""
    assert limits.context is not None
    room = limits.context - answer_tokens(family, limits.context)
    return max(0, room // 2) * family.facts.image.factor**2


def _images(settings: RunSettings, family: Family) -> int | None:
    if settings.history_images is None and settings.history == "sliding":
        return family.facts.reference_images
    return settings.history_images


def _hand(request: Request, stop: StopSwitch, home: DesktopPoint, launcher: Launcher) -> Hand:
    if request.settings.dry_run:
        return RecordingHand()
    from agent.desktop.pyautogui_hand import PyAutoGuiHand
    from agent.desktop.text_entry import text_entry

    return PyAutoGuiHand(stop, text_entry(), launcher, home)


def _started(
    request: Request, settings: RunSettings, endpoint: Endpoint, family: Family, viewport: Viewport
) -> RunStarted:
    return RunStarted(
        instruction=settings.instruction,
        engine=request.engine.name,
        model=endpoint.model or "",
        family=family.facts.name,
        style=settings.style,
        endpoint=endpoint.base_url,
        dry_run=settings.dry_run,
        approve=request.policy.mode,
        sandbox=request.sandbox,
        viewport=viewport,
        bundle=request.bundle,
    )
