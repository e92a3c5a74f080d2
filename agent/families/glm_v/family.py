"""GLM-V as a `Family`: one user message of text and screenshots in turn, the model's own memory in it."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.core.actions import Action
from agent.core.geometry import GridPoint, Size
from agent.families.base import Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.shared.answer_parts import take_apart
from agent.families.shared.named_calls import as_named, named_calls
from agent.families.shared.own_names import OwnNames, named
from agent.families.shared.point_answers import pointed
from agent.families.shared.points import grid_of
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer
from foundation.families import family_data

_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("prompt.toml").read_text(encoding="utf-8"))
_BOX = re.compile(r"<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|\Z)", re.DOTALL)
_MEMORY = re.compile(r"Memory\s*[:：]", re.IGNORECASE)
_NOISE = re.compile(r"</?answer>|<\|(?:begin_of_box|end_of_box|user|endoftext|assistant)\|>|```\w*")
#: Without arguments, the brackets are left away now and then.
_BARE = re.compile(r"WAIT|DONE|FAIL")


class GlmV(Family):
    """The GLM-V family. Its option: "style" (`reference` or `desktop`)."""

    def __init__(self) -> None:
        super().__init__("glm-v")
        names = "|".join(sorted(map(re.escape, self._names.calls), key=len, reverse=True))
        self._call = re.compile(rf"\b(?:{names})\s*\(", re.IGNORECASE)

    @property
    def _names(self) -> OwnNames:
        return OwnNames.of(family_data(self.facts.name), grid_of(self.facts.navigation, ()))

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """What the model is asked for one action: one message, and its box tokens wanted back."""
        parts: list[TextPart | ImagePart] = []
        text = self._head(prompt)
        for number, step in enumerate(prompt.steps, prompt.skipped + 1):
            text += f"\nstep {number}: Screenshot:"
            if step.shown and step.images:
                parts += [TextPart(text), *map(ImagePart, step.images)]
                text = ""
            else:
                text += _TEXTS["omitted" if prompt.reference else "desktop_omitted"]
            thought, action = self._told(step)
            text += f" Thought: {thought}\nAction: {action}"
            # Its client has no place for replies: they stand with the step that they came to.
            text += "".join(f"\nResult: {reply}" for reply in step.replies)
        notes = _TEXTS["notes"] + ([] if prompt.reference else _TEXTS["desktop_notes"])
        tail = _TEXTS["tail"].format(memory=_memory(prompt.steps), notes="\n".join(f"- {note}" for note in notes))
        parts += [TextPart(text + tail), *map(ImagePart, prompt.images)]
        return ChatRequest([Message("user", tuple(parts))], self.facts.sampling, skip_special_tokens=False)

    def _head(self, prompt: PromptRequest) -> str:
        if prompt.system_prompt is not None:
            return str(_TEXTS["own_head"].format(own=prompt.system_prompt, task=prompt.instruction))
        platform = _TEXTS["platform" if prompt.reference else "desktop_platform"]
        if prompt.apps and not prompt.reference:
            platform += f"\nInstalled applications: {', '.join(prompt.apps)}"
        return str(_TEXTS["head"].format(task=prompt.instruction, platform=platform, actions=_TEXTS["actions"]))

    def _told(self, step: PastStep) -> tuple[str, str]:
        """The thought and the action of a past step, as the client tells them apart in a whole answer."""
        if step.answer is None or not step.answer.content:
            return step.thought, "\n".join(as_named(named(call), "[]") for call in step.calls)
        content = step.answer.content
        box = _BOX.search(content)
        action = box[1].strip() if box else "\n".join(as_named(named(call), "[]") for call in step.calls)
        return content.split("Memory:")[0].replace(action, "").strip(), action

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer in the published form, with an empty memory."""
        action = as_named(named(calls[0]), "[]")
        return f"{thought}\n<|begin_of_box|>{action}<|end_of_box|>\nMemory:\n[]".lstrip()

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:  # noqa: ARG002
        """The decision in an answer: one action."""
        said = take_apart(answer)
        if said.calls is not None:
            return decide(said.thought, said.calls, self._read, most=1)
        if said.cut:
            return ParseFailure("truncated", "the answer ends inside the thinking", said.thought)
        boxes = [box[1] for box in _BOX.finditer(said.text)]
        spoken = _NOISE.sub("", _MEMORY.split(_BOX.sub("", said.text))[0]).strip()
        if boxes:
            thought = "\n".join(part for part in (said.thought, spoken) if part)
            read = [_calls(box) for box in boxes]
            further = [call for calls in read[1:] if isinstance(calls, list) for call in calls]
            return decide(thought, [*read[0], *further] if isinstance(read[0], list) else read[0], self._read, most=1)
        spoken, calls = self._unboxed(spoken)
        thought = "\n".join(part for part in (said.thought, spoken) if part)
        return decide(thought, calls, self._read, most=1)

    def _unboxed(self, text: str) -> tuple[str, list[Call] | ParseFailure]:
        """The thought, and the calls at the end of a text whose box tokens a server left out."""
        first: ParseFailure | None = None
        for begin in (match.start() for match in self._call.finditer(text)):
            calls = named_calls(text[begin:])
            if not isinstance(calls, ParseFailure):
                return text[:begin].strip(), calls
            if first is None and ")" not in text[begin:]:
                first = calls
        if _BARE.fullmatch(text):
            return "", [Call(text, {})]
        if not text:
            return "", ParseFailure("empty", "the answer is empty")
        return text, first or ParseFailure("no_action", "there is no action between box tokens in the answer")

    def _read(self, call: Call) -> Action[GridPoint]:
        held = call.arguments.get("hold_keys")
        if isinstance(held, str) and held.strip().lower() == "none":
            call = Call(
                call.name, {name: value for name, value in call.arguments.items() if name != "hold_keys"}, call.id
            )
        return self._names.read(call)

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        """What the model is asked for one point."""
        text = TextPart(_TEXTS["grounding"].format(instruction=instruction))
        message = Message("user", (ImagePart(image), text))
        return ChatRequest([message], self.facts.sampling, skip_special_tokens=False)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The point in a grounding answer, as a click."""
        return pointed(answer, grid_of(self.facts.grounding, sent))

    def feedback(self, failure: ParseFailure) -> str:
        """What to tell the model after an answer that gave no action."""
        return (
            f"That answer cannot be carried out: {failure.message}. Nothing was done. Answer again with one action of "
            "the Action Space between <|begin_of_box|> and <|end_of_box|>, then Memory."
        )


def _calls(box: str) -> list[Call] | ParseFailure:
    text = _NOISE.sub("", box).strip()
    return [Call(text, {})] if _BARE.fullmatch(text) else named_calls(text)


def _memory(steps: Sequence[PastStep]) -> str:
    """What the last answer wanted to keep, to the letter; an empty list where it kept nothing."""
    answer = steps[-1].answer if steps else None
    kept = _MEMORY.split(answer.content, maxsplit=1)[1:] if answer is not None else []
    return _NOISE.sub("", kept[0]).strip() if kept and kept[0].strip() else "[]"


def create() -> GlmV:
    """The family, as the registry asks for it."""
    return GlmV()
