"""Puts a run together: screen, engine, family, hand and loop, from what the person asked for; and takes it apart.

This is the one place that knows all the rooms. Its events are those of the loop, with `RunStarted` first.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.desktop.base import OpenDesktop
from agent.desktop.factory import open_desktop
from agent.desktop.protected import ProtectedDesktop
from agent.desktop.stop_chord import DEFAULT_CHORD
from agent.families.base import Family
from agent.families.registry import DEFAULT_FAMILY, detect_family, get_family
from agent.geometry import Viewport
from agent.model.client import ChatClient, Patience
from agent.model.endpoint import Endpoint, Limits
from agent.model.engine import Engine
from agent.run.consent import Consent
from agent.run.events import ModelInUse, RunFinished, RunStarted, Warned
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
        system_prompt: the text that replaces a family's system text, by the family's name; None where none does.
        bundle: where the run is recorded.
        patience: how long to wait for the model.
        grants: what the person allowed for good in this session.
        stop_key: the chord that stops it anywhere; "none" for none.
        open_desktop: opens the desktop that it works on.
        title: what it is called in lists of running runs, secrets masked; the instruction unless given.
    """

    settings: RunSettings
    engine: Engine
    policy: Policy
    family: str | None = None
    monitor: int | None = None
    environ: dict[str, str] | None = None
    sandbox: bool = False
    system_prompt: Callable[[str], str | None] = lambda _: None
    bundle: str = ""
    patience: Patience = Patience()  # noqa: RUF009 -- frozen
    grants: Grants = field(default_factory=Grants)
    stop_key: str = DEFAULT_CHORD
    title: str = ""
    open_desktop: OpenDesktop = open_desktop


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
        endpoint = await race(client.discover(detect_family))
        family, remarks = _family(request, endpoint)
        settings = _settled(request, endpoint, family)
        real = request.open_desktop(stop, request.monitor, request.environ)
        opened.callback(real.close)
        viewport = real.screen.grab().viewport
        # On a throw-away desktop, there is no terminal that could run us.
        desktop = ProtectedDesktop(real, dry_run=settings.dry_run, ours=not request.sandbox)
        opened.callback(desktop.close)
        apps = tuple(desktop.applications.names()[:_MOST_APPS])
        facts = family.facts
        eye = Eye(
            desktop.screen,
            facts.image.capped(settings.max_pixels),
            settings.image_format or facts.image_format,
            facts.quality,
        )
        limits = endpoint.limits
        history = History(settings.history, limits, answer_tokens(family, limits.context), _images(settings, family))
        system_prompt = request.system_prompt(family.facts.name)
        mind = Mind(client, family, history, settings, apps if settings.style == "desktop" else (), system_prompt)
        consent = Consent(
            request.policy, desktop.approver(approver), steering or Steering(), desktop.surroundings, request.grants
        )
        parts = Parts(eye, desktop.hand, mind, history, consent, person, stop)
        emit(_started(request, settings, endpoint, family, viewport))
        told = desktop.watch(request.stop_key, steering)
        remarks += [*desktop.remarks(judged=request.policy.mode != "never"), registered.remark, told]
        for remark in (request.engine.remark, *remarks):
            if remark:
                emit(Warned(remark))
        return await Loop(settings, parts).run(emit)
    finally:
        opened.close()
        await client.aclose()


def _family(request: Request, endpoint: Endpoint) -> tuple[Family, list[str]]:
    remarks: list[str] = []
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


def _started(
    request: Request, settings: RunSettings, endpoint: Endpoint, family: Family, viewport: Viewport
) -> RunStarted:
    actor = ModelInUse(request.engine.name, endpoint.model or "", family.facts.name, endpoint.base_url)
    return RunStarted(
        instruction=settings.instruction,
        models={"actor": actor},
        style=settings.style,
        dry_run=settings.dry_run,
        approve=request.policy.mode,
        sandbox=request.sandbox,
        viewport=viewport,
        bundle=request.bundle,
    )
