"""Argument types and options that several commands share."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from agent.settings import DESKTOP_KINDS
from foundation.arguments import positive, positive_seconds
from foundation.configs import config_names
from foundation.errors import UsageError

if TYPE_CHECKING:
    from agent.core.geometry import Size
    from agent.record.read import Bundle


def size(text: str) -> "Size":
    """An argument such as 1920x1080."""
    from agent.core.geometry import Size

    try:
        return Size.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def sandbox_size(text: str) -> "Size":
    """The same for the screen of a sandbox. Raises UsageError: no desktop can be used at that size."""
    from agent.sandbox.sizes import check_size

    wanted = size(text)
    check_size(wanted)
    return wanted


def add_runs(parser: argparse.ArgumentParser) -> None:
    """--runs, for the commands that write or read run bundles."""
    parser.add_argument("--runs", metavar="DIR", type=Path, help="folder of the recorded runs")


def add_recorded_run(parser: argparse.ArgumentParser) -> None:
    """The recorded run that a command is about, and where to look for it."""
    parser.add_argument("run", metavar="RUN", help='an id (or its beginning), a folder, or "last"')
    add_runs(parser)


def recorded_run(options: argparse.Namespace) -> "Bundle":
    """The run that was named. Raises UsageError."""
    from agent.record.folders import runs_dir
    from agent.record.read import find_bundle
    from agent.settings import load_settings

    return find_bundle(runs_dir(options.runs, load_settings()), options.run)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """The options that choose what is asked, for `run` and `act`."""
    group = parser.add_argument_group("engine")
    group.add_argument(
        "--engine", choices=("auto", "vllm", "literal", "endpoint"), metavar="ENGINE",
        help="auto (default: the named endpoint, a running server, the graphics card, else the literal engine), vllm, "
        "literal, or endpoint",
    )  # fmt: skip
    group.add_argument("--endpoint", metavar="URL", help="an OpenAI-compatible endpoint, for example "
                       "127.0.0.1:8000; or openai, anthropic, gemini")  # fmt: skip
    group.add_argument("--model", metavar="NAME", help="the model: of the endpoint, or for vllm a name (MAI-UI-8B), a "
                       "repository or a folder")  # fmt: skip
    group.add_argument("--preset", metavar="NAME", help="how vllm serves it: latency (default), balanced, ... "
                       "(mai-server plan --help)")  # fmt: skip
    group.add_argument("--family", metavar="NAME", help="the model's family (default: found out from its name)")
    group.add_argument("--no-thinking", action="store_true", help="ask for answers without a thought")
    group.add_argument("--system-prompt", metavar="FILE", type=Path, help="replace the family's system text")
    group.add_argument("--max-pixels", metavar="N", type=positive, help="pixel budget of a screenshot")
    group.add_argument(
        "--patience", metavar="SECONDS", type=positive_seconds, help="longest wait for a first token (default 300)"
    )


def add_other_models(parser: argparse.ArgumentParser) -> None:
    """The options for models beside the one that acts."""
    group = parser.add_argument_group("two models")
    group.add_argument("--planner", metavar="URL", help="an endpoint whose model says in words what to do (local: a "
                       "vLLM of ours beside the engine's); the engine's model then only finds the places")  # fmt: skip
    group.add_argument("--grounder", metavar="URL", help="an endpoint whose model finds the places; the engine's "
                       "model then says in words what to do")  # fmt: skip
    group.add_argument("--relief", metavar="URL", help="an endpoint whose model takes over for a while where the "
                       "engine's is stuck; elsewhere only as the policy file allows")  # fmt: skip
    group.add_argument("--relief-steps", metavar="N", type=positive, help="for so many steps (default 5)")
    found_out = "found out from its name"
    for role, family in (
        ("planner", "planner, a format for any model"), ("grounder", found_out), ("relief", found_out),
    ):  # fmt: skip
        group.add_argument(f"--{role}-model", metavar="NAME", help=f"which of the {role}'s models")
        group.add_argument(f"--{role}-family", metavar="NAME", help=f"its family (default: {family})")
    group.add_argument("--zoom", choices=("auto", "off", "always"), help="look closely before a click: where the first "
                       "guess may be off (auto, default), never, or always")  # fmt: skip
    group.add_argument("--calibrate", choices=("auto", "off", "always"), help="find out first where the model clicks: "
                       "once for an endpoint of yours (auto, default), never, or before this run")  # fmt: skip


def add_desktop(parser: argparse.ArgumentParser) -> None:
    """Which desktop, and by which way."""
    parser.add_argument("--monitor", metavar="N", type=positive, help="which monitor (default: the primary one)")
    parser.add_argument("--desktop", choices=DESKTOP_KINDS, help="how the desktop is seen and touched: x11; portal "
                        "(GNOME, KDE: asks you once in a dialog); wlroots (sway, Hyprland and their like); default "
                        "auto, by what the session offers, Wayland first")  # fmt: skip


def add_sandbox(parser: argparse.ArgumentParser) -> None:
    """A throw-away desktop."""
    group = parser.add_argument_group("sandbox")
    group.add_argument("--sandbox", action="store_true", help="run in a throw-away desktop (Xvfb and XFCE)")
    group.add_argument("--sandbox-size", metavar="WxH", type=sandbox_size,
                       help="from 640x480 to 7680x7680 (default 1920x1080)")  # fmt: skip
    group.add_argument("--sandbox-session", choices=config_names("sandbox"), help="which desktop "
                       "(default xfce), for gnome, kde and cinnamon their applications without the shell; bare: only a "
                       "window manager; sway, gnome-shell: Wayland")  # fmt: skip
    group.add_argument("--sandbox-locale", metavar="NAME", help="what it speaks, as in de_DE.UTF-8 (default: what you "
                       "speak)")  # fmt: skip
    group.add_argument("--sandbox-network", choices=("none", "host"), help="what programs in it reach: nothing, or "
                       "what this machine does (default host)")  # fmt: skip
    group.add_argument("--keep", action="store_true", help="leave the sandbox running, and say how to look at it")


def check_sandbox(given: argparse.Namespace) -> None:
    """What is about a sandbox must not end on the person's own desktop, nor the other way round. Raises UsageError."""
    about = [name for name in ("sandbox_size", "sandbox_session", "sandbox_locale", "sandbox_network", "keep")
             if getattr(given, name)]  # fmt: skip
    if about and not given.sandbox:
        raise UsageError(
            f"{_written(about[0])} is about a throw-away desktop, and none is asked for.", "Add --sandbox."
        )
    if given.sandbox and given.desktop not in (None, "auto"):
        raise UsageError(
            f"--desktop {given.desktop} is about your own desktop; a sandbox is used in the way of its kind.",
            "Leave it out, or choose the kind with --sandbox-session.",
        )


def _written(name: str) -> str:
    return f"--{name.replace('_', '-')}"
