"""Options that several subcommands share, and the hardware and goal that they name."""

import argparse
import re
from dataclasses import replace
from typing import Any

from foundation.errors import UsageError
from serverctl.hardware.catalogue import imagine
from serverctl.hardware.detect import detect, detect_cpu
from serverctl.hardware.facts import Hardware
from serverctl.plan.settings import parse_assignments
from serverctl.planning import Resolved, load_presets, resolve


def add_hardware(parser: argparse.ArgumentParser) -> None:
    """Add the hardware options."""
    group = parser.add_argument_group("hardware (default: what is in this machine)").add_argument
    group("--gpu", metavar="NAME", help="plan for this card: T4, L4, RTX 4090, H100, ...; 4090+3060 for a mix; cpu")
    group("--gpus", type=int, default=None, metavar="N", help="how many of them (with --gpu), or of those here to use")
    group("--gpu-memory", type=float, metavar="GIB", help="its memory as the driver reports it, for an unlisted card")
    group("--gpu-capability", metavar="X.Y", help="its CUDA compute capability, for example 8.9")
    group("--gpu-bandwidth", type=float, metavar="GB/s", help="the bandwidth of its memory (its data sheet)")


def add_goal(parser: argparse.ArgumentParser) -> None:
    """Add goal options."""
    group = parser.add_argument_group("what to serve, and how").add_argument
    group("--model", metavar="NAME", help="MAI-UI-8B, any repository (org/name), or a folder; default: by memory")
    presets = load_presets()
    group("--preset", metavar="NAME", help=f"one of: {', '.join(presets.by_name)}; default: {presets.default}")
    group(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="assignments",
        help="your own value of a setting, never changed by anything (repeat it); `mai-server plan --settings` "
            "lists them",
    )  # fmt: skip
    group("--max-model-len", metavar="N", help="short for --set max_model_len=N (or auto)")
    group("--screen", metavar="WxH", default=None, help="the screen that will be looked at (default 1920x1080)")
    group("--force", action="store_true", help="plan also what is not advised")
    group("--vllm-python", metavar="FILE", help="the Python of an environment that has vLLM")
    group("flags", nargs="*", default=[], metavar="-- FLAGS", help="vLLM's own flags, passed on as they are")


def add_beside(parser: argparse.ArgumentParser) -> None:
    """Add the option for other models that run at the same time."""
    parser.add_argument(
        "--beside", action="append", default=[], metavar="NAME",
        help="another model to run at the same time, on cards of its own or a share of one (repeat it)",
    )  # fmt: skip


def split_flags(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our arguments, and what follows "--" for vLLM."""
    if "--" not in arguments:
        return arguments, []
    position = arguments.index("--")
    return arguments[:position], arguments[position + 1 :]


def own_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of --set and --max-model-len. Raises UsageError."""
    short = [] if options.max_model_len is None else [f"max_model_len={options.max_model_len}"]
    return parse_assignments([*options.assignments, *short])


def resolve_options(options: argparse.Namespace, flags: list[str], hardware: Hardware) -> Resolved:
    """Resolve the goal and vLLM of a command line, for some hardware. Raises as `resolve` does."""
    return resolve(
        options.model,
        options.preset,
        overrides=own_settings(options),
        flags=flags,
        screen=parse_screen(options.screen) if options.screen else None,
        force=options.force,
        vllm_python=options.vllm_python,
        hardware=hardware,
    )


def processor_alone() -> Hardware:
    """Return this machine without its cards."""
    return Hardware((), detect_cpu())


def hardware_of(options: argparse.Namespace) -> Hardware:
    """The hardware that the options of `add_hardware` name, or this machine's."""
    specs = _described(options)
    if options.gpu is None:
        if specs:
            text = "--gpu-memory, --gpu-capability and --gpu-bandwidth describe --gpu."
            raise UsageError(text, "Name it: --gpu NAME.")
        return cards_here(options.gpus)
    imagined = imagine(options.gpu, 1 if options.gpus is None else options.gpus, specs)
    return processor_alone() if imagined.vendor == "cpu" else imagined


def cards_here(count: int | None) -> Hardware:
    """Return this machine with its first cards, or all (None). Raises UsageError if there are fewer."""
    found = detect()
    if count is not None and not 1 <= count <= max(1, len(found.gpus)):
        fewer = f", or name up to {len(found.gpus)}" if found.gpus else ""
        raise UsageError(
            f"There are {len(found.gpus)} cards here, not {count}.",
            f"Leave --gpus out{fewer}; `mai-server plan --gpu NAME --gpus N` plans for others.",
        )
    return replace(found, gpus=found.gpus[:count])


#: The largest major number that a card's compute capability may have: 12 in 2026, and some to come.
_LATEST_MAJOR = 15


def _described(options: argparse.Namespace) -> dict[str, Any]:
    """Return the user's description of the card, as for `imagine`. Raises UsageError."""
    memory, bandwidth, capability = options.gpu_memory, options.gpu_bandwidth, options.gpu_capability
    for name, value, most in (("memory", memory, 4096), ("bandwidth", bandwidth, 100_000)):
        if value is not None and not 0 < value <= most:
            raise UsageError(f"--gpu-{name} cannot be {value:g}.", f"It is a number above 0 and up to {most:,}.")
    found = re.fullmatch(r"(\d{1,2})\.(\d)", capability or "")
    if capability is not None and (found is None or not 3 <= int(found[1]) <= _LATEST_MAJOR):
        raise UsageError(
            f"{capability!r} is no compute capability.",
            f"Write it as 8.9; there are some from 3.0 to {_LATEST_MAJOR}.9.",
        )
    numbers = None if found is None else (int(found[1]), int(found[2]))
    specs = {"memory_gib": memory, "compute_capability": numbers, "bandwidth_gb_s": bandwidth}
    return {name: value for name, value in specs.items() if value is not None}


def parse_screen(text: str) -> tuple[int, int]:
    """Width and height from "1920x1080". Raises UsageError."""
    found = re.fullmatch(r"(\d{2,5})x(\d{2,5})", text.lower())
    if found is None or not all(64 <= int(side) <= 16_384 for side in found.groups()):
        raise UsageError(f"{text!r} is no size of a screen.", "Write it as 1920x1080.")
    return int(found[1]), int(found[2])
