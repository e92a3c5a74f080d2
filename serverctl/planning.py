"""Makes plans: the entry point to `plan/`, which itself reads no files.

Loads the shipped tables and the models. Resolves what a user asks for on this machine: the hardware, the vLLM that
would run, and its flags. Stores what starts taught: the memory that vLLM measured, and the adjustments with which a
server became ready. The next start of the same model on the same cards uses them.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from foundation.files import keep_json, read_json_object
from serverctl.diagnose.stages import StartReport
from serverctl.hardware.catalogue import cards, plain_name, plain_names
from serverctl.hardware.detect import detect
from serverctl.hardware.facts import CannotPlanError, Gpu, Hardware
from serverctl.models.find import find_model, known_models, whole_name
from serverctl.models.model import Model, Precision
from serverctl.paths import calibration_file, good_plans_file
from serverctl.plan.colocation import Part, plan_together
from serverctl.plan.decide import make_plan
from serverctl.plan.env import LOG_LEVEL, hides_stages
from serverctl.plan.goal import CardLimits, Goal, Plan, Presets, Tables
from serverctl.plan.kinds.gaudi import PLUGIN_ENV
from serverctl.plan.memory import Measured, ProcessorTable, Seeds, measurement_key
from serverctl.plan.quantization import Method, QuantTable
from serverctl.plan.settings import Settings, check_value
from serverctl.plan.speed import SpeedTable
from serverctl.vllm.builds import VllmEnvironment, build_for, driver_warning, find_environment
from serverctl.vllm.capabilities import Capabilities, installed, snapshot, variables_now
from serverctl.vllm.install import install
from serverctl.vllm.packages import Report

if TYPE_CHECKING:
    from serverctl.config import ServerConfig

#: Models to choose from if the user names none; the first that fits well wins. 8B needs a fraction of 32B's time.
AUTOMATIC_MODELS = ("MAI-UI-8B", "MAI-UI-2B")


@cache
def load_presets() -> Presets:
    """Load the shipped presets."""
    return Presets.read(load_config("presets/presets.toml"))


@cache
def speed_table() -> SpeedTable:
    """Load the shipped numbers for speed estimates."""
    return SpeedTable(**load_config("speed.toml"))


@cache
def load_limits() -> Callable[[Gpu], CardLimits]:
    """Load the shipped limits by memory tier and by card, and return a function from a card to its limits."""
    tiers, listed = load_config("gpus/tiers.toml")["tier"], [card for card in cards() if card.get("limits")]

    @cache
    def limits_for(gpu: Gpu) -> CardLimits:
        tier = next((tier for tier in tiers if gpu.total_gib < tier["below_gib"]), tiers[-1])
        values = {"source": "configs/gpus/tiers.toml", **tier}
        for card in listed:
            if plain_name(gpu.name) in plain_names(card):
                values |= {**card["limits"], "source": f"configs/gpus/cards.toml, {card['key']}"}
        del values["below_gib"]
        return CardLimits(**values)

    return limits_for


def load_tables(models: tuple[Model, ...]) -> Tables:
    """Load all tables, with the current measurements."""
    memory, quant = load_config("memory.toml"), load_config("vllm/quantization.toml")
    seeds, processor = Seeds(**memory["seeds"]), ProcessorTable(**memory["cpu"])
    methods = {name: Method(**entry) for name, entry in quant["method"].items()}
    table = QuantTable(methods, quant["vendors"], quant["gone"])
    return Tables(
        load_presets(), seeds, memory["utilization"], processor, load_limits(), read_measurements(), models, table,
        **load_config("plan.toml"), environ={name: text for name, text in os.environ.items() if name in PLUGIN_ENV},
    )  # fmt: skip


def plan_for(hardware: Hardware, goal: Goal, vllm: str) -> Plan:
    """Return the plan for the hardware, the goal and the version of vLLM.

    Raises:
        CannotPlanError: nothing works; the message gives the reason and the alternatives.
        UsageError: the model or preset does not exist.
        EnvironmentLacksError: the hub is needed and cannot be reached.
    """
    wished = goal.adjustments.get("model") or goal.model
    model = find_model(str(wished)) if wished else None
    return make_plan(hardware, goal, vllm, model, load_tables(_own_models(all_of_them=model is None)))


def plans_for(hardware: Hardware, goals: Sequence[Goal], vllm: str) -> tuple[Part, ...]:
    """Return plans for several models at the same time. Raises as `plan_for`, also if they do not fit together."""
    return plan_together(hardware, goals, lambda some, goal: plan_for(some, goal, vllm))


def _own_models(all_of_them: bool) -> tuple[Model, ...]:
    """Return the models to choose from. Broken files raise only if the model could be chosen."""
    found: list[Model] = []
    for name in AUTOMATIC_MODELS:
        with suppress(*(() if all_of_them else (MaiError,))):
            found.append(find_model(name, allow_network=False))
    return tuple(found)


#: The version of vLLM for plans for other hardware: the newest supported one.
NEWEST = "0.33.0"
CPU_SNAPSHOT = "0.32.0-cpu"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A goal with everything that its plan needs."""

    hardware: Hardware  # detected or imagined
    goal: Goal
    vllm: VllmEnvironment | None  # the vLLM that would run; None if none is installed or the hardware is imagined
    capabilities: Capabilities  # of that vLLM, or of a snapshot
    config: "ServerConfig"  # the user's settings

    def with_vllm(self, agrees: Callable[[str], bool] | None, report: Report) -> "Resolved":
        """Return a copy with an installed vLLM. Install it if `agrees` returns True; None means nobody can be asked.

        Raises MaiError if no plan works, the user does not agree, or the installation fails.
        """
        if self.vllm is not None:
            return self
        self.plan()  # raises before an installation that would be useless
        build = build_for(self.hardware)
        package = f"{build.packages[0]} for {build.about.split(',')[0]} (about {build.disk_gib:.0f} GiB)"
        if agrees is None:
            raise EnvironmentLacksError(
                f"vLLM is not installed: {package}.", "`mai-server install` installs it, or `mai-server up --yes`."
            )
        if not agrees(f"vLLM is not installed: {package}. Install it now?"):
            raise EnvironmentLacksError("vLLM is needed and was not installed.", "`mai-server install` installs it.")
        install(build, report)
        found = find_environment(None, self.hardware)
        if found is None:
            raise MaiError("The installed vLLM was not found again.", "`mai-server doctor` says what is there.")
        return replace(self, vllm=found, capabilities=installed(found.python))

    def plan(self) -> Plan:
        """Make the plan. Raises CannotPlanError or UsageError."""
        if self.goal.preset == "reasoning" and self.goal.model is None:
            raise UsageError(
                "The preset reasoning is for models that think first.", "Name one: --model Qwen3-VL-8B-Thinking."
            )
        if self.hardware.problems and not self.hardware.gpus and not self.hardware.imagined and not self.goal.force:
            raise CannotPlanError(
                " ".join(self.hardware.problems), "Repair that, or plan for the processor alone with --gpu cpu."
            )
        plan = plan_for(self.hardware, self.goal, self.capabilities.version)
        plugin = PLUGIN_ENV if plan.vendor == "gaudi" else frozenset()
        warnings = [*plan.warnings, *variables_now(os.environ, self.capabilities, plugin)]
        if hides_stages(os.environ) and LOG_LEVEL not in plan.env:
            text = "a start ignores it, because the log must contain the stages and the memory (INFO)."
            warnings.append(f"{LOG_LEVEL}={os.environ[LOG_LEVEL]} is set: {text}")
        if self.vllm is None or self.vllm.version:
            warnings += filter(None, [driver_warning(self.hardware)])
        return replace(plan, warnings=tuple(warnings))

    def beside(self, models: Sequence[str]) -> tuple["Resolved", ...]:
        """Divide the cards between this goal and other models. Raises as `plan`.

        Return this goal first, then one for each model, each with its cards or its share of one.
        """
        if not models:
            return (self,)
        if not all(model.strip() for model in models):
            raise UsageError("The name of the other model is empty.", "Name it: --beside MAI-UI-2B.")
        others = (replace(self.goal, model=model, overrides={}, extra=()) for model in models)
        named = [_canonical(model) for model in (self.goal.model, *models) if model is not None]
        _refuse_twice([model.casefold() for model in named if model])
        parts = plans_for(self.hardware, [self.goal, *others], self.capabilities.version)
        _refuse_twice([part.plan.model.source for part in parts])
        cards = [tuple(gpu for replica in part.plan.replicas for gpu in replica) for part in parts]
        return tuple(
            replace(self, goal=part.goal, hardware=replace(self.hardware, gpus=gpus))
            for part, gpus in zip(parts, cards, strict=True)
        )


def _refuse_twice(models: Sequence[str]) -> None:
    if len(set(models)) < len(models):
        raise UsageError(
            "The same model is named twice.",
            "One server answers several agents at a time; --preset throughput serves a model with every card.",
        )


def resolve(
    model: str | None = None,
    preset: str | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    flags: Sequence[str] = (),
    screen: tuple[int, int] | None = None,
    force: bool = False,
    vllm_python: str | None = None,
    hardware: Hardware | None = None,
) -> Resolved:
    """Resolve a goal with the user's settings and this machine. Omitted values come from the settings or defaults.

    `overrides` win over the configured settings, and `flags` follow the configured ones. Raises UsageError for invalid
    arguments or configuration, EnvironmentLacksError if the named Python does not exist.
    """
    from serverctl.config import load_server_config

    config = load_server_config()
    model = model or config.model
    model = None if model is None else whole_name(model)
    hardware = hardware or detect()
    named = vllm_python or config.vllm_python
    environment = None if hardware.imagined and not vllm_python else find_environment(named, hardware)
    capabilities = installed(environment.python) if environment else snapshot_for(hardware)
    goal = Goal(
        model=model,
        preset=config.preset if preset is None else preset,
        overrides={**config.overrides(_canonical(model)), **(overrides or {})},
        extra=(*config.flags, *flags),
        screen=screen or (1920, 1080),
        force=force,
    )
    load_presets().get(goal.preset)
    return Resolved(hardware, goal, environment, capabilities, config)


def snapshot_for(hardware: Hardware) -> Capabilities:
    """Return the snapshot of the vLLM that would be installed for this hardware."""
    if hardware.vendor == "cpu":
        return snapshot(CPU_SNAPSHOT)
    if hardware.vendor == "nvidia" and hardware.driver is not None:
        return snapshot(build_for(hardware).version)
    newest = snapshot(NEWEST)
    if hardware.vendor == "gaudi":
        other = f"the parser of vLLM {NEWEST}, as that of 0.30 is not at hand"
        return replace(newest, version="0.30.0", origin=other, parser=other)
    return newest


def _canonical(model: str | None) -> str | None:
    """Return the name for [server.models."NAME"]: the known name of a repository, or the name of a folder."""
    if model is None:
        return AUTOMATIC_MODELS[0]
    wanted = model.casefold()
    known = (entry.name for entry in known_models() if wanted in (entry.name.casefold(), entry.source.casefold()))
    return next(known, Path(model).name)


#: Adjustments that depend on the current situation, not on the card: not stored.
_OF_THE_MOMENT = ("gpu_memory_utilization",)
_AGAIN = "worked at an earlier start: "


def read_measurements() -> dict[str, Measured]:
    """Return every measurement by its `measurement_key`; they replace the planner's estimates."""
    found = {}
    for key, entry in read_json_object(calibration_file()).items():
        sizes = {field.name: entry.get(field.name) for field in fields(Measured)} if isinstance(entry, dict) else {}
        found[key] = Measured(**{name: size for name, size in sizes.items() if type(size) is int and size >= 0})
    return {key: measured for key, measured in found.items() if measured != Measured()}


def keep_measurement(
    vllm: str, card: str, model: Model, precision: Precision, settings: Settings, measured: Measured
) -> None:
    """Store the measured memory of a start."""
    known = {name: value for name, value in asdict(measured).items() if value is not None}
    document = read_json_object(calibration_file()) | {measurement_key(vllm, card, model, precision, settings): known}
    keep_json(calibration_file(), document)


def measure(report: StartReport, plan: Plan, vllm: str) -> None:
    """Store the memory of a start on cards, if vLLM printed its breakdown."""
    if not plan.gpus or report.consumed is None or report.activations is None:
        return
    context = max(0, report.consumed - report.weights) if report.weights else None
    measured = Measured(report.weights, context, report.activations, report.graphs)
    card = min(plan.gpus, key=lambda gpu: gpu.total_bytes).name
    keep_measurement(vllm, card, plan.model, plan.precision, plan.settings, measured)


def recall_adjustments(plan: Plan, goal: Goal, vllm: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the adjustments that worked before for this plan, and their reasons; empty if there are none."""
    entry = read_json_object(good_plans_file()).get(_key(plan, goal, vllm))
    found = entry if isinstance(entry, Mapping) else {}
    values, reasons = found.get("adjustments"), found.get("because")
    if not isinstance(values, dict) or not isinstance(reasons, dict):
        return {}, {}
    try:
        values = {name: _checked(name, value) for name, value in values.items() if name not in goal.overrides}
    except MaiError:  # written by another version, or by hand
        return {}, {}
    return values, {name: f"{_AGAIN}{text}" for name, text in reasons.items()}


def keep_adjustments(first_plan: Plan, goal: Goal, vllm: str) -> None:
    """Store a goal's adjustments after its server became ready. Without adjustments, delete the stored ones."""
    document = read_json_object(good_plans_file())
    values = {name: value for name, value in goal.adjustments.items() if name not in _OF_THE_MOMENT}
    key = _key(first_plan, goal, vllm)
    if values:
        reasons = {name: goal.adjusted_because.get(name, "").removeprefix(_AGAIN) for name in values}
        document[key] = {"adjustments": values, "because": reasons}
    elif document.pop(key, None) is None:
        return
    keep_json(good_plans_file(), document)


def _key(plan: Plan, goal: Goal, vllm: str) -> str:
    cards = "+".join(gpu.name for gpu in plan.gpus) or "cpu"
    wishes = json.dumps({**goal.overrides, "extra": list(goal.extra)}, sort_keys=True, default=str)
    return "|".join((cards, goal.model or "auto", plan.preset, vllm, wishes))


def _checked(name: str, value: Any) -> Any:
    """Check and convert the value of an adjustment. Raises UsageError."""
    if name in ("precision", "model"):
        if not isinstance(value, str) or (name == "precision" and value not in get_args(Precision)):
            raise UsageError(f"{name} cannot be {value!r}.")
        return value
    # None removes a planned value (an attention backend, a format of the KV cache).
    return None if value is None else check_value(name, value, str(good_plans_file()))
