"""UI-TARS 1.0, 1.5 and Doubao's (one prompt in the user turn, answers of `Thought:` and `Action:`), and UI-TARS-2."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent.families.base import Acts, Call, ParseFailure, PastStep, PromptRequest
from agent.families.published import GROUNDING
from agent.families.shared.answer_parts import AnswerParts
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.named_calls import as_named, thought_and_calls, xml_calls
from agent.families.shared.own_names import named, read_own, unrepeated
from agent.families.shared.text_family import Read, TextFamily, answered, in_turn, joined, offered
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage

_BOX = re.compile(r"(start_box|end_box)='(\([0-9]+,[0-9]+\))'")


class UiTars(TextFamily):
    """A version of UI-TARS. Its options: "style" (`reference` or `desktop`), and "language" (of its thoughts).

    Texts of each version: "actions" and "desktop_actions" (lines of its action space), "grounding_action".
    """

    shared_texts = Path(__file__).with_name("skeleton.toml")
    shared_data = Path(__file__).with_name("calls.toml")

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        user_text = self.words(prompt, "prompt")
        if user_text is None:
            text = self._prompt(prompt) if prompt.system_prompt is None else prompt.system_prompt
            user_text = text + self.texts["task"].format(instruction=prompt.instruction)
        system = self.texts["system"]
        opening = [*([Message.text("system", system)] if system else []), Message.text("user", user_text)]
        if prompt.skipped and not prompt.reference:
            opening.append(Message.text("user", f"({prompt.skipped} earlier steps are left out here.)"))
        return ChatRequest(in_turn(opening, prompt, self._replay), self.facts.sampling)

    def _prompt(self, prompt: PromptRequest) -> str:
        offer = offered(self.texts, prompt)
        notes = offer["notes"].format(language=prompt.options.get("language", "English"))
        return str(self.texts["prompt"]).format(actions=offer["actions"], notes=notes)

    def _replay(self, step: PastStep) -> list[Message]:
        answer = (step.answer and step.answer.content) or self.written(step.thought, step.calls)
        return answered(self.replayed(answer), step)

    def replayed(self, answer: str) -> str:
        """Return a past answer as the model sees it again."""
        return answer

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer in the published form, with more calls after blank lines."""
        return f"Thought: {thought}\nAction: " + "\n\n".join(as_named(named(call)) for call in calls)

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        return read_own(call, words, self.texts["actions"])

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse a thought, then one or more calls."""
        spoken, calls = thought_and_calls(parts.text)
        most = None if isinstance(calls, ParseFailure) else unrepeated(calls)
        return joined(parts.thought, spoken), calls, most

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        text = self.words(PromptRequest(instruction, (image,)), GROUNDING)
        if text is None:
            text = self.texts["grounding"].format(actions=self.texts["grounding_action"], instruction=instruction)
        return self.asking(TextPart(text), ImagePart(image), system=self.texts["system"])


class UiTars15(UiTars):
    """UI-TARS 1.5: points in pixels of the image, and box tokens in replayed answers."""

    def replayed(self, answer: str) -> str:
        """Return an answer with the box tokens that servers remove.

        This is `add_box_token` of codes/ui_tars/action_parser.py: only boxes of two numbers without a space get tokens,
        and a second `Action: ` becomes a blank line.
        """
        before, mark, rest = answer.partition("Action: ")
        if not mark or "start_box=" not in answer:
            return answer
        actions = "\n\n".join(action.strip() for action in rest.split(mark))
        return before + mark + _BOX.sub(r"\1='<|box_start|>\2<|box_end|>'", actions)


#: The client gives every screenshot this call id.
_CALL_ID = "1"
_THINK = "think_never_used_51bce0c785ca2f68081bfa7d91973934"
_SUFFIX = re.compile(r"_never_used_[0-9a-f]{8,64}")
_ENUMS = {"direction": ["up", "down", "left", "right"], "button": ["left", "right"]}
#: The rest of a call with one point, after a server removed the tags. The vendor's parser accepts it, too.
_COMPACT = re.compile(r"\s*([a-z_]{2,40})>([a-z_]{2,40})>(?:point>)?\s*([0-9]{1,4})\s+([0-9]{1,4})\s*")

#: Signs of a call that cannot be parsed. Any other text without a call is the model's final message.
_CALL_LIKE = re.compile(r"\bAction\s*[:：]|[A-Za-z_]\w{0,40}\s*\(|<\w*(?:function|parameter|tool)", re.IGNORECASE)


class UiTars2(TextFamily):
    """UI-TARS-2: two system messages, screenshots as tool results, functions in XML. Its option: "style"."""

    shared_data = UiTars.shared_data

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        opening = [
            Message.text("system", self.texts["role"] if prompt.system_prompt is None else prompt.system_prompt),
            Message.text("system", _system(prompt, self.texts)),
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
        # The client has no replies. They are put where a person would say them.
        replies = [Message.text("user", reply) for reply in step.replies]
        return [Message("assistant", (TextPart(text),), reasoning=thought), *replies]

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        return f"<{_THINK}>{thought}</{_THINK}>{_written(calls)}"

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        call = named(call)
        content = call.arguments.get("content")
        if call.name == "type" and isinstance(content, str) and content.endswith("\\n"):  # as the prompt writes it
            call = replace(call, arguments={**call.arguments, "content": content[:-2] + "\n"})
        return read_own(call, words, str(self.texts["functions"]))

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse one or more calls, also in Doubao's earlier form, `Action: click(...)`."""
        text = _SUFFIX.sub("", parts.text)
        if compact := _COMPACT.fullmatch(text):
            point = {compact[2]: f"<point>{compact[3]} {compact[4]}</point>"}
            return parts.thought, [Call(compact[1], point)], None
        calls: Sequence[Call] | ParseFailure
        if "<function" in text or "seed:tool_call" in text:
            calls = xml_calls(text, ("content",))
            spoken = re.split(r"<function|<seed:tool_call", text, maxsplit=1)[0].strip()
        else:
            spoken, calls = thought_and_calls(text)
            if isinstance(calls, ParseFailure) and calls.kind == "no_action" and not _CALL_LIKE.search(text):
                return parts.thought, [Call("finished", {"content": text.strip()})], None  # as in its client
        most = None if isinstance(calls, ParseFailure) else unrepeated(calls)
        return joined(parts.thought, spoken), calls, most

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        return self.asking(TextPart(self.texts["grounding"].format(instruction=instruction)), ImagePart(image))


def _as_results(images: Sequence[EncodedImage | None], after: PastStep | None) -> list[Message]:  # noqa: ARG001
    return [Message.result(_CALL_ID, *map(ImagePart, images))] if images else []


def _system(prompt: PromptRequest, texts: Mapping[str, Any]) -> str:
    functions = texts["functions"] | ({} if prompt.reference else texts["desktop_functions"])
    listed = "\n".join(_definition(texts, name, *parts) for name, parts in functions.items())
    text = str(texts["system"]).replace("{functions}", listed)
    return text if prompt.reference else f"{text}\n{texts['desktop_note']}"


def _definition(
    texts: Mapping[str, Any], name: str, description: str, parameters: dict[str, str], required: list[str]
) -> str:
    properties = {
        parameter: {
            "type": "integer" if parameter == "time" else "string",
            "description": text or texts["descriptions"]["point"],
            **({"enum": _ENUMS[parameter]} if parameter in _ENUMS else {}),
        }
        for parameter, text in parameters.items()
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
