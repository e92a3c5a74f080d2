"""What UI-Venus 1 and 1.5 share: one user message, the past as text, answers in three tags."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.core.actions import Absent, Action
from agent.core.geometry import GridPoint, Size
from agent.families.base import Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.shared.answer_parts import take_apart
from agent.families.shared.computer_use import read_action
from agent.families.shared.named_calls import as_named, named_calls
from agent.families.shared.own_names import OwnNames, named
from agent.families.shared.point_answers import NOWHERE, pointed
from agent.families.shared.points import PointError, grid_of, read_pair
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer
from foundation.families import family_folder

_FOLDER = Path(__file__).parent
_SKELETON: dict[str, Any] = tomllib.loads((_FOLDER / "skeleton.toml").read_text(encoding="utf-8"))
_CALLS: dict[str, Any] = tomllib.loads((_FOLDER / "calls.toml").read_text(encoding="utf-8"))
_ACTION = re.compile(r"<\s*action\s*>(.*?)(?:<\s*/\s*action\s*>|(?=<\s*conclusion)|\Z)", re.DOTALL | re.IGNORECASE)
_CONCLUSION = re.compile(r"<\s*conclusion\s*>.*", re.DOTALL | re.IGNORECASE)
_NOISE = re.compile(r"```\w*|<\|im_end\|>")


class UiVenus(Family):
    """A version of UI-Venus. Its option: "style" (`reference` or `desktop`).

    Args:
        name: of the family.
        folder: where its `prompt.toml` lies: "actions" and "grounding".
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        self._texts: dict[str, Any] = _SKELETON | tomllib.loads((folder / "prompt.toml").read_text(encoding="utf-8"))

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """What the model is asked for one action: one message, the text first."""
        asked = Message("user", (TextPart(self._prompt(prompt)), *map(ImagePart, prompt.images)))
        return ChatRequest([Message.text("system", self._texts["role"]), asked], self.facts.sampling)

    def _prompt(self, prompt: PromptRequest) -> str:
        past = [self._past(number, step) for number, step in enumerate(prompt.steps, prompt.skipped)]
        told = {"task": prompt.instruction, "previous": "\n".join(past)}
        if prompt.system_prompt is not None:
            return str(self._texts["own_prompt"].format(own=prompt.system_prompt, **told))
        actions, notes = [self._texts["actions"]], list(self._texts["notes"])
        if not prompt.reference:
            notes += self._texts["desktop_notes"]
            if prompt.apps:
                actions.append(self._texts["desktop_action"].format(apps=", ".join(prompt.apps)))
        listed = "\n".join(f"- {note}" for note in notes)
        return str(self._texts["prompt"].format(actions="\n".join(actions), notes=listed, **told))

    def _past(self, number: int, step: PastStep) -> str:
        action = "\n".join(as_named(named(call), bare=True) for call in step.calls)
        thought = step.thought
        if step.answer is not None and step.answer.content:
            said = take_apart(step.answer)
            written = _ACTION.search(said.text)
            thought, action = said.thought or thought, written[1].strip("\n") if written else action
        line = self._texts["step"].format(number=number, thought=thought, action=action)
        # Its client has no place for replies: they stand behind the step that they came to.
        return "\n".join([line, *(f"Result: {reply}" for reply in step.replies)])

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer in the published form."""
        return f"<think>{thought}</think>\n<action>{as_named(named(calls[0]), bare=True)}</action>"

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The decision in an answer: one action."""
        names = OwnNames.of(_CALLS, grid_of(self.facts.navigation, sent))

        def read(call: Call) -> Action[GridPoint]:
            return self._read(call, names)

        said = take_apart(answer)
        if said.calls is not None:
            return decide(said.thought, said.calls, read, most=1)
        if said.cut:
            return ParseFailure("truncated", "the answer ends inside the thinking", said.thought)
        marks = list(_ACTION.finditer(said.text))
        written = [_NOISE.sub("", mark[1]).strip() for mark in marks]
        spoken = said.text[: marks[0].start()].strip() if marks else ""
        thought = "\n".join(part for part in (said.thought, spoken) if part)
        if not written:
            rest = _NOISE.sub("", _CONCLUSION.sub("", said.text)).strip()
            if not rest:
                return ParseFailure("empty", "there is no action in the answer", said.thought)
            written = [rest]
        read_as = [named_calls(text) for text in written]
        first = read_as[0]
        if isinstance(first, ParseFailure):
            return ParseFailure(first.kind, first.message, thought)
        return decide(thought, [call for calls in read_as if isinstance(calls, list) for call in calls], read, most=1)

    def _read(self, call: Call, names: OwnNames) -> Action[GridPoint]:
        if _is_nowhere(call.arguments.get("box")):
            return Absent()
        arguments = names.said(call)
        if arguments["action"] == "scroll" and "start" in arguments and "end" in arguments:
            ends = {"coordinate": arguments["start"], "coordinate2": arguments["end"]}
            return read_action({"action": "swipe", **ends}, names.words)
        if arguments["action"] == "open" and arguments.get("url"):
            return read_action({"action": "visit_url", "url": arguments["url"]}, names.words)
        return read_action(arguments, names.words)

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        """What the model is asked for one point: the screenshot, then the words."""
        text = self._texts["grounding"].format(instruction=instruction.removesuffix("."))
        return ChatRequest([Message("user", (ImagePart(image), TextPart(text)))], self.facts.sampling)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The point in a grounding answer, as a click; `Absent` where the family says that there is none."""
        return pointed(answer, grid_of(self.facts.grounding, sent))

    def feedback(self, failure: ParseFailure) -> str:
        """What to tell the model after an answer that gave no action."""
        return (
            f"That answer cannot be carried out: {failure.message}. Nothing was done. Answer again with <think>, "
            "<action> and <conclusion>, one action in it."
        )


def _is_nowhere(written: Any) -> bool:
    try:
        return read_pair(written) == NOWHERE
    except PointError:
        return False


def create(name: str) -> UiVenus:
    """The family of that name, which is data alone."""
    return UiVenus(name, family_folder(name))
