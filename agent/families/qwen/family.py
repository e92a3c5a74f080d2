"""`QwenComputerUse`: the families of Qwen-VL's descendants, each made of its data and of what truly differs."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent.core.actions import Absent, Action, Click, Finish, points_of
from agent.core.geometry import Grid, GridPoint, Size
from agent.families.base import Call, Decision, ParseFailure, PastStep, PromptRequest, decide
from agent.families.qwen.forms import json_answers
from agent.families.qwen.prompt import Instructions, fill
from agent.families.shared.answer_parts import AnswerParts, calls_in, in_json, take_apart
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.point_answers import Which, pointed
from agent.families.shared.points import grid_of
from agent.families.shared.text_entry import read_typing
from agent.families.shared.text_family import Read, ReadCall, TextFamily, in_turn, joined
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

#: "Action:" before what an answer says that it does.
_LABEL = re.compile(r"^[ \t]*(?:\*\*|1\)[ \t]*)?action(?:\*\*)?[ \t]*[:：][ \t]*", re.IGNORECASE | re.MULTILINE)

#: A call at the end of an answer, or before its summary.
_CALLED = re.compile(r"</\s*tool_call\s*>\s*(?:<conclusion>.*)?\Z", re.IGNORECASE | re.DOTALL)


class QwenComputerUse(TextFamily):
    """A family that calls `computer_use` with JSON in <tool_call> tags, after a line that begins with "Action:".

    Its requests: the system text; the instruction with the steps that are told in words only, beside the first
    screenshot that is shown; then answers and screenshots in turn, answers to the letter. Its option: "style".
    """

    #: Whether the turn with the instruction begins with the screenshot.
    image_first = True
    #: What stands before the sentence that says what is done.
    label = "Action: "
    #: Which point counts in an answer to a question for one, where it has several and no call.
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
        """The messages of a request for one action."""
        earlier, window = self.window(prompt)
        asked = self.asked(prompt, earlier)

        def show(images: Sequence[EncodedImage | None], after: PastStep | None) -> Iterable[Message]:
            shown = [ImagePart(image) for image in images]
            if after is not None:
                return [self.turn(shown, after)]
            return [Message("user", (*shown, asked) if self.image_first else (asked, *shown))]

        return in_turn(self.system(prompt), replace(prompt, steps=window), self.replay, show)

    def system(self, prompt: PromptRequest) -> list[Message]:
        """The system text, or what a person put in its place."""
        own = prompt.system_prompt
        return [Message.text("system", self.instructions.system(prompt) if own is None else own)]

    def window(self, prompt: PromptRequest) -> tuple[Sequence[PastStep], Sequence[PastStep]]:
        """The steps that are told in words only, and those that are turns of the conversation."""
        shown = sum(step.shown for step in prompt.steps)
        first = len(prompt.steps) - shown
        return prompt.steps[:first], prompt.steps[first:]

    def asked(self, prompt: PromptRequest, earlier: Sequence[PastStep]) -> TextPart:
        """The instruction, and the steps that are told in words only."""
        lines = [
            self.instructions.previous(number, " ".join([self.action_of(step), *step.replies]))
            for number, step in enumerate(earlier, prompt.skipped + 1)
        ]
        if prompt.skipped:
            lines.insert(0, fill(self.texts["skipped"], number=str(prompt.skipped)))
        previous = "\n".join(lines) or self.texts["nothing_previous"]
        text = fill(self.texts["asked"], instruction=prompt.instruction, previous=previous)
        return TextPart(f"\n{text}" if self.image_first else text)

    def turn(self, shown: Sequence[ImagePart], after: PastStep) -> Message:
        """What is seen after a step, and what came back from it."""
        return Message("user", (*shown, *map(TextPart, after.replies)))

    def replay(self, step: PastStep) -> list[Message]:
        """A past answer: to the letter where it is known."""
        return [Message.text("assistant", self.answered(step))]

    def answered(self, step: PastStep) -> str:
        """The text of a past answer."""
        answer = self.known(step)
        return self.written(step.thought, step.calls) if answer is None else answer.content

    def known(self, step: PastStep) -> Answer | None:
        """A past answer, where it is known to the letter and its call stands in its text."""
        answer = step.answer
        return None if answer is None or answer.tool_calls or not answer.content.strip() else answer

    def action_of(self, step: PastStep) -> str:
        """What a step did, in its own words: the line of its answer that says so."""
        told = step.thought if step.answer is None else step.answer.content
        labelled = _LABEL.search(told)
        if labelled is not None:
            told = told[labelled.end() :]
            return told.partition("\n")[0].partition("<tool_call>")[0].strip() or self.instructions.unsaid(step)
        return step.thought.strip().rpartition("\n")[2].strip() or self.instructions.unsaid(step)

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        said = plain(thought) if self.label else thought
        return "\n".join([*([f"{self.label}{said}"] if said else []), *map(written_call, calls)])

    @override
    def constraint(self, options: Mapping[str, Any]) -> str | None:
        return json_answers(self.label, self.takes(options))

    def takes(self, options: Mapping[str, Any]) -> dict[str, list[str]]:
        """The actions that a request offers, each with the parameters that it cannot do without."""
        reference = PromptRequest("", (), options=options).reference
        offered = self.instructions.actions(reference=reference, apps=["any"])
        return {name: self.texts["takes"].get(name, []) for name in offered}

    def _asking(self, messages: list[Message]) -> ChatRequest:
        return ChatRequest(messages, self.facts.sampling, template_arguments=self.data.get("template", {}))

    # reading

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Read the decision in an answer: one action, or those that its first call stands for."""
        read = super().parse(answer, sent)
        return self.finished(read) if isinstance(read, Decision) else read

    @override
    def reader(self, grid: Grid) -> ReadCall:
        return partial(self.act, words=Vocabulary.of(self.data, grid))

    def calls_in(self, parts: AnswerParts) -> Read:
        """The reasoning of an answer, with what it says before its calls, and the calls.

        A call ends reasoning that has no end of its own, as vLLM's reader for Qwen3.5 has it, where it is the only one
        and nothing follows it: an answer that was cut off does not end with a whole call.
        """
        if parts.cut and _CALLED.search(parts.thought):
            parts = AnswerParts("", parts.thought, swallowed=True)
        before, calls = calls_in(parts, self.facts.function, self.written_calls)
        return joined(plain(parts.thought), plain(before)), calls, None if self.facts.several else 1

    def written_calls(self, text: str, function: str) -> tuple[str, list[Call] | ParseFailure]:
        """What is said before the calls in a text, and the calls."""
        return in_json(text, function)

    def act(self, call: Call, words: Vocabulary) -> Action[GridPoint] | list[Action[GridPoint]]:
        """What one call stands for. Raises ArgumentError."""
        return read_typing(call, words)

    def finished(self, decision: Decision) -> Decision:
        """A decision as the family means it, where more than one of its calls tells that."""
        return decision

    # one point

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        size = self.data["prompt"]["resolution"]
        if size == "sent":
            size = str(Size(*self.facts.image.fit(1920, 1080)) if image is None else image.size)
        asked = (ImagePart(image), TextPart(instruction))
        messages = [Message.text("system", self.instructions.pointing(size)), Message("user", asked)]
        return self._asking(messages)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The point in a grounding answer, as a click; `Absent` where the model says that it is not there."""
        grid = grid_of(self.facts.grounding, sent)
        thought, calls, _ = self.calls_in(take_apart(answer))
        read = decide(thought, calls, self.reader(grid), most=1)
        if isinstance(read, Decision):
            points = points_of(read.actions[0])
            if points:
                return replace(read, actions=(Click(points[-1]),))
            if isinstance(read.actions[0], Finish) and not read.actions[0].success:
                return replace(read, actions=(Absent(),))
        return pointed(answer, grid, self.which)


def written_call(call: Call) -> str:
    """A call in the published form."""
    body = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def plain(thought: str) -> str:
    """What an answer says, without the label before it."""
    return _LABEL.sub("", thought).strip()
