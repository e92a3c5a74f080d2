"""The real parser of vLLM 0.33.0 takes the command line of every plan."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from planning import MODELS, NEW, PRESETS, command, plan

from foundation.errors import MaiError
from serverctl.hardware.catalogue import card_names
from serverctl.models.find import known_models

pytestmark = [pytest.mark.slow, pytest.mark.real_vllm, pytest.mark.timeout(600)]

CHECK = Path(__file__).resolve().parents[2] / "stubs" / "check_arguments.py"


def command_lines() -> dict[str, list[str]]:
    """Command lines that differ in more than numbers and names: all cards, one and eight of them with MAI-UI in every
    preset and all other models in the default, two and four with MAI-UI in the default.
    """
    found: dict[str, list[str]] = {}
    wishes = [(model, preset) for model in MODELS for preset in PRESETS] + [("Qwen3.5-9B", "speculative")]
    others = [(entry.name, "latency") for entry in known_models() if entry.name not in MODELS]
    for name in card_names():
        for count in (1, 2, 4, 8):
            for model, preset in wishes + others if count in (1, 8) else [(model, "latency") for model in MODELS]:
                try:
                    made = plan(f"{name}*{count}", model, preset)
                except MaiError:
                    continue
                words = command(made, NEW).argv()
                found.setdefault(re.sub(r"\d+", "0", json.dumps(words).replace(made.model.source, "")), words)
    return found


def test_it_takes_them_all(vllm_python: Path, vllm_033: Path, tmp_path: Path) -> None:
    lines = list(command_lines().values())
    assert len(lines) > 100
    lists = tmp_path / "lists.json"
    lists.write_text(json.dumps([words[1:] for words in lines]), encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": str(vllm_033)}
    done = subprocess.run([vllm_python, CHECK, lists], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout)
    refused = [(words, answer["error"]) for words, answer in zip(lines, answers, strict=True) if not answer["ok"]]
    assert not refused, refused[:5]
