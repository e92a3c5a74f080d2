import subprocess
import sys

import pytest

import agent
from agent.cli import main
from agent.commands import COMMANDS, RESERVED
from foundation.errors import ExitStatus


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == ExitStatus.DONE
    assert agent.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_teaches_itself(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert "usage: mai-agent" in capsys.readouterr().out


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_are_never_taken_for_an_instruction(name, capsys):
    assert main([name]) == ExitStatus.ENVIRONMENT
    assert "not built yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-steps", "0", "x"],
        ["--approve", "sometimes", "x"],
        ["--no-such-option", "x"],
        ["--sandbox-size", "big", "x"],
        ["fit", "--family", "mai-ui", "0x0"],
        ["fit", "--family", "no-such", "10x10"],
        ["parse"],
        ["show", "no-such-run"],
        ["replay", "no-such-run"],
        ["act", "--image", "/no/such/file.png", "x"],
        ["prompt", "--family", "mai-ui", "--request", "/no/such/file.json"],
        ["sandbox", "list", "x"],
        [""],
    ],
)
def test_wrong_usage_is_a_sentence_and_status_2(arguments, capsys):
    assert main(arguments) == ExitStatus.USAGE
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("mai-agent: ")


def test_without_a_display_the_sandbox_is_named(capsys, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert main(["open settings"]) == ExitStatus.ENVIRONMENT
    assert "--sandbox" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["act", "doctor"])
def test_help_reaches_the_terminal_where_libraries_output_is_kept_from_it(name: str) -> None:
    done = subprocess.run([sys.executable, "-m", "agent", name, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert f"usage: mai-agent {name}" in done.stdout
