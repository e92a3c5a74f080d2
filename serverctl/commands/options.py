"""Options that several subcommands share, and what becomes of them: hardware, goal, vLLM, plan."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from foundation.errors import MaiError, UsageError
from serverctl.capabilities import Capabilities, installed, snapshot
from serverctl.config import ServerConfig, load_server_config
from serverctl.environment import VllmEnvironment, find_environment
from serverctl.hardware.facts import Hardware
from serverctl.plan.decide import AUTOMATIC_MODELS, make_plan
from serverctl.plan.gate import Build, build_for
from serverctl.plan.goal import CannotPlanError, Goal, Plan
from serverctl.plan.presets import load_preset, preset_names
from serverctl.plan.settings import KNOBS, parse_assignments

#: Plans for hardware that is not here are checked against the newest supported vLLM.
NEWEST = "0.33.0"
CPU_SNAPSHOT = "0.32.0-cpu"


def add_hardware(parser: argparse.ArgumentParser) -> None:
    """Hardware that is not there."""
    group = parser.add_argument_group("hardware (default: what is in this machine)")
    group.add_argument(
        "--gpu", metavar="NAME", help="plan for this card: T4, L4, RTX 4090, H100, ...; 4090+3060 for a mix; cpu"
    )
    group.add_argument(
        "--gpus", type=int, default=None, metavar="N", help="how many of them (with --gpu), or of those here to use"
    )


def add_goal(parser: argparse.ArgumentParser) -> None:
    """What is wanted."""
    group = parser.add_argument_group("what to serve, and how")
    group.add_argument(
        "--model", metavar="NAME", help="MAI-UI-8B, any repository (org/name), or a folder; default: by memory"
    )
    group.add_argument(
        "--preset", metavar="NAME", help=f"one of: {', '.join(preset_names())}; default: {load_preset(None).name}"
    )
    group.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="assignments",
        help="your own value of a setting, never changed by anything (repeat it); `mai-server plan --settings` "
            "lists them",
    )  # fmt: skip
    group.add_argument("--max-model-len", metavar="N", help="short for --set max_model_len=N (or auto)")
    group.add_argument(
        "--screen", metavar="WxH", default=None, help="the screen that will be looked at (default 1920x1080)"
    )
    group.add_argument("--force", action="store_true", help="plan also what is not advised")
    group.add_argument("--vllm-python", metavar="FILE", help="the Python of an environment that has vLLM")
    group.add_argument("flags", nargs="*", metavar="-- FLAGS", help="vLLM's own flags, passed on as they are")


def split_flags(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our arguments, and what follows "--" for vLLM."""
    if "--" not in arguments:
        return arguments, []
    position = arguments.index("--")
    return arguments[:position], arguments[position + 1 :]


@dataclass(frozen=True, slots=True)
class Request:
    """What a command line asked for, resolved.

    Args:
        hardware: found or imagined.
        goal: what is wanted.
        vllm: the vLLM that would run; None where none is installed or the hardware is imagined.
        capabilities: of it, or the snapshot that speaks for it.
    """

    hardware: Hardware
    goal: Goal
    vllm: VllmEnvironment | None
    capabilities: Capabilities
    config: ServerConfig

    def build(self) -> Build:
        """The build of vLLM for this hardware. Raises CannotPlanError where there is none."""
        return build_for(self.hardware)

    def with_installed(self) -> "Request":
        """The same with the vLLM that was just installed. Raises MaiError where it is not found."""
        found = find_environment(None, self.hardware)
        if found is None:
            raise MaiError("The installed vLLM was not found again.", "`mai-server doctor` says what is there.")
        return replace(self, vllm=found, capabilities=installed(found.python))

    def plan(self) -> Plan:
        """The plan. Raises CannotPlanError or UsageError."""
        if self.goal.preset == "reasoning" and self.goal.model is None:
            raise UsageError(
                "The preset reasoning is for models that think first.", "Name one: --model Qwen3-VL-8B-Thinking."
            )
        if self.hardware.problems and not self.hardware.gpus and not self.hardware.imagined and not self.goal.force:
            raise CannotPlanError(
                " ".join(self.hardware.problems), "Repair that, or plan for the processor alone with --gpu cpu."
            )
        return make_plan(self.hardware, self.goal, self.capabilities.version)


def resolve(options: argparse.Namespace, flags: list[str]) -> Request:
    """Hardware, goal and vLLM of a command line.

    Raises:
        UsageError: the command line or the settings' file is wrong.
        EnvironmentLacksError: a named Python is not there.
    """
    config = load_server_config()
    model = options.model or config.model
    overrides = {**config.overrides(_canonical(model)), **parse_assignments(options.assignments)}
    if options.max_model_len is not None:
        overrides.update(parse_assignments([f"max_model_len={options.max_model_len}"]))
    screen = parse_screen(options.screen) if options.screen else (1920, 1080)
    hardware = hardware_of(options)
    named = options.vllm_python or config.vllm_python
    environment = None if hardware.imagined and not options.vllm_python else find_environment(named, hardware)
    capabilities = installed(environment.python) if environment else snapshot_for(hardware)
    goal = Goal(
        model=model,
        preset=options.preset or config.preset,
        overrides=overrides,
        extra=(*config.flags, *flags),
        screen=screen,
        force=options.force,
    )
    load_preset(goal.preset)
    return Request(hardware, goal, environment, capabilities, config)


def request_for(model: str | None, preset: str | None, screen: tuple[int, int] | None) -> Request:
    """The request of somebody who only says what is wanted (the agent); the settings' file counts as for `up`."""
    options = argparse.Namespace(
        model=model, preset=preset, assignments=[], max_model_len=None, screen=None, force=False, vllm_python=None,
        gpu=None, gpus=None,
    )  # fmt: skip
    request = resolve(options, [])
    return request if screen is None else replace(request, goal=replace(request.goal, screen=screen))


def hardware_of(options: argparse.Namespace) -> Hardware:
    """The hardware a command line names, or this machine's."""
    from serverctl.hardware.catalogue import imagine
    from serverctl.hardware.detect import detect, detect_cpu

    if options.gpu is not None:
        imagined = imagine(options.gpu, 1 if options.gpus is None else options.gpus)
        if imagined.vendor != "cpu":
            return imagined
        return Hardware((), detect_cpu())  # the processor is always here: plan for the real one
    found = detect()
    if options.gpus is None:
        return found
    if not 1 <= options.gpus <= max(1, len(found.gpus)):
        raise UsageError(
            f"There are {len(found.gpus)} cards here, not {options.gpus}.", "Name others with --gpu NAME --gpus N."
        )
    return replace(found, gpus=found.gpus[: options.gpus])


def snapshot_for(hardware: Hardware) -> Capabilities:
    """The snapshot that speaks for a vLLM that is not installed: the build this machine would get."""
    if hardware.vendor == "cpu":
        return snapshot(CPU_SNAPSHOT)
    if hardware.vendor == "nvidia" and hardware.driver is not None:
        return snapshot(build_for(hardware).version)
    newest = snapshot(NEWEST)
    if hardware.vendor == "gaudi":
        return replace(newest, version="0.26.0", origin=f"the parser of vLLM {NEWEST}, as 0.26's is not at hand")
    return newest


def parse_screen(text: str) -> tuple[int, int]:
    """Width and height from "1920x1080". Raises UsageError."""
    width, sign, height = text.lower().partition("x")
    if (
        not sign
        or not width.isdigit()
        or not height.isdigit()
        or not (64 <= int(width) <= 16_384 and 64 <= int(height) <= 16_384)
    ):
        raise UsageError(f"{text!r} is no size of a screen.", "Write it as 1920x1080.")
    return int(width), int(height)


def _canonical(model: str | None) -> str | None:
    """The name that [server.models."NAME"] uses: a repository's known name, a folder's own."""
    if model is None:
        return AUTOMATIC_MODELS[0]
    from serverctl.models.find import known_models

    known = next(
        (entry for entry in known_models() if model.casefold() in (entry.name.casefold(), entry.repo.casefold())), None
    )
    return known.name if known else Path(model).name


def settings_listing() -> str:
    """Every knob, its flag and what it does."""
    return "\n".join(f"  {name:<28}{knob.flag:<32}{knob.about}" for name, knob in KNOBS.items())
