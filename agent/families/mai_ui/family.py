"""MAI-UI as a `Family`: its data from `family.toml`, its prompt and its parser.

Two styles share one skeleton (system prompt; the instruction; then screenshots and answers in turn). `reference` sends
exactly the messages of the published client (Tongyi-MAI/MAI-UI, src/mai_naivigation_agent.py, Apache-2.0), oddities
included, to reproduce published behaviour. `desktop` names a desktop's actions and the machine's applications, replays
every call exactly as written, and tells the model what the program noticed.
"""

import copy
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from typing_extensions import override

from agent.core.geometry import Size
from agent.families.base import Call, Decision, ParseFailure, PastStep, PromptRequest
from agent.families.published import GROUNDING
from agent.families.shared.answer_parts import THINKING, AnswerParts, as_text, calls_in, take_apart
from agent.families.shared.points import PointError, read_pair
from agent.families.shared.text_family import Read, TextFamily, answered, in_turn
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

_ANSWER = re.compile(r"<\s*answer\s*>", re.IGNORECASE)
_CLOSING = re.compile(r"<\s*/\s*answer", re.IGNORECASE)
_END = re.compile(r"<\s*/\s*answer\s*>?\s*\Z", re.IGNORECASE)
#: The published client's scale; see `_as_reference_replays`.
_REFERENCE_SCALE = 999


class MaiUi(TextFamily):
    """The MAI-UI family, 2B to 32B. Its options: "style" (`reference` or `desktop`), and "thinking"."""

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        own = self.words(prompt)
        opening = [
            Message.text("system", self._system(prompt) if own is None else own),
            Message.text("user", prompt.instruction),
        ]
        if prompt.skipped and not prompt.reference:
            opening.append(Message.text("user", f"({prompt.skipped} earlier steps are left out here.)"))

        def replay(step: PastStep) -> list[Message]:
            call, thought = step.calls[0], step.thought if prompt.thinking or prompt.reference else None
            if prompt.reference:
                call = Call("mobile_use", _as_reference_replays(call))
            return answered(written(thought, call, ascii_only=prompt.reference), step)

        return ChatRequest(in_turn(opening, prompt, replay), self.facts.sampling)

    def _system(self, prompt: PromptRequest) -> str:
        texts, reference = self.texts, prompt.reference
        # The published client always asks for a thought. It lists ask_user and double_click only together with tools.
        thinking = prompt.thinking or reference
        actions = [texts["desktop_actions"]]
        if reference:
            actions = [texts["phone_actions"], *([texts["phone_actions_with_tools"]] if prompt.tools else [])]
        output = texts["format_thinking" if thinking else "format_plain"]
        sections = [texts["role"], output, "\n".join(["## Action Space\n", *actions])]
        if prompt.apps and not reference:
            sections.append("## Applications\nInstalled on this machine: " + ", ".join(prompt.apps))
        if prompt.tools:
            listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in prompt.tools)
            call = ("<thinking>\n...\n</thinking>\n" if thinking else "") + texts["tool_call"]
            sections.append(texts["tools"].replace("{call}", call).replace("{tools}", listed))
        notes = texts["notes"]
        listed_notes = [notes["coordinates"], *([notes["thinking"]] if thinking else []), notes["format"]]
        listed_notes += [] if reference else notes["desktop"]
        sections.append("\n- ".join(["## Note", *listed_notes]))
        return "\n\n".join(sections)

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        system = self.words(PromptRequest(instruction, (image,)), GROUNDING) or self.texts["grounding"]
        return self.asking(TextPart(instruction + "\n"), ImagePart(image), system=system)

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        return written(thought, calls[0])

    @override
    def calls_in(self, parts: AnswerParts) -> Read:
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


def written(thought: str | None, call: Call, *, ascii_only: bool = False) -> str:
    """Write an answer in the published form; without a thought for None."""
    shown = {"name": call.name, "arguments": dict(call.arguments)}
    body = f"<tool_call>\n{json.dumps(shown, separators=(',', ':'), ensure_ascii=ascii_only)}\n</tool_call>"
    return body if thought is None else f"<thinking>\n{thought}\n</thinking>\n{body}"


def _as_reference_replays(call: Call) -> dict[str, Any]:
    """Return a call's arguments as the published client writes them back, oddities included.

    When it parses an answer, it divides every coordinate by 999 (a box becomes its centre). When it writes, it
    multiplies only "coordinate" back, and truncates: 63, 126, 252, 504 and 509 come back one lower, and a drag's ends
    stay fractions. It also renames every call, tools included, to mobile_use.
    """
    arguments = copy.deepcopy(dict(call.arguments))
    for key in ("coordinate", "start_coordinate", "end_coordinate"):
        with suppress(KeyError, PointError):
            fractions = [value / _REFERENCE_SCALE for value in read_pair(arguments[key])]
            truncated = key == "coordinate"
            arguments[key] = [int(value * _REFERENCE_SCALE) for value in fractions] if truncated else fractions
    return arguments
