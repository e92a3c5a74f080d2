"""Writes an evaluation as a log of Inspect (`inspect_ai`), for its viewer and for those who compare with it.

The form is that of its JSON logs, version 2, as inspect_ai 0.3.285 reads them. Nothing of Inspect is imported.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.evals.judging import Verdict
from agent.evals.samples import Benchmark
from agent.record.report.pictures import Pictures
from foundation.files import write_file


def write_inspect_log(
    path: Path,
    benchmark: Benchmark,
    totals: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    answers: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write the log of a judged evaluation. `totals` is its summary. Raises EnvironmentLacksError."""
    pictures = Pictures([verdict.sample.image for verdict in verdicts])
    urls = [None if place is None else pictures.all[place].image.data_url for place in pictures.of_step]
    created = datetime.now(UTC).isoformat(timespec="seconds")
    name = sha256(f"{benchmark.name} {totals['model']} {totals['family']} {totals['words']}".encode()).hexdigest()[:22]
    dataset = {"name": benchmark.title, "samples": totals["samples"], "sample_ids": [one.sample.id for one in verdicts]}
    metrics = {rule: {"name": rule, "value": share} for rule, share in totals["rules"].items()}
    log = {
        "version": 2,
        "status": "success" if totals["answered"] == totals["samples"] else "cancelled",
        "eval": {
            "eval_id": name, "run_id": name, "task_id": name, "created": created, "task": f"grounding/{benchmark.name}",
            "dataset": dataset, "model": f"openai-api/{totals['model']}", "config": {},
            "metadata": {"family": totals["family"], "words": totals["words"]},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": totals["samples"], "completed_samples": totals["answered"],
            "scores": [{"name": "official", "scorer": "official", "params": {}, "metrics": metrics}],
        },
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
        "samples": [
            _sample(verdict, answers[verdict.sample.id], url) for verdict, url in zip(verdicts, urls, strict=True)
        ],
    }  # fmt: skip
    write_file(path, json.dumps(log, ensure_ascii=True) + "\n", 0o666)


def _sample(verdict: Verdict, line: Mapping[str, Any], url: str | None) -> dict[str, Any]:
    sample, kept = verdict.sample, line["answer"]
    shown = [] if url is None else [{"type": "image", "image": url}]
    question = {"role": "user", "content": [*shown, {"type": "text", "text": sample.instruction}]}
    thought = [{"type": "reasoning", "reasoning": kept["reasoning"]}] if kept.get("reasoning") else []
    reply = {"role": "assistant", "content": [*thought, {"type": "text", "text": kept["content"] or ""}]}
    tokens = line.get("tokens", {})
    usage = {"input_tokens": tokens.get("prompt") or 0, "output_tokens": tokens.get("completion") or 0}
    stop = "max_tokens" if kept.get("finish_reason") == "length" else "stop"
    place = "" if verdict.point is None else ", ".join(f"{one:.1f}" for one in verdict.point)
    return {
        "id": sample.id, "epoch": 1, "input": [question], "messages": [question, reply],
        "target": ", ".join(f"{one:g}" for one in sample.target) or "not there",
        "output": {
            "model": line["model"], "choices": [{"message": reply, "stop_reason": stop}],
            "usage": {**usage, "total_tokens": sum(usage.values())}, "time": (line.get("ms") or 0) / 1000,
        },
        "scores": {"official": {
            "value": "C" if verdict.right else "I", "answer": place or verdict.said,
            "metadata": {"rules": dict(verdict.rules), "lack": verdict.lack},
        }},
        "metadata": {**sample.groups, "shape": sample.shape, "picture": str(sample.image), "screen": line["screen"]},
    }  # fmt: skip
