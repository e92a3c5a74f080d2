"""AutoGLM-Phone: answers of a thought and one call, `do(action="Tap", element=[x,y])` or `finish(message="")`."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from agent.core.geometry import Size
from agent.families.base import Acts, ArgumentError, Call, Decision, ParseFailure, PastStep, PromptRequest
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.named_calls import named_calls
from agent.families.shared.own_names import named, read_typing, said
from agent.families.shared.text_family import Read, TextFamily, joined, offered
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from foundation.chat_stream import Answer

#: The published client treats the text before the first call as the thought.
_CALL = re.compile(r"\b(?:do\s*\(\s*action\s*=|finish\s*\()")
_END = re.compile(r"(?:<\s*/?\s*(?:answer|think)\s*>|```\w*|<\|\w+\|>|\s)+\Z")
_TAGS = re.compile(r"<\s*/?\s*(?:answer|think)\s*>|```\w*")
_SECONDS = re.compile(r"\s*(?:s|sec|seconds?)\s*\Z", re.IGNORECASE)


class AutoGlmPhone(TextFamily):
    """The AutoGLM-Phone family. Its option: "style" (`reference` or `desktop`)."""

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        messages = [Message.text("system", self.words(prompt) or self._system(prompt))]
        text = self.texts["first"].replace("{instruction}", prompt.instruction)
        for step in prompt.steps:
            messages += [Message.text("user", text), Message.text("assistant", self._replayed(step))]
            # The published client has no place for replies. They are put before the next screenshot's text.
            text = "\n\n".join([*step.replies, self.texts["later"]])
        messages.append(Message("user", (*map(ImagePart, prompt.images), TextPart(text))))
        return ChatRequest(messages, self.facts.sampling)

    def _system(self, prompt: PromptRequest) -> str:
        device = self.texts["device" if prompt.reference else "desktop_device"]
        return str(self.texts["system"]).format(device=device, **offered(self.texts, prompt))

    def _replayed(self, step: PastStep) -> str:
        """Return a past answer as the published client writes it back."""
        if step.answer is None or not step.answer.content:
            return self.written(step.thought, step.calls)
        parts = take_apart(step.answer)
        found = _CALL.search(parts.text)
        action = _END.sub("", parts.text[found.start() :]) if found else parts.text.strip()
        return f"<think>{parts.thought or step.thought}</think><answer>{action}</answer>"

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        return f"<think>{thought}</think><answer>{_as_call(named(calls[0]))}</answer>"

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the decision in an answer. A message beside a tap means that the model wants approval."""
        read = super().parse(answer, sent)
        if not isinstance(read, Decision) or read.calls[0].name != "Tap" or not read.calls[0].arguments.get("message"):
            return read
        return replace(read, objection="the model calls it a sensitive operation")

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        arguments = said(call, words)
        if arguments["action"] == "wait":
            arguments["seconds"] = _SECONDS.sub("", str(arguments["seconds"]))
        return read_typing(Call("computer_use", arguments), words)

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the first call of an answer."""
        found = _CALL.search(parts.text)
        if found is None:
            raise ArgumentError("no_action", "there is no do(action=...) or finish(...) in it")
        thought = joined(parts.thought, _TAGS.sub("", parts.text[: found.start()]).strip())
        calls = named_calls(_END.sub("", parts.text[found.start() :]))
        if isinstance(calls, ParseFailure):
            return thought, calls, 1
        return thought, [named(call, {"do"}) for call in calls], 1


def _as_call(call: Call) -> str:
    """Write a call as the models do."""
    ends = call.name == "finish"
    arguments = {**({} if ends else {"action": call.name}), **call.arguments}
    written = ", ".join(f"{key}={_value(value)}" for key, value in arguments.items())
    return f"{'finish' if ends else 'do'}({written})"


def _value(value: object) -> str:
    text = str(value).strip() if not isinstance(value, list) else f"[{','.join(map(str, value))}]"
    if re.fullmatch(r"\[[-0-9., ]+\]|[0-9.]+", text):
        return text
    return json.dumps(str(value), ensure_ascii=False)
