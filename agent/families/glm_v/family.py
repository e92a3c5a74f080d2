"""GLM-V as a `Family`: one user message of alternating text and screenshots, with the model's own memory."""

import re
from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from agent.families.base import Acts, Call, ParseFailure, PastStep, PromptRequest
from agent.families.shared.answer_parts import AnswerParts
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.named_calls import as_named, named_calls
from agent.families.shared.own_names import named, read_own
from agent.families.shared.text_family import Read, TextFamily, all_calls, joined, offered
from agent.model.request import ChatRequest, ImagePart, TextPart
from agent.screen.encode import EncodedImage

_BOX = re.compile(r"<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|\Z)", re.DOTALL)
_MEMORY = re.compile(r"Memory\s*[:：]", re.IGNORECASE)
_NOISE = re.compile(r"</?answer>|<\|(?:begin_of_box|end_of_box|user|endoftext|assistant)\|>|```\w*")
#: Models sometimes omit the brackets of calls without arguments.
_BARE = re.compile(r"WAIT|DONE|FAIL")


class GlmV(TextFamily):
    """The GLM-V family. Its option: "style" (`reference` or `desktop`)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        names = "|".join(sorted(map(re.escape, self.data["calls"]), key=len, reverse=True))
        self._call = re.compile(rf"\b(?:{names})\s*\(", re.IGNORECASE)

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """Return the request for an action: one message, and box tokens in the answer."""
        parts: list[TextPart | ImagePart] = []
        text = self._head(prompt)
        for number, step in enumerate(prompt.steps, prompt.skipped + 1):
            text += f"\nstep {number}: Screenshot:"
            if step.shown and step.images:
                parts += [TextPart(text), *map(ImagePart, step.images)]
                text = ""
            else:
                text += self.texts["omitted" if prompt.reference else "desktop_omitted"]
            thought, action = self._told(step)
            text += f" Thought: {thought}\nAction: {action}"
            # Its client has no place for replies. They are put with their step.
            text += "".join(f"\nResult: {reply}" for reply in step.replies)
        tail = self.texts["tail"].format(memory=_memory(prompt.steps), notes=offered(self.texts, prompt)["notes"])
        parts += [TextPart(text + tail), *map(ImagePart, prompt.images)]
        return self.asking(*parts, skip_special_tokens=False)

    def _head(self, prompt: PromptRequest) -> str:
        if (published := self.words(prompt, "head")) is not None:
            return published
        if prompt.system_prompt is not None:
            return str(self.texts["own_head"].format(own=prompt.system_prompt, task=prompt.instruction))
        platform = self.texts["platform" if prompt.reference else "desktop_platform"]
        if prompt.apps and not prompt.reference:
            platform += f"\nInstalled applications: {', '.join(prompt.apps)}"
        return str(self.texts["head"].format(task=prompt.instruction, platform=platform, actions=self.texts["actions"]))

    def _told(self, step: PastStep) -> tuple[str, str]:
        """Return the thought and the action of a past step, separated as by the published client."""
        action = "\n".join(as_named(named(call), "[]") for call in step.calls)
        if step.answer is None or not step.answer.content:
            return step.thought, action
        content = step.answer.content
        if box := _BOX.search(content):
            action = box[1].strip()
        return content.split("Memory:")[0].replace(action, "").strip(), action

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer in the published form, with an empty memory."""
        action = as_named(named(calls[0]), "[]")
        return f"{thought}\n<|begin_of_box|>{action}<|end_of_box|>\nMemory:\n[]".lstrip()

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        held = call.arguments.get("hold_keys")
        if isinstance(held, str) and held.strip().lower() == "none":
            call = replace(call, arguments={**call.arguments, "hold_keys": None})
        return read_own(call, words)

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse one call between box tokens, or at the end of the text if the server removed the tokens."""
        boxes = [box[1] for box in _BOX.finditer(parts.text)]
        spoken = _NOISE.sub("", _MEMORY.split(_BOX.sub("", parts.text))[0]).strip()
        if not boxes:  # the server removed the tokens
            call = self._call.search(spoken)
            begin = call.start() if call else 0
            boxes, spoken = [spoken[begin:]], spoken[:begin].strip()
        return joined(parts.thought, spoken), all_calls(map(_calls, boxes)), 1

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        text = TextPart(self.texts["grounding"].format(instruction=instruction))
        return self.asking(ImagePart(image), text, skip_special_tokens=False)


def _calls(box: str) -> list[Call] | ParseFailure:
    text = _NOISE.sub("", box).strip()
    return [Call(text, {})] if _BARE.fullmatch(text) else named_calls(text)


def _memory(steps: Sequence[PastStep]) -> str:
    """Return the memory of the last answer, without box tokens and fences; an empty list without one."""
    answer = steps[-1].answer if steps else None
    kept = _MEMORY.split(answer.content, maxsplit=1)[1:] if answer is not None else []
    return _NOISE.sub("", kept[0]).strip() if kept and kept[0].strip() else "[]"
