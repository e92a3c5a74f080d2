"""Shared by all commands: parser, argument types, errors as messages and exit statuses, completions and man pages."""

import argparse
import importlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from foundation import printing
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.files import cannot_write
from foundation.printing import put_text

Number = TypeVar("Number", int, float)
#: Similarity (0 to 1) from which a word counts as a misspelling: swapped, missing or doubled letters.
_ALIKE = 0.75


def meant_by(word: str, names: Iterable[str]) -> str | None:
    """Return the name that a word probably misspells, or None."""
    known = list(names)
    return None if word in known else next(iter(get_close_matches(word, known, 1, _ALIKE)), None)


#: Passed to a command instead of arguments if only its parser is wanted. No shell can pass a null character.
_PARSER_WANTED = ["\0"]


class _ParserFound(BaseException):
    """Carries the parser out of a command, past the command's error handling."""

    def __init__(self, parser: "Parser") -> None:
        super().__init__()
        self.parser = parser


class Parser(argparse.ArgumentParser):
    """An argument parser that raises usage errors, and keeps the line breaks of descriptions."""

    def __init__(self, prog: str, *, description: str = "", epilog: str = "", **more: Any) -> None:
        if "\n" in description + epilog:
            more.setdefault("formatter_class", _AsWritten)
        super().__init__(prog, description=description, epilog=epilog, **more)

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002 - argparse names it
        if message:
            put_text(message)

    def parse_known_args(  # type: ignore[override]  # only the overload in use
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as far as arguments are known; `parser_of` asks for the parser itself instead."""
        if args == _PARSER_WANTED:
            raise _ParserFound(self)
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; for an unknown option, name the known one that looks like it."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            self.unrecognized(rest)
        return found

    def take_options(self, other: argparse.ArgumentParser) -> None:
        """Take over the options of another parser, in its groups, and none of its positional arguments."""
        for group in other._action_groups:
            into = self.add_argument_group(group.title, group.description)
            for action in group._group_actions:
                if action.option_strings:
                    into._add_action(action)

    def arguments(self) -> Iterator[argparse.Action]:
        """Yield all arguments, those of subcommands too."""
        for action in self._actions:
            yield action
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    yield from parser.arguments()

    def unrecognized(self, rest: Sequence[str]) -> NoReturn:
        """Raise UsageError for unknown arguments."""
        wrong = next((word.partition("=")[0] for word in rest if word.startswith("-")), rest[0])
        meant = meant_by(wrong, (name for action in self._actions for name in action.option_strings))
        hint = f"Did you mean {meant}? " if meant else ""
        raise UsageError(f"Unrecognized arguments: {' '.join(rest)}.", f"{hint}See {self.prog} --help.")

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing the usage and exiting."""
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", f"See {self.prog} --help.")


class _AsWritten(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(110, shutil.get_terminal_size((112, 24)).columns - 2))


def plain_text(written: str) -> str:
    """Decode an argument as UTF-8 in every locale. Raises ArgumentTypeError."""
    try:
        return os.fsencode(written).decode("utf-8")
    except UnicodeError as error:
        raise argparse.ArgumentTypeError("it is not text in UTF-8") from error


def _number(
    kind: Callable[[str], Number], noun: str, is_allowed: Callable[[Number], bool], complaint: str
) -> Callable[[str], Number]:
    """Return the type of a number argument. {} in `complaint` stands for the text of the argument."""

    def read(text: str) -> Number:
        try:
            if is_allowed(value := kind(text)):
                return value
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"not {noun}: {text!r}") from error
        raise argparse.ArgumentTypeError(complaint.format(text))

    return read


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """Parse a duration such as 90s, 15m or 2h to seconds; a plain number is seconds. Raises ArgumentTypeError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    return positive_seconds(number) * _UNITS[unit]


positive = _number(int, "a whole number", lambda value: value >= 1, "must be at least 1, not {}")
positive_seconds = _number(
    float, "a number of seconds", lambda value: 0 < value < 1e7, "must be above 0 and below 10000000, not {}"
)
port_number = _number(
    int, "a number", lambda value: 1 <= value <= 65_535, "a port is a number from 1 to 65535, so {} is no port"
)


def parser_of(module: str) -> Parser:
    """Return the parser of a command, named as for `run_command`, by running it up to its parsing."""
    try:
        _call(module, list(_PARSER_WANTED))
    except _ParserFound as found:
        return found.parser
    raise LookupError(f"{module} parses no arguments")


def _call(module: str, arguments: list[str]) -> int:
    name, _, function = module.partition(":")
    return int(getattr(importlib.import_module(name), function or "main")(arguments))


def run_command(program: str, module: str, arguments: list[str], as_json: bool = False) -> int:
    """Run `main(arguments)` of a module, or `MODULE:FUNCTION`, and return the exit status.

    Reports every exception but SystemExit. `as_json` also prints errors as JSON to standard output.
    """
    try:
        status = _call(module, arguments)
        printing.flush()
        return status
    except MaiError as error:
        return say_error(program, error, as_json)
    except KeyboardInterrupt:
        printing.remark(f"{program}: Stopped: Ctrl-C.")
        return ExitStatus.STOPPED
    except BrokenPipeError:  # the reader of our output has exited, as `head` does
        printing.close_output()
        return ExitStatus.NOT_DONE
    except OSError as error:  # standard output on a full disk, or a deleted folder
        printing.close_output()
        name = error.filename if isinstance(error.filename, str) else "the output"
        return say_error(program, cannot_write(Path(name), error))
    except Exception as error:
        return say_mistake(program, error)


def say_mistake(program: str, error: BaseException) -> int:
    """Report a bug of the program and where its traceback is. Return the exit status."""
    from foundation.stray_output import keep_traceback

    log = keep_traceback(error)
    details = "" if log is None else f" The details are in {log}."
    printing.remark(f"{program}: Internal error: {type(error).__name__}: {error}. Please report it.{details}")
    return ExitStatus.NOT_DONE


def say_error(program: str, error: MaiError, as_json: bool = False) -> int:
    """Print an error as a command's last line. Return its exit status."""
    if as_json:
        document = {"what": error.what, "remedy": error.remedy, "status": int(error.exit_status)}
        printing.put_json({"error": document})
    printing.remark(f"{program}: {error}")
    return error.exit_status


SHELLS = ("bash", "zsh", "fish")
_HOW = """\
bash:  {program} completion bash > ~/.local/share/bash-completion/completions/{program}
zsh:   {program} completion zsh > DIRECTORY/_{program}   (a directory of $fpath)
fish:  {program} completion fish > ~/.config/fish/completions/{program}.fish
man:   {program} completion man > ~/.local/share/man/man1/{program}.1
"""


def completion_main(
    program: str, about: str, commands: Mapping[str, str], modules: Mapping[str, str], arguments: list[str]
) -> int:
    """Print a shell's completion script for a program's commands and options, or the man page.

    `commands` describes each command. `modules` gives the module of each command as `run_command` takes it; the key ""
    stands for the program without a command.
    """
    parser = Parser(
        f"{program} completion",
        description=f"Print a completion script for {program}, or its man page.",
        epilog=_HOW.format(program=program),
    )
    parser.add_argument("what", choices=(*SHELLS, "man"), help="a shell, or the man page")
    choice = parser.parse_args(arguments).what
    combined = _whole(program, about, commands, modules)
    if choice == "man":
        from argparse_manpage.manpage import Manpage

        page = Manpage(combined)
        page.manual, page.description = "User Commands", about
        put_text(str(page))
        return 0
    import shtab

    for argument in combined.arguments():
        if argument.type is Path:
            argument.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    put_text(str(shtab.complete(combined, choice)))
    return 0


def _whole(program: str, about: str, commands: Mapping[str, str], modules: Mapping[str, str]) -> Parser:
    """Return one parser that describes all commands. It is not used to parse arguments."""
    alone = parser_of(modules[""]) if "" in modules else Parser(program)
    combined = Parser(program, description=about, epilog=alone.epilog or "", add_help=False)
    combined.take_options(alone)
    below = combined.add_subparsers(metavar="COMMAND", title="commands")
    for name, words in commands.items():
        own = parser_of(modules[name])
        below.add_parser(
            name, prog=f"{program} {name}", parents=[own], add_help=False, help=words,
            description=own.description or words, epilog=own.epilog or "", usage=own.usage,
        )  # fmt: skip
    return combined
