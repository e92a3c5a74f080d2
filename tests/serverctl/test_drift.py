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
