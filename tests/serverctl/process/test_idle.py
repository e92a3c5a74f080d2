"""A server that nobody asks anything ends by itself, where that was asked for."""

import argparse
from pathlib import Path

import pytest
from stubs.controlled import Machine

from foundation.command_line import duration
from foundation.errors import UsageError
from serverctl.config import load_server_config


@pytest.fixture
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervisors are processes of their own: only their environment reaches them."""
    monkeypatch.setenv("MAI_SERVER_BEAT_SECONDS", "0.5")


@pytest.mark.usefixtures("looked_at_often")
def test_an_idle_server_ends_and_says_so(machine: Machine) -> None:
    done = machine.run("up", *machine.small, "--idle", "1s", "--json")
    assert done.returncode == 0, done.stderr
    state = machine.wait("default", "stopped", seconds=40)
    assert state.message == "Nobody asked anything for 1 s: stopped until the next run."
    assert len(machine.starts) == 1
    machine.assert_nothing_left(10)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1.5m", 90)])
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0m", "-5m", "soon", "15 minutes"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        duration(text)


def test_the_settings_name_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "config.toml"
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(settings))
    settings.write_text('[server]\nidle = "15m"\n')
    assert load_server_config().idle_seconds == 900
    for wrong in ('"0m"', '"soon"', "15"):
        settings.write_text(f"[server]\nidle = {wrong}\n")
        with pytest.raises(UsageError):
            load_server_config()
