"""What a report shows of a bundle, as plain values: all checked, because bundles of crashed runs get reports too."""

import json
import math
from pathlib import Path
from typing import Any, TypeAlias

from agent.actions import Click, Drag, LongPress, Move, Scroll, describe
from agent.geometry import DesktopPoint
from agent.record.read import Bundle
from agent.record.saved import read_action

Json: TypeAlias = dict[str, Any]

#: The longest text shown; the bundle has the rest.
_MOST_CHARS = 20_000
#: Stages in the order they happen: their name in the report, and the measured parts that make them up.
STAGES = (
    ("look", ("capture", "fit", "encode")), ("prompt", ("prompt",)), ("model", ("model",)),
    ("read", ("parse", "map")), ("approval", ("approval",)), ("act", ("act",)), ("settle", ("settle",)),
)  # fmt: skip


def view_run(bundle: Bundle) -> Json:
    """The run as a whole."""
    meta = bundle.meta
    return {
        "id": _text(meta.get("id")) or _text(bundle.path.name),
        "instruction": _text(meta.get("instruction")),
        "outcome": _text(bundle.outcome),
        "message": _text(meta.get("message")),
        "facts": [[name, value] for name, value in _facts(bundle) if value],
        "warnings": [_text(warning) for warning in _list(meta.get("warnings"))],
        "started": _text(meta.get("started")),
        "version": _text(meta.get("version")),
        "dry_run": bool(meta.get("dry_run")),
        "problem": _problem(bundle),
        "stages": [name for name, _ in STAGES],
    }


def _facts(bundle: Bundle) -> list[tuple[str, str]]:
    meta = bundle.meta
    seconds = _number(meta.get("seconds"))
    tokens = _dict(meta.get("tokens"))
    used = [_number(tokens.get(name)) for name in ("prompt", "completion")]
    where = "sandbox" if meta.get("sandbox") else "this desktop"
    return [
        ("engine", _text(meta.get("engine"))),
        ("model", _text(meta.get("model"))),
        ("family", _text(meta.get("family"))),
        ("steps", str(len(bundle.steps))),
        ("duration", "" if seconds is None else _duration(seconds)),
        ("tokens", f"{used[0]:,.0f} in, {used[1]:,.0f} out" if used[0] and used[1] is not None else ""),
        ("desktop", where + (", dry run" if meta.get("dry_run") else "") if meta.get("engine") else ""),
        ("approval", _text(meta.get("approve"))),
        ("masked", f"{masked:.0f} secrets" if (masked := _number(meta.get("masked"))) else ""),
    ]


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _problem(bundle: Bundle) -> str:
    """What is not as it should be with the whole run; empty when it is complete."""
    if bundle.outcome == "running":
        return "This run is still under way; the report shows it as far as it is recorded."
    if bundle.outcome == "interrupted":
        return "This run broke off without an end: its process is gone. Everything up to its last step is here."
    if not bundle.meta:
        return "The run's own description is missing or damaged; the steps are shown as far as they can be read."
    if not bundle.steps:
        return "No step was recorded."
    counted = _number(bundle.meta.get("steps"))
    if counted is not None and counted > len(bundle.steps):
        return f"Of {counted:.0f} steps only {len(bundle.steps)} are in the bundle."
    return ""


def view_step(step: Json, number: int) -> Json:
    """One step; `number` where it has none of its own."""
    target, approval = step.get("target"), _dict(step.get("approval"))
    instead = _dict(approval.get("instead")) or None
    own = _number(step.get("step"))
    tokens = _dict(step.get("tokens"))
    return {
        "number": number if own is None else int(own),
        "title": _title(step, instead or target),
        "kind": _text(_dict(instead or target).get("type")),
        "state": _state(step, approval),
        "at": _number(step.get("at")),
        "before": [words for item in _list(step.get("before")) if (words := _between(_dict(item)))],
        "marks": _marks(instead or target, _dict(step.get("viewport"))),
        "thought": _text(step.get("thought")),
        "answers": [_answer(_dict(answer)) for answer in _list(step.get("answers"))],
        "call": _pretty(step.get("call")),
        "model": _pretty(step.get("action")),
        "grid": [
            int(side) for side in _list(step.get("grid")) if isinstance(side, int | float) and math.isfinite(side)
        ],
        "screen": _pretty(target),
        "instead": _pretty(instead),
        "approval": _approval(approval),
        "detail": _text(step.get("detail")),
        "error": _text(step.get("error")),
        "changed": step.get("changed") if isinstance(step.get("changed"), bool) else None,
        "note": _text(step.get("note")),
        "reply": _text(step.get("reply")),
        "tokens": {
            "image": _number(_dict(step.get("image")).get("tokens")),
            **{name: _number(tokens.get(name)) for name in ("prompt", "completion", "cached")},
        },
        **_times(step, approval),
    }


def screenshot(bundle: Bundle, step: Json) -> Path | None:
    """The step's screenshot; never a file outside of the bundle, whatever the line says."""
    name = _dict(step.get("image")).get("file")
    if not isinstance(name, str) or "\0" in name:
        return None
    try:
        file = (bundle.path / name).resolve()
        return file if file.is_relative_to(bundle.path.resolve()) and file.is_file() else None
    except (OSError, ValueError):
        return None


def _title(step: Json, target: Any) -> str:
    action = read_action(target)
    if action is not None:
        return describe(action)
    if step.get("error"):
        return "no usable answer"
    return _text(_dict(target).get("type")) or "no decision"


def _state(step: Json, approval: Json) -> str:
    if step.get("error"):
        return "failed"
    if approval.get("allowed") is False:
        return "refused"
    if approval and approval.get("allowed") is None:
        return "unanswered"
    if step.get("dry_run"):
        return "dry run"
    if step.get("executed"):
        return "done"
    return "said" if step.get("target") else "broken off"


def _between(happened: Json) -> str:
    match happened.get("event"):
        case "Paused":
            return f"paused: {_text(happened.get('reason'))}"
        case "Resumed":
            return "resumed"
        case "UserActed":
            return f"you acted: {_text(happened.get('what'))}"
        case "PersonSaid" | "Told":  # the second in runs of format 1
            return f"you said: {_text(happened.get('text'))}"
    return ""


def _answer(answer: Json) -> Json:
    failure = _dict(answer.get("failure"))
    return {"raw": _text(answer.get("raw")), "failure": _text(failure.get("message"))}


def _approval(approval: Json) -> Json | None:
    if not approval:
        return None
    allowed = approval.get("allowed")
    return {
        "reason": _text(approval.get("reason")),
        "verdict": "not decided" if allowed is None else "allowed" if allowed else "not allowed",
        "by": _text(approval.get("by")),
        "note": _text(approval.get("note")),
        "always": _text(approval.get("scope")) if approval.get("always") else "",
        "at": _number(approval.get("at")),
        "milliseconds": _number(approval.get("milliseconds")),
    }


def _times(step: Json, approval: Json) -> Json:
    measured = {name: value for name, raw in _dict(step.get("milliseconds")).items() if (value := _number(raw))}
    waited = _number(approval.get("milliseconds"))
    if waited:
        measured["approval"] = waited
    return {
        "times": [round(sum(measured.get(part, 0.0) for part in parts), 2) for _, parts in STAGES],
        "ttft": measured.get("ttft"),
    }


def _marks(target: Any, viewport: Json) -> Json | None:
    """Where the action's points lie on the screenshot, as shares of its sides."""
    action = read_action(target)
    width, height = _number(viewport.get("width")), _number(viewport.get("height"))
    left, top = _number(viewport.get("left")), _number(viewport.get("top"))
    if not width or not height or left is None or top is None:
        return None

    def share(point: DesktopPoint) -> list[float] | None:
        x, y = (point.x - left) / width, (point.y - top) / height
        return [round(x, 5), round(y, 5)] if math.isfinite(x) and math.isfinite(y) else None

    match action:
        case Click(point) | LongPress(point) | Move(point):
            return {"kind": "point", "points": [share(point)]}
        case Drag(start, end):
            return {"kind": "drag", "points": [share(point) for point in (start, end) if point is not None]}
        case Scroll(point, dx, dy):
            place = [0.5, 0.5] if point is None else share(point)
            return {"kind": "scroll", "points": [place], "way": [(dx > 0) - (dx < 0), (dy > 0) - (dy < 0)]}
    return None


def _pretty(value: Any) -> str:
    return "" if value is None else _text(json.dumps(value, ensure_ascii=False, indent=1, default=str))


def _text(value: Any) -> str:
    """Text that can be shown and stored: no half characters, and of bounded length."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else str(value)
    if len(text) > _MOST_CHARS:
        text = f"{text[:_MOST_CHARS]}… ({len(text) - _MOST_CHARS:,} more characters are in the bundle)"
    return text.encode("utf-8", "replace").decode("utf-8")


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
