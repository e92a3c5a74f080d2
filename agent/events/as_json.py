"""Events as plain JSON: the form of `mai-agent --json`, one object per line, without image bytes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.core import actions
from agent.core.changes import Change
from agent.core.geometry import DesktopPoint, Region, Viewport
from agent.events.run_events import SCHEMA, Event, ModelInUse, RunStarted
from agent.families.base import Call, ParseFailure
from agent.safety.naming import Aim
from agent.screen.encode import EncodedImage
from agent.screen.nearby import Described
from agent.screen.outline import Element
from foundation.chat_stream import Answer, ToolCall, Usage

#: Fields that hold lists, and the field beside each that holds its first item: scripts read the single fields.
FIRSTS = {"images": "image", "calls": "call", "actions": "action", "targets": "target", "elements": "element"}


def to_json(event: Event) -> dict[str, Any]:
    """Return the event as plain JSON: "event", "schema", "at" in ISO 8601, then its fields."""
    head = {"event": type(event).__name__, "schema": SCHEMA, "at": iso_time(event.at)}
    values = fields_of(event)
    return head | values | {FIRSTS[name]: next(iter(items), None) for name, items in values.items() if name in FIRSTS}


def fields_of(event: Event) -> dict[str, Any]:
    """Return an event's own fields as plain JSON, as run bundles hold them too."""
    values = {name: _plain(getattr(event, name)) for name in event.__dataclass_fields__ if name != "at"}
    return values | (_plain(event.actor) if isinstance(event, RunStarted) else {})


def iso_time(seconds: float) -> str:
    """A time in seconds since 1970 as ISO 8601 with milliseconds and the local offset."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="milliseconds")


def _plain(value: Any) -> Any:
    match value:
        case None | str() | bool():
            return value
        case int():  # the exit status too
            return int(value)
        case float():
            return round(value, 3)
        case tuple():
            return [_plain(item) for item in value]
        case Mapping():
            return {key: round(item, 2) if isinstance(item, float) else _plain(item) for key, item in value.items()}
        case EncodedImage(_, form, size):
            return {"width": size.width, "height": size.height, "format": form, "digest": value.digest}
        case Viewport(region, captured):
            return _plain(region) | {"captured_width": captured.width, "captured_height": captured.height}
        case Change():
            return {name: getattr(value, name) for name in ("kind", "what", "before", "after")}
        case DesktopPoint(x, y):
            return [_plain(float(x)), _plain(float(y))]
        case Region(left, top, width, height):
            return {"left": left, "top": top, "width": width, "height": height}
        case Element(role=role, name=name, label=label):
            box = _plain(value.box)
            values = {"role": role, "name": name or label, "states": sorted(value.states), "window": value.window}
            return values | {"box": box, "words": value.words}
        case Described(element, alike, near):
            return _plain(element) | {
                "app": element.app,
                "alike": alike,
                "source": element.source,
                "label": element.label,
                "near": [*near],
            }
        case Call(name, arguments):
            return {"name": name, "arguments": dict(arguments)}
        case Answer(content, reasoning, tool_calls):
            parts = {"content": content, "reasoning": reasoning, "tool_calls": _plain(tool_calls)}
            if value.finish_reason == "refusal":  # a replay needs it to end the run as a refusal, too
                return parts | {"finish_reason": value.finish_reason}
            return parts if reasoning or tool_calls else None
        case ParseFailure(kind, message):
            return {"kind": kind, "message": message}
        case Usage() | ModelInUse() | ToolCall() | Aim():
            return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return actions.to_json(value)
