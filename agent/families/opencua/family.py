"""Families that answer in code: OpenCUA, Kimi after it, and ScaleCUA.

OpenCUA and Kimi get the last steps as screenshots and answers in turn, without the answers' code. Earlier steps are
joined in one answer. The task is next to the newest screenshot.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent.core.geometry import Grid
from agent.families.base import Acts, Call, ParseFailure, PastStep, PromptRequest
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.code_calls import as_code, as_lines, code_calls, last_block, read_code_call
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.own_names import named
from agent.families.shared.text_family import Read, TextFamily, joined, offered
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage

_HEADING = re.compile(
    r"^[ \t]*(?=#|[A-Z]\w+[ \t]*[:：])(?:#+[ \t]*)?(Step|Observation|Thought|Action|Code)\b[^\n:：]*[:：]?[ \t]*",
    re.MULTILINE,
)
_FENCE = re.compile(r"```.*", re.DOTALL)


_ACTIONS = re.compile(r"<\s*action\s*>(.*?)<\s*/\s*action\s*>", re.DOTALL | re.IGNORECASE)
_OPEN_ACTIONS = re.compile(r"<\s*action\s*>", re.IGNORECASE)
_OPERATION = re.compile(
    r"<\s*operation\s*>\s*(.*?)\s*(?:<\s*/\s*operation\s*>|(?=<\s*action)|\Z)", re.DOTALL | re.IGNORECASE
)
_NOISE = re.compile(r"```\w*|<\|im_end\|>")


class CodeFamily(TextFamily):
    """A family that answers in sections, the last of which is a block of code. Its options: "style", and "thinking".

    Texts of each version: "system", and "past" for past steps. The table "plain" has the same texts for models that can
    answer without thinking.
    """

    shared_texts = Path(__file__).with_name("skeleton.toml")

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        messages = [Message.text("system", self._system(prompt))]
        older: list[str] = []
        remarks: list[str] = []
        texts = self._texts_for(prompt)
        for number, step in enumerate(prompt.steps, prompt.skipped + 1):
            heading = self.words(prompt, "step", number=str(number)) or texts["step"].format(number=number)
            step_text = heading + self._past(step, texts["past"])
            if step.shown:
                messages += [*_joined(older), _seen(step.images, remarks), Message.text("assistant", step_text)]
                older, remarks = [], list(step.replies)
            else:
                older.append(step_text)
                # Its client has no place for replies. They are put before the next screenshot.
                remarks += step.replies
        task = self.words(prompt, "task") or self.texts["task"].format(instruction=prompt.instruction)
        messages += [*_joined(older), _seen(prompt.images, [*remarks, task])]
        plain = texts is not self.texts
        return ChatRequest(messages, self.facts.sampling, template_arguments={"thinking": False} if plain else {})

    def _texts_for(self, prompt: PromptRequest) -> dict[str, Any]:
        if prompt.options.get("thinking", True) or "plain" not in self.texts:
            return self.texts
        return {**self.texts, **self.texts["plain"]}

    def _system(self, prompt: PromptRequest) -> str:
        plain = self._texts_for(prompt) is not self.texts and prompt.system_prompt is None
        if (own := self.words(prompt, "plain_system" if plain else "system")) is not None:
            return own
        functions = [self.texts["functions"], *([] if prompt.reference else [self.texts["desktop_functions"]])]
        text = str(self._texts_for(prompt)["system"]).replace("{functions}", "\n".join(functions))
        return text if prompt.reference else text + self.texts["desktop_notes"]

    def _past(self, step: PastStep, form: str) -> str:
        """Return a past step in words, without its code."""
        thought, action = step.thought, ""
        if step.answer is not None and step.answer.content:
            thought, action = _sections(take_apart(step.answer))
        return form.format(thought=thought, action=action or "; ".join(map(_in_words, step.calls)))

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        action = "; ".join(map(_in_words, calls))
        return f"## Thought:\n{thought}\n\n## Action:\n{action}\n\n## Code:\n{as_code([named(call) for call in calls])}"

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        x, y = (call.arguments.get(axis) for axis in "xy")
        if self.data.get("fractions") and _are_fractions(x, y):  # besides the family's grid
            words = replace(words, grid=Grid.relative(1))
        return read_code_call(call, words)

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the calls in the last block of code."""
        thought, action = _sections(parts)
        code = last_block(parts.text)
        calls = code_calls(code) if isinstance(code, str) else code
        return thought or action, calls, None

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        return self.asking(ImagePart(image), TextPart(instruction), system=self.texts["grounding"])


def _sections(parts: AnswerParts) -> tuple[str, str]:
    """Return the thought of an answer, and its action in words."""
    pieces = _HEADING.split(parts.text)
    sections = {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}
    contents = {name: _FENCE.sub("", section).strip() for name, section in sections.items()}
    return joined(parts.thought, contents.get("Thought") or contents[""]), contents.get("Action", "")


def _joined(older: Sequence[str]) -> list[Message]:
    return [Message.text("assistant", "\n".join(older))] if older else []


def _seen(images: Sequence[EncodedImage | None], texts: Sequence[str]) -> Message:
    return Message("user", (*map(ImagePart, images), *map(TextPart, texts)))


def _in_words(call: Call) -> str:
    """Return what a call does: in the model's words, if there are any, or as code."""
    if "code" in call.arguments:  # the format of steps in a request file
        return str(call.arguments.get("action") or call.arguments["code"])
    return as_code([named(call)]).split("\n")[1]


def _are_fractions(x: Any, y: Any) -> bool:
    """Whether a point is written as fractions: none above 1, and not both as whole numbers."""
    pair = [str(value).strip() for value in (x if isinstance(x, list) and y is None else (x, y))]
    if len(pair) != 2 or not all(re.fullmatch(r"[01]?\.[0-9]+|[01]", value) for value in pair):
        return False
    return all(float(value) <= 1 for value in pair) and any("." in value for value in pair)


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
        blocks = [block.strip() for block in _ACTIONS.findall(text)]
        opened = _OPEN_ACTIONS.search(_ACTIONS.sub("", text))
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
