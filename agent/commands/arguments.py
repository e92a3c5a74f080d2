"""Argument types and options that several commands share."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.settings import OPTIONS, load_settings
from foundation.command_line import positive, positive_seconds
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.printing import put, put_json, remark

if TYPE_CHECKING:
    from agent.core.geometry import Size
    from agent.desktop.protocol.desktop import Desktop
    from agent.model.engines import Engine
    from agent.options import RunOptions
    from agent.record.read import Bundle
    from agent.safety.stop import StopSwitch


def size(text: str) -> "Size":
    """Parse an argument such as 1920x1080."""
    from agent.core.geometry import Size

    try:
        return Size.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def sandbox_size(text: str) -> "Size":
    """Parse the size of a sandbox's screen. Raises UsageError: no desktop can be used at that size."""
    from agent.sandbox.start import check_size

    wanted = size(text)
    check_size(wanted)
    return wanted


#: The error and remedy if the literal engine is asked for a point.
NO_GROUNDING = ("The literal engine has no grounding mode.", "Name a model with --endpoint.")
#: The parser of an option's value, by the kind of the option.
_TYPES: dict[str, Callable[[str], Any]] = {
    "path": Path, "count": positive, "seconds": positive_seconds, "size": sandbox_size,
}  # fmt: skip


def open_own_desktop(stop: "StopSwitch", monitor: int | None = None) -> "Desktop":
    """Open the person's own desktop as the settings say. Print first which question the desktop will ask."""
    from agent.desktop import factory

    kind = load_settings().desktop
    if asks := factory.asks_first(os.environ, kind):
        remark(asks)
    return factory.open_desktop(stop, monitor, kind=kind)


def chosen_engine(options: "RunOptions", no_literal: tuple[str, str] | None = None) -> "Engine":
    """Return the engine that the options name. `no_literal`: the error and remedy if that is the literal engine."""
    from agent.console.terminal import terminal_ask
    from agent.literal.client import literal_engine
    from agent.model.engines import choose_engine

    engine = choose_engine(options.engine, literal_engine, remark, ask=terminal_ask())
    if no_literal is not None and engine.name == "literal":
        raise EnvironmentLacksError(*no_literal)
    return engine


def tell(as_json: bool, value: Any, *lines: str) -> None:
    """Print a value as JSON for a program, or lines for a person."""
    put_json(value) if as_json else put(*lines)


def add_recorded_run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the recorded run that a command is about, and for the folder to search."""
    parser.add_argument("run", metavar="RUN", help='an id (or its beginning), a folder, or "last"')
    add_options(parser, "runs", titled=False)


def recorded_run(options: argparse.Namespace) -> "Bundle":
    """The run that was named. Raises UsageError."""
    from agent.record.read import find_bundle
    from agent.settings import runs_dir

    return find_bundle(runs_dir(options.runs, load_settings()), options.run)


def add_options(
    parser: argparse.ArgumentParser, group: str, *, titled: bool = True, without: Sequence[str] = ()
) -> None:
    """Add the options of one group of `agent.settings.OPTIONS`, except those in `without`."""
    into = parser.add_argument_group(group) if titled else parser
    for option in (one for one in OPTIONS if one.group == group and one.help and one.name not in without):
        if option.kind == "flag":
            into.add_argument(_written(option.name), action="store_true", help=option.help)
        else:
            into.add_argument(
                _written(option.name), metavar=option.metavar, type=_TYPES.get(option.kind, str), help=option.help,
                choices=option.choices or None,
            )  # fmt: skip


def check_sandbox(arguments: argparse.Namespace) -> None:
    """Reject sandbox options without --sandbox, and own-desktop options with it. Raises UsageError."""
    about = [name for name in ("sandbox_size", "sandbox_session", "sandbox_locale", "sandbox_network", "keep")
             if getattr(arguments, name)]  # fmt: skip
    if about and not arguments.sandbox:
        raise UsageError(f"{_written(about[0])} needs a throw-away desktop.", "Add --sandbox.")
    if arguments.sandbox and (arguments.monitor or 1) > 1:
        raise UsageError(
            f"There is no monitor {arguments.monitor}: a throw-away desktop has only monitor 1.", "Leave out --monitor."
        )
    from agent.options import check_one_desktop  # here, as it loads what --help does not need

    check_one_desktop(arguments)
    if arguments.sandbox and arguments.desktop not in (None, "auto"):
        raise UsageError(
            f"--desktop {arguments.desktop} is about your own desktop; a sandbox's kind decides this.",
            "Leave it out, or choose the kind with --sandbox-session.",
        )


def _written(name: str) -> str:
    return f"--{name.replace('_', '-')}"
