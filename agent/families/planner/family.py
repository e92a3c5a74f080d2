"""A planner: any instruction-tuned model that says in words what to click. A grounder finds the places."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.core import actions
from agent.core.actions import Action
from agent.core.geometry import Grid, NamedPoint, Size
from agent.families.base import ArgumentError, Call, Decision, ParseFailure, Plan, PromptRequest
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.computer_use import CLICKS, Vocabulary, read_action
from agent.families.shared.lenient_json import first_object
from agent.families.shared.text_family import Read, TextFamily, answered, in_turn
from agent.model.request import ChatRequest, Message
from foundation.chat_stream import Answer

#: Arguments that name a place.
_PLACES = ("target", "to", "element")
_LONGEST = 300


class Planner(TextFamily):
    """A family whose answers name places in words (`plan`). Answers without a place are ordinary decisions."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._words = Vocabulary(Grid.relative(1000))

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """Return the request for the next action, with its place in words."""
        system = prompt.system_prompt if prompt.system_prompt is not None else self.texts["system"]
        if prompt.apps and prompt.system_prompt is None:
            system += "\n\n" + self.texts["apps"].replace("{apps}", ", ".join(prompt.apps))
        opening = [Message.text("system", system), Message.text("user", prompt.instruction)]
        messages = in_turn(opening, prompt, lambda step: answered(self.written(step.thought, step.calls), step))
        return ChatRequest(messages, self.facts.sampling)

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer: one JSON object."""
        return json.dumps({"thought": thought, **calls[0].arguments}, ensure_ascii=False)

    def plan(self, answer: Answer) -> Plan | ParseFailure:
        """Parse the plan in an answer. Any input is allowed, as in `parse`."""
        thought, calls, _ = self.calls_in(take_apart(answer))
        if isinstance(calls, ParseFailure):
            return replace(calls, thought=thought)
        call = calls[0]
        arguments = {key: value for key, value in call.arguments.items() if key != "thought"}
        own = call.arguments.get("thought")
        thought = f"{thought}\n{own}" if thought and isinstance(own, str) else thought or str(own or "")
        try:
            return Plan(thought.strip(), (self._action(arguments),), (Call("act", arguments),))
        except ArgumentError as error:
            return ParseFailure(error.kind, str(error), thought.strip())

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:  # noqa: ARG002
        """Parse an answer that names no place. One with a place needs a grounder."""
        plan = self.plan(answer)
        if isinstance(plan, ParseFailure):
            return plan
        if any(actions.points_of(action) for action in plan.actions):
            return ParseFailure("no_action", "it names a place, and no grounder is there to find it", plan.thought)
        return Decision(plan.thought, plan.actions, plan.calls)  # type: ignore[arg-type]  # they have no points

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the JSON object in an answer."""
        found = first_object(parts.text, closed=False)
        if isinstance(found, ParseFailure):
            return parts.thought, found, None
        value, rest = found
        if parts.swallowed and "{" in rest:
            raise ArgumentError("ambiguous", "there are several objects in the reasoning, and no answer")
        if isinstance(value.get("arguments"), dict):
            value = {**value["arguments"], "thought": value.get("thought", "")}
        return parts.thought, [Call("act", value)], None

    def _action(self, arguments: Mapping[str, Any]) -> Action[NamedPoint]:
        """Return the action, with places still in words. Raises ArgumentError."""
        name = str(arguments.get("action", "")).strip().lower().replace(" ", "_")
        if name in CLICKS:
            return actions.Click(_place(arguments), *CLICKS[name])
        if name in ("move", "hover", "mouse_move"):
            return actions.Move(_place(arguments))
        if name == "drag":
            return actions.Drag(_place(arguments), _place(arguments, "to"))
        if name == "long_press":
            return actions.LongPress(_place(arguments))
        plain = {key: value for key, value in arguments.items() if key not in _PLACES}
        read: Any = read_action(plain if "text" in plain else {**plain, "text": plain.get("name")}, self._words)
        if isinstance(read, actions.Scroll):
            return actions.Scroll(_place(arguments) if arguments.get("target") else None, read.dx, read.dy)
        if actions.points_of(read):
            raise ArgumentError("unknown_action", f"there is no action {name[:40]!r}")
        action: Action[NamedPoint] = read
        return action


def _place(arguments: Mapping[str, Any], name: str = "target") -> NamedPoint:
    """Return the place that an argument names. Raises ArgumentError."""
    words = arguments.get(name, arguments.get("element") if name == "target" else None)
    if not isinstance(words, str) or not words.strip():
        raise ArgumentError("bad_point", f'"{name}" must say in words what is meant')
    return NamedPoint(" ".join(words.split())[:_LONGEST])
