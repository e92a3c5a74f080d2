"""MAI-UI as a `Family`: its data from `family.toml`, its prompt and its parser."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from agent.core.geometry import Size
from agent.families.base import Call, Decision, ParseFailure, PromptRequest
from agent.families.mai_ui.prompt import is_reference, is_thinking, navigation_messages, written
from agent.families.published import GROUNDING
from agent.families.shared.answer_parts import THINKING, AnswerParts, calls_in, take_apart
from agent.families.shared.json_calls import as_text
from agent.families.shared.text_family import Read, TextFamily
from agent.model.request import ChatRequest, ImagePart, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

_ANSWER = re.compile(r"<\s*answer\s*>", re.IGNORECASE)
_CLOSING = re.compile(r"<\s*/\s*answer", re.IGNORECASE)
_END = re.compile(r"<\s*/\s*answer\s*>?\s*\Z", re.IGNORECASE)


class MaiUi(TextFamily):
    """The MAI-UI family, 2B to 32B. Its options: "style" (`reference` or `desktop`), and "thinking"."""

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        return ChatRequest(navigation_messages(prompt, self.words(prompt)), self.facts.sampling)

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        system = self.words(PromptRequest(instruction, (image,)), GROUNDING) or self.texts["grounding"]
        return self.asking(TextPart(instruction + "\n"), ImagePart(image), system=system)

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        return written(thought, calls[0])

    def calls_in(self, parts: AnswerParts) -> Read:
        """Parse one call, wherever the server put it."""
        before, calls = calls_in(parts, self.facts.function)
        return parts.thought.strip('"') or before, calls, 1

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the point in the first <answer>, as a click.

        A tagged answer at the very end counts even if the reasoning has no closing tag, unless the token limit ended
        the text there. Points inside unfinished reasoning are no answer.
        """
        parts = take_apart(replace(answer, content=as_text(answer), reasoning="", tool_calls=()))
        thought, text = parts.thought, parts.text
        if parts.cut:
            opening = _ANSWER.search(thought)
            if opening is None or answer.finish_reason == "length" or not _END.search(thought):
                return ParseFailure("truncated", "the answer ends inside the thinking", thought)
            thought, text = thought[: opening.start()].strip(), thought[opening.start() :]
        elif THINKING.search(text) and not _ANSWER.search(text):
            return ParseFailure("truncated", "the answer ends inside the thinking", text)
        before, *answered = _ANSWER.split(text, maxsplit=1)
        end = _CLOSING.search(answered[0]) if answered else None
        body = (answered or [text])[0][: None if end is None else end.end()]
        read = super().parse_grounding(Answer(body), sent)
        if isinstance(read, ParseFailure):
            if read.kind in ("empty", "truncated") and end is not None:
                read = ParseFailure("no_action", "there is no point in the answer")
            elif read.kind == "empty" and (thought or answered):
                read = ParseFailure("truncated", "the answer ends before the point does")
        return replace(read, thought=thought or before.strip())

    @override
    def constraint(self, options: Mapping[str, Any]) -> str:
        desktop, thinking = not is_reference(options), is_thinking(options)
        number = "([0-9]|[1-9][0-9]|[1-9][0-9][0-9])"
        point = rf"\[{number}, {number}\]"
        text = r'"[^"\\\n]{1,300}"'
        way = '"(up|down|left|right)"'
        pointing = "click|double_click|long_press"
        moving = rf'"swipe", "direction": {way}(, "coordinate": {point})?'
        if desktop:
            pointing += "|triple_click|right_click|middle_click|move"
            moving = rf'"scroll", "direction": {way}, "amount": [1-9](, "coordinate": {point})?'
        choices = [
            rf'"({pointing})", "coordinate": {point}',
            moving,
            rf'"drag", "start_coordinate": {point}, "end_coordinate": {point}',
            f'"(type|open|answer|ask_user)", "text": {text}',
            '"wait"',
            '"terminate", "status": "(success|fail)"',
        ]
        if desktop:
            choices.append(r'"key", "keys": "[a-z0-9_+]{1,30}"')
        arguments = rf'\{{"action": ({"|".join(choices)})\}}'
        call = rf'<tool_call>\n\{{"name": "mobile_use", "arguments": {arguments}\}}\n</tool_call>'
        return (r"<thinking>\n[^<]{1,600}\n</thinking>\n" if thinking else "") + call
