"""Models of the Qwen-VL family tree with their own formats: Qwen2.5-VL, Qwen3.5, GUI-Owl, and Fara for the web."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from typing_extensions import override

from agent.core.actions import CallTool, Finish
from agent.families.base import Acts, ArgumentError, Call, Decision, ParseFailure, PastStep, PromptRequest
from agent.families.qwen.family import QwenComputerUse, written_call
from agent.families.qwen.prompt import fill, json_answers, nested_call, nested_calls, xml_answers
from agent.families.shared.computer_use import ACTION_NAMES, FUNCTIONS, Vocabulary
from agent.families.shared.text_family import in_turn
from agent.model.request import ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage

#: Beginnings of a line that OSWorld's agent treats as the description of an action, and repeats unchanged.
_DONE = ("action:", "step", "i will", "i'll", "now i")


class Qwen25(QwenComputerUse):
    """Qwen2.5-VL, whose answers need no "Action:" line."""

    label = ""

    def action_of(self, step: PastStep) -> str:
        """Return what a step did, in the model's words: the first line that says so, whole."""
        lines = [] if step.answer is None else map(str.strip, step.answer.content.splitlines())
        done_line = next((line for line in lines if line.lower().startswith(_DONE)), "")
        return done_line.partition("<tool_call>")[0].strip() or super().action_of(step)


class Qwen35(QwenComputerUse):
    """Qwen3.5, 3.6 and 3.8."""

    write_call = staticmethod(nested_call)

    def window(self, prompt: PromptRequest) -> tuple[Sequence[PastStep], Sequence[PastStep]]:
        """Return the newest steps as turns, with or without their screenshots."""
        first = max(0, len(prompt.steps) - self.data["history"]["steps"])
        return prompt.steps[:first], prompt.steps[first:]

    def turn(self, shown: Sequence[ImagePart], after: PastStep) -> Message:
        """Return a step's result as its call's response; one text if the screenshots are dropped."""
        replies = [TextPart(f"\n{reply}") for reply in after.replies]
        if shown:
            return Message("user", (TextPart("<tool_response>\n"), *shown, *replies, TextPart("\n</tool_response>")))
        text = "".join([self.texts["collapsed"], *(reply.text for reply in replies)])
        return Message.text("user", f"<tool_response>\n{text}\n</tool_response>")

    def written_calls(self, text: str, function: str) -> tuple[str, list[Call] | ParseFailure]:
        """Return the text before the calls, and the calls: in nested tags, or in JSON as in earlier models."""
        return nested_calls(text) if "<function=" in text else super().written_calls(text, function)

    def act(self, call: Call, words: Vocabulary) -> Acts:
        """Return the actions of a call. Small models write "type" instead of "action"."""
        name = call.arguments.get("type")
        if "action" not in call.arguments and isinstance(name, str) and name.strip().lower() in ACTION_NAMES:
            rest = {key: value for key, value in call.arguments.items() if key != "type"}
            call = Call(call.name, {"action": name, **rest}, call.id)
        return super().act(call, words)

    @override
    def constraint(self, options: Mapping[str, Any]) -> str | None:
        return xml_answers(self.label, self.takes(options))


_CONCLUSION = re.compile(r"<conclusion>\s*(.*?)\s*(?:</conclusion>|$)", re.DOTALL)


class GuiOwl(QwenComputerUse):
    """GUI-Owl 7B and 32B."""

    image_first = False

    def system(self, prompt: PromptRequest) -> list[Message]:
        """Return the system prompt in two parts: the role, and the function."""
        if (own := self.words(prompt)) is not None:
            return [Message.text("system", own)]
        parts = (TextPart(self.texts["helper"]), TextPart("\n\n" + self.instructions.system(prompt)))
        return [Message("system", parts)]

    def messages(self, prompt: PromptRequest) -> list[Message]:
        """Return the system prompt, and one user message: the instruction, all steps in words, and the screenshots."""
        parts: list[TextPart | ImagePart] = [self.asked(prompt, prompt.steps)]
        for number, step in enumerate(prompt.steps, prompt.skipped + 1):
            if step.shown:
                parts += [
                    TextPart(fill(self.texts["past_screenshot"], number=str(number)) + "\n"),
                    *map(ImagePart, step.images),
                ]
        parts += [TextPart(self.texts["screenshot"] + "\n"), *map(ImagePart, prompt.images)]
        return [*self.system(prompt), Message("user", tuple(parts))]

    def action_of(self, step: PastStep) -> str:
        """Return what a step did: its summary, or else its thought."""
        found = None if step.answer is None else _CONCLUSION.search(step.answer.content)
        return (found[1] if found else "") or step.thought.strip() or self.instructions.unsaid(step)

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer in the published form, without its summary."""
        return "\n".join([f"<thinking>\n{thought}\n</thinking>", *map(written_call, calls)])

    @override
    def constraint(self, options: Mapping[str, Any]) -> str | None:
        return json_answers("<thinking>\n", self.takes(options), "\n</thinking>")


class GuiOwl15(QwenComputerUse):
    """GUI-Owl 1.5, 2B to 32B, Instruct and Think."""

    image_first = False
    which = "last"

    def answered(self, step: PastStep) -> str:
        """Return a past answer. Reasoning that the server separated is put before it again."""
        answer, text = self.known(step), super().answered(step)
        return f"<thinking>\n{answer.reasoning}\n</thinking>{text}" if answer and answer.reasoning else text


#: Maximum characters of a result. The published client cuts the middle out of longer ones (max_observation_chars).
_MOST_TOLD = 1000


class Fara(QwenComputerUse):
    """A family that writes its thought, then its calls. A fixed sentence announces each screenshot.

    A turn without its screenshot keeps only its text (`reference`: only the person's reply). The published
    client also tells the page's address if it knows it; here the address is on the screenshot.
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
