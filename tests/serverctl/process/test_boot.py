"""The start of a server with the machine, by the user's systemd."""

import subprocess
from pathlib import Path

import pytest
from stubs.controlled import MIB, TIMEOUT, Machine, tiny_model
from stubs.exports import read_words, settings

from serverctl.commands.servers import boot
from serverctl.plan.goal import Goal


@pytest.fixture
def systemd(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemd that notes what it is asked. Models here lie in a temporary folder like everything of a test."""
    told = machine.folder / "systemctl.told"
    for program, does in (("systemctl", f'echo "$@" >>"{told}"'), ("loginctl", "echo no")):
        script = machine.folder / "bin" / program
        script.write_text(f"#!/bin/sh\n{does}\n")
        script.chmod(0o755)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(machine.folder / "config"))
    return told


def unit(machine: Machine) -> Path:
    return machine.folder / "config" / "systemd" / "user" / "mai-server-default.service"


def test_the_unit_starts_the_last_server_as_it_was(
    machine: Machine, systemd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(boot, "_refuse_temporary", lambda _: None)
    first = machine.up()
    machine.down()
    assert boot.main([]) == 0
    assert "`loginctl enable-linger`" in capsys.readouterr().out
    assert systemd.read_text().splitlines() == ["--user daemon-reload", "--user enable mai-server-default.service"]
    found = settings(unit(machine).read_text())
    assert f"MAI_SERVER_STATE={machine.state_folder}" in found["Environment"]
    words = read_words(found["ExecStart"][0], True)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, text=True)
    machine.clients.append(process)
    again = machine.wait("default", "ready", "failed")
    assert (again.phase, again.port) == ("ready", first.port)
    process.terminate()
    process.wait(TIMEOUT)
    machine.assert_nothing_left()
    assert boot.main(["--off"]) == 0
    assert not unit(machine).exists()
    assert "--user disable mai-server-default.service" in systemd.read_text()


@pytest.mark.usefixtures("systemd")
def test_a_model_that_is_gone_at_the_next_start_of_the_machine_is_refused(machine: Machine) -> None:
    done = machine.run("boot")
    assert (done.returncode, "has been started yet" in done.stderr) == (2, True)
    model = tiny_model(Path(machine.folder) / "temporary")
    machine.up(goal=Goal(model=str(model), overrides={"kv_cache_memory_bytes": 64 * MIB}))
    done = machine.run("boot")
    assert done.returncode == 2
    assert "which is emptied when the machine starts" in done.stderr
    assert not unit(machine).exists()


def test_a_machine_without_systemd_is_told_so(machine: Machine, systemd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.up()
    monkeypatch.setattr(boot, "_refuse_temporary", lambda _: None)
    monkeypatch.setattr(boot.shutil, "which", lambda _: None)
    with pytest.raises(boot.EnvironmentLacksError, match="no systemd"):
        boot.main([])
    assert not unit(machine).exists()
