"""Fara-7B and Fara 1.5, which work in a web browser."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from typing_extensions import override

from agent.core.actions import CallTool, Finish
from agent.families.base import Acts, ArgumentError, Call, Decision, PastStep, PromptRequest
from agent.families.qwen.family import QwenComputerUse
from agent.families.shared.computer_use import FUNCTIONS, Vocabulary
from agent.families.shared.text_family import in_turn
from agent.model.request import ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage

#: Maximum characters of a result. The published client cuts the middle out of longer ones (max_observation_chars).
_MOST_TOLD = 1000


class Fara(QwenComputerUse):
    """A family that thinks aloud, then calls. Each turn with a screenshot says that it is the next one.

    A turn without its screenshot is omitted, except for the task and the person's words. The published client also
    tells the page's address if it knows it; here the address is on the screenshot.
    """

    label = ""

    @override
    def messages(self, prompt: PromptRequest) -> list[Message]:
        return in_turn(self.system(prompt), prompt, self.replay, partial(self._seen, prompt))

    def _seen(
        self, prompt: PromptRequest, images: Sequence[EncodedImage | None], after: PastStep | None
    ) -> list[Message]:
        if images or after is None:
            text = prompt.instruction if after is None else self._told(prompt, after)
            return [Message("user", (*map(ImagePart, images), TextPart(text)))]
        kept = [after.user_reply] if prompt.reference else after.replies
        return [Message.text("user", text) for text in ["\n".join(text for text in kept if text)] if text]

    def _told(self, prompt: PromptRequest, after: PastStep) -> str:
        """Return the text next to the screenshot after a step. A person's reply replaces the usual words."""
        came_back = "\n".join(text for text in (after.tool_result, after.note) if text)
        words = after.user_reply or self.words(prompt, "next_screenshot") or str(self.texts["next_screenshot"])
        return f"{_shortened(came_back)}\n{words}" if came_back else words

    def act(self, call: Call, words: Vocabulary) -> Acts:
        """Return the actions of a call. Reading a page becomes a tool call, because it is no desktop action."""
        arguments = call.arguments
        name = str(arguments.get("action", "")).strip().lower() if call.name in FUNCTIONS else ""
        if name == "read_page_answer_question":
            question = arguments.get("question")
            if not isinstance(question, str) or not question.strip():
                raise ArgumentError("bad_argument", 'read_page_answer_question needs a "question"')
            return CallTool(name, {"question": question})
        return super().act(call, words)


def _shortened(text: str) -> str:
    if len(text) <= _MOST_TOLD:
        return text
    half = _MOST_TOLD // 2
    return f"{text[:half]}\n... ({len(text) - _MOST_TOLD} characters left out) ...\n{text[-half:]}"


class Fara7(Fara):
    """Fara-7B."""

    def finished(self, decision: Decision) -> Decision:
        """Use the thought of the last step as the final message."""
        last = decision.actions[-1]
        if not isinstance(last, Finish) or last.message:
            return decision
        return replace(decision, actions=(*decision.actions[:-1], replace(last, message=decision.thought[:4000])))


class Fara15(Fara):
    """Fara 1.5, 4B to 27B."""

    def act(self, call: Call, words: Vocabulary) -> Acts:
        """Return the actions of a call. The task cannot end without an answer."""
        arguments = call.arguments
        ends = str(arguments.get("action", "")).strip().lower() == "terminate"
        if ends and not str(arguments.get("answer") or "").strip() and not arguments.get("status"):
            raise ArgumentError("bad_argument", 'terminate needs an "answer"')
        return super().act(call, words)
