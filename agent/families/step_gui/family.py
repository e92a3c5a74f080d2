"""Step-GUI as a `Family`: one message, one screenshot, and the summary of the last answer for a history."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.core.actions import Action
from agent.core.geometry import GridPoint, Size
from agent.families.base import Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.shared.answer_parts import take_apart
from agent.families.shared.own_names import OwnNames, named
from agent.families.shared.point_answers import pointed
from agent.families.shared.points import grid_of
from agent.families.shared.tabbed_calls import as_tabbed, tabbed_calls
from agent.families.shared.text_entry import read_typing
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer
from foundation.families import family_data

_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("prompt.toml").read_text(encoding="utf-8"))
#: A misspelling that the published parser mends, too.
_TINK = re.compile(r"<(/?)TINK>")
#: A server may have put its own reasoning in tags before the model's.
_THINK = re.compile(r"<\s*think\s*>.*?<\s*/\s*think\s*>", re.DOTALL | re.IGNORECASE)
_NOISE = re.compile(r"```\w*|<\|im_end\|>|<\s*/?\s*think\s*>", re.IGNORECASE)
_POINT = re.compile(r"point\s*[:：]\s*([0-9.]+\s*[,，]\s*[0-9.]+)\s*")


class StepGui(Family):
    """The Step-GUI family. Its option: "style" (`reference` or `desktop`)."""

    def __init__(self) -> None:
        super().__init__("step-gui")

    @property
    def _names(self) -> OwnNames:
        return OwnNames.of(family_data(self.facts.name), grid_of(self.facts.navigation, ()))

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """What the model is asked for one action."""
        role = _TEXTS["role"] if prompt.system_prompt is None else prompt.system_prompt
        if not prompt.reference and prompt.system_prompt is None:
            role += _TEXTS["desktop"]
            role += _TEXTS["desktop_apps"].format(apps=", ".join(prompt.apps)) if prompt.apps else ""
        said = "".join(self._replies(step) for step in prompt.steps)
        history = (_summary(prompt.steps[-1]) if prompt.steps else "") or _TEXTS["no_history"]
        task = _TEXTS["task"].format(task=prompt.instruction + said, history=history)
        texts = [TextPart(role), TextPart(task)]
        message = Message("user", (*texts, *map(ImagePart, prompt.images), TextPart(_TEXTS["format"])))
        return ChatRequest([message], self.facts.sampling)

    def _replies(self, step: PastStep) -> str:
        asked = next((call.arguments.get("value", "") for call in map(named, step.calls) if call.name == "INFO"), None)
        told = []
        for reply in step.replies:
            is_answer = asked is not None and reply == step.user_reply
            told.append(_TEXTS["reply" if is_answer else "remark"].format(asked=asked, reply=reply))
        return "".join(told)

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer in the published form."""
        return f"<THINK> {thought} </THINK>\n{as_tabbed(named(calls[0]))}\n"

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:  # noqa: ARG002
        """The decision in an answer: one action, and the click before it where a text goes to a point."""
        said = take_apart(replace(answer, content=_TINK.sub(r"<\1THINK>", answer.content)))
        if said.calls is not None:
            return decide(said.thought, said.calls, self._read, most=1)
        if said.cut:
            return ParseFailure("truncated", "the answer ends inside the thinking", said.thought)
        return decide(said.thought, tabbed_calls(_NOISE.sub("", _THINK.sub("", said.text))), self._read, most=1)

    def _read(self, call: Call) -> Action[GridPoint] | list[Action[GridPoint]]:
        arguments = self._names.said(call)
        if arguments["action"] == "wait":
            arguments["seconds"] = arguments.pop("text", 1)
        return read_typing(Call("computer_use", arguments), self._names.words)

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        """What the model is asked for one point."""
        text = TextPart(_TEXTS["grounding"].format(instruction=instruction))
        return ChatRequest([Message("user", (ImagePart(image), text))], self.facts.sampling)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The point in a grounding answer, as a click; also in the field of an action."""
        content = _POINT.sub(r"(\1) ", answer.content)
        return pointed(replace(answer, content=content), grid_of(self.facts.grounding, sent))

    def feedback(self, failure: ParseFailure) -> str:
        """What to tell the model after an answer that gave no action."""
        return (
            f"That answer cannot be carried out: {failure.message}. Nothing was done. Answer again with <THINK> "
            "</THINK>, then explain, action with what it needs, and summary, a tab between them."
        )


def _summary(step: PastStep) -> str:
    """What the answer of a step ended with; "" where it gave no summary."""
    calls: Sequence[Call] | ParseFailure = step.calls
    if step.answer is not None and step.answer.content:
        calls = tabbed_calls(_NOISE.sub("", _THINK.sub("", step.answer.content)))
    return "" if isinstance(calls, ParseFailure) else str(calls[-1].arguments.get("summary", ""))


def create() -> StepGui:
    """The family, as the registry asks for it."""
    return StepGui()
