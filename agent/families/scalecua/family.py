"""ScaleCUA: one screenshot, the past as operations in words, and answers of thought, operation and lines of calls."""

import re
from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from agent.families.base import Acts, Call, ParseFailure, PastStep, PromptRequest
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.code_calls import as_lines, code_calls, read_code_call
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.own_names import named
from agent.families.shared.text_family import Read, TextFamily, offered
from agent.model.request import ChatRequest, ImagePart, TextPart

_ACTION = re.compile(r"<\s*action\s*>(.*?)<\s*/\s*action\s*>", re.DOTALL | re.IGNORECASE)
_OPEN_ACTION = re.compile(r"<\s*action\s*>", re.IGNORECASE)
_OPERATION = re.compile(
    r"<\s*operation\s*>\s*(.*?)\s*(?:<\s*/\s*operation\s*>|(?=<\s*action)|\Z)", re.DOTALL | re.IGNORECASE
)
_NOISE = re.compile(r"```\w*|<\|im_end\|>")


class ScaleCua(TextFamily):
    """The ScaleCUA family, 3B to 32B. Its option: "style" (`reference` or `desktop`)."""

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        lines = [
            " ".join([self.texts["step"].format(number=number, operation=_operation(step)), *step.replies])
            for number, step in enumerate(prompt.steps, prompt.skipped + 1)
        ]
        previous = "\n".join(lines) or "None"
        user_text = self.words(prompt, "asked", previous=previous)
        if user_text is None:
            user_text = self.texts["asked"].lstrip("\n").format(instruction=prompt.instruction, previous=previous)
        system = self.words(prompt) or self.texts["system"].format(**offered(self.texts, prompt))
        return self.asking(*map(ImagePart, prompt.images), TextPart(user_text), system=system)

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        lines = as_lines([named(call) for call in calls])
        return f"<think>\n{thought}\n</think>\n<operation>\n{lines}\n</operation>\n<action>\n{lines}\n</action>"

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        if call.name.rpartition(".")[2] == "wait":
            call = replace(call, arguments={"seconds": words.wait_seconds, **call.arguments})
        return read_code_call(call, words)

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the lines in all pairs of tags. Without tags, the rest of the answer is code."""
        text = _NOISE.sub("", parts.text)
        blocks = [block.strip() for block in _ACTION.findall(text)]
        opened = _OPEN_ACTION.search(_ACTION.sub("", text))
        thought = parts.thought or _spoken(text)
        if opened is not None:
            return thought, ParseFailure("truncated", "the answer ends inside the actions"), None
        code = "\n".join(blocks) if blocks else _OPERATION.sub("", text).strip()
        if not code:
            return thought, ParseFailure("empty", "there is no action in the answer"), None
        if "(" not in code:
            return thought, ParseFailure("no_action", "there is no call in the answer"), None
        return thought, code_calls(code), None


def _spoken(text: str) -> str:
    """Return what an answer says it does."""
    found = _OPERATION.search(text)
    return found[1] if found else ""


def _operation(step: PastStep) -> str:
    """Return what a past step did, in the model's words, or as its calls."""
    operation = _spoken(take_apart(step.answer).text) if step.answer is not None else ""
    return operation or step.thought or as_lines([named(call) for call in step.calls])
