"""UI-Venus 1 and 1.5 (one user message, the past as text, answers in three tags), and 2, in turns."""

import ast
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from agent.core.actions import Absent
from agent.families.base import Acts, Call, ParseFailure, PastStep, PromptRequest
from agent.families.published import GROUNDING
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.computer_use import Vocabulary, read_action, whole
from agent.families.shared.named_calls import as_named, named_calls
from agent.families.shared.own_names import named, read_typing, said
from agent.families.shared.point_answers import NOWHERE
from agent.families.shared.points import PointError, read_pair
from agent.families.shared.text_family import Read, TextFamily, all_calls, in_turn, joined, offered
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage

_ACTION = re.compile(r"<\s*action\s*>(.*?)(?:<\s*/\s*action\s*>|(?=<\s*conclusion)|\Z)", re.DOTALL | re.IGNORECASE)
_CONCLUSION = re.compile(r"<\s*conclusion\s*>.*", re.DOTALL | re.IGNORECASE)
_NOISE = re.compile(r"```\w*|<\|im_end\|>")


class UiVenus(TextFamily):
    """A version of UI-Venus. Its option: "style" (`reference` or `desktop`).

    Texts of each version: "actions" and "grounding".
    """

    shared_texts: ClassVar[Path | None] = Path(__file__).with_name("skeleton.toml")
    shared_data: ClassVar[Path | None] = Path(__file__).with_name("calls.toml")

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        past = "\n".join(self._past(number, step) for number, step in enumerate(prompt.steps, prompt.skipped))
        text = TextPart(self.filled(prompt, past))
        return self.asking(text, *map(ImagePart, prompt.images), system=self.texts["role"])

    def filled(self, prompt: PromptRequest, previous: str = "") -> str:
        """Return the prompt; `previous` are the earlier steps as text."""
        values = {"task": prompt.instruction, "previous": previous}
        if (published := self.words(prompt, "prompt", previous=previous)) is not None:
            return published
        if prompt.system_prompt is not None:
            return str(self.texts["own_prompt"].format(own=prompt.system_prompt, **values))
        return str(self.texts["prompt"].format(**offered(self.texts, prompt), **values))

    def _past(self, number: int, step: PastStep) -> str:
        action = "\n".join(as_named(named(call), bare=True) for call in step.calls)
        thought = step.thought
        if step.answer is not None and step.answer.content:
            parts = take_apart(step.answer)
            written = _ACTION.search(parts.text)
            thought, action = parts.thought or thought, written[1].strip("\n") if written else action
        line = self.texts["step"].format(number=number, thought=thought, action=action)
        # Its client has no place for replies. They are put after their step.
        return "\n".join([line, *(f"Result: {reply}" for reply in step.replies)])

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        return f"<think>{thought}</think>\n<action>{as_named(named(calls[0]), bare=True)}</action>"

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse one call in each pair of tags. Without tags, the whole answer is one call."""
        marks = list(_ACTION.finditer(parts.text))
        written = [_NOISE.sub("", mark[1]).strip() for mark in marks]
        if not written:
            rest = _NOISE.sub("", _CONCLUSION.sub("", parts.text)).strip()
            if not rest:
                return parts.thought, ParseFailure("empty", "there is no action in the answer"), 1
            written = [rest]
        thought = joined(parts.thought, parts.text[: marks[0].start()].strip() if marks else "")
        return thought, all_calls(map(named_calls, written)), 1

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        with suppress(PointError):
            if read_pair(call.arguments.get("box")) == NOWHERE:
                return Absent()
        arguments = said(call, words)
        if arguments["action"] == "scroll" and "start" in arguments and "end" in arguments:
            ends = {"coordinate": arguments["start"], "coordinate2": arguments["end"]}
            return read_action({"action": "swipe", **ends}, words)
        if arguments["action"] == "open" and arguments.get("url"):
            return read_action({"action": "visit_url", "url": arguments["url"]}, words)
        return read_typing(Call("computer_use", arguments), words)

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        wanted = instruction.removesuffix(".")
        text = self.words(PromptRequest(wanted, (image,)), GROUNDING)
        text = self.texts["grounding"].format(instruction=wanted) if text is None else text
        return self.asking(ImagePart(image), TextPart(text))


#: Limits of the published client.
_MOST_REPEATS, _MOST_ACTIONS = 128, 32


class UiVenus2(UiVenus):
    """UI-Venus-2, 9B and 27B. Its option: "style" (`reference` or `desktop`)."""

    shared_texts = shared_data = None

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        last = prompt.steps[-1] if prompt.steps else None

        def show(images: Sequence[EncodedImage | None], after: PastStep | None) -> list[Message]:
            """Show the replies after a step, for which the published client has no place, and the images."""
            parts: list[TextPart | ImagePart] = [TextPart(f"{reply}\n") for reply in (after.replies if after else ())]
            if images:
                which = "Current" if after is last else "History"
                parts += [TextPart(f"{which} Screenshot:\n"), *map(ImagePart, images)]
            return [Message("user", tuple(parts) or (TextPart(""),))]

        opening = [Message.text("system", self.filled(prompt))]
        messages = in_turn(opening, prompt, lambda step: [Message.text("assistant", self._replayed(step))], show)
        return ChatRequest(messages, self.facts.sampling)

    def _replayed(self, step: PastStep) -> str:
        """Return a past answer as the published client writes it back: thought and action, in their tags."""
        if step.answer is None or not step.answer.content:
            return self.written(step.thought, step.calls)
        parts = take_apart(step.answer)
        written = _ACTION.search(parts.text)
        action = (written[1] if written else parts.text).strip()
        thought = parts.thought or step.thought
        return "\n".join([*([f"<think>{thought}</think>"] if thought else []), f"<action>{action}</action>"])

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        written = [as_named(named(call), bare=True) for call in calls]
        action = written[0] if len(written) == 1 else f"Sequence(actions=[{', '.join(written)}])"
        return f"<think>{thought}</think>\n<action>{action}</action>"

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the action in the tags, or the calls of a `Sequence`. Without tags, the whole answer is the action."""
        marks = list(_ACTION.finditer(parts.text))
        written = [_NOISE.sub("", mark[1]).strip() for mark in marks] or [_NOISE.sub("", parts.text).strip()]
        thought = joined(parts.thought, parts.text[: marks[0].start()].strip() if marks else "")
        return thought, all_calls(map(_calls, written[:1])), None

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        arguments = said(call, words)
        if arguments["action"] == "scroll" and str(arguments.pop("axis", "")).strip("'\"") == "horizontal":
            return read_action({**arguments, "action": "hscroll"}, words)
        if arguments["action"] == "left_click_drag" and "start_coordinate" not in arguments:  # from the pointer
            arguments["coordinate"] = arguments.pop("end_coordinate", None)
            return read_action(arguments, words)
        if arguments["action"] != "key":
            return super().act(call, words)
        times = whole(arguments.pop("repeat", None), "repeat", _MOST_REPEATS)
        return [read_action(arguments, words)] * times


def _calls(text: str) -> list[Call] | ParseFailure:
    """Return the call in a text, or the calls of a `Sequence`."""
    if not text.startswith("Sequence"):
        return named_calls(text)
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ParseFailure("truncated", "the Sequence does not end, or is written in another way than its actions")
    match node:
        case ast.Call(args=[], keywords=[ast.keyword(arg="actions", value=ast.List(elts=actions))]):
            if not 2 <= len(actions) <= _MOST_ACTIONS:
                return ParseFailure("bad_argument", f"a Sequence holds 2 to {_MOST_ACTIONS} actions")
            return named_calls("\n".join(map(ast.unparse, actions)))
    return ParseFailure("bad_argument", "a Sequence is written as Sequence(actions=[...])")
