"""The `Family` of the literal engine: it receives the typed request and answers with one call."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from agent.core.actions import Finish
from agent.families.base import Acts, Call, PromptRequest
from agent.families.shared.computer_use import Vocabulary, read_call
from agent.families.shared.text_family import TextFamily, answered
from agent.model.request import ChatRequest, ImagePart, Message

#: Function name in the engine's calls.
FUNCTION = "computer_use"


class LiteralFamily(TextFamily):
    """The format of the literal engine: the typed request itself, with a chat that only people read.

    Its option "environ" has the environment variables that name the applications' desktop and language; with "asks",
    the person must agree to a model's reading of the instruction before it is carried out.
    """

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """Return the request; its chat contains only the last screenshot."""
        messages = [Message.text("user", prompt.instruction)]
        for step in prompt.steps:
            messages += answered(render(step.thought, step.calls[0]), step)
        messages.append(Message("user", tuple(map(ImagePart, prompt.images))))
        return ChatRequest(messages, self.facts.sampling, native={"prompt": prompt})

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Return the call as the engine writes it."""
        return render(thought, calls[0])

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        """Return the action of a call; a `Finish` with its evidence."""
        action = read_call(call, words)
        if not isinstance(action, Finish):
            return action
        verified = call.arguments.get("verified")
        known = verified if isinstance(verified, bool) else None
        return replace(action, evidence=_texts(call, "evidence"), verified=known, already=_texts(call, "already"))


def render(thought: str, call: Call) -> str:
    """Return an answer of the engine as text."""
    written = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
    shown = thought.replace("<", "‹").replace(">", "›")  # text from the screen must not close the tag
    return f"<thinking>\n{shown}\n</thinking>\n<tool_call>\n{written}\n</tool_call>"


def _texts(call: Call, name: str) -> tuple[str, ...]:
    value: Any = call.arguments.get(name)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
