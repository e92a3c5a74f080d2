"""Assembles a run from a request (screen, engine, family, hand and loop), and closes everything afterwards.

This is the only module that knows all parts. Its events are those of the loop, with `RunStarted` first.
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
from agent.desktop.programs import MARK
from agent.desktop.protocol.desktop import DEFAULT_CHORD, OpenDesktop
from agent.events.run_events import Emit, RunFinished, RunStarted, Warned
from agent.families.base import PromptRequest
from agent.families.published import Published
from agent.model.asking import Patience
from agent.model.engines import Engine
from agent.run.calibration.remembered import Wish, calibrated
from agent.run.control import Race, Steering
from agent.run.loop.context import OpenTools, Person, RunContext, Tools
from agent.run.loop.loop import Loop
from agent.run.models.assemble import FallbackModel, Ground, fallback_model, main_model
from agent.run.models.history import pixel_budget
from agent.run.models.resolve_point import Zoom
from agent.run.models.roles import Role, ServedModel, open_model
from agent.run.models.settings import LoopRule, RunSettings
from agent.safety.policy import Policy
from agent.safety.stop import Registered, StopSwitch
from agent.screen.ocr import reading_languages
from foundation.errors import MaiError, UsageError

#: The built-in engine counts its attempts itself, and presses a key until a slider holds a number.
_OWN_LOOP_RULE = LoopRule(nudge_at=40, stop_at=41)
#: Environment variables that name the desktop and its language.
_TELLS_DESKTOP = ("XDG_CURRENT_DESKTOP", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")

#: Stands in for MCP tools before their servers start, to see whether a family's prompt has a place for tools.
_ANY_TOOLS = ({"name": "tool", "description": "A tool.", "parameters": {"type": "object", "properties": {}}},)


@dataclass(frozen=True, slots=True)
class Request:
    """A run as requested by the caller."""

    settings: RunSettings  # how the run is done
    engines: Mapping[Role, Engine]  # the engine that serves each role's model; there is always an actor
    policy: Policy  # which actions need approval
    family: str | None = None  # the actor's family; None to detect it
    monitor: int | None = None  # index of the monitor; None for the primary one
    #: the environment for started applications; None for this process's own
    environ: dict[str, str] | None = None
    sandbox: bool = False  # whether the desktop is disposable
    #: the replacement for a family's system prompt, by family name; None to keep the family's own
    system_prompt: Callable[[str], str | None] = lambda _: None
    #: publishers' prompt words, by family name; None for our own words
    published: Callable[[str], Published | None] = lambda _: None
    #: the user's values for a family's own options, by family name
    family_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    bundle: str = ""  # folder of the run's record
    patience: Patience = Patience()  # noqa: RUF009 -- frozen
    stop_key: str = DEFAULT_CHORD  # global hotkey that stops the run; "none" for no hotkey
    title: str = ""  # name in lists of running runs, secrets masked; default: the instruction
    open_desktop: OpenDesktop = open_desktop  # opens the desktop to work on
    zoom: Zoom = "auto"  # when to take a closer look at a place before the click
    #: families of the other roles' models, if the user names them
    families: Mapping[Role, str] = field(default_factory=dict)
    calibrate: Wish = "off"  # whether to calibrate the model's clicks first
    tell: Callable[[str], None] = lambda _: None  # receives progress messages of the calibration
    open_tools: OpenTools | None = None  # opens the tools that the model may call besides the desktop
    relief_steps: int = 5  # steps for which the fallback model takes over
    mask: Callable[[str], str] = lambda text: text  # masks secrets in what is sent to a model on another machine
    trace: str = ""  # the `traceparent` that is sent to the model's server; "" for none


async def run(
    request: Request, person: Person, stop: StopSwitch, emit: Emit, steering: Steering | None = None
) -> RunFinished:
    """Carry out a run. Every event goes to `emit`, from `RunStarted` to the `RunFinished` that is returned.

    Raises:
        MaiError: the run could not start.
        Exception: what `emit` raised.
    """
    race = Race(stop)
    async with AsyncExitStack() as opened:
        registered = Registered(Path(request.bundle).name, request.title or request.settings.instruction)
        opened.callback(registered.close)
        models, without = await _models(request, opened, race)
        models = {role: _worded(request, model) for role, model in models.items()}
        actor = models["actor"]
        chosen = request.family_options.get(actor.family.facts.name, {})
        settings = replace(request.settings, options={**request.settings.options, **chosen})
        settings = _fitted(settings, actor, request)
        real = request.open_desktop(stop, request.monitor, request.environ)
        opened.callback(real.close)
        viewport = real.screen.grab().viewport
        models |= await race(_calibrated_models(request, settings, models, viewport.captured))
        actor = models["actor"]
        tools, untold = await _tools(request, actor, opened, race)
        settings = replace(_fitted(settings, actor, request), tools=tuple(tools.definitions))
        # A disposable desktop has no terminal window that runs mai-agent, so `ours` is off there.
        environ = os.environ if request.environ is None else request.environ
        languages, unread = reading_languages(environ)
        desktop = GuardedDesktop(real, dry_run=settings.dry_run, ours=not request.sandbox, languages=languages)
        opened.callback(desktop.close)
        ground = Ground(desktop, languages, request.system_prompt, request.zoom, models.get("grounder"))
        own = main_model(actor, settings, ground)
        relief = _relief(request, actor, models.get("relief"), ground)
        emit(
            RunStarted(
                instruction=settings.instruction,
                models={
                    role: model.in_use(role, own_prompt=_has_own(request, role, model))
                    for role, model in models.items()
                },
                style=str(settings.options.get("style", "")),
                dry_run=settings.dry_run,
                approve=request.policy.mode,
                sandbox=request.sandbox,
                viewport=viewport,
                bundle=request.bundle,
                sandbox_name=environ.get(MARK, ""),
                machine=real.abilities.machine,
            )
        )
        watch_remark = desktop.watch(request.stop_key, steering)
        remarks = [remark for model in models.values() for remark in model.remarks] + [*tools.remarks, untold, without]
        reads = request.policy.mode != "never" or actor.family.facts.outline or settings.see != "screenshot"
        remarks += desktop.remarks(judged=request.policy.mode != "never")
        for remark in filter(None, [*remarks, unread if reads else "", registered.remark, watch_remark]):
            emit(Warned(remark))
        recorded = [Path(request.bundle).absolute()] if request.bundle else []
        context = RunContext(
            own, desktop.hand, request.policy, desktop.approver(person), person, stop, desktop.surroundings,
            steering or Steering(), tools=tools, open_witness=partial(real.open_witness, environ, recorded),
            relief=relief,
        )  # fmt: skip
        return await Loop(context).run(emit)


async def _models(request: Request, opened: AsyncExitStack, race: Race) -> tuple[dict[Role, ServedModel], str]:
    """Open the model of each role. Return them with a sentence on why the fallback model is missing, "" otherwise."""
    families = {**request.families, "actor": request.family}
    models: dict[Role, ServedModel] = {}
    remark = ""
    for role, engine in request.engines.items():
        opening = partial(open_model, engine, families.get(role), request.patience, opened, race, trace=request.trace)
        if role != "relief":
            models[role] = await opening()
        elif engine.endpoint.is_local or request.policy.leaving.screenshots != "never":
            try:
                models[role] = await opening(is_fallback=True)
            except MaiError as error:
                race.check()
                remark = f"No other model can take over if this one is stuck: {error}"
        else:
            remark = (
                f"The model at {engine.endpoint.host} may not take over if this one is stuck: the policy lets nothing "
                'be sent to it. To allow that, write screenshots = "ask" under [leaving] in your policy file '
                "(docs/safety.md)."
            )
    return models, remark


def _worded(request: Request, model: ServedModel) -> ServedModel:
    """Return a model that is asked in its publisher's words, if these were fetched and fit the run."""
    name = model.family.facts.name
    options = {**request.settings.options, **request.family_options.get(name, {})}
    return replace(
        model, family=model.family.wording(request.published(name), options, _ANY_TOOLS if request.open_tools else ())
    )


def _has_own(request: Request, role: Role, model: ServedModel) -> bool:
    return role != "grounder" and request.system_prompt(model.family.facts.name) is not None


async def _tools(request: Request, actor: ServedModel, opened: AsyncExitStack, race: Race) -> tuple[Tools, str]:
    """Open the tools that the model may call. Return them with a sentence on why there are none, "" otherwise."""
    if request.open_tools is None:
        return Tools(), ""
    prompt = PromptRequest(instruction="x", images=(None,), model=actor.client.endpoint.model or "")
    if actor.family.request(prompt) == actor.family.request(replace(prompt, tools=_ANY_TOOLS)):
        name = actor.family.facts.name
        return Tools(), f"The format of {name} has no place for tools: the MCP servers are not started."
    return await race(opened.enter_async_context(request.open_tools())), ""


async def _calibrated_models(
    request: Request, settings: RunSettings, models: Mapping[Role, ServedModel], screen: Size
) -> dict[Role, ServedModel]:
    """Calibrate the model that finds places, and return it by its role.

    Raises MaiError: its clicks do not land, or it cannot be asked.
    """
    if grounder := models.get("grounder"):
        return {"grounder": await calibrated(grounder, screen, request.calibrate, None, request.tell)}
    if settings.see == "outline":  # a model without images
        return {}
    return {"actor": await calibrated(models["actor"], screen, request.calibrate, settings.max_pixels, request.tell)}


def _relief(request: Request, actor: ServedModel, relief: ServedModel | None, ground: Ground) -> FallbackModel | None:
    """Return the fallback model; None if none was opened."""
    if relief is None:
        return None
    name, leaving = relief.family.facts.name, request.policy.leaving
    prompt = request.system_prompt(name) if name == actor.family.facts.name else None
    options = {**request.settings.options, **request.family_options.get(name, {})}
    settings = _fitted(replace(request.settings, see=None, options=options), relief, request)
    join = partial(fallback_model, relief, settings, ground, leaving, request.mask, prompt)
    return FallbackModel(relief.endpoint, join, leaving, request.relief_steps, request.bundle)


def _fitted(settings: RunSettings, actor: ServedModel, request: Request) -> RunSettings:
    """Adapt the settings to the model's limits and kind. Raises UsageError."""
    # The built-in engine finds settings by names, which depend on desktop and language
    if actor.endpoint.kind == "literal":
        environ = os.environ if request.environ is None else request.environ
        variables = {name: environ[name] for name in _TELLS_DESKTOP if name in environ}
        options = {"environ": variables, "asks": request.policy.mode != "never" and not settings.dry_run}
        settings = replace(settings, options={**settings.options, **options}, own_engine=True, loop_rule=_OWN_LOOP_RULE)
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
