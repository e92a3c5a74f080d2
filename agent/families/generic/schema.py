"""The JSON Schema of the generic family's answers: one shape per action, so that no required argument is missing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.screen.outline import See

_TEXT = {"type": "string"}
_COORDINATE = {"type": "integer", "minimum": 0, "maximum": 1000}
_XY = {"type": "array", "items": _COORDINATE, "minItems": 2, "maxItems": 2}
_POINTING = ("click", "double_click", "right_click", "middle_click", "move")
#: Servers compile the schema to a grammar. With more numbers than this, the schema allows any number.
_MOST_NUMBERS = 300


def answer_schema(see: See, numbers: Sequence[int] | None) -> dict[str, Any]:
    """Return the schema of an answer. `numbers` are the allowed element numbers (None: any).

    Without images, no points.
    """
    element: dict[str, Any] = {"type": "integer"}
    if numbers and len(numbers) <= _MOST_NUMBERS:
        element = {"enum": list(numbers)}
    places = {
        "marks": {"element": element, "point": _XY},
        "outline": {"element": element},
        "screenshot": {"point": _XY},
    }
    return {"anyOf": list(_shapes(places[see]))}


def _shapes(places: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, place in places.items():
        yield _shape(_POINTING, {name: place})
        yield _shape(("drag",), {name: place, "to": place})
        yield _shape(("scroll",), {name: place, "direction": {"enum": ["up", "down", "left", "right"]}})
        yield _shape(("type",), {name: place, "text": _TEXT}, {"enter": {"type": "boolean"}})
    yield _shape(("type",), {"text": _TEXT}, {"enter": {"type": "boolean"}})
    yield _shape(("scroll",), {"direction": {"enum": ["up", "down", "left", "right"]}})
    yield _shape(("key",), {"keys": _TEXT})
    yield _shape(("open", "ask_user", "answer"), {"text": _TEXT})
    yield _shape(("wait",), {"seconds": {"type": "number", "minimum": 0, "maximum": 60}})
    yield _shape(("finish",), {"status": {"enum": ["success", "fail"]}, "text": _TEXT})


def _shape(names: Sequence[str], needs: Mapping[str, Any], may: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"thought": _TEXT, "action": {"enum": list(names)}, **needs, **(may or {})},
        "required": ["thought", "action", *needs],
        "additionalProperties": False,
    }
