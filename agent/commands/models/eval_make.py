"""`mai-agent eval make`: DeskBench, a benchmark of grounding on throw-away desktops."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.commands.arguments import sandbox_size
from foundation.command_line import plain_text, positive
from foundation.errors import ExitStatus
from foundation.printing import put, remark


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the contents of the benchmark, and for its folder."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder for DeskBench.json and its pictures")
    parser.add_argument("--number", metavar="N", type=positive, default=100, help="how many samples (default: 100)")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="the same seed makes the same (default: 1)")
    parser.add_argument("--sizes", metavar="WxH,...", type=_listed(sandbox_size), default="1280x800,1920x1080",
                        help="sizes of the desktops (default: 1280x800,1920x1080)")  # fmt: skip
    parser.add_argument("--themes", metavar="NAME,...", type=_listed(_theme), default="light,dark",
                        help="some of light, dark, contrast (default: light,dark)")  # fmt: skip
    parser.add_argument("--locales", metavar="NAME,...", type=_listed(plain_text), default="en_US",
                        help="languages, such as de_DE,fr_FR (default: en_US)")  # fmt: skip


def _listed(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(map(kind, text.split(",")))


def _theme(name: str) -> str:
    from agent.evals.making import themes

    if name not in themes():
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(themes())}")
    return name


def run(options: argparse.Namespace) -> int:
    """Make the benchmark."""
    from agent.evals.making import Wishes, make

    made = make(
        options.folder, Wishes(options.number, options.seed, options.sizes, options.themes, options.locales), remark
    )
    put(f"{options.folder}: {made} samples. Ask a model: mai-agent eval grounding deskbench {options.folder} --out DIR")
    return ExitStatus.DONE
