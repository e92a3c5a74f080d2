"""What the families share that answer in code: OpenCUA, and Kimi after it.

The screenshots of the last steps are in turn with what was said, without its code; what came before is one answer. The
task stands at the newest screenshot.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.core.actions import Action
from agent.core.geometry import Grid, GridPoint, Size
from agent.families.base import Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.shared.answer_parts import take_apart
from agent.families.shared.code_calls import as_code, code_calls, last_block, read_code_call
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.own_names import named
from agent.families.shared.point_answers import pointed
from agent.families.shared.points import grid_of
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer
from foundation.families import family_data, family_folder

_SKELETON: dict[str, Any] = tomllib.loads(Path(__file__).with_name("skeleton.toml").read_text(encoding="utf-8"))
_HEADING = re.compile(
    r"^[ \t]*(?=#|[A-Z]\w+[ \t]*[:：])(?:#+[ \t]*)?(Step|Observation|Thought|Action|Code)\b[^\n:：]*[:：]?[ \t]*",
    re.MULTILINE,
)
_FENCE = re.compile(r"```.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Said:
    """The sections of an answer."""

    thought: str
    action: str  # what is done, in words

    @classmethod
    def of(cls, thought: str, text: str) -> "Said":
        """Of an answer whose reasoning was told apart."""
        pieces = _HEADING.split(text)
        sections = {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}
        told = {name: _FENCE.sub("", section).strip() for name, section in sections.items()}
        spoken = told.get("Thought") or told[""]
        return cls("\n".join(part for part in (thought, spoken) if part), told.get("Action", ""))


class CodeFamily(Family):
    """A family that answers in sections, the last one a block of code. Its options: "style", and "thinking".

    Args:
        name: of the family. In its folder lies a `prompt.toml` with "system" and "past", how a past step is told; in
            its table "plain" the same without thinking, where its models can do without.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        texts = (family_folder(name) / "prompt.toml").read_text(encoding="utf-8")
        self._texts: dict[str, Any] = _SKELETON | tomllib.loads(texts)
        #: Whether points that are fractions of the screen are read as such, beside the family's own grid.
        self._fractions = bool(family_data(name).get("fractions"))

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """What the model is asked for one step."""
        messages = [Message.text("system", self._system(prompt))]
        older: list[str] = []
        remarks: list[str] = []
        texts = self._texts_for(prompt)
        for number, step in enumerate(prompt.steps, prompt.skipped + 1):
            told = texts["step"].format(number=number) + self._past(step, texts["past"])
            if step.shown:
                messages += [*_joined(older), _seen(step.images, remarks), Message.text("assistant", told)]
                older, remarks = [], list(step.replies)
            else:
                older.append(told)
                # Its client has no place for replies: they go before the next screenshot that is shown.
                remarks += step.replies
        task = self._texts["task"].format(instruction=prompt.instruction)
        messages += [*_joined(older), _seen(prompt.images, [*remarks, task])]
        plain = texts is not self._texts
        return ChatRequest(messages, self.facts.sampling, template_arguments={"thinking": False} if plain else {})

    def _texts_for(self, prompt: PromptRequest) -> dict[str, Any]:
        if prompt.options.get("thinking", True) or "plain" not in self._texts:
            return self._texts
        return {**self._texts, **self._texts["plain"]}

    def _system(self, prompt: PromptRequest) -> str:
        if prompt.system_prompt is not None:
            return prompt.system_prompt
        functions = [self._texts["functions"], *([] if prompt.reference else [self._texts["desktop_functions"]])]
        text = str(self._texts_for(prompt)["system"]).replace("{functions}", "\n".join(functions))
        return text if prompt.reference else text + self._texts["desktop_notes"]

    def _past(self, step: PastStep, form: str) -> str:
        """A past step as it is told again: in words, without its code."""
        said = Said(step.thought, "; ".join(_in_words(call) for call in step.calls))
        if step.answer is not None and step.answer.content:
            told = take_apart(step.answer)
            read = Said.of(told.thought, told.text)
            said = Said(read.thought, read.action or said.action)
        return form.format(thought=said.thought, action=said.action)

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer in the published form."""
        action = "; ".join(_in_words(call) for call in calls)
        return f"## Thought:\n{thought}\n\n## Action:\n{action}\n\n## Code:\n{as_code([named(call) for call in calls])}"

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The decision in an answer: the calls in its last block of code."""
        words = Vocabulary(grid_of(self.facts.navigation, sent))
        fractions = Vocabulary(Grid.relative(1)) if self._fractions else None

        def read(call: Call) -> list[Action[GridPoint]]:
            point = [call.arguments.get(axis) for axis in "xy"]
            return read_code_call(call, fractions if fractions is not None and _are_fractions(point) else words)

        told = take_apart(answer)
        if told.calls is not None:
            return decide(told.thought, told.calls, read)
        if told.cut:
            return ParseFailure("truncated", "the answer ends inside the thinking", told.thought)
        said = Said.of(told.thought, told.text)
        if not told.text.strip():
            return ParseFailure("empty", "the answer is empty", said.thought)
        code = last_block(told.text)
        calls = code_calls(code) if isinstance(code, str) else code
        calls = calls if isinstance(calls, ParseFailure) else _at_the_pointer(calls)
        return decide(said.thought or said.action, calls, read)

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        """What the model is asked for one point."""
        asked = Message("user", (ImagePart(image), TextPart(instruction)))
        return ChatRequest([Message.text("system", self._texts["grounding"]), asked], self.facts.sampling)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The point in a grounding answer, as a click."""
        return pointed(answer, grid_of(self.facts.grounding, sent))

    def feedback(self, failure: ParseFailure) -> str:
        """What to tell the model after an answer that gave no action."""
        return (
            f"That answer cannot be carried out: {failure.message}. Nothing was done. Answer again with `## Action:` "
            "and `## Code:`, one block of code with single calls and plain values."
        )


def _joined(older: Sequence[str]) -> list[Message]:
    return [Message.text("assistant", "\n".join(older))] if older else []


def _seen(images: Sequence[EncodedImage | None], texts: Sequence[str]) -> Message:
    return Message("user", (*map(ImagePart, images), *map(TextPart, texts)))


def _in_words(call: Call) -> str:
    """What a call does, in the model's words where it gave some, else as code."""
    if "code" in call.arguments:  # as a request in a file tells a step
        return str(call.arguments.get("action") or call.arguments["code"])
    return as_code([named(call)]).split("\n")[1]


def _at_the_pointer(calls: Sequence[Call]) -> list[Call]:
    """The calls, with clicks that name no point where the code before them put the pointer: there pyautogui clicks."""
    placed: list[Call] = []
    pointer: dict[str, Any] = {}
    for call in calls:
        at = {axis: call.arguments[axis] for axis in "xy" if call.arguments.get(axis) is not None}
        here = not at and call.name.rpartition(".")[2].lower().endswith("click")
        placed.append(replace(call, arguments={**pointer, **call.arguments}) if here else call)
        pointer = at if len(at) == 2 else pointer
    return placed


def _are_fractions(point: Sequence[Any]) -> bool:
    numbers = [value for value in point if isinstance(value, int | float) and not isinstance(value, bool)]
    return len(numbers) == 2 and all(0 <= value <= 1 for value in numbers) and any(value % 1 for value in numbers)


def create(name: str) -> CodeFamily:
    """The family of that name, which is data alone."""
    return CodeFamily(name)
