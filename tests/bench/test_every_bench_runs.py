"""One round of each bench: a bench that nobody runs stops working unseen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(300)]

#: Each bench with the arguments of its shortest whole round, and words that it prints at the end.
BENCHES = {
    "fleet": (["--agents", "2", "--slots", "1", "--answer", "1", "--steps", "3"], "ratio"),
    "literal_step": (["--rounds", "1"], "tree and new words"),
    "outline": (["--rounds", "1", "--only", "mousepad"], "medians of 1"),
    "policy": (["--rounds", "1"], "of a plain capture"),
    "questions": (["--only", "no_buttons"], "risky actions, 0 unasked"),
    "recipes": (["--filter", "mousepad-line-numbers"], "1 recorded: {'right': 1}"),
    "saturation": (["--most", "4"], "the server is full from 37 desktops on"),
    "step": (["--rounds", "1"], "naive"),
    "stop": (["--runs", "1"], "1 of 1 stops"),
    "terminal": (["--rounds", "1"], "step on screen"),
    "text_entry": (["--tries", "1", "--only", "mousepad"], "1 of    1 right"),
}


def run(bench: str, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / f"scripts/bench/{bench}.py"), *arguments]
    environ = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environ |= {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", **more}
    return subprocess.run(
        command,
        env=environ,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.parametrize("bench", BENCHES)
def test_a_bench_prints_its_figures(bench: str) -> None:
    arguments, words = BENCHES[bench]
    done = run(bench, *arguments)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert words in done.stdout


def test_the_bench_of_the_server_prints_its_figures(vllm_python: Path, vllm_environ: dict[str, str]) -> None:
    model = str(ROOT / "tests/models/tiny-qwen3-vl")
    shortest = ("--rounds", "1", "--warm-ups", "0")
    done = run("serving", "--vllm-python", str(vllm_python), "--model", model, *shortest, **vllm_environ)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "ratio" in done.stdout


def test_every_bench_is_among_them() -> None:
    there = {file.stem for file in (ROOT / "scripts/bench").glob("*.py")} - {"common"}
    assert there == {*BENCHES, "serving"}
