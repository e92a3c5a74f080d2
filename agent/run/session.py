"""Puts a run together: screen, engine, family, hand and loop, from what the person asked for; and takes it apart.

This is the one place that knows all the rooms. Its events are those of the loop, with `RunStarted` first.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent.core.geometry import Size
from agent.desktop.factory import open_desktop
from agent.desktop.guard.desktop import GuardedDesktop
from agent.desktop.protocol.desktop import DEFAULT_CHORD, OpenDesktop
from agent.events.run_events import RunFinished, RunStarted, Warned
from agent.events.sink import Emit
from agent.model.asking import Patience
from agent.model.engines import Engine
from agent.run.budgets import pixel_budget
from agent.run.calibration.before_run import Wish, calibrated
from agent.run.control.race import Race
from agent.run.control.steering import Steering
from agent.run.locate.targets import Zoom
from agent.run.loop.consent import Consent
from agent.run.loop.context import Person, RunContext
from agent.run.loop.loop import Loop
from agent.run.models.assemble import DecidingModel, FallbackModel, Ground, fallback_model, main_model
from agent.run.models.loop_detector import LoopRule
from agent.run.models.roles import Role, ServedModel, open_model
from agent.run.models.settings import RunSettings
from agent.safety.policy import Grants, Policy
from agent.safety.run_registry import Registered
from agent.safety.stop import StopSwitch
from agent.sandbox.processes import MARK
from agent.screen.ocr import reading_languages
from foundation.errors import EnvironmentLacksError, MaiError, UsageError

#: The built-in engine counts its tries itself, and presses a key until a slider holds a number.
_OWN_LOOP_RULE = LoopRule(nudge_at=40, stop_at=41)
#: What of an environment says which desktop it is, and in which language.
_TELLS_DESKTOP = ("XDG_CURRENT_DESKTOP", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")


@dataclass(frozen=True, slots=True)
class Request:
    """One run as asked for."""

    settings: RunSettings  # how it is done
    engines: Mapping[Role, Engine]  # what serves the model of each role; there is always an actor
    policy: Policy  # what needs approval
    family: str | None = None  # the actor's family; None to find it out
    monitor: int | None = None  # which monitor; None for the primary one
    #: the environment that applications are started in; None for this process's own
    environ: dict[str, str] | None = None
    sandbox: bool = False  # whether the desktop is a throw-away one
    #: the text that replaces a family's system text, by the family's name; None where none does
    system_prompt: Callable[[str], str | None] = lambda _: None
    #: what a person chose of a family's own ways, by the family's name
    family_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    bundle: str = ""  # where the run is recorded
    patience: Patience = Patience()  # noqa: RUF009 -- frozen
    grants: Grants = field(default_factory=Grants)  # what the person allowed for good in this session
    stop_key: str = DEFAULT_CHORD  # the chord that stops it anywhere; "none" for none
    title: str = ""  # what it is called in lists of running runs, secrets masked; the instruction unless given
    open_desktop: OpenDesktop = open_desktop  # opens the desktop that it works on
    zoom: Zoom = "auto"  # when a place is looked at more closely before it is clicked
    families: Mapping[Role, str] = field(default_factory=dict)  # of the other roles' models, where they are named
    calibrate: Wish = "off"  # whether it is found out first where the model clicks
    tell: Callable[[str], None] = lambda _: None  # is told how that goes, which takes a while
    relief_steps: int = 5  # for how many steps a second model takes over where the first is stuck
    mask: Callable[[str], str] = lambda text: text  # takes secrets out of what is sent to one elsewhere


async def run(
    request: Request, person: Person, stop: StopSwitch, emit: Emit, steering: Steering | None = None
) -> RunFinished:
    """Carry out a run; its events go to `emit`, from `RunStarted` to the `RunFinished` that is returned too.

    Raises:
        MaiError: the run could not even begin.
        Exception: what `emit` raised.
    """
    race = Race(stop)
    async with AsyncExitStack() as opened:
        registered = Registered(Path(request.bundle).name, request.title or request.settings.instruction)
        opened.callback(registered.close)
        models, without = await _models(request, opened, race)
        actor = models["actor"]
        chosen = request.family_options.get(actor.family.facts.name, {})
        settings = replace(request.settings, options={**request.settings.options, **chosen})
        settings = _fitted(settings, actor, request.environ)
        real = request.open_desktop(stop, request.monitor, request.environ)
        opened.callback(real.close)
        viewport = real.screen.grab().viewport
        models |= await race(_aimed(request, settings, models, viewport.captured))
        actor = models["actor"]
        settings = _fitted(settings, actor, request.environ)
        # On a throw-away desktop, there is no terminal that could run us.
        environ = os.environ if request.environ is None else request.environ
        languages, unread = reading_languages(environ)
        desktop = GuardedDesktop(real, dry_run=settings.dry_run, ours=not request.sandbox, languages=languages)
        opened.callback(desktop.close)
        ground = Ground(desktop, languages, request.system_prompt, request.zoom, models.get("grounder"))
        own = main_model(actor, settings, ground)
        consent = Consent(
            request.policy, desktop.approver(person), steering or Steering(), desktop.surroundings, request.grants
        )
        recorded = [Path(request.bundle).absolute()] if request.bundle else []
        context = RunContext(
            own.observer, desktop.hand, own.actor, own.history, consent, person, stop,
            open_witness=partial(real.open_witness, environ, recorded),
            relief=_relief(request, actor, models.get("relief"), ground),
        )  # fmt: skip
        emit(
            RunStarted(
                instruction=settings.instruction,
                models={role: model.in_use() for role, model in models.items()},
                style=str(settings.options.get("style", "")),
                dry_run=settings.dry_run,
                approve=request.policy.mode,
                sandbox=request.sandbox,
                viewport=viewport,
                bundle=request.bundle,
                sandbox_name=environ.get(MARK, ""),
            )
        )
        told = desktop.watch(request.stop_key, steering)
        judged = request.policy.mode != "never"
        remarks = [remark for model in models.values() for remark in model.remarks]
        reads = judged or actor.family.facts.outline or settings.see != "screenshot"
        for remark in (
            *remarks,
            without,
            *desktop.remarks(judged=judged),
            unread if reads else "",
            registered.remark,
            told,
        ):
            if remark:
                emit(Warned(remark))
        return await Loop(settings, context).run(emit)


async def _models(request: Request, opened: AsyncExitStack, race: Race) -> tuple[dict[Role, ServedModel], str]:
    """The models by their roles, asked what they serve; a second sentence says why one that helps out is not there."""
    families = {**request.families, "actor": request.family}
    models: dict[Role, ServedModel] = {}
    remark = ""
    for role, engine in request.engines.items():
        opening = partial(open_model, engine, families.get(role), request.patience, opened, race)
        if role != "relief":
            models[role] = await opening()
        elif engine.endpoint.is_local or request.policy.leaving.screenshots != "never":
            try:
                models[role] = await opening(helps_out=True)
            except MaiError as error:
                race.check()
                remark = f"No other model can take over if this one is stuck: {error}"
    return models, remark


async def _aimed(
    request: Request, settings: RunSettings, models: Mapping[Role, ServedModel], screen: Size
) -> dict[Role, ServedModel]:
    """The model that finds places, so that its clicks land. Raises MaiError: they do not, or it cannot be asked."""
    if grounder := models.get("grounder"):
        return {"grounder": await calibrated(grounder, screen, request.calibrate, None, request.tell)}
    if settings.see == "outline":  # it sees no picture
        return {}
    return {"actor": await calibrated(models["actor"], screen, request.calibrate, settings.max_pixels, request.tell)}


def _relief(request: Request, actor: ServedModel, relief: ServedModel | None, ground: Ground) -> FallbackModel | None:
    """What may take over where the actor is stuck; None where none is named, or it cannot be asked."""
    engine, leaving = request.engines.get("relief"), request.policy.leaving
    if engine is None:
        return None
    if relief is None:
        return FallbackModel(engine.endpoint, _never, leaving) if not engine.endpoint.is_local else None
    name = relief.family.facts.name
    prompt = request.system_prompt(name) if name == actor.family.facts.name else None
    options = {**request.settings.options, **request.family_options.get(name, {})}
    settings = _fitted(replace(request.settings, see=None, options=options), relief, request.environ)
    join = partial(fallback_model, relief, settings, ground, leaving, request.mask, prompt)
    return FallbackModel(relief.endpoint, join, leaving, request.relief_steps, request.bundle)


def _never() -> DecidingModel:
    raise EnvironmentLacksError("The model that may take over was not asked what it is.")


def _fitted(settings: RunSettings, actor: ServedModel, environ: Mapping[str, str] | None) -> RunSettings:
    """The settings, with what the model's limits and kind imply. Raises UsageError."""
    if actor.endpoint.kind == "literal":  # it knows where things live on some desktops, and what they are called there
        told = os.environ if environ is None else environ
        where = {name: told[name] for name in _TELLS_DESKTOP if name in told}
        settings = replace(
            settings, options={**settings.options, "environ": where}, own_engine=True, loop_rule=_OWN_LOOP_RULE
        )
    facts = actor.family.facts
    if not actor.family.acts:
        raise UsageError(
            f"The models of {facts.name} find places and decide nothing.", "Use one as --grounder beside a --planner."
        )
    see = settings.see or facts.see
    if see == "outline" and not facts.names_elements:
        raise UsageError(
            f"The family {facts.name!r} points at a screenshot, and cannot do without one.",
            "Leave --see out, or choose --family generic.",
        )
    settings = replace(settings, see=see, options={**settings.options, "see": see})
    if see == "outline":
        return settings
    return replace(settings, max_pixels=pixel_budget(actor.family, actor.endpoint.limits, settings.max_pixels))
