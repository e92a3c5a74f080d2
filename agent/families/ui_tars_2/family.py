"""UI-TARS-2 as a `Family`: two system messages, screenshots as results of a tool, functions in XML."""

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.core.actions import Action
from agent.core.geometry import GridPoint, Size
from agent.families.base import Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.shared.answer_parts import take_apart
from agent.families.shared.layouts import in_turn
from agent.families.shared.named_calls import thought_and_calls
from agent.families.shared.own_names import OwnNames, named, unrepeated
from agent.families.shared.point_answers import pointed
from agent.families.shared.points import grid_of
from agent.families.shared.xml_calls import xml_calls
from agent.families.ui_tars.base import CALLS
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("prompt.toml").read_text(encoding="utf-8"))
#: The client gives every screenshot this id of a call.
_CALL_ID = "1"
_THINK = "think_never_used_51bce0c785ca2f68081bfa7d91973934"
_SUFFIX = re.compile(r"_never_used_[0-9a-f]{8,64}")
_ENUMS = {"direction": ["up", "down", "left", "right"], "button": ["left", "right"]}
#: What is left of a call with one point where a server leaves the tags out: the vendor's parser reads it as well.
_COMPACT = re.compile(r"\s*([a-z_]{2,40})>([a-z_]{2,40})>(?:point>)?\s*([0-9]{1,4})\s+([0-9]{1,4})\s*")


class UiTars2(Family):
    """The UI-TARS-2 family. Its option: "style" (`reference` or `desktop`)."""

    def __init__(self) -> None:
        super().__init__("ui-tars-2")

    @property
    def _names(self) -> OwnNames:
        return OwnNames.of(CALLS, grid_of(self.facts.navigation, ()))

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """What the model is asked for one action, or several."""
        opening = [
            Message.text("system", _TEXTS["role"] if prompt.system_prompt is None else prompt.system_prompt),
            Message.text("system", _system(prompt)),
            Message.text("user", prompt.instruction),
        ]
        if prompt.skipped and not prompt.reference:
            opening.append(Message.text("user", f"({prompt.skipped} earlier steps are left out here.)"))
        return ChatRequest(
            in_turn(opening, prompt, self._replay, _as_results), self.facts.sampling, reasoning_effort="high"
        )

    def _replay(self, step: PastStep) -> list[Message]:
        thought, text = step.thought, _written(step.calls)
        if step.answer is not None and (step.answer.content or step.answer.reasoning):
            before, _, after = step.answer.content.rpartition(f"</{_THINK}>")
            thought = step.answer.reasoning or before.replace(f"<{_THINK}>", "")
            text = after or text
        # The client knows no replies: they stand where a person would say them.
        replies = [Message.text("user", reply) for reply in step.replies]
        return [Message("assistant", (TextPart(text),), reasoning=thought), *replies]

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer in the published form."""
        return f"<{_THINK}>{thought}</{_THINK}>{_written(calls)}"

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:  # noqa: ARG002
        """The decision in an answer: one action or several, also in Doubao's earlier form, `Action: click(...)`."""
        said = take_apart(answer)
        if said.calls is not None:
            return decide(said.thought, said.calls, self._read)
        if said.cut:
            return ParseFailure("truncated", "the answer ends inside the thinking", said.thought)
        text = _SUFFIX.sub("", said.text)
        if compact := _COMPACT.fullmatch(text):
            call = Call(compact[1], {compact[2]: f"<point>{compact[3]} {compact[4]}</point>"})
            return decide(said.thought, [call], self._read)
        if "<function" in text or "seed:tool_call" in text:
            calls = xml_calls(text, ("content",))
            spoken = re.split(r"<function|<seed:tool_call", text, maxsplit=1)[0].strip()
            counted = None if isinstance(calls, ParseFailure) else unrepeated(calls)
        else:
            spoken, read, ours = thought_and_calls(text)
            calls = read if isinstance(read, ParseFailure) else list(read)
            counted = None if isinstance(calls, ParseFailure) else min(ours, unrepeated(calls))
        return decide("\n".join(part for part in (said.thought, spoken) if part), calls, self._read, most=counted)

    def _read(self, call: Call) -> Action[GridPoint]:
        call = named(call)
        content = call.arguments.get("content")
        if call.name == "type" and isinstance(content, str) and content.endswith("\\n"):  # as the prompt writes it
            call = Call(call.name, {**call.arguments, "content": content[:-2] + "\n"}, call.id)
        return self._names.read(call)

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        """What the model is asked for one point."""
        text = TextPart(_TEXTS["grounding"].format(instruction=instruction))
        return ChatRequest([Message("user", (text, ImagePart(image)))], self.facts.sampling)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The point in a grounding answer, as a click."""
        return pointed(answer, grid_of(self.facts.grounding, sent))

    def feedback(self, failure: ParseFailure) -> str:
        """What to tell the model after an answer that gave no action."""
        return (
            f"That answer cannot be carried out: {failure.message}. Nothing was done. Answer again with one complete "
            "tool call that holds a function."
        )


def _as_results(images: Sequence[EncodedImage | None], after: PastStep | None) -> list[Message]:  # noqa: ARG001
    return [Message.result(_CALL_ID, *map(ImagePart, images))] if images else []


def _system(prompt: PromptRequest) -> str:
    functions = _TEXTS["functions"] | ({} if prompt.reference else _TEXTS["desktop_functions"])
    listed = "\n".join(_definition(name, *parts) for name, parts in functions.items())
    text = str(_TEXTS["system"]).replace("{functions}", listed)
    return text if prompt.reference else f"{text}\n{_TEXTS['desktop_note']}"


def _definition(name: str, description: str, parameters: dict[str, str], required: list[str]) -> str:
    properties = {
        parameter: {
            "type": "integer" if parameter == "time" else "string",
            "description": told or _TEXTS["descriptions"]["point"],
            **({"enum": _ENUMS[parameter]} if parameter in _ENUMS else {}),
        }
        for parameter, told in parameters.items()
    }
    shape = {"type": "object", "properties": properties, "required": required}
    return json.dumps({"type": "function", "name": name, "parameters": shape, "description": description})


def _written(calls: Sequence[Call]) -> str:
    functions = "".join(
        f"<function={call.name}>"
        + "".join(f"<parameter={name}>{_value(value)}</parameter>" for name, value in call.arguments.items())
        + "</function>"
        for call in map(named, calls)
    )
    return f"<seed:tool_call>{functions}</seed:tool_call>"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"<point>{' '.join(map(str, value))}</point>"
    text = str(value)
    return f"\n{text}\n" if text.startswith("\n") or text.endswith("\n") else text


def create() -> UiTars2:
    """The family, as the registry asks for it."""
    return UiTars2()
