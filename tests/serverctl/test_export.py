"""Exports: what every one keeps to, and each format but scripts and notebooks, which are run in files of their own."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from foundation.errors import EnvironmentLacksError, UsageError
from serverctl.capabilities import snapshot
from serverctl.cli import main as cli
from serverctl.commands import export as command
from serverctl.export import compose, kubernetes, prometheus, systemd
from serverctl.export.common import PINS, Source
from serverctl.hardware.catalogue import imagine
from serverctl.hardware.facts import Hardware
from serverctl.plan.goal import Goal, Plan
from serverctl.planning import plan_for

ROOT = Path(__file__).resolve().parents[2]
FORMATS = list(command.FORMATS)
#: vLLM's metrics that were renamed or removed before 0.33; an alert on them never fires.
REMOVED = (
    "gpu_cache_usage_perc",
    "time_to_first_token[",
    "time_per_output_token_seconds",
    "vllm:time_per_output_token",
)


def options_for(name: str, *more: str) -> list[str]:
    """A command line of a format on an imagined machine."""
    several = {"multi-node": ("--gpus", "4", "--nodes", "2"), "haproxy": ("--gpus", "2", "--preset", "throughput")}
    return [name, "--gpu", "L40S", *several.get(name, ()), *more]


def exported(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert command.main(list(options)) == 0
    return capsys.readouterr().out


def files(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    """The files of an export by their names."""
    document = json.loads(exported(capsys, options[0], "--json", *options[1:]))
    return {file["name"]: file["text"] for file in document["files"]}


def source_for(gpu: str = "L40S", count: int = 1, **changes: Any) -> Source:
    hardware = changes.pop("hardware", None) or imagine(gpu, count)
    goal = changes.pop("goal", Goal())
    capabilities = snapshot("0.32.0-cpu" if hardware.vendor == "cpu" else changes.pop("version", "0.33.0"))
    plan = plan_for(hardware, goal, capabilities.version)
    return Source(plan, hardware, capabilities, goal, "mai-server export", **changes)


def here(count: int = 2) -> Hardware:
    """Cards that are in this machine: with names of their own, which plans pin."""
    found = imagine("L40S", count)
    cards = tuple(replace(gpu, uuid=f"GPU-0000000{gpu.index}-1111-2222-3333-444444444444") for gpu in found.gpus)
    return replace(found, gpus=cards, imagined=False)


# Every format.


@pytest.mark.parametrize("name", FORMATS)
def test_every_file_says_how_it_was_made_and_from_what(capsys: pytest.CaptureFixture[str], name: str) -> None:
    preset = "throughput" if name == "haproxy" else "balanced"
    options = options_for(name, "--preset", preset, "--set", "images=2", "--", "--seed", "0")
    for text in files(capsys, *options).values():
        assert f"mai-server export {name} --gpu L40S" in text
        assert f"--preset {preset}" in text
        assert "--set images=2" in text
        assert "-- --seed 0" in text
        assert "vLLM 0.33.0" in text
        assert "MAI-UI-8B, 16-bit weights" in text
        assert f"preset {preset}" in text


@pytest.mark.parametrize("name", FORMATS)
def test_no_file_holds_a_key_or_a_path_of_this_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    for variable in ("VLLM_API_KEY", "MAI_AGENT_API_KEY", "HF_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "sk-secret-of-this-machine")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    out = tmp_path / "out"
    assert command.main([*options_for(name), "--out", f"{out}/"]) == 0
    for path in out.iterdir():
        text = path.read_text()
        assert "sk-secret" not in text
        assert str(tmp_path) not in text
        assert str(ROOT) not in text
        assert sys.prefix not in text


@pytest.mark.parametrize("name", FORMATS)
def test_a_secret_among_vllms_flags_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="--hf-token would write a secret into the export"):
        command.main([*options_for(name), "--", "--hf-token", "hf_x"])
    with pytest.raises(UsageError, match="--api-key cannot be passed on"):
        command.main([*options_for(name), "--", "--api-key", "x"])


@pytest.mark.parametrize("name", FORMATS)
def test_a_flag_that_vllm_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"vLLM 0.33.0 has no flag --swap-space"):
        command.main([*options_for(name), "--", "--swap-space", "4"])


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_command_line_makes_the_same_files(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert exported(capsys, *options_for(name)) == exported(capsys, *options_for(name))


@pytest.mark.parametrize("name", FORMATS)
def test_json_has_every_file_and_says_where_it_was_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    document = json.loads(exported(capsys, *options_for(name), "--json", "--out", f"{tmp_path}/a/"))
    assert document["format"] == name
    assert document["vllm"] == "0.33.0"
    servers = 2 if name == "haproxy" else 1
    assert document["endpoints"] == [f"http://127.0.0.1:{8000 + number}/v1" for number in range(servers)]
    for file in document["files"]:
        assert Path(file["path"]).read_text() == file["text"]
        assert os.access(file["path"], os.X_OK) is file["executable"]


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    out = tmp_path / "compose.yaml"
    out.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        command.main(["compose", "--gpu", "T4", "--out", str(out)])
    assert out.read_text() == "mine"
    assert command.main(["compose", "--gpu", "T4", "--out", str(out), "--force"]) == 0
    assert "services:" in out.read_text()


def test_of_several_files_none_is_written_when_one_is_there(tmp_path: Path) -> None:
    (tmp_path / "vllm-alerts.yml").write_text("mine")
    with pytest.raises(UsageError, match=r"vllm-alerts\.yml is there already"):
        command.main(["prometheus", "--gpu", "T4", "--out", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["vllm-alerts.yml"]


def test_several_files_need_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "one.yml"
    out.write_text("mine")
    with pytest.raises(UsageError, match="is a file, and this export has 3 files"):
        command.main(["prometheus", "--gpu", "T4", "--out", str(out), "--force"])
    assert command.main(["prometheus", "--gpu", "T4", "--out", str(tmp_path / "new")]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "prometheus.yml",
        "vllm-alerts.yml",
        "vllm-dashboard.json",
    ]


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentLacksError, match="cannot be written"):
        command.main(["compose", "--gpu", "T4", "--out", str(tmp_path / "file" / "compose.yaml")])


def test_several_files_are_told_apart_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    text = exported(capsys, "prometheus", "--gpu", "T4")
    assert re.findall(r"^# ==> (\S+) <==$", text, re.MULTILINE) == [
        "prometheus.yml",
        "vllm-alerts.yml",
        "vllm-dashboard.json",
    ]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["nothing"], "invalid choice: 'nothing'"),
        (["compose", "--gpu", "T4", "--name", "Bad Name"], "'Bad Name' is no name for a service."),
        (["compose", "--gpu", "T4", "--name", "x-"], "is no name for a service"),
        (["compose", "--gpu", "T4", "--port", "0"], "0 is no port."),
        (
            ["compose", "--gpu", "H100", "--gpus", "8", "--preset", "throughput", "--port", "65530"],
            "8 ports are needed from port",
        ),
        (["compose", "--gpu", "T4", "--nodes", "2"], "--nodes N goes with the format multi-node"),
        (["multi-node", "--gpu", "T4"], "--nodes N goes with the format multi-node"),
        (["multi-node", "--gpu", "T4", "--nodes", "1"], "Several machines are at least two."),
        (["multi-node", "--gpu", "cpu", "--nodes", "2"], "Several machines are for NVIDIA cards."),
        (["compose", "--gpu", "T4", "--user"], "--user is for the format systemd."),
        (["compose", "--gpu", "Gaudi 3"], "There is no image of vLLM for"),
        (["compose", "--gpu", "T5"], "No card named 'T5'"),
    ],
)
def test_what_cannot_be_exported_is_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert cli(["export", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_help_teaches_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = capsys.readouterr().out
    for name, entry in command.FORMATS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.about)}$", text, re.MULTILINE)
        assert f"mai-server export {name}" in text or name in ("grid", "prometheus")


def test_examples_of_the_help_work(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    lines = re.findall(r"^  mai-server export (.*?)(?:  .*)?$", capsys.readouterr().out, re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        words = shlex.split(line)
        if "--out" in words:
            at = words.index("--out") + 1
            words[at] = f"{tmp_path}/{words[at]}"
        if "--gpu" not in words:
            words[1:1] = ["--gpu", "T4"]
        assert command.main(words) == 0, line


def test_importing_the_command_loads_nothing_heavy() -> None:
    heavy = "[m for m in ('yaml', 'PIL', 'rich', 'numpy') if m in sys.modules]"
    program = f"import sys; import serverctl.commands.export; print({heavy})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


# systemd.


def read_words(text: str, variables: bool) -> list[str]:
    """Words of a unit's line as systemd reads them (systemd.service(5), systemd.syntax(7)); strict where unclear."""
    words: list[str] = []
    word, quote, inside, at = "", "", False, 0
    escapes = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
    while at < len(text):
        char = text[at]
        if char == "\\":
            assert text[at + 1] in escapes, text[at : at + 4]
            word, inside, at = word + escapes[text[at + 1]], True, at + 2
            continue
        if quote:
            if char == quote:
                quote = ""
                assert at + 1 == len(text) or text[at + 1].isspace(), "a quote ends in the middle of a word"
            else:
                word += char
        elif char in "'\"":
            assert not inside, "a quote starts in the middle of a word"
            quote, inside = char, True
        elif char.isspace():
            if inside:
                words.append(word)
            word, inside = "", False
        else:
            word, inside = word + char, True
        at += 1
    assert not quote, "an open quote"
    if inside:
        words.append(word)
    assert words[0][0] not in "@-:+!" or words[0].startswith("+-/"), "the program's first character means something"
    done = []
    for number, found in enumerate(words):
        assert found != ";", "a lone semicolon starts another command"
        assert not re.search(r"(?<!%)(%%)*%(?!%)", found), "an open specifier"
        plain = found.replace("%%", "%")
        if variables and number:
            assert not re.search(r"(?<!\$)(\$\$)*\$(?!\$)", found), "a variable"
            plain = plain.replace("$$", "$")
        done.append(plain)
    return done


def settings(unit: str) -> dict[str, list[str]]:
    """The unit's settings, continued lines joined."""
    found: dict[str, list[str]] = {}
    for line in unit.replace("\\\n", " ").splitlines():
        if line and line[0] not in "#;[":
            name, sign, value = line.partition("=")
            assert sign and re.fullmatch(r"[A-Za-z]+", name), line
            found.setdefault(name, []).append(value)
    return found


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
    environment = [read_words(value, False)[0].partition("=") for value in found["Environment"]]
    values = {name: value for name, _, value in environment}
    assert values.items() >= dict(source.servers()[0].command.env).items()
    assert values["PATH"].startswith(f"{tmp_path}/with blank:")
    assert "VLLM_API_KEY" not in values


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
    assert "ExecStartPre" not in found, "a user's manager cannot run anything as root"
    assert found["EnvironmentFile"] == ["%h/.config/mai-server/mai-vllm.env"]
    assert found["WantedBy"] == ["default.target"]
    assert "ProtectSystem" not in found


def test_a_unit_on_the_processor_runs_vllm_as_a_module_and_makes_no_card_files() -> None:
    source = source_for("cpu", python=Path("/opt/vllm/bin/python"), goal=Goal(force=True))
    found = unit_of(source)
    words = read_words(found["ExecStart"][0], True)
    assert words[:3] == ["/opt/vllm/bin/python", "-m", "vllm.entrypoints.openai.api_server"]
    assert "ExecStartPre" not in found


def test_a_unit_for_this_machine_knows_its_account_its_models_and_its_cards() -> None:
    source = source_for(hardware=here(1), account="alice", environ={"HF_HOME": "/data/hub"})
    found = unit_of(source)
    assert found["User"] == ["alice"]
    values = [read_words(value, False)[0] for value in found["Environment"]]
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


@pytest.mark.parametrize("user", [False, True])
def test_systemd_itself_finds_nothing_wrong_with_the_unit(tmp_path: Path, user: bool) -> None:
    analyze = shutil.which("systemd-analyze")
    assert analyze is not None, "scripts/test installs systemd"
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


def test_systemd_finds_the_unit_hardened(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    assert analyze is not None, "scripts/test installs systemd"
    (document,) = systemd.documents(source_for())
    unit = tmp_path / document.name
    unit.write_text(document.text)
    done = subprocess.run(
        [analyze, "security", "--offline=true", "--threshold=40", "--no-pager", unit], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


def test_a_users_unit_sets_only_what_a_users_manager_may() -> None:
    found = unit_of(source_for(user_unit=True))
    assert "RestrictNamespaces" in found
    for of_root in ("CapabilityBoundingSet", "PrivateMounts", "ProtectProc", "ProtectKernelLogs", "PrivateTmp"):
        assert of_root not in found


# Containers.


@pytest.mark.parametrize(
    "gpu, count, preset", [("T4", 1, None), ("H100", 8, "throughput"), ("RTX 3090", 2, None), ("cpu", 1, None)]
)
def test_a_compose_file_loads_back_as_the_data_it_was_made_from(
    capsys: pytest.CaptureFixture[str], gpu: str, count: int, preset: str | None
) -> None:
    options = ["compose", "--gpu", gpu, "--gpus", str(count), "--force", *(["--preset", preset] if preset else [])]
    text = exported(capsys, *options)
    loaded = yaml.safe_load(text)
    assert loaded == compose.data(source_for(gpu, count, goal=Goal(preset=preset, force=True)))
    assert set(loaded) == {"services", "volumes"}, "version is obsolete, and docker-compose 1.x refuses name"
    assert "&id" not in text
    assert "<<" not in text
    assert max(len(line) for line in text.splitlines() if line.startswith("#")) <= 120


def test_a_compose_service_is_pinned_guarded_and_reachable_from_this_machine_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    loaded = yaml.safe_load(exported(capsys, "compose", "--gpu", "L4", "--port", "8123", "--name", "gui"))
    (name, service), *others = loaded["services"].items()
    assert (name, others) == ("gui", [])
    assert service["image"] == "vllm/vllm-openai:v0.33.0"
    assert service["ports"] == ["127.0.0.1:8123:8123"]
    words = service["command"]
    assert (words[words.index("--host") + 1], words[words.index("--port") + 1]) == ("0.0.0.0", "8123")
    assert service["environment"]["VLLM_API_KEY"] == "${VLLM_API_KEY:?set a key}"
    assert not set(PINS) & set(service["environment"])
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert int(service["healthcheck"]["start_period"].removesuffix("s")) >= 1800
    assert service["healthcheck"]["test"][:2] == ["CMD", "python3"]
    assert "ipc" in service or "shm_size" in service
    assert "hub-cache:/root/.cache/huggingface" in service["volumes"]
    assert loaded["volumes"] == {volume: {"name": f"gui-{volume}"} for volume in ("hub-cache", "vllm-cache")}


def test_the_health_check_asks_the_servers_own_port_and_fails_without_one() -> None:
    source = source_for(port=1)  # nothing listens there
    test = compose.data(source)["services"]["mai-vllm"]["healthcheck"]["test"]
    assert "http://127.0.0.1:1/health" in test[-1]
    done = subprocess.run([sys.executable, *test[2:]], capture_output=True, text=True)
    assert done.returncode != 0
    assert "URLError" in done.stderr


def test_replicas_are_services_with_their_own_cards_and_ports() -> None:
    for source, ids in (
        (source_for("H100", 2, goal=Goal(preset="throughput")), [["0"], ["1"]]),
        (
            source_for(hardware=here(2), goal=Goal(preset="throughput")),
            [[f"GPU-0000000{number}-1111-2222-3333-444444444444"] for number in (0, 1)],
        ),
    ):
        services = compose.data(source)["services"]
        assert list(services) == ["mai-vllm", "mai-vllm-2"]
        devices = [s["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] for s in services.values()]
        assert devices == ids
        assert [s["ports"] for s in services.values()] == [["127.0.0.1:8000:8000"], ["127.0.0.1:8001:8001"]]


def test_dollars_reach_vllm_through_compose_and_kubernetes() -> None:
    own = ("--hf-overrides", '{"a":"$HOME ${X} $(Y)"}')
    source = source_for(goal=Goal(extra=own))
    assert compose.data(source)["services"]["mai-vllm"]["command"][-1] == '{"a":"$$HOME $${X} $$(Y)"}'
    container = kubernetes.data(source)[2]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][-1] == '{"a":"$HOME ${X} $$(Y)"}'


def test_the_processor_has_another_image_and_the_file_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = exported(capsys, "compose", "--gpu", "cpu", "--force")
    service = yaml.safe_load(text)["services"]["mai-vllm"]
    assert service["image"] == "vllm/vllm-openai-cpu:v0.32.0"
    assert service["entrypoint"] == ["vllm", "serve"], "vLLM's own build has a command that works"
    assert "deploy" not in service
    assert "The image is not vllm/vllm-openai" in text


def test_a_models_folder_is_mounted_by_a_variable_and_refused_for_a_cluster(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "MAI-UI-2B"
    folder.mkdir()
    shape = ROOT / "configs" / "models" / "shapes" / "qwen3-vl-2b.json"
    (folder / "config.json").write_text(shape.read_text())
    text = exported(capsys, "compose", "--gpu", "T4", "--model", str(folder))
    service = yaml.safe_load(text)["services"]["mai-vllm"]
    assert service["command"][0] == "/models/MAI-UI-2B"
    assert service["volumes"][-1].startswith("${MODEL_FOLDER:?")
    assert service["volumes"][-1].endswith(":/models/MAI-UI-2B:ro")
    assert str(tmp_path) not in text
    for name in ("kubernetes", "notebook"):
        with pytest.raises(UsageError, match="cannot use a model's folder of this machine"):
            command.main([name, "--gpu", "T4", "--model", str(folder)])


@pytest.mark.parametrize("gpu, count, preset", [("L40S", 1, None), ("H100", 8, "throughput"), ("cpu", 1, None)])
def test_a_manifest_loads_back_as_its_objects(
    capsys: pytest.CaptureFixture[str], gpu: str, count: int, preset: str | None
) -> None:
    options = ["kubernetes", "--gpu", gpu, "--gpus", str(count), "--force", *(["--preset", preset] if preset else [])]
    loaded = list(yaml.safe_load_all(exported(capsys, *options)))
    assert loaded == kubernetes.data(source_for(gpu, count, goal=Goal(preset=preset, force=True)))
    assert [item["kind"] for item in loaded] == ["Secret", "PersistentVolumeClaim", "Deployment", "Service"]
    secret, claim, deployment, service = loaded
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    with pytest.raises(ValueError, match="base64"):
        __import__("base64").b64decode(secret["data"]["VLLM_API_KEY"], validate=True)
    assert container["env"][0]["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["spec"]["selector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert service["spec"]["type"] == "ClusterIP"
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in pod["volumes"]
    assert pod["enableServiceLinks"] is False, "Kubernetes would set VLLM_PORT for a service named vllm"
    startup = container["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] >= 30 * 60
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "http"}
    cards = container["resources"].get("limits", {}).get("nvidia.com/gpu")
    assert cards == (None if gpu == "cpu" else "1")
    assert deployment["spec"]["replicas"] == (8 if count == 8 else 1)
    assert (service["spec"].get("sessionAffinity") == "ClientIP") is (count == 8)
    assert not set(PINS) & {entry["name"] for entry in container["env"]}


def test_replicas_in_a_cluster_say_why_an_agent_stays_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    text = exported(capsys, "kubernetes", "--gpu", "H100", "--gpus", "2", "--preset", "throughput")
    assert "sessionAffinity ClientIP: an agent stays with one of the 2 servers." in text
    assert "ReadWriteMany" in text


# Prometheus.


def metric_names(rules: dict[str, Any]) -> set[str]:
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    return {name for expression in expressions for name in re.findall(r"(?:vllm:|http_|\bup\b)\w*", expression)}


def test_prometheus_scrapes_every_server_and_loads_its_rules(capsys: pytest.CaptureFixture[str]) -> None:
    found = files(capsys, "prometheus", "--gpu", "H100", "--gpus", "2", "--preset", "throughput", "--name", "gui")
    scrape, rules = (yaml.safe_load(found[name]) for name in ("prometheus.yml", "vllm-alerts.yml"))
    (job,) = scrape["scrape_configs"]
    assert job["job_name"] == "gui"
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8000", "127.0.0.1:8001"]}]
    assert scrape["rule_files"] == ["vllm-alerts.yml"]
    for rule in rules["groups"][0]["rules"]:
        assert 'job="gui"' in rule["expr"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert len(rule["annotations"]["description"]) > 80, "the threshold is explained"
        assert re.fullmatch(r"\d+m", rule["for"])


def test_alerts_use_no_metric_that_was_removed(capsys: pytest.CaptureFixture[str]) -> None:
    found = files(capsys, "prometheus", "--gpu", "L4")
    names = metric_names(yaml.safe_load(found["vllm-alerts.yml"]))
    assert {
        "vllm:kv_cache_usage_perc",
        "vllm:num_requests_waiting",
        "vllm:num_preemptions_total",
        "vllm:time_to_first_token_seconds_bucket",
        "vllm:request_success_total",
        "up",
    } <= names
    for text in found.values():
        assert not [name for name in REMOVED if re.search(r"(?<!\w)" + re.escape(name), text)]


@pytest.mark.real_vllm
def test_alerts_use_only_metrics_that_vllm_0_33_defines(vllm_033: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = "".join(path.read_text() for path in (vllm_033 / "vllm" / "v1" / "metrics").glob("*.py"))
    defined = set(re.findall(r'name="(vllm:\w+)"', sources))
    found = files(capsys, "prometheus", "--gpu", "L4")
    for name in metric_names(yaml.safe_load(found["vllm-alerts.yml"])) - {"up", "http_requests_total"}:
        assert re.sub(r"_(total|bucket)$", "", name) in defined, name


def dashboard_of(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(capsys, "prometheus", "--gpu", "L4", *options)["vllm-dashboard.json"])
    return found


def test_the_dashboard_has_what_grafana_asks_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    board = dashboard_of(capsys, "--name", "gui")
    assert board["uid"] == "gui"
    assert len(board["uid"]) <= 40
    assert board["schemaVersion"] >= 36
    [source] = board["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    panels = board["panels"]
    assert len(panels) == len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels})
    places = set()
    for panel in panels:
        assert panel["type"] == "timeseries"
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, "panels lie side by side"
        places |= cells
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            assert 'job="gui"' in target["expr"]
            assert "@" not in target["expr"]
            assert target["expr"].count("(") == target["expr"].count(")")
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {"steps": [{"value": None}]})["steps"]
        assert steps[0]["value"] is None, "Grafana wants the first step open below"
    drawn = {panel["title"] for panel in panels if "thresholds" in panel["fieldConfig"]["defaults"]}
    assert len(drawn) == 4


def metrics_of_board(board: dict[str, Any]) -> set[str]:
    lines = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return {name for line in lines for name in re.findall(r"vllm:\w+", line)}


def test_the_dashboard_shows_only_metrics_that_a_real_vllm_gave(capsys: pytest.CaptureFixture[str]) -> None:
    recorded = (Path(__file__).parent / "data" / "metrics" / "vllm-0.32.0.txt").read_text()
    given = set(re.findall(r"^(vllm:\w+)", recorded, re.MULTILINE))
    shown = metrics_of_board(dashboard_of(capsys))
    assert len(shown) > 10
    assert shown <= given


@pytest.mark.real_vllm
def test_the_dashboard_shows_only_metrics_that_vllm_0_33_defines(
    vllm_033: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = "".join(path.read_text() for path in (vllm_033 / "vllm" / "v1" / "metrics").glob("*.py"))
    defined = set(re.findall(r'name="(vllm:\w+)"', sources))
    for name in metrics_of_board(dashboard_of(capsys)):
        assert re.sub(r"_(total|bucket)$", "", name) in defined, name


def test_slow_means_something_else_on_a_processor() -> None:
    def slow(source: Source) -> str:
        rules = prometheus.rules(source)[0]["groups"][0]["rules"]
        return str(next(rule["expr"] for rule in rules if rule["alert"] == "VllmFirstTokenSlow"))

    assert slow(source_for("L4")).endswith("> 10")
    assert slow(source_for("cpu", goal=Goal(force=True))).endswith("> 120")


# Environments.


def environment(text: str) -> dict[str, str]:
    """A .env file's values."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_grid_worker_has_the_servers_context_and_one_thread(capsys: pytest.CaptureFixture[str]) -> None:
    values = environment(exported(capsys, "grid", "--gpu", "L4", "--port", "8123", "--name-as", "gui-model"))
    plan = json.loads(run_plan(capsys, "--gpu", "L4"))
    assert values == {
        "GRID_API_KEY": "",
        "OPENAI_API_KEY": "",
        "BACKEND_TYPE": "openai",
        "OPENAI_URL": "http://127.0.0.1:8123/v1",
        "MODEL_NAME": "gui-model",
        "GRID_MAX_CONTEXT_LENGTH": str(plan["limits"]["context"]),
        "GRID_MAX_LENGTH": "4096",
        "GRID_MAX_THREADS": "1",
    }


def run_plan(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert cli(["plan", *options, "--json"]) == 0
    return capsys.readouterr().out


def test_the_grid_worker_has_more_threads_only_where_the_plan_is_for_many_and_has_slots(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def threads(*options: str) -> str:
        return environment(exported(capsys, "grid", "--gpu", "L40S", *options))["GRID_MAX_THREADS"]

    assert threads("--preset", "throughput", "--set", "max_num_seqs=6") == "6"
    assert threads("--preset", "throughput", "--set", "max_num_seqs=1") == "1"
    assert int(threads("--preset", "throughput")) > 1
    assert threads("--set", "max_num_seqs=6") == "1"


def test_an_agents_shell_reads_its_environment(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "agent.env"
    file.write_text(
        exported(capsys, "env", "--gpu", "H100", "--gpus", "2", "--preset", "throughput", "--name-as", "it's")
    )
    script = '. "$1"; for name in ENDPOINT MODEL; do eval "printf \'%s\\n\' \\"\\$MAI_AGENT_$name\\""; done; env'
    done = subprocess.run(["sh", "-euc", script, "sh", file], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:2] == ["http://127.0.0.1:8000/v1", "it's"]
    assert "MAI_SERVER_ENDPOINTS=http://127.0.0.1:8000/v1 http://127.0.0.1:8001/v1\n" in done.stdout
    limits = json.loads(run_plan(capsys, "--gpu", "H100", "--gpus", "2", "--preset", "throughput"))["limits"]
    for name, limit in (("CONTEXT", "context"), ("IMAGES", "images"), ("MAX_PIXELS", "max_pixels")):
        assert f"MAI_SERVER_{name}={limits[limit]}\n" in done.stdout


# Several machines.


def shell_words(text: str) -> list[str]:
    """The words of the last command of a script."""
    start = text.rindex("exec ")
    return shlex.split(text[start:].replace("\\\n", " "))[1:]


def test_each_machine_has_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("multi-node", "--gpu", "RTX 3090", "--gpus", "2", "--nodes", "2", "--model", "MAI-UI-32B")
    found = files(capsys, *options)
    assert list(found) == ["node-0.sh", "node-1.sh", "ray-head.sh", "ray-worker.sh", "ray-serve.sh"]
    head, worker = shell_words(found["node-0.sh"]), shell_words(found["node-1.sh"])
    for words, rank in ((head, "0"), (worker, "1")):
        assert words[:3] == ["vllm", "serve", "Tongyi-MAI/MAI-UI-32B"]
        for flag, value in (
            ("--tensor-parallel-size", "2"),
            ("--pipeline-parallel-size", "2"),
            ("--nnodes", "2"),
            ("--node-rank", rank),
            ("--master-addr", "$HEAD_ADDRESS"),
        ):
            assert words[words.index(flag) + 1] == value
    assert "--headless" in worker
    assert "--headless" not in head
    assert head[head.index("--host") + 1] == "127.0.0.1"
    assert "--api-server-count" not in worker, "vLLM refuses it with --headless"
    assert set(head) - set(worker) <= {"--host", "127.0.0.1", "--port", "8000", "--api-server-count", "0"}
    assert "was NOT run on several machines" in found["node-0.sh"]
    assert "VLLM_API_KEY" in found["node-0.sh"]
    assert "export VLLM_API_KEY" not in found["node-1.sh"]


def test_ray_starts_a_cluster_first_and_serves_on_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = files(capsys, "multi-node", "--gpu", "H100", "--gpus", "8", "--nodes", "3", "--model", "MAI-UI-32B")
    assert shell_words(found["ray-head.sh"])[:3] == ["ray", "start", "--head"]
    assert shell_words(found["ray-worker.sh"])[:3] == ["ray", "start", "--address=$HEAD_ADDRESS:6379"]
    serve = shell_words(found["ray-serve.sh"])
    assert serve[serve.index("--distributed-executor-backend") + 1] == "ray"
    assert "--nnodes" not in serve, "vLLM takes it with its own processes only"
    assert "must show 24 GPUs" in found["ray-serve.sh"]
    assert "node-2.sh" in found


def test_a_model_that_fits_on_one_machine_is_better_served_there_and_the_file_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = files(capsys, "multi-node", "--gpu", "L40S", "--gpus", "4", "--nodes", "2", "--model", "MAI-UI-8B")
    assert "This model fits on ONE of these machines." in small["node-0.sh"]
    large = files(capsys, "multi-node", "--gpu", "RTX 3090", "--gpus", "1", "--nodes", "4", "--model", "MAI-UI-32B")
    assert "fits on ONE" not in large["node-0.sh"]


def test_tensor_parallelism_stays_within_a_machine() -> None:
    with pytest.raises(UsageError, match="needs more than the 2 cards of one machine"):
        command.main(["multi-node", "--gpu", "H100", "--gpus", "2", "--nodes", "2", "--set", "tensor_parallel_size=4"])


def test_cards_that_do_not_divide_the_heads_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    words = shell_words(files(capsys, "multi-node", "--gpu", "H100", "--gpus", "6", "--nodes", "2")["node-0.sh"])
    assert words[words.index("--tensor-parallel-size") + 1] == "4"


@pytest.mark.parametrize("file", ["node-0.sh", "node-1.sh", "ray-head.sh", "ray-worker.sh", "ray-serve.sh"])
def test_each_script_runs_its_command_with_the_addresses_it_is_given(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str
) -> None:
    text = files(capsys, *options_for("multi-node"))[file]
    script = tmp_path / file
    script.write_text(text)
    for name in ("vllm", "ray"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\nprintf \'%s\\n\' "${0##*/}" "$@" "host=$VLLM_HOST_IP"\n')
        program.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HEAD_ADDRESS": "10.0.0.1", "VLLM_API_KEY": "k"}
    bare = subprocess.run(["bash", script], capture_output=True, text=True, env=environ)
    assert bare.returncode != 0
    assert "OWN_ADDRESS" in bare.stderr
    done = subprocess.run(["bash", script], capture_output=True, text=True, env={**environ, "OWN_ADDRESS": "10.0.0.2"})
    words = done.stdout.splitlines()
    assert words[-1] == "host=10.0.0.2"
    assert words[:-1] == [
        word.replace("$HEAD_ADDRESS", "10.0.0.1").replace("$OWN_ADDRESS", "10.0.0.2") for word in shell_words(text)
    ]


# The real parser.


def command_lines(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """Arguments after `vllm serve` of every format, for cards of every kind."""
    for options in (
        ("--gpu", "T4"),
        ("--gpu", "L4"),
        ("--gpu", "B200", "--preset", "throughput"),
        ("--gpu", "RTX 3090", "--gpus", "2"),
    ):
        loaded = yaml.safe_load(exported(capsys, "compose", *options))
        yield loaded["services"]["mai-vllm"]["command"]
        for document in systemd.documents(
            source_for(options[1], int(options[3]) if options[2:3] == ("--gpus",) else 1)
        ):
            yield read_words(settings(document.text)["ExecStart"][0], True)[2:]
    found = files(capsys, "multi-node", "--gpu", "RTX 3090", "--gpus", "2", "--nodes", "2", "--model", "MAI-UI-32B")
    for name in ("node-0.sh", "node-1.sh", "ray-serve.sh"):
        yield [word.replace("$HEAD_ADDRESS", "10.0.0.1") for word in shell_words(found[name])[2:]]


def test_every_exported_flag_is_one_of_vllms_parser(capsys: pytest.CaptureFixture[str]) -> None:
    capabilities = snapshot("0.33.0")
    for words in command_lines(capsys):
        flags = [word for word in words if word.startswith("--")]
        assert len(flags) > 8
        assert not [flag for flag in flags if not capabilities.has(flag)]


@pytest.mark.real_vllm
@pytest.mark.timeout(300)
def test_the_real_parser_of_0_33_accepts_every_exported_command(
    vllm_python: Path, vllm_033: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = list(command_lines(capsys))
    file = tmp_path / "lists.json"
    file.write_text(json.dumps(lists))
    done = subprocess.run(
        [vllm_python, ROOT / "tests" / "stubs" / "check_arguments.py", file],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(vllm_033)}, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    assert len(answers) == len(lists) >= 10
    assert [answer for answer in answers if not answer["ok"]] == []


def test_the_plan_of_an_export_is_the_plan_of_the_same_options(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run_plan(capsys, "--gpu", "L40S", "--set", "images=2"))
    loaded = yaml.safe_load(exported(capsys, "compose", "--gpu", "L40S", "--set", "images=2"))
    words = loaded["services"]["mai-vllm"]["entrypoint"] + loaded["services"]["mai-vllm"]["command"]
    assert [word if word != "0.0.0.0" else "127.0.0.1" for word in words] == document["argv"]
    assert isinstance(source_for().plan, Plan)
