"""Argument types and options that several commands share."""

import argparse
from pathlib import Path

from agent.geometry import Size
from foundation.arguments import positive, positive_seconds


def size(text: str) -> Size:
    """An argument such as 1920x1080."""
    try:
        return Size.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_runs(parser: argparse.ArgumentParser) -> None:
    """--runs, for the commands that write or read run bundles."""
    parser.add_argument("--runs", metavar="DIR", type=Path, help="folder of the recorded runs")


def add_engine(parser: argparse.ArgumentParser) -> None:
    """The options that choose what is asked, for `run` and `act`."""
    group = parser.add_argument_group("engine")
    group.add_argument(
        "--engine", choices=("auto", "vllm", "literal", "endpoint"), metavar="ENGINE",
        help="auto (default: the named endpoint, a running server, the graphics card, else the literal engine), vllm, "
        "literal, or endpoint",
    )  # fmt: skip
    group.add_argument("--endpoint", metavar="URL", help="an OpenAI-compatible endpoint, for example 127.0.0.1:8000")
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
