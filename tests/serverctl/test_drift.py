"""The snapshots of vLLM's options are what the real parsers say: which flags came and which went is said by name."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serverctl.vllm.releases import drift

ROOT = Path(__file__).resolve().parents[2]
DUMP = ROOT / "serverctl" / "vllm" / "parser_dump.py"
CHECK = ROOT / "tests" / "stubs" / "check_arguments.py"
TOOL = ROOT / "scripts" / "dump-vllm-parser"

pytestmark = [pytest.mark.slow, pytest.mark.real_vllm, pytest.mark.timeout(300)]


def snapshot(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "configs" / "vllm" / f"{name}.json").read_text(encoding="utf-8"))


def output(*command: Path | str, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env={**os.environ, **(environ or {})},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def differences(name: str, real: dict[str, Any]) -> str:
    """What differs from a snapshot, by name rather than two walls of JSON; "" if nothing does."""
    found = drift(snapshot(name), real)
    told = [
        f"{part}: {way} {names}" for way in ("came", "went") for part, names in getattr(found, way).items() if names
    ]
    lines = "\n".join([*told, *found.changed])
    return lines and f"configs/vllm/{name}.json: .venv/bin/python scripts/dump-vllm-parser {name} --write\n{lines}"


def test_the_snapshot_of_0_33_is_what_the_parser_of_its_wheel_says(vllm_python: Path, vllm_033: Path) -> None:
    real = json.loads(output(sys.executable, TOOL, "0.33.0", "--cache", vllm_033.parent))
    assert differences("0.33.0", real) == ""


def test_the_snapshot_of_the_cpu_build_is_what_its_parser_says(vllm_python: Path) -> None:
    printed = output(vllm_python, DUMP)
    assert printed.count("\n") == 1, "whatever vLLM logs, standard output holds one line"
    assert differences("0.32.0-cpu", json.loads(printed)) == ""


@pytest.mark.parametrize("name", ["0.19.1", "0.32.0-cpu", "0.33.0"])
def test_a_snapshot_is_kept_as_the_tool_writes_it_one_option_a_line(name: str) -> None:
    text = (ROOT / "configs" / "vllm" / f"{name}.json").read_text(encoding="utf-8")
    kept = json.loads(text)
    assert kept["vllm"] == name.removesuffix("-cpu")
    assert [line for line in text.splitlines() if line.startswith('  "--')] == [
        f'  "{flag}": {json.dumps(kept["options"][flag], sort_keys=True)}' + ("" if flag == last else ",")
        for last in [max(kept["options"])]
        for flag in sorted(kept["options"])
    ]


# What serverctl may emit, what the guides tell people to write, and mistakes of both kinds; whether 0.33.0 takes it.
ARGUMENTS = [
    (["m", "--max-model-len", "8192", "--limit-mm-per-prompt", '{"image":4,"video":0}', "--enforce-eager"], None),
    (["m", "--limit-mm-per-prompt.image", "4", "-O3", "--kv-cache-memory-bytes", "4G"], None),
    (["m", "--quantization", "fp8_per_channel", "--quantization-config", '{"ignore":["visual.*"]}'], None),
    (["serve", "m", "--mm-processor-kwargs", '{"size":{"shortest_edge":65536,"longest_edge":2097152}}'], None),
    (["m", "--limit-mm-per-prompt", "image=4,video=0"], "--limit-mm-per-prompt"),
    (["m", "--limit-mm-per-prompt", '{"image":"four"}'], "ImageDummyOptions"),
    (["m", "--mm-processor-kwargs", "{bad"], "--mm-processor-kwargs"),
    (["m", "--compilation-config", '{"nope":1}'], "nope"),
    (["m", "--disable-cuda-graph"], "unrecognized arguments: --disable-cuda-graph"),
    (["m", "--swap-space", "4"], "unrecognized arguments: --swap-space"),
    (["m", "--quantization", "bitsandbytes"], "Unknown quantization method: bitsandbytes"),
    (["m", "--reasoning-parser", "deepseek-r1"], "Reasoning parser 'deepseek-r1' not found"),
    (["m", "--gpu-memory-utilization", "1.5"], "gpu_memory_utilization"),
    (["m", "--kv-cache-dtype", "nonsense"], "nonsense"),
    (["m", "--enable-auto-tool-choice"], "requires --tool-call-parser"),
]


def test_argument_lists_are_judged_as_the_real_parser_judges_them(
    vllm_python: Path, vllm_033: Path, tmp_path: Path
) -> None:
    lists = tmp_path / "lists.json"
    lists.write_text(json.dumps([arguments for arguments, _ in ARGUMENTS]), encoding="utf-8")
    answers = json.loads(output(vllm_python, CHECK, lists, environ={"PYTHONPATH": str(vllm_033)}))
    assert len(answers) == len(ARGUMENTS)
    for (arguments, complaint), answer in zip(ARGUMENTS, answers, strict=True):
        assert answer["ok"] is (complaint is None), (arguments, answer)
        assert complaint is None or complaint in answer["error"], (arguments, answer)
