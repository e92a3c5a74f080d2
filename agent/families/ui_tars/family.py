"""UI-TARS 1.0, 1.5 and Doubao's: one prompt in the user turn, answers of `Thought:` and `Action:`."""

import re
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from agent.families.base import Acts, Call, ParseFailure, PastStep, PromptRequest
from agent.families.published import GROUNDING
from agent.families.shared.answer_parts import AnswerParts
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.named_calls import as_named, thought_and_calls
from agent.families.shared.own_names import named, read_own, unrepeated
from agent.families.shared.text_family import Read, TextFamily, in_turn, joined, offered
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage

_BOX = re.compile(r"(start_box|end_box)='(\([0-9]+,[0-9]+\))'")


class UiTars(TextFamily):
    """A version of UI-TARS. Its options: "style" (`reference` or `desktop`), and "language" (of its thoughts).

    Texts of each version: "actions" and "desktop_actions" (lines of its action space), "grounding_action".
    """

    shared_texts = Path(__file__).with_name("skeleton.toml")
    shared_data = Path(__file__).with_name("calls.toml")

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        user_text = self.words(prompt, "prompt")
        if user_text is None:
            text = self._prompt(prompt) if prompt.system_prompt is None else prompt.system_prompt
            user_text = text + self.texts["task"].format(instruction=prompt.instruction)
        system = self.texts["system"]
        opening = [*([Message.text("system", system)] if system else []), Message.text("user", user_text)]
        if prompt.skipped and not prompt.reference:
            opening.append(Message.text("user", f"({prompt.skipped} earlier steps are left out here.)"))
        return ChatRequest(in_turn(opening, prompt, self._replay), self.facts.sampling)

    def _prompt(self, prompt: PromptRequest) -> str:
        offer = offered(self.texts, prompt)
        notes = offer["notes"].format(language=prompt.options.get("language", "English"))
        return str(self.texts["prompt"]).format(actions=offer["actions"], notes=notes)

    def _replay(self, step: PastStep) -> list[Message]:
        answer = (step.answer and step.answer.content) or self.written(step.thought, step.calls)
        # The published client has no place for notes. They are put where a person would reply.
        replies = [Message.text("user", reply) for reply in step.replies]
        return [Message.text("assistant", self.replayed(answer)), *replies]

    def replayed(self, answer: str) -> str:
        """Return a past answer as the model sees it again."""
        return answer

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer in the published form, with more calls after blank lines."""
        return f"Thought: {thought}\nAction: " + "\n\n".join(as_named(named(call)) for call in calls)

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        return read_own(call, words, self.texts["actions"])

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse a thought, then one or more calls."""
        spoken, calls, counted = thought_and_calls(parts.text)
        most = None if isinstance(calls, ParseFailure) else min(counted, unrepeated(calls))
        return joined(parts.thought, spoken), calls, most

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        text = self.words(PromptRequest(instruction, (image,)), GROUNDING)
        if text is None:
            text = self.texts["grounding"].format(actions=self.texts["grounding_action"], instruction=instruction)
        return self.asking(TextPart(text), ImagePart(image), system=self.texts["system"])


class UiTars15(UiTars):
    """UI-TARS 1.5: points in pixels of the image, and box tokens in replayed answers."""

    def replayed(self, answer: str) -> str:
        """Return an answer with the box tokens that servers remove.

        This is `add_box_token` of codes/ui_tars/action_parser.py: only boxes of two numbers without a space get tokens,
        and a second `Action: ` becomes a blank line.
        """
        before, mark, rest = answer.partition("Action: ")
        if not mark or "start_box=" not in answer:
            return answer
        actions = "\n\n".join(action.strip() for action in rest.split(mark))
        return before + mark + _BOX.sub(r"\1='<|box_start|>\2<|box_end|>'", actions)
