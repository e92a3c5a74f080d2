"""`QwenComputerUse`: the base of the families of Qwen-VL's descendants.

Each adds its data, and code for its differences.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent.core.actions import Absent, Click, Finish, points_of
from agent.core.geometry import Size
from agent.families.base import Acts, Call, Decision, ParseFailure, PastStep, PromptRequest
from agent.families.qwen.prompt import Instructions, fill, json_answers
from agent.families.shared.answer_parts import AnswerParts, calls_in, in_json, take_apart
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.own_names import read_typing, unrepeated
from agent.families.shared.point_answers import Which, pointed
from agent.families.shared.points import grid_of
from agent.families.shared.text_family import Read, TextFamily, in_turn, joined
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

#: "Action:" before an answer's description of its action.
_LABEL = re.compile(r"^[ \t]*(?:\*\*|1\)[ \t]*)?action(?:\*\*)?[ \t]*[:：][ \t]*", re.IGNORECASE | re.MULTILINE)

#: A call at the end of an answer, or before its summary.
_CALLED = re.compile(r"</\s*tool_call\s*>\s*(?:<conclusion>.*)?\Z", re.IGNORECASE | re.DOTALL)


def written_call(call: Call) -> str:
    """Write a call as JSON in tags."""
    body = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


class QwenComputerUse(TextFamily):
    """A family that calls `computer_use` with JSON in <tool_call> tags, after a line that begins with "Action:".

    Its requests: the system prompt; the instruction, with the steps that are only described in words, next to the first
    screenshot; then answers and screenshots in turn. Answers are replayed exactly. Its option: "style".
    """

    #: Whether the turn with the instruction begins with the screenshot.
    image_first = True
    #: The label before the description of the action.
    label = "Action: "
    #: Writes a call in the published form.
    write_call = staticmethod(written_call)
    #: Which point counts in a grounding answer with several points and no call.
    which: Which = "only"

    shared_texts = Path(__file__).with_name("words.toml")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.instructions = Instructions(self.data, self.texts)

    # asking

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        return self._asking(self.messages(prompt))

    def messages(self, prompt: PromptRequest) -> list[Message]:
        """Return the messages of a request for an action."""
        earlier, window = self.window(prompt)
        task = self.asked(prompt, earlier)

        def show(images: Sequence[EncodedImage | None], after: PastStep | None) -> Iterable[Message]:
            shown = [ImagePart(image) for image in images]
            if after is not None:
                return [self.turn(shown, after)]
            return [Message("user", (*shown, task) if self.image_first else (task, *shown))]

        return in_turn(self.system(prompt), replace(prompt, steps=window), self.replay, show)

    def system(self, prompt: PromptRequest) -> list[Message]:
        """Return the system prompt, or its replacement."""
        own = self.words(prompt)
        return [Message.text("system", self.instructions.system(prompt) if own is None else own)]

    def window(self, prompt: PromptRequest) -> tuple[Sequence[PastStep], Sequence[PastStep]]:
        """Return the steps that are only described in words, and those that are turns of the conversation."""
        first = len(prompt.steps) - sum(step.shown for step in prompt.steps)
        return prompt.steps[:first], prompt.steps[first:]

    def asked(self, prompt: PromptRequest, earlier: Sequence[PastStep]) -> TextPart:
        """Return the instruction, and the steps that are only described in words."""
        lines = [
            fill(self.texts["previous"], number=str(number), action=" ".join([self.action_of(step), *step.replies]))
            for number, step in enumerate(earlier, prompt.skipped + 1)
        ]
        if prompt.skipped:
            lines.insert(0, fill(self.texts["skipped"], number=str(prompt.skipped)))
        previous = "\n".join(lines) or self.texts["nothing_previous"]
        if (published := self.words(prompt, "asked", previous=previous)) is not None:
            return TextPart(published)
        text = fill(self.texts["asked"], instruction=prompt.instruction, previous=previous)
        return TextPart(f"\n{text}" if self.image_first else text)

    def turn(self, shown: Sequence[ImagePart], after: PastStep) -> Message:
        """Return the turn after a step: the screenshots, and the replies to it."""
        return Message("user", (*shown, *map(TextPart, after.replies)))

    def replay(self, step: PastStep) -> list[Message]:
        """Return a past answer, exactly as written if that is known."""
        return [Message.text("assistant", self.answered(step))]

    def answered(self, step: PastStep) -> str:
        """Return the text of a past answer."""
        answer = self.known(step)
        return self.written(step.thought, step.calls) if answer is None else answer.content

    def known(self, step: PastStep) -> Answer | None:
        """Return a past answer, if its exact text is known and contains its call."""
        answer = step.answer
        return None if answer is None or answer.tool_calls or not answer.content.strip() else answer

    def action_of(self, step: PastStep) -> str:
        """Return what a step did, in the model's words: the line of its answer that says so."""
        text = step.thought if step.answer is None else step.answer.content
        labelled = _LABEL.search(text)
        if labelled is not None:
            text = text[labelled.end() :]
            return text.partition("\n")[0].partition("<tool_call>")[0].strip() or self.instructions.unsaid(step)
        return step.thought.strip().rpartition("\n")[2].strip() or self.instructions.unsaid(step)

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        plain_thought = plain(thought) if self.label else thought
        return "\n".join([*([f"{self.label}{plain_thought}"] if plain_thought else []), *map(self.write_call, calls)])

    @override
    def constraint(self, options: Mapping[str, Any]) -> str | None:
        return json_answers(self.label, self.takes(options))

    def takes(self, options: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the actions that a request offers, each with its required parameters."""
        reference = PromptRequest("", (), options=options).reference
        offered = self.instructions.actions(reference=reference, apps=["any"])
        return {name: self.texts["takes"].get(name, []) for name in offered}

    def _asking(self, messages: list[Message]) -> ChatRequest:
        return ChatRequest(messages, self.facts.sampling, template_arguments=self.data.get("template", {}))

    # reading

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the decision in an answer."""
        read = super().parse(answer, sent)
        return self.finished(read) if isinstance(read, Decision) else read

    def calls_in(self, parts: AnswerParts) -> Read:
        """Return an answer's reasoning, with the text before its calls, and the calls.

        A call ends reasoning that has no end of its own, as in vLLM's parser for Qwen3.5, if it is the only call and
        nothing follows it: a truncated answer does not end with a complete call.
        """
        if parts.cut and _CALLED.search(parts.thought):
            parts = AnswerParts("", parts.thought, swallowed=True)
        before, calls = calls_in(parts, self.facts.function, self.written_calls)
        most = 1 if isinstance(calls, ParseFailure) or not self.facts.several else unrepeated(calls)
        return joined(plain(parts.thought), plain(before)), calls, most

    def written_calls(self, text: str, function: str) -> tuple[str, list[Call] | ParseFailure]:
        """Return the text before the calls, and the calls."""
        return in_json(text, function, several=self.facts.several)

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        return read_typing(call, words)

    def finished(self, decision: Decision) -> Decision:
        """Adjust a decision in ways that a single call cannot express."""
        return decision

    # one point

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        size = self.data["prompt"]["resolution"]
        if size == "sent":
            size = str(Size(*self.facts.image.fit(1920, 1080)) if image is None else image.size)
        parts = (ImagePart(image), TextPart(instruction))
        messages = [Message.text("system", self.instructions.pointing(size)), Message("user", parts)]
        return self._asking(messages)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the point in a grounding answer, as a click; `Absent` if the model says that it is not there."""
        grid = grid_of(self.facts.grounding, sent)
        thought, calls, _ = self.calls_in(take_apart(answer))
        read = self.decided(thought, calls, grid, most=1)
        if isinstance(read, Decision):
            points = points_of(read.actions[0])
            if points:
                return replace(read, actions=(Click(points[-1]),))
            if isinstance(read.actions[0], Finish) and not read.actions[0].success:
                return replace(read, actions=(Absent(),))
        return pointed(answer, grid, self.which)


def plain(thought: str) -> str:
    """Remove the label from what an answer says."""
    return _LABEL.sub("", thought).strip()
