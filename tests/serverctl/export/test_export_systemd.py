"""Exported units, read as systemd reads them, and judged by systemd itself."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stubs.exports import here, read_words, settings, source_for

from serverctl.export import systemd
from serverctl.export.common import Source
from serverctl.plan.goal import Goal
from serverctl.process import api_key_gate as gate


def unit_of(source: Source) -> dict[str, list[str]]:
    (document, *_) = systemd.documents(source)
    return settings(document.text)


def test_a_unit_starts_exactly_the_plans_command(tmp_path: Path) -> None:
    source = source_for(python=tmp_path / "with blank" / "python")
    found = unit_of(source)
    (start,) = found["ExecStart"]
    assert read_words(start, True) == source.servers()[0].command.argv(tmp_path / "with blank" / "python")
    assert found["Restart"] == ["always"], "vLLM's server exits with 0 when its engine dies"
    assert found["RestartPreventExitStatus"] == ["2"]
    assert (found["StartLimitIntervalSec"], found["StartLimitBurst"]) == (["600"], ["2"])
    assert found["KillMode"] == ["control-group"]
    assert found["TimeoutStartSec"] == ["infinity"]
    assert found["EnvironmentFile"] == ["/etc/mai-server/mai-vllm.env"]
    assert found["WantedBy"] == ["multi-user.target"]
    assert found["NoNewPrivileges"] == ["yes"]
    for hides_cards in ("PrivateDevices", "ProtectClock", "DeviceAllow", "DevicePolicy", "MemoryDenyWriteExecute"):
        assert hides_cards not in found
    (place,) = (value for value in found["Environment"] if value.startswith("PYTHONPATH="))
    assert (place, found["RuntimeDirectory"]) == ("PYTHONPATH=%t/mai-vllm", ["mai-vllm"])
    environment = [read_words(value, False)[0].partition("=") for value in found["Environment"] if value != place]
    values = {name: value for name, _, value in environment}
    assert (
        values.items()
        >= {name: value for name, value in source.servers()[0].command.env.items() if name != "PYTHONPATH"}.items()
    )
    assert values["PATH"].startswith(f"{tmp_path}/with blank:")
    assert "VLLM_API_KEY" not in values


def test_a_unit_writes_the_gate_where_its_server_looks_for_it(tmp_path: Path) -> None:
    *_, put = unit_of(source_for())["ExecStartPre"]
    done = subprocess.run(read_words(put, True), env={"RUNTIME_DIRECTORY": str(tmp_path)}, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "mai_gate.py").read_text() == gate.source()


NASTY = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30) | st.sampled_from(
    [
        '{"a":"b c","d":["%i","$HOME","${X}"]}',
        "it's",
        "'\"",
        "\\",
        "a\\nb",
        "\n",
        "\t",
        " ",
        "%%",
        "$$",
        ";",
        "#",
        "",
        "é$",
    ]
)


@given(st.lists(NASTY.filter(lambda word: word != ";"), max_size=5))
def test_any_words_come_back_from_a_unit_as_they_were(words: list[str]) -> None:
    groups = [["/opt/a b%c$d/vllm", *words], words]
    text = systemd.command_line([group for group in groups if group])
    assert read_words(text.replace("\\\n", " "), True) == ["/opt/a b%c$d/vllm", *words, *words]


def test_a_units_own_flags_with_quotes_and_percents_come_back() -> None:
    own = ("--hf-overrides", '{"a b":"100% $HOME \\\\ it\'s"}', "--seed", "0")
    source = source_for(goal=Goal(extra=own))
    (start,) = unit_of(source)["ExecStart"]
    assert read_words(start, True)[-4:] == list(own)


def test_a_users_unit_runs_without_root() -> None:
    found = unit_of(source_for(user_unit=True))
    assert "User" not in found
    assert not any("nvidia-modprobe" in one for one in found["ExecStartPre"]), "a user's manager cannot run it as root"
    assert found["EnvironmentFile"] == ["%h/.config/mai-server/mai-vllm.env"]
    assert found["WantedBy"] == ["default.target"]
    assert "RestrictNamespaces" in found
    for of_root in (
        "ProtectSystem", "CapabilityBoundingSet", "PrivateMounts", "ProtectProc", "ProtectKernelLogs", "PrivateTmp",
    ):  # fmt: skip
        assert of_root not in found, "a user's manager may not set it"


def test_a_unit_on_the_processor_runs_vllm_as_a_module_and_makes_no_card_files() -> None:
    source = source_for("cpu", python=Path("/opt/vllm/bin/python"), goal=Goal(force=True))
    found = unit_of(source)
    words = read_words(found["ExecStart"][0], True)
    assert words[:3] == ["/opt/vllm/bin/python", "-m", "vllm.entrypoints.openai.api_server"]
    assert not any("nvidia-modprobe" in one for one in found["ExecStartPre"])


def test_a_unit_for_this_machine_knows_its_account_its_models_and_its_cards() -> None:
    source = source_for(hardware=here(1), account="alice", environ={"HF_HOME": "/data/hub"})
    found = unit_of(source)
    assert found["User"] == ["alice"]
    values = [read_words(value, False)[0] for value in found["Environment"] if "%t" not in value]
    assert "HF_HOME=/data/hub" in values
    assert "CUDA_VISIBLE_DEVICES=GPU-00000000-1111-2222-3333-444444444444" in values


def test_each_replica_has_its_own_unit_port_key_and_card() -> None:
    first, second = systemd.documents(source_for(hardware=here(2), goal=Goal(preset="throughput")))
    assert (first.name, second.name) == ("mai-vllm.service", "mai-vllm-2.service")
    for document, port, card in ((first, "8000", "GPU-00000000"), (second, "8001", "GPU-00000001")):
        words = read_words(settings(document.text)["ExecStart"][0], True)
        assert words[words.index("--port") + 1] == port
        assert f"CUDA_VISIBLE_DEVICES={card}" in document.text
    assert "/etc/mai-server/mai-vllm-2.env" in second.text


@pytest.mark.slow
@pytest.mark.parametrize("user", [False, True])
def test_systemd_itself_finds_nothing_wrong_with_the_unit(tmp_path: Path, user: bool) -> None:
    analyze = shutil.which("systemd-analyze")
    assert analyze is not None, "scripts/test --all installs systemd"
    folder = tmp_path / "vLLM's own"
    folder.mkdir()
    for name in ("python", "vllm"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    goal = Goal(extra=("--hf-overrides", '{"a b":"100% $HOME"}'))
    (document,) = systemd.documents(source_for(python=folder / "python", account="root", user_unit=user, goal=goal))
    unit = tmp_path / document.name
    unit.write_text(document.text)
    runtime = tmp_path / "run"
    runtime.mkdir(0o700)
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
    done = subprocess.run(
        [analyze, "--user" if user else "--system", "verify", unit], capture_output=True, text=True, env=environ
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if document.name in line]
    assert (done.returncode, said) == (0, [])


def test_each_gaudi_server_has_its_own_card() -> None:
    found = systemd.documents(source_for("Gaudi 3", 2, goal=Goal(preset="throughput")))
    for number, document in enumerate(found):
        assert f"HABANA_VISIBLE_MODULES={number}\n" in document.text
        assert "CUDA_VISIBLE_DEVICES" not in document.text
    assert len(found) == 2


@pytest.mark.slow
def test_systemd_finds_the_unit_hardened(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    assert analyze is not None, "scripts/test --all installs systemd"
    (document,) = systemd.documents(source_for())
    unit = tmp_path / document.name
    unit.write_text(document.text)
    done = subprocess.run(
        [analyze, "security", "--offline=true", "--threshold=40", "--no-pager", unit], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
