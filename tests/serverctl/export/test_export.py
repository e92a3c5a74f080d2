"""Exports: what every format keeps to; formats have files of their own."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from stubs.exports import (
    command_lines,
    exported,
    files,
    options_for,
    run_plan,
    source_for,
)

from foundation.errors import EnvironmentLacksError, UsageError
from serverctl.cli import main as cli
from serverctl.commands.plans import export as command
from serverctl.plan.goal import Plan
from serverctl.vllm.capabilities import snapshot

ROOT = Path(__file__).resolve().parents[3]
FORMATS = list(command.FORMATS)


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


def test_a_format_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"invalid choice: 'docker' .*'systemd', 'compose', 'kubernetes'"):
        command.main(options_for("docker"))


def test_a_missing_format_is_the_only_thing_that_is_missed() -> None:
    with pytest.raises(UsageError, match=r"required: FORMAT\."):
        command.main([])


def test_an_export_for_text_alone_does_not_speak_of_screenshots(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    llama = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "head_dim": 64,
             "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 16,
             "vocab_size": 128_256, "max_position_embeddings": 131_072}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(llama), encoding="utf-8")
    for name in ("compose", "script"):
        text = exported(capsys, *options_for(name), "--model", str(tmp_path))
        assert "screenshots a request" not in text


@pytest.mark.parametrize(("preset", "said"), [("memory-constrained", "An estimate"), ("balanced", "exactly")])
def test_the_grids_context_is_exact_or_an_estimate(capsys: pytest.CaptureFixture[str], preset: str, said: str) -> None:
    assert said in exported(capsys, *options_for("grid"), "--preset", preset)


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
        (["notebook"], "A notebook is for a card elsewhere."),
        (["notebook", "--gpu", "cpu"], "Notebooks are for NVIDIA cards."),
        (["haproxy", "--gpu", "L4"], "This plan has one server"),
        (["haproxy", "--gpu", "L4", "--gpus", "2", "--preset", "throughput", "--port", "65534"], "3 ports are needed"),
        (["litellm", "--gpu", "L40S", "--model", "MAI-UI-2B", "--beside", "MAI-UI-8B", "--port", "65534"], "3 ports"),
        (["compose", "--gpu", "L4", "--beside", "MAI-UI-2B"], "--beside goes with the format litellm, not compose."),
        (
            ["multi-node", "--gpu", "H100", "--gpus", "2", "--nodes", "2", "--set", "tensor_parallel_size=4"],
            "needs more than the 2 cards of one machine",
        ),
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
        assert re.search(rf"^  {name} +{re.escape(entry['about'])}$", text, re.MULTILINE)
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


@pytest.mark.parametrize(("name", "also"), [("plans.export", "yaml"), ("load.batch", "pydantic")])
def test_importing_a_command_loads_nothing_heavy(name: str, also: str) -> None:
    heavy = f"[m for m in ({also!r}, 'openai', 'PIL', 'rich', 'numpy') if m in sys.modules]"
    program = f"import sys; import serverctl.commands.{name}; print({heavy})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_every_exported_flag_is_one_of_vllms_parser(capsys: pytest.CaptureFixture[str]) -> None:
    capabilities = snapshot("0.33.0")
    for words in command_lines(capsys):
        flags = [word for word in words if word.startswith("--")]
        assert len(flags) > 8
        assert not [flag for flag in flags if not capabilities.has(flag)]


def test_the_plan_of_an_export_is_the_plan_of_the_same_options(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run_plan(capsys, "--gpu", "L40S", "--set", "images=2"))
    loaded = yaml.safe_load(exported(capsys, "compose", "--gpu", "L40S", "--set", "images=2"))
    words = loaded["services"]["mai-vllm"]["entrypoint"][-2:] + loaded["services"]["mai-vllm"]["command"]
    words = [word if word != "0.0.0.0" else "127.0.0.1" for word in words]
    assert words == [*document["argv"], "--middleware", "mai_gate.Gate"]
    assert isinstance(source_for().plan, Plan)
