"""The generic family: asks any instruction-tuned model for one JSON object, with an element's number as the place."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from agent.core import actions
from agent.core.actions import Action
from agent.core.geometry import Grid, GridPoint, Size
from agent.families.base import ArgumentError, Call, Decision, ParseFailure, PromptRequest, decide
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.computer_use import CLICKS, Vocabulary, read_action
from agent.families.shared.lenient_json import only_object
from agent.families.shared.points import grid_of, read_point
from agent.families.shared.text_family import Read, TextFamily, thought_in
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from agent.screen.outline import MOST_CHARS, Outline, OutlineText, See, is_seen, write_outline
from foundation.chat_stream import Answer

_MOVES = frozenset({"move", "hover", "mouse_move"})
#: Arguments that name a place by its element, or by its point.
_ELEMENT = ("element", "element_id", "id", "number")
_POINT = ("point", "coordinate", "position")


class Generic(TextFamily):
    """The family. Its option "see" says how the screen is shown: `marks`, `outline` or `screenshot`."""

    @property
    def _words(self) -> Vocabulary:
        return Vocabulary.of(self.data, grid_of(self.facts.navigation, ()))

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """Return the request for an action. Roles alternate, because many chat templates accept nothing else."""
        see = _seen(prompt)
        outline_text = None
        if prompt.outline is not None and see != "screenshot":
            most = prompt.options.get("outline_chars", MOST_CHARS)
            outline_text = write_outline(prompt.outline, self._words.grid, most)
        messages = [
            Message.text("system", _system(self.texts, see) if prompt.system_prompt is None else prompt.system_prompt)
        ]
        turn = [self.texts["turns"]["task"].replace("{instruction}", prompt.instruction)]
        if prompt.apps:
            turn.append(self.texts["turns"]["apps"].replace("{apps}", ", ".join(prompt.apps)))
        if prompt.skipped:
            turn.append(self.texts["turns"]["skipped"].replace("{skipped}", str(prompt.skipped)))
        for step in prompt.steps:
            messages += [_user(turn), Message.text("assistant", self.written(step.thought, step.calls))]
            turn = step.replies or [self.texts["turns"]["done"]]
        messages.append(_user([*turn, _screen(self.texts["turns"], outline_text, see)], prompt.images))
        numbers = None if outline_text is None else [element.id for element in outline_text.elements]
        return ChatRequest(messages, self.facts.sampling, schema=answer_schema(see, numbers))

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse an answer to a request without elements."""
        return self.parse_seen(answer, sent, None)

    def parse_seen(self, answer: Answer, sent: Sequence[Size], outline: Outline | None) -> Decision | ParseFailure:  # noqa: ARG002
        """Parse the action in an answer. Its element numbers are those of the outline."""
        thought, calls, _ = self.calls_in(take_apart(answer))
        places = _Places(outline, self._words)
        result = decide(thought, calls, lambda call: _read(call.arguments, places), most=1)
        named = isinstance(result, Decision) and any(name in result.calls[0].arguments for name in _ELEMENT)
        return replace(result, exact=True) if isinstance(result, Decision) and named else result

    def calls_in(self, parts: AnswerParts) -> Read:
        """Parse the calls of an answer. All get the family's function name."""
        thought, calls, most = super().calls_in(parts)
        if parts.calls and not isinstance(calls, ParseFailure):
            calls = [Call(self.facts.function, _flat(call)) for call in calls]
        return thought, calls, most

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the single object of an answer."""
        value = only_object(parts.text, lambda one: "action" in one or "arguments" in one)
        arguments = _flat(Call(str(value.get("name", "")), value))
        thought = thought_in({"thought": arguments.pop("thought", None)}, parts)
        return thought, [Call(self.facts.function, arguments)], 1

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer: one JSON object."""
        return json.dumps({"thought": thought, **calls[0].arguments}, ensure_ascii=False)

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        return self.asking(TextPart(instruction), ImagePart(image), system=self.texts["grounding"]["system"].strip())


def _seen(prompt: PromptRequest) -> See:
    """Return how this request shows the screen. It depends on what is available."""
    see: See = prompt.options.get("see", "marks")
    if not prompt.images:
        return "outline"
    return "screenshot" if prompt.outline is None or see == "outline" else see


def _system(texts: Mapping[str, Any], see: See) -> str:
    text: str = texts["system"].strip().replace("{sees}", texts[see])
    return text.replace("{places}", texts["places"][see])


def _user(texts: Sequence[str], images: Sequence[EncodedImage | None] = ()) -> Message:
    return Message("user", (TextPart("\n".join(texts)), *map(ImagePart, images)))


def _screen(turns: Mapping[str, str], outline_text: OutlineText | None, see: See) -> str:
    if see == "screenshot":
        return str(turns["picture"])
    return str(turns["screen"]).replace("{outline}", turns["unknown"] if outline_text is None else outline_text.text)


def _flat(call: Call) -> dict[str, Any]:
    """Return the arguments of a call. They may be nested, and the action may be the call's name."""
    nested = call.arguments.get("arguments")
    arguments = dict(nested) if isinstance(nested, Mapping) else dict(call.arguments)
    if "thought" in call.arguments:
        arguments["thought"] = call.arguments["thought"]
    if isinstance(action := arguments.get("action"), Mapping):  # {"action": {"type": "click", "element": 5}}
        inner = dict(action)
        arguments = {**{key: arguments[key] for key in arguments if key != "action"}, **inner}
        arguments["action"] = inner.pop("type", inner.get("action"))
    if "action" not in arguments and call.name:
        arguments["action"] = call.name
    return {key: value for key, value in arguments.items() if value is not None}


class _Places:
    """Finds the places of actions, on one grid over the screen."""

    def __init__(self, outline: Outline | None, words: Vocabulary) -> None:
        self._outline, self.words = outline, words

    def of(self, arguments: Mapping[str, Any], what: str) -> GridPoint:
        """Return the place that the arguments name. Raises ArgumentError."""
        place = self.if_any(arguments)
        if place is None:
            raise ArgumentError("bad_point", f'{what} needs an "element" or a "point"')
        return place

    def if_any(self, arguments: Mapping[str, Any]) -> GridPoint | None:
        """Return the place that the arguments name; None if they name none. Raises ArgumentError."""
        number = next((arguments[name] for name in _ELEMENT if name in arguments), None)
        if number is not None:
            return self._element(number)
        point = next((arguments[name] for name in _POINT if name in arguments), None)
        return None if point is None else read_point(point, self.words.grid)

    def named(self, value: Any) -> GridPoint:
        """Return the place for a value: an element's number, a point, or an object with one of them."""
        if isinstance(value, Mapping):
            return self.of(value, "a place")
        return read_point(value, self.words.grid) if isinstance(value, list) else self._element(value)

    def _element(self, value: Any) -> GridPoint:
        text = str(value).strip().strip("[]#").strip()
        if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) < 7):
            raise ArgumentError("bad_argument", f'"element" is the number of an element, not {str(value)[:40]!r}')
        if self._outline is None:
            raise ArgumentError("bad_argument", f"there is no element {text}: the request listed no elements")
        element = self._outline.numbered(int(text))
        if element is not None and not is_seen(element, self._outline):
            raise ArgumentError("bad_argument", f"element {text} is not in sight now")
        if element is None:
            raise ArgumentError("bad_argument", f"there is no element {text} on the screen now")
        return self._outline.centre(element, Grid.pixels(self._outline.size))


def _read(arguments: Mapping[str, Any], places: _Places) -> list[Action[GridPoint]]:
    """Return the actions of an answer, in order. Raises ArgumentError."""
    written = arguments.get("action")
    name = written.strip().lower().replace("-", "_").replace(" ", "_") if isinstance(written, str) else ""
    if name in CLICKS:
        return [actions.Click(places.of(arguments, name), *CLICKS[name])]
    if name in _MOVES:
        return [actions.Move(places.of(arguments, name))]
    if name == "drag":
        if arguments.get("to") is None:
            raise ArgumentError("bad_point", 'a drag needs "to", where it ends')
        return [actions.Drag(places.of(arguments, name), places.named(arguments["to"]))]
    place = places.if_any(arguments)
    plain = {key: value for key, value in arguments.items() if key not in (*_ELEMENT, *_POINT, "to")}
    read = read_action({"action": _NAMES.get(name, written), **_renamed(name, plain)}, places.words)
    if isinstance(read, actions.Scroll):
        return [read if place is None else replace(read, point=place)]
    if isinstance(read, actions.TypeText):
        before: list[Action[GridPoint]] = [actions.Click(place)] if place is not None else []
        enters = any(arguments.get(one) is True for one in ("enter", "press_enter", "submit"))
        enter: list[Action[GridPoint]] = [actions.PressKeys(("enter",))] if enters else []
        return [*before, read, *enter]
    if actions.points_of(read):
        raise ArgumentError("unknown_action", f"there is no action {name[:40]!r}")
    return [read]


_NAMES = {"finish": "terminate", "done": "terminate"}


def _renamed(name: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Rename arguments to computer use. A finished task without a status is a success."""
    kept = {key: value for key, value in plain.items() if key != "action"}
    if name in _NAMES:
        kept.setdefault("status", "success")
    if name.startswith("open") and "text" not in kept:
        kept["text"] = kept.get("name", kept.get("app"))
    return kept


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
