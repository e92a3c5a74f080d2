"""Subcommands of a program: errors become sentences and exit statuses."""

import errno
import json
import sys
import types
from collections.abc import Callable

import pytest

from foundation.command_line import Parser, port_number, positive, positive_seconds, run_command
from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError, UsageError

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a function as a subcommand of `prog`."""

    def command(main: Callable[[list[str]], int], as_json: bool = False) -> int:
        module = types.ModuleType("a_subcommand")
        module.main = main  # type: ignore[attr-defined]  # a module made for this
        monkeypatch.setitem(sys.modules, "a_subcommand", module)
        monkeypatch.setattr(sys, "stdout", sys.stdout)  # which some errors take away
        return run_command("prog", "a_subcommand", ["word"], as_json)

    return command


def raises(error: BaseException) -> Callable[[list[str]], int]:
    def main(arguments: list[str]) -> int:
        raise error

    return main


def test_the_status_of_a_subcommand_is_the_programs(run: Run) -> None:
    assert run(lambda arguments: 7 if arguments == ["word"] else 0) == 7


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (MaiError("It broke.", "Mend it."), ExitStatus.NOT_DONE, "prog: It broke. Mend it."),
        (EnvironmentLacksError("No card."), ExitStatus.ENVIRONMENT, "prog: No card."),
        (KeyboardInterrupt(), ExitStatus.STOPPED, "prog: Stopped: Ctrl-C."),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            ExitStatus.ENVIRONMENT,
            "(No space left on device). Free some",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/x/y"),
            ExitStatus.ENVIRONMENT,
            "/x/y cannot be written (Permission denied). Check its",
        ),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "/x/y"),
            ExitStatus.ENVIRONMENT,
            "There is no folder /x. Make it",
        ),
    ],
)
def test_an_error_is_a_sentence_and_a_status(
    run: Run, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, said: str
) -> None:
    assert run(raises(error)) == status
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


def test_a_reader_who_went_away_ends_it_quietly(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(raises(BrokenPipeError())) == ExitStatus.NOT_DONE
    assert capsys.readouterr().err == ""


def test_an_error_is_json_where_json_was_asked_for(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(raises(UsageError("No such card.", "See --help.")), as_json=True) == ExitStatus.USAGE
    told = capsys.readouterr()
    assert json.loads(told.out) == {"error": {"what": "No such card.", "remedy": "See --help.", "status": 2}}
    assert "prog: No such card." in told.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--count", "0"], "Argument --count: must be at least 1, not 0."),
        (["--count", "x"], "Argument --count: not a whole number: 'x'."),
        (["--seconds", "0"], "Argument --seconds: must be above 0 and below 10000000, not 0."),
        (["--seconds", "nan"], "Argument --seconds: must be above 0 and below 10000000, not nan."),
        (["--port", "70000"], "70000 is no port."),
        (["--port", "http"], "Argument --port: not a number: 'http'."),
        (["--what"], "Unrecognized arguments: --what."),
    ],
)
def test_a_wrong_argument_is_a_sentence_that_names_the_help(words: list[str], said: str) -> None:
    parser = Parser("prog")
    parser.add_argument("--count", type=positive)
    parser.add_argument("--seconds", type=positive_seconds)
    parser.add_argument("--port", type=port_number)
    with pytest.raises(UsageError) as refused:
        parser.parse_args(words)
    assert said in refused.value.what
    assert refused.value.remedy == "See prog --help."


def test_texts_with_line_breaks_are_shown_as_they_were_written() -> None:
    assert "two  words\n  and more" in Parser("prog", epilog="examples:\n  two  words\n  and more").format_help()
