"""The literal engine as a `Family`: the screen goes to it as text beside the picture, its answers come as one call."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent.core.actions import Action, Finish
from agent.core.geometry import GridPoint, Size
from agent.families.base import Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.literal.screen_text import ScreenText, write_screen
from agent.families.shared.computer_use import Vocabulary, read_call
from agent.families.shared.json_calls import as_text, json_call, split_thought
from agent.families.shared.lenient_json import clean_text
from agent.families.shared.points import grid_of
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from foundation.chat_stream import Answer

#: The name under which the engine calls actions.
FUNCTION = "computer_use"
#: Past screens in a request. The effect of an action is looked for in the few that follow it.
_PAST_SCREENS = 8


class LiteralFamily(Family):
    """How the built-in engine is asked: the chat is its memory, and its own calls are replayed to the letter.

    Its option "environ" is what the environment of the applications says of desktop and language.
    """

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """What the engine is asked: of past screens the text, of the screen now the picture too."""
        messages = [Message.text("user", prompt.instruction)]
        for left, step in zip(range(len(prompt.steps), 0, -1), prompt.steps, strict=True):
            if left <= _PAST_SCREENS:
                messages.append(Message.text("user", write_screen(ScreenText(step.outline, tuple(step.changes)))))
            messages.append(Message.text("assistant", _replay(step)))
            messages += [Message.text("user", text) for text in step.replies]
        environ = prompt.options.get("environ", {})
        now = TextPart(write_screen(ScreenText(prompt.outline, tuple(prompt.changes), environ)))
        return ChatRequest([*messages, Message("user", (now, *map(ImagePart, prompt.images)))], self.facts.sampling)

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer of the engine."""
        return render(thought, calls[0])

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The decision in an answer: one action."""
        words = Vocabulary(grid_of(self.data["grid"]["navigation"], sent))
        thought, rest = split_thought(clean_text(as_text(answer)))
        if rest is None:
            return ParseFailure("truncated", "the answer ends inside the thinking", thought)
        return decide(thought, json_call(rest, FUNCTION), lambda call: _read(call, words), most=1)


def _replay(step: PastStep) -> str:
    """A past answer as the engine wrote it."""
    return render(step.thought, step.calls[0])


def render(thought: str, call: Call) -> str:
    """An answer of the engine as text."""
    written = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
    shown = thought.replace("<", "‹").replace(">", "›")  # read text must not close the tag
    return f"<thinking>\n{shown}\n</thinking>\n<tool_call>\n{written}\n</tool_call>"


def _read(call: Call, words: Vocabulary) -> Action[GridPoint]:
    """The action of a call; the end of a run brings what proves it."""
    action = read_call(call, words)
    if not isinstance(action, Finish):
        return action
    told: Any = call.arguments.get("evidence")
    evidence = tuple(str(item) for item in told) if isinstance(told, list) else ()
    verified = call.arguments.get("verified")
    return replace(action, evidence=evidence, verified=verified if isinstance(verified, bool) else None)
