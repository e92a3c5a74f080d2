"""An evaluation for readers: as an HTML page with every miss, and as a log of Inspect (`inspect_ai`).

The page is that of a run's report: one file that loads nothing from the network, with each miss in place of a step.
The log's form is that of Inspect's JSON logs, version 2, as inspect_ai 0.3.285 reads them. Nothing of Inspect is
imported.
"""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.evals.judging import ZOOM, Verdict
from agent.evals.samples import Benchmark, Sample
from agent.evals.summary import how_judged, percent, rows_of
from agent.record.report.page import FILE_NAME, fill_page, plain_page
from agent.record.report.pictures import Pictures
from agent.record.report.view import view_step
from agent.record.step_record import StepRecord
from foundation.files import write_file
from foundation.foreign_text import harmless

#: Characters of a text that are shown; `answers.jsonl` has the rest.
_MOST_CHARS = 20_000
_STYLE = """
body { display: block; height: auto; } #head { max-height: none; } #body { height: 92vh; }
@media (max-width: 1080px) { #body { height: auto; } }
#score { display: flex; flex-wrap: wrap; gap: 8px 40px; align-items: start; margin-top: 10px; }
#score table { border-collapse: collapse; font-size: 13px; } #score caption { text-align: left; font-weight: 600; }
#score td, #score th { padding: 1px 14px 1px 0; text-align: right; font-weight: 400; }
#score td { font-variant-numeric: tabular-nums; } #score th { color: var(--soft); }
#score th:first-child { text-align: left; color: var(--ink); overflow-wrap: anywhere; }
"""


def write_report(
    folder: Path,
    benchmark: Benchmark,
    totals: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    answers: Mapping[str, Mapping[str, Any]],
) -> Path:
    """Write the report into the folder of an evaluation, and return its path.

    `totals` is the summary of the verdicts. Raises EnvironmentLacksError: the file cannot be written.
    """
    misses = [verdict for verdict in verdicts if not verdict.right]
    pictures = Pictures([verdict.sample.image for verdict in misses])
    steps = [
        _step(number, verdict, answers[verdict.sample.id], place)
        for number, (verdict, place) in enumerate(zip(misses, pictures.of_step, strict=True), 1)
    ]
    score = f"{100 * totals['score']:.2f} % right"
    name = harmless(f"{benchmark.title}: {totals['model']}")
    run = {
        "id": "", "instruction": name, "outcome": score, "message": f"{len(misses)} misses of {len(verdicts)} answers",
        "facts": [[key, harmless(str(totals[key]))] for key in ("family", "words") if totals[key]], "warnings": [],
        "started": "", "version": "", "dry_run": False, "problem": _problem(totals), "stages": ["model"],
        "reduced": pictures.reduced, "still": True,
    }  # fmt: skip
    data = {"run": run, "steps": steps, "pictures": [picture.to_json() for picture in pictures.all]}
    plain = "".join(plain_page(run, steps, pictures, "Misses"))
    page = fill_page(data, f"{score}: {name}", name, plain=plain, details=_tables(totals), style=_STYLE)
    path = folder / FILE_NAME
    write_file(path, page.encode("utf-8", "replace"))
    return path


def _problem(totals: Mapping[str, Any]) -> str:
    missing = totals["samples"] - totals["answered"]
    lacks = [f"{missing} of {totals['samples']} samples are not answered."] if missing else []
    return " ".join([*lacks, *totals["notes"]])


def _step(number: int, verdict: Verdict, line: Mapping[str, Any], picture: int | None) -> dict[str, Any]:
    """Return a miss as the page shows a step."""
    sample = verdict.sample
    width, height = line["screen"] if sample.size is None else astuple(sample.size)
    point = None if verdict.point is None else [verdict.point[0] / width, verdict.point[1] / height]
    facts = {
        "id": sample.id, **sample.groups, "answer": f"{verdict.said} {verdict.lack}".strip(),
        "point": _numbers(verdict.point), "point after a closer look": _numbers(verdict.closer),
        "target": _numbers(sample.target) or "not there",
        "right by": ", ".join(name for name, right in verdict.rules.items() if right),
    }  # fmt: skip
    rows = [[_text(name), _text(value)] for name, value in facts.items() if value]
    answers = [_answer(one) for one in (line, line.get(ZOOM)) if one]
    return view_step(StepRecord(), number) | {
        "title": _text(" ".join(sample.instruction.split())), "state": _state(verdict),
        "marks": None if point is None else {"kind": "point", "points": [point]},
        "wanted": _wanted(sample, width, height), "facts": rows, "picture": picture,
        "detail": " ".join(value for _, value in rows), "answers": answers,
        "tokens": line.get("tokens", {}), "times": [line.get("ms") or 0], "ttft": line.get("first_token_ms"),
    }  # fmt: skip


def _state(verdict: Verdict) -> str:
    """Return what is wrong, in words."""
    if verdict.said == "unreadable":
        return "no point"
    if verdict.sample.shape == "refusal":
        return "not there"
    return "refused" if verdict.said == "refused" else "elsewhere"


def _wanted(sample: Sample, width: int, height: int) -> dict[str, Any] | None:
    """Return the target's outline as shares of the picture's sides; None if it is not there."""
    if sample.shape == "refusal":
        return None
    shares = [
        number / side for number, side in zip(sample.target, [width, height] * (len(sample.target) // 2), strict=True)
    ]
    if sample.shape == "polygon":
        return {"kind": "polygon", "points": list(zip(shares[::2], shares[1::2], strict=True))}
    left, top, right, bottom = shares
    middle = [(left + right) / 2, (top + bottom) / 2]
    return {"kind": "field", "points": [middle], "box": [left, top, right - left, bottom - top]}


def _answer(line: Mapping[str, Any]) -> dict[str, str]:
    """Return all that the model wrote."""
    kept = line["answer"]
    calls = [f"{call.get('name')} {call.get('arguments')}" for call in kept.get("tool_calls", ())]
    return {"raw": _text("\n".join(filter(None, (kept.get("reasoning"), kept["content"], *calls)))), "failure": ""}


def _numbers(values: Sequence[float] | None) -> str:
    return ", ".join(f"{round(value, 1):g}" for value in values or ())


def _text(value: object) -> str:
    """Return foreign text, cut, with invisible and bidi characters spelled out."""
    return harmless(str(value)[:_MOST_CHARS])


def _tables(totals: Mapping[str, Any]) -> str:
    """Return the score as HTML tables."""
    scores = [
        [name, f"{row['right']} of {row['count']}", percent(row["share"]),
         f"{100 * row['low']:.1f} to {100 * row['high']:.1f}", *([percent(row["zoom"])] if "zoom" in row else [])]
        for name, row in rows_of(totals).items()
    ]  # fmt: skip
    rules = [[name, percent(share)] for name, share in totals["rules"].items()]
    published = [
        [entry["source"], how_judged(entry), f"{entry['figure']:.2f} %",
         "" if entry["ours"] is None else f"{entry['ours']:.2f} %",
         "" if entry["ours"] is None else f"{entry['ours'] - entry['figure']:+.2f}"]
        for entry in totals["published"]
    ]  # fmt: skip
    zoom = ["zoom"] if any(len(row) > 4 for row in scores) else []
    tables = (
        _table("Score", ["", "right", "share", "95 %", *zoom], scores),
        _table("By rule", ["", "share"], rules),
        _table("Published for this model", ["source", "judged by", "published", "here", "difference"], published),
    )
    return f'<div id="score">{"".join(tables)}</div>'


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    first = "".join(f'<th scope="col">{_html(head)}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{_html(name)}</th>{"".join(f"<td>{_html(cell)}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    return f"<table><caption>{_html(title)}</caption><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def _html(text: str) -> str:
    return html.escape(_text(text))


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
