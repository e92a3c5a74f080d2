"""Step-GUI as a `Family`: one message, one screenshot, and the summary of the last answer as the history.

An answer is fields between tabs: `explain:...\taction:CLICK\tpoint:512,233\tsummary:...`.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from agent.core.geometry import Size
from agent.families.base import Acts, Call, Decision, ParseFailure, PastStep, PromptRequest
from agent.families.shared.answer_parts import AnswerParts
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.own_names import named, read_typing, said
from agent.families.shared.text_family import Read, TextFamily
from agent.model.request import ChatRequest, ImagePart, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

#: A misspelling that the published parser repairs, too.
_TINK = re.compile(r"<(/?)TINK>")
#: A server may have put its own reasoning in tags before the model's.
_THINK = re.compile(r"<\s*think\s*>.*?<\s*/\s*think\s*>", re.DOTALL | re.IGNORECASE)
_NOISE = re.compile(r"```\w*|<\|im_end\|>|<\s*/?\s*think\s*>", re.IGNORECASE)
_POINT = re.compile(r"point\s*[:：]\s*([0-9.]+\s*[,，]\s*[0-9.]+)\s*")


class StepGui(TextFamily):
    """The Step-GUI family. Its option: "style" (`reference` or `desktop`)."""

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        role = prompt.system_prompt or self.words(prompt, "role") or self.texts["role"]
        if not prompt.reference and prompt.system_prompt is None:
            role += self.texts["desktop"]
            role += self.texts["desktop_apps"].format(apps=", ".join(prompt.apps)) if prompt.apps else ""
        replies = "".join(self._replies(step) for step in prompt.steps)
        history = (_summary(prompt.steps[-1]) if prompt.steps else "") or self.texts["no_history"]
        instruction = prompt.instruction + replies
        task = self.words(prompt, "task", instruction=instruction, previous=history)
        texts = [TextPart(role), TextPart(task or self.texts["task"].format(task=instruction, history=history))]
        form = self.words(prompt, "format") or self.texts["format"]
        return self.asking(*texts, *map(ImagePart, prompt.images), TextPart(form))

    def _replies(self, step: PastStep) -> str:
        question = next(
            (call.arguments.get("value", "") for call in map(named, step.calls) if call.name == "INFO"), None
        )
        replies = []
        for reply in step.replies:
            is_answer = question is not None and reply == step.user_reply
            replies.append(self.texts["reply" if is_answer else "remark"].format(asked=question, reply=reply))
        return "".join(replies)

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        return f"<THINK> {thought} </THINK>\n{as_tabbed(named(calls[0]))}\n"

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the decision in an answer with possibly misspelled tags."""
        return super().parse(replace(answer, content=_TINK.sub(r"<\1THINK>", answer.content)), sent)

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        arguments = said(call, words)
        if arguments["action"] == "wait":
            arguments["seconds"] = arguments.pop("text", 1)
        return read_typing(Call("computer_use", arguments), words)

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the fields of one action."""
        return parts.thought, tabbed_calls(_NOISE.sub("", _THINK.sub("", parts.text))), 1

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        return self.asking(ImagePart(image), TextPart(self.texts["grounding"].format(instruction=instruction)))

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the point in a grounding answer, or in the field of an action."""
        return super().parse_grounding(replace(answer, content=_POINT.sub(r"(\1) ", answer.content)), sent)


def _summary(step: PastStep) -> str:
    """Return the summary of a step's answer; "" without one."""
    calls: Sequence[Call] | ParseFailure = step.calls
    if step.answer is not None and step.answer.content:
        calls = tabbed_calls(_NOISE.sub("", _THINK.sub("", step.answer.content)))
    return "" if isinstance(calls, ParseFailure) else str(calls[-1].arguments.get("summary", ""))


_FIELD = r"(?:explain|cot|action|action_type|point[12]?|value|return|summary|is_keyboard|keyboard_exists)"
#: A tab, what models write instead, or a line end, each before a field.
_BETWEEN = re.compile(rf"(?:\t|\\t|\n)\s*(?={_FIELD}\s*[:：])")
_NAMED = re.compile(rf"\s*({_FIELD})\s*[:：]\s*(.*)", re.DOTALL)


def tabbed_calls(text: str) -> list[Call] | ParseFailure:
    """Return the calls in an answer's fields. Each is named by its `action`; a second `action` begins another call.

    Fields before the first action belong to its call, all others to the action before them.
    """
    fields = [found for piece in _BETWEEN.split(text.strip()) if (found := _NAMED.fullmatch(piece))]
    # The value may be truncated.
    if fields and fields[-1][1].startswith(("point", "value")) and not text.endswith("\n"):
        return ParseFailure("truncated", f"the answer ends in {fields[-1][1]}, before the summary")
    calls: list[Call] = []
    before: dict[str, str] = {}
    for field in fields:
        name, value = field[1], field[2].strip()
        if name in ("action", "action_type"):
            calls.append(Call(value, before))
            before = {}
        elif not calls:
            before[name] = value
        else:
            calls[-1] = Call(calls[-1].name, {**calls[-1].arguments, name: value})
    if calls:
        return calls
    return ParseFailure("no_action" if fields or text.strip() else "empty", "there is no field `action` in the answer")


def as_tabbed(call: Call) -> str:
    """Write a call: `explain` first, `summary` last, without tabs and line ends in the values."""
    arguments = {name: _flat(value) for name, value in call.arguments.items()}
    first, last = {"explain": arguments.pop("explain", "")}, {"summary": arguments.pop("summary", "")}
    return "\t".join(f"{name}:{value}" for name, value in {**first, "action": call.name, **arguments, **last}.items())


def _flat(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return re.sub(r"[\t\n]", " ", text).strip()
