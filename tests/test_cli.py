import subprocess
import sys

import pytest

import agent
from agent.cli import main
from agent.commands import COMMANDS
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
        ["open", "settings"],
        ["--sandbox-session", "gnome", "open settings"],
        ["--sandbox-size", "800x600", "open settings"],
        ["--keep", "open settings"],
        ["--sandbox", "--desktop", "portal", "open settings"],
        ["doctor", "--sandbox-network", "none"],
    ],
)
def test_wrong_usage_is_a_sentence_and_status_2(arguments, capsys):
    assert main(arguments) == ExitStatus.USAGE
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("mai-agent: ")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["stpo"], "stop"),
        (["shwo", "last"], "show"),
        (["unod", "last"], "undo"),
        (["--sandbx", "open settings"], "--sandbox"),
        (["--dry-rum", "open settings"], "--dry-run"),
        (["doctor", "--tri"], "--try"),
    ],
)
def test_a_slip_is_no_instruction_and_what_was_meant_is_named(arguments, meant, capsys, monkeypatch):
    monkeypatch.setattr("agent.commands.run.execute", lambda *_, **__: pytest.fail("it would run"))
    assert main(arguments) == ExitStatus.USAGE
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_a_word_that_is_like_no_command_is_an_instruction(monkeypatch):
    ran = []
    monkeypatch.setattr("agent.commands.run.main", lambda arguments: ran.append(arguments) or 0)
    assert [main([word]) for word in ("hello", "screenshot", "--dry-run")] == [0, 0, 0]
    assert main(["run", "stpo"]) == 0
    assert ran == [["hello"], ["screenshot"], ["--dry-run"], ["stpo"]]


def test_help_is_no_instruction_either(capsys):
    for arguments, says in ((["help"], "INSTRUCTION"), (["help", "show"], "mai-agent show")):
        with pytest.raises(SystemExit):
            main(arguments)
        assert says in capsys.readouterr().out


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


def test_an_instruction_that_a_locale_without_utf_8_broke_is_mended(capsys, monkeypatch):
    ran = []
    monkeypatch.setattr("agent.commands.run.execute", lambda options, **_: ran.append(options.instruction) or 0)
    monkeypatch.setattr("os.fsencode", lambda text: text.encode("ascii", "surrogateescape"))
    broken = "type 'héllo ✓'".encode().decode("ascii", "surrogateescape")
    assert main(["--no-tui", broken]) == 0
    assert ran == ["type 'héllo ✓'"]
    assert main(["--no-tui", b"open \xff".decode("ascii", "surrogateescape")]) == ExitStatus.USAGE
    assert "not text in UTF-8" in capsys.readouterr().err
