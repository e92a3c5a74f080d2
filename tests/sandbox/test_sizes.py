import pytest

from agent.cli import main
from agent.core.geometry import Size
from agent.options import RunOptions
from agent.sandbox.desktop import SandboxSpec, find_sandboxes, start_sandbox
from agent.sandbox.start import check_size
from agent.settings import load_settings
from foundation.errors import UsageError


@pytest.mark.parametrize("size", ["10x10", "1x1", "639x480", "640x479", "7681x480", "640x7681", "999999x999999"])
def test_a_size_that_no_desktop_can_be_used_at_is_refused_with_what_to_take(size, capsys):
    before = list(find_sandboxes())
    assert main(["--sandbox", "--sandbox-size", size, "--engine", "literal", "--no-tui", "open settings"]) == 2
    said = capsys.readouterr().err
    assert f"A sandbox of {size} is too" in said
    assert "Take at" in said
    assert "Traceback" not in said
    assert list(find_sandboxes()) == before


@pytest.mark.parametrize(
    "size", ["10", "x", "axb", "1920x", "-640x480", "1920 1080", "1920x1080x24", "1e3x800", "0x0", "²x³"]
)
def test_what_is_no_size_is_refused_by_its_look(size, capsys):
    assert main([f"--sandbox-size={size}", "--sandbox", "open settings"]) == 2
    said = capsys.readouterr().err
    assert "size" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("size", ["640x480", "7680x7680", "480x640"])
def test_the_bounds_themselves(size):
    if size == "480x640":
        with pytest.raises(UsageError):
            check_size(Size.parse(size))
    else:
        check_size(Size.parse(size))


def test_a_program_is_refused_too():
    before = list(find_sandboxes())
    with pytest.raises(UsageError, match="too small"):
        start_sandbox(SandboxSpec(Size(10, 10)))
    assert list(find_sandboxes()) == before


def test_the_network_can_be_set_once_for_all(monkeypatch, tmp_path):
    from agent.commands.run import _parser

    settings = tmp_path / "config.toml"
    settings.write_text('sandbox_network = "none"\n')
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(settings))
    assert RunOptions.of(_parser().parse_args(["--sandbox", "x"]), load_settings()).sandbox_network == "none"
    given = _parser().parse_args(["--sandbox", "--sandbox-network", "host", "x"])
    assert RunOptions.of(given, load_settings()).sandbox_network == "host"
    settings.write_text('sandbox_network = "some"\n')
    with pytest.raises(UsageError, match="sandbox_network"):
        load_settings()


def test_entering_a_sandbox_that_is_not_there_says_so(capsys):
    assert main(["sandbox", "enter", "nosuch", "true"]) == 3
    assert "is gone" in capsys.readouterr().err
    assert main(["sandbox", "enter"]) == 2
    assert "sandbox list" in capsys.readouterr().err
    assert main(["sandbox", "list", "a", "b"]) == 2
