"""The real parser of vLLM 0.33.0 takes every plan and export, and refuses what we refuse.

It is started once, because importing vLLM takes most of the time.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from planning import MODELS, NEW, PRESETS, TABLE_CARDS, command, plan
from stubs import exports

from foundation.errors import MaiError
from serverctl.hardware.catalogue import card_names
from serverctl.models.find import known_models

pytestmark = [pytest.mark.slow, pytest.mark.real_vllm, pytest.mark.timeout(600)]

CHECK = Path(__file__).resolve().parents[2] / "stubs" / "check_arguments.py"


def planned() -> Iterator[list[str]]:
    """Command lines that have every option of the plans with every word for it, numbers apart.

    The plans are those of all cards, one and eight of them, with MAI-UI in every preset, and those of one card of the
    common ones with all other models.
    """
    seen: set[tuple[str, str]] = set()
    wishes = [(model, preset) for model in MODELS for preset in PRESETS] + [("Qwen3.5-9B", "speculative")]
    others = [(entry.name, "latency") for entry in known_models() if entry.name not in MODELS]
    for name in card_names():
        for count in (1, 8):
            for model, preset in wishes + others if count == 1 and name in TABLE_CARDS else wishes:
                try:
                    made = plan(f"{name}*{count}", model, preset)
                except MaiError:
                    continue
                words = command(made, NEW).argv()
                plainly = [re.sub(r"\d+", "0", word.replace(made.model.source, "")) for word in words]
                if not seen.issuperset(pairs := set(pairwise(plainly))):
                    seen |= pairs
                    yield words[1:]


#: What the guides tell people to write, and mistakes; whether 0.33.0 takes it.
ARGUMENTS: list[tuple[list[str], str | None]] = [
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


def test_it_takes_what_we_write_and_refuses_what_we_refuse(
    vllm_python: Path, vllm_033: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plans, exported = list(planned()), list(exports.command_lines(capsys))
    assert len(plans) > 30
    assert len(exported) >= 10
    wanted = [*ARGUMENTS, *((words, None) for words in plans + exported)]
    lists = tmp_path / "lists.json"
    lists.write_text(json.dumps([words for words, _ in wanted]), encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": str(vllm_033)}
    done = subprocess.run([vllm_python, CHECK, lists], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    for (words, complaint), answer in zip(wanted, json.loads(done.stdout), strict=True):
        assert answer["ok"] is (complaint is None), (words, answer)
        assert complaint is None or complaint in answer["error"], (words, answer)
