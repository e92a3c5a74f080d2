"""UI-Venus-2 on a desktop: screenshots and answers in turn, and several actions as one `Sequence`."""

import ast
from collections.abc import Sequence

from typing_extensions import override

from agent.families.base import Acts, Call, ParseFailure, PastStep, PromptRequest
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.computer_use import Vocabulary, read_action, whole
from agent.families.shared.named_calls import as_named, named_calls
from agent.families.shared.own_names import named, said
from agent.families.shared.text_family import Read, all_calls, in_turn, joined
from agent.families.ui_venus.family import ACTION, NOISE, UiVenus
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage

#: Limits of the published client.
_MOST_REPEATS, _MOST_ACTIONS = 128, 32


class UiVenus2(UiVenus):
    """UI-Venus-2, 9B and 27B. Its option: "style" (`reference` or `desktop`)."""

    shared_texts = shared_data = None

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        last = prompt.steps[-1] if prompt.steps else None

        def show(images: Sequence[EncodedImage | None], after: PastStep | None) -> list[Message]:
            """Show what came back after a step, which the published client has no place for, and images."""
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
        written = ACTION.search(parts.text)
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
        marks = list(ACTION.finditer(parts.text))
        written = [NOISE.sub("", mark[1]).strip() for mark in marks] or [NOISE.sub("", parts.text).strip()]
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
