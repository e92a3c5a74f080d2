"""The common base of cloud models' families: models whose API has its own tool for a computer.

A request is a conversation of calls and results. The screenshot after an answer is the result of its last call. Answers
are sent back unchanged, as their API's own items. An answer without a call ends the task, as in all published clients.
Our own functions `ask_user` and `give_up` cover the other cases.
"""

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent.core.actions import Action, AskUser, CallTool, Finish, Wait
from agent.core.geometry import GridPoint, Size
from agent.families.base import ArgumentError, Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.shared.answer_parts import AnswerParts, tagged_calls, take_apart
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.points import grid_of
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer, ToolCall

#: An action that only looks. Every answer is followed by a look anyway.
LOOK = Wait(0.0)
#: Maximum characters of a question or a reason.
_LONGEST = 4000


class ComputerTools(Family):
    """The family of a cloud provider's models."""

    shared_texts = Path(__file__).with_suffix(".toml")

    @abstractmethod
    def computer(self, prompt: PromptRequest) -> Mapping[str, Any]:
        """Return the definition of the API's own tool."""

    @abstractmethod
    def read(self, call: Call, words: Vocabulary) -> Sequence[Action[GridPoint]]:
        """Return the actions of a call of that tool, at least one. Raises ArgumentError."""

    def is_computer(self, call: Call) -> bool:
        """Return whether a call is of the API's own tool, and not of a function."""
        return call.name == self.facts.function

    def native(self, prompt: PromptRequest) -> Mapping[str, Any]:  # noqa: ARG002
        """Return more request parts in the API's own format: the table `request` of the `family.toml`."""
        return dict(self.data.get("request", {}))

    def objection(self, call: Call) -> str:  # noqa: ARG002
        """Return why the service wants a person to agree to a call first; "" if it does not."""
        return ""

    def agreement(self, call: Call) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the fields of a call's result that inform the service that a person agreed."""
        return {}

    def items(self, step: PastStep, prompt: PromptRequest) -> tuple[Any, ...]:  # noqa: ARG002
        """Return a past answer in the API's own format; empty if unknown."""
        return () if step.answer is None else step.answer.items

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        system = self.texts["system"].strip() if prompt.system_prompt is None else prompt.system_prompt
        if prompt.apps and prompt.system_prompt is None:
            system += f"\n{self.texts['apps']}{', '.join(prompt.apps)}"
        messages = [Message.text("system", system)]
        words = [prompt.instruction, *([self.texts["skipped"].format(prompt.skipped)] if prompt.skipped else [])]
        done = TextPart(self.texts["done"])
        awaited: Sequence[Message] = ()  # results of the previous calls, still without screenshots
        for number, step in enumerate(prompt.steps):
            messages += _observed(awaited, words, step.images if step.shown else (), done)
            answer, awaited = self._replay(step, prompt, number)
            messages.append(answer)
            words = step.replies
        messages += _observed(awaited, words, prompt.images, done)
        ours = [_function(name, entry) for name, entry in self.texts["functions"].items()]
        theirs = [{"type": "function", "function": dict(tool)} for tool in prompt.tools]
        tools = [self.computer(prompt), *ours, *theirs]
        return ChatRequest(messages, self.facts.sampling, tools=tools, native=self.native(prompt))

    def _replay(self, step: PastStep, prompt: PromptRequest, number: int) -> tuple[Message, list[Message]]:
        """Return a past answer, and its pending results. If nobody agreed to it, only its words are sent."""
        if any(map(self.objection, step.calls)) and not step.agreed:
            return Message.text("assistant", "\n".join(filter(None, (step.thought, self.texts["not_agreed"])))), []
        named = [(call, call.id or f"call_{number}_{index}") for index, call in enumerate(step.calls)]
        calls = [ToolCall(name, call.name, _json(dict(call.arguments))) for call, name in named]
        text = step.thought if step.answer is None else step.answer.content
        results = [Message("tool", call_id=name, extra=self.agreement(call)) for call, name in named]
        parts = (TextPart(text),) if text or not calls else ()
        return Message("assistant", parts, tuple(calls), items=self.items(step, prompt)), results

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer as text, with the API's separate parts in tags."""
        shown = [_json({"name": call.name, "arguments": dict(call.arguments)}) for call in calls]
        return "\n".join([thought, *(f"<tool_call>\n{call}\n</tool_call>" for call in shown)])

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the decision in an answer: all of its actions, in order."""
        parts = take_apart(answer)
        thought = parts.thought
        calls: Sequence[Call] | ParseFailure | None = parts.calls
        if calls is None:
            calls = tagged_calls(parts.text)
            text = parts.text.partition("<tool_call>")[0].strip() if calls else ""
            thought = "\n".join(filter(None, (thought, text)))
        if answer.finish_reason == "refusal" and not calls:
            return Decision(thought, (Finish(False, parts.text.strip()[:_LONGEST] or "The service declines."),), ())
        if not calls:
            return _without_calls(answer, parts, thought)
        words = Vocabulary.of(self.data, grid_of(self.facts.navigation, sent))
        read = decide(thought, calls, lambda call: self._actions(call, words))
        if isinstance(read, ParseFailure):
            return read
        objections = dict.fromkeys(filter(None, map(self.objection, read.calls)))
        doing = tuple(action for action in read.actions if action != LOOK) or (LOOK,)
        return replace(read, actions=doing, objection="; ".join(objections))

    def _actions(self, call: Call, words: Vocabulary) -> Sequence[Action[GridPoint]]:
        if self.is_computer(call):
            return self.read(call, words)
        match call.name:
            case "ask_user" | "call_user":  # `call_user` is the name in OSWorld's client
                return (AskUser(_text(call, "question")),)
            case "give_up":
                return (Finish(False, _text(call, "reason")),)
        return (CallTool(call.name, dict(call.arguments)),)


def _without_calls(answer: Answer, parts: AnswerParts, thought: str) -> Decision | ParseFailure:
    """Interpret an answer without a call: its text ends the task, but reasoning alone does not."""
    text = parts.text.strip()
    if answer.finish_reason == "malformed":
        return ParseFailure("bad_json", "the service could not read the call that was made", thought)
    if parts.cut or answer.finish_reason == "length":
        return ParseFailure("truncated", "the answer ends before it calls anything", thought)
    if not text:
        return ParseFailure("empty", "the answer is empty", thought)
    if parts.swallowed:
        return ParseFailure("empty", "the answer is nothing but reasoning", text)
    if "<tool_call" in text or '"action' in text:
        return ParseFailure("bad_json", "there is a call in the text that cannot be read", thought)
    return Decision(thought, (Finish(True, text[:_LONGEST]),), ())


def _observed(
    awaited: Sequence[Message], words: Sequence[str], images: Sequence[EncodedImage | None], done: TextPart
) -> Sequence[Message]:
    """Return the messages after an answer: as the result of its last call, or on their own."""
    parts: tuple[TextPart | ImagePart, ...] = (*map(TextPart, words), *map(ImagePart, images))
    if not awaited:
        return [Message("user", parts)] if parts else []
    *before, last = awaited
    results = [Message("tool", (done,), call_id=one.call_id, extra=one.extra) for one in before]
    return [*results, Message("tool", parts or (done,), call_id=last.call_id, extra=last.extra)]


def _function(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(entry["properties"]), "required": list(entry["required"])}
    function = {"name": name, "description": entry["description"], "parameters": parameters}
    return {"type": "function", "function": function}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(call: Call, name: str) -> str:
    value = call.arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError("bad_argument", f'{call.name} needs a "{name}"')
    return value.strip()[:_LONGEST]
