"""Takes over answers that others published, in ScreenSpot-Pro's form of results, so that our rules judge them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.evals.folder import AnswersFile
from agent.evals.samples import Benchmark
from agent.families.registry import get_family
from foundation.errors import UsageError


def import_answers(file: Path, benchmark: Benchmark, run: Mapping[str, Any], out: Path) -> int:
    """Keep the `raw_response` of each row as the answer to the sample of its id. Return how many were kept.

    The file is JSON lines, a list, or an object with `details`. Raises UsageError: a row cannot be used, the
    folder holds another answer, or the family counts in pixels of pictures whose size is not published.
    """
    if isinstance(get_family(run["family"]).facts.grounding, str):
        raise UsageError(f"The family {run['family']} counts in pixels of pictures whose size the answers do not tell.")
    samples = {sample.id: sample for sample in benchmark.samples}
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read ({error}).", "Name a file of answers.") from error
    try:
        with AnswersFile(out, run) as kept:
            lines = []
            for row in _rows(text):
                sample, response = samples[str(row["id"])], row["raw_response"]
                size = list(row["img_size"]) if sample.size is None else [sample.size.width, sample.size.height]
                if not isinstance(response, str):
                    raise TypeError(f"the answer to {sample.id} is not text")
                line = {"id": sample.id, "request": "imported", **run, "screen": size, "sent": size}
                answer = {"content": response, "finish_reason": "stop"}
                if sample.id in kept.answers and kept.answers[sample.id]["answer"] != answer:
                    raise UsageError(f"{out} holds another answer to {sample.id}.", "Name another folder with --out.")
                lines.append({**line, "answer": answer})
            for line in lines:
                kept.append(line)
            return len(kept.answers)
    except KeyError as error:
        raise UsageError(f"{file} has no {error}, or the benchmark has no such sample.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} cannot be used: {error}.", "Is it a file of answers?") from error


def _rows(text: str) -> list[Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if isinstance(document, dict):
        return list(document["details"]) if "details" in document else [document]
    return list(document)
