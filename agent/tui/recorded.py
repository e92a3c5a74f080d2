"""A recorded run as a `RunView`: the same picture of a run, read from its bundle."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.actions import describe
from agent.geometry import Region, Size, Viewport
from agent.record.read import Bundle, read_bundle
from agent.record.saved import read_action
from agent.tui.action_text import gist
from agent.tui.view import Mark, Row, RunView
from foundation.errors import MaiError

#: The stages that follow one another; others (ttft) lie within one of them.
_STAGES = ("capture", "fit", "encode", "prompt", "model", "parse", "act", "settle")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of the list of runs; read from run.json alone, so that long runs cost no more than short ones."""

    path: Path
    instruction: str
    when: str
    outcome: str
    steps: int | None
    seconds: float | None

    @property
    def searched(self) -> str:
        """What a search looks at."""
        return f"{self.instruction} {self.outcome} {self.path.name}".casefold()


def summaries(runs: Path) -> list[RunSummary]:
    """The runs below a folder, newest first."""
    found: list[RunSummary] = []
    for folder in sorted(runs.iterdir(), reverse=True) if runs.is_dir() else ():
        try:
            meta = _dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
        steps, seconds = meta.get("steps"), meta.get("seconds")
        found.append(
            RunSummary(
                folder,
                str(meta.get("instruction", "")),
                str(meta.get("started", ""))[:19].replace("T", " "),
                Bundle(folder, meta, ()).outcome,
                steps if isinstance(steps, int) else None,
                float(seconds) if isinstance(seconds, int | float) else None,
            )
        )
    return found


def read_view(path: Path) -> RunView:
    """The run in a folder, or what is wrong with it."""
    try:
        return view_of(read_bundle(path))
    except MaiError as error:
        return RunView(instruction=path.name, state="ended", stage=str(error), status=1)


def view_of(bundle: Bundle) -> RunView:
    """The run in a bundle; what is missing or damaged is left out."""
    meta = bundle.meta
    view = RunView(
        instruction=str(meta.get("instruction", "")),
        state="ended",
        stage=str(meta.get("message") or bundle.outcome),
        engine=str(meta.get("engine") or ""),
        model=str(meta.get("model") or ""),
        dry_run=bool(meta.get("dry_run")),
        sandbox=bool(meta.get("sandbox")),
        step=len(bundle.steps),
        bundle=bundle.path,
        status=meta.get("status") if isinstance(meta.get("status"), int) else None,
        seconds=_number(meta.get("seconds")),
    )
    for step in bundle.steps:
        for happened in _list(step.get("before")):
            if isinstance(happened, dict) and (words := _between(happened)):
                view.rows.append(Row(None, "note", words, _number(happened.get("at")), 0.0))
        view.rows.append(_row(step, bundle))
    return view


def _row(step: dict[str, Any], bundle: Bundle) -> Row:
    target = read_action(step.get("target"))
    answers = [str(answer.get("raw", "")) for answer in _list(step.get("answers")) if isinstance(answer, dict)]
    times = {name: _number(value) for name, value in _dict(step.get("milliseconds")).items()}
    tokens = _dict(step.get("tokens"))
    image = _dict(step.get("image")).get("file")
    error = step.get("error")
    words = describe(target) if target is not None else str(_dict(step.get("target")).get("type") or "no action")
    return Row(
        number=step.get("step") if isinstance(step.get("step"), int) else None,
        mark=_mark(step),
        words=f"the answer cannot be used: {error}" if target is None and error else words,
        began=_number(step.get("at")),
        seconds=sum(times.get(name, 0.0) for name in _STAGES) / 1000,
        thought=str(step.get("thought") or ""),
        gist=gist(str(step.get("thought") or ""), target) if target is not None else "",
        answers=answers,
        target=target,
        viewport=_viewport(step.get("viewport")),
        image=bundle.path / str(image) if image else None,
        approval=_approval(_dict(step.get("approval"))),
        outcome=str(error or step.get("reply") or step.get("detail") or ""),
        note=str(step.get("note") or ""),
        tokens=(_count(tokens.get("prompt")), _count(tokens.get("completion")), _count(tokens.get("cached"))),
        milliseconds=times,
    )


def _mark(step: dict[str, Any]) -> Mark:
    target = _dict(step.get("target"))
    gave_up = target.get("type") == "finish" and target.get("success") is False
    if step.get("error") or gave_up:
        return "failed"
    if _dict(step.get("approval")).get("allowed") is False:
        return "skipped"
    return "dry" if step.get("dry_run") else "done"


def _between(happened: dict[str, Any]) -> str:
    match happened.get("event"):
        case "Paused":
            return f"paused: {happened.get('reason', '')}"
        case "UserActed":
            return f"you acted: {happened.get('what', '')}"
        case "PersonSaid" | "Told":  # the second in runs of format 1
            return f"you said: {happened.get('text', '')}"
    return ""


def _approval(approval: dict[str, Any]) -> str:
    if not approval:
        return ""
    allowed = approval.get("allowed")
    verdict = "not decided" if allowed is None else "allowed" if allowed else "not allowed"
    note = f", “{approval['note']}”" if approval.get("note") else ""
    by = f" by {approval['by']}" if approval.get("by") else ""
    return f"{approval.get('reason', '')}: {verdict}{by}{note}"


def _viewport(data: Any) -> Viewport | None:
    try:
        region = Region(data["left"], data["top"], data["width"], data["height"])
        return Viewport(region, Size(data["captured_width"], data["captured_height"]))
    except (KeyError, TypeError, ValueError):
        return None


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
