"""What UI-TARS 1.0, 1.5 and Doubao's share: one prompt in the user's turn, answers of `Thought:` and `Action:`."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.core.geometry import Size
from agent.families.base import Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.shared.answer_parts import take_apart
from agent.families.shared.layouts import in_turn
from agent.families.shared.named_calls import as_named, thought_and_calls
from agent.families.shared.own_names import OwnNames, named, unrepeated
from agent.families.shared.point_answers import pointed
from agent.families.shared.points import grid_of
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer
from foundation.families import family_folder

_FOLDER = Path(__file__).parent
_TEXTS: dict[str, Any] = tomllib.loads((_FOLDER / "skeleton.toml").read_text(encoding="utf-8"))
#: The calls of every version.
CALLS: dict[str, Any] = tomllib.loads((_FOLDER / "calls.toml").read_text(encoding="utf-8"))


class UiTars(Family):
    """A version of UI-TARS. Its options: "style" (`reference` or `desktop`), and "language" (of its thoughts).

    Args:
        name: of the family.
        texts: its own texts: "actions" and "desktop_actions", the lines of its action space; "grounding_action".
        replayed: what is made of an answer's text before it is shown to the model again; None for nothing.
    """

    def __init__(self, name: str, texts: dict[str, Any], replayed: Callable[[str], str] | None = None) -> None:
        super().__init__(name)
        self._texts = _TEXTS | texts
        self._replayed = replayed

    def request(self, prompt: PromptRequest) -> ChatRequest:
        """What the model is asked for one action, or several."""
        text = self._prompt(prompt) if prompt.system_prompt is None else prompt.system_prompt
        opening = [
            *([Message.text("system", self._texts["system"])] if self._texts["system"] else []),
            Message.text("user", text + self._texts["task"].format(instruction=prompt.instruction)),
        ]
        if prompt.skipped and not prompt.reference:
            opening.append(Message.text("user", f"({prompt.skipped} earlier steps are left out here.)"))
        return ChatRequest(in_turn(opening, prompt, self._replay), self.facts.sampling)

    def _prompt(self, prompt: PromptRequest) -> str:
        actions, notes = [self._texts["actions"]], list(self._texts["notes"])
        if not prompt.reference:
            actions.append(self._texts["desktop_actions"])
            notes += self._texts["desktop_notes"]
            if prompt.apps:
                actions.append(self._texts["desktop_action"].format(apps=", ".join(prompt.apps)))
        listed = "\n".join(f"- {note}" for note in notes).format(language=prompt.options.get("language", "English"))
        return str(self._texts["prompt"]).format(actions="\n".join(filter(None, actions)), notes=listed)

    def _replay(self, step: PastStep) -> list[Message]:
        answer = (step.answer and step.answer.content) or self.written(step.thought, step.calls)
        text = self._replayed(answer) if self._replayed else answer
        # The published client knows no notes: what there is to say of a step stands where a person would say it.
        return [Message.text("assistant", text), *(Message.text("user", reply) for reply in step.replies)]

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer in the published form, further calls after a blank line."""
        return f"Thought: {thought}\nAction: " + "\n\n".join(as_named(named(call)) for call in calls)

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The decision in an answer: one action, or several."""
        names = OwnNames.of(CALLS, grid_of(self.facts.navigation, sent))
        said = take_apart(answer)
        if said.calls is not None:
            return decide(said.thought, said.calls, names.read)
        if said.cut:
            return ParseFailure("truncated", "the answer ends inside the thinking", said.thought)
        spoken, calls, counted = thought_and_calls(said.text)
        thought = "\n".join(part for part in (said.thought, spoken) if part)
        if isinstance(calls, ParseFailure):
            return decide(thought, calls, names.read)
        return decide(thought, calls, names.read, most=min(counted, unrepeated(calls)))

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        """What the model is asked for one point."""
        text = self._texts["grounding"].format(actions=self._texts["grounding_action"], instruction=instruction)
        system = [Message.text("system", self._texts["system"])] if self._texts["system"] else []
        return ChatRequest([*system, Message("user", (TextPart(text), ImagePart(image)))], self.facts.sampling)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """The point in a grounding answer, as a click."""
        return pointed(answer, grid_of(self.facts.grounding, sent))

    def constraint(self, options: Mapping[str, Any]) -> str | None:
        """A regular expression of valid answers with one action, where the version tells how its points are written."""
        if (written := self._texts.get("constraint")) is None:
            return None
        point = rf"'{written['point']}'"
        at, start, end = (rf"{written[name]}={point}" for name in ("at", "start", "end"))
        text = r"[^'\\\n]{1,300}"
        calls = [
            rf"(click|left_double|right_single)\({at}\)",
            rf"drag\({start}, {end}\)",
            rf"scroll\({at}, direction='(up|down|left|right)'\)",
            r"hotkey\(key='[a-z0-9_]{1,12}( [a-z0-9_]{1,12}){0,2}'\)",
            rf"type\(content='{text}(\\n)?'\)",
            r"wait\(\)",
            rf"finished\((content='{text}')?\)",
            *([] if options.get("style") == "reference" else [r"call_user\(\)"]),
        ]
        return rf"Thought: [^\n]{{1,600}}\nAction: ({'|'.join(calls)})"

    def feedback(self, failure: ParseFailure) -> str:
        """What to tell the model after an answer that gave no action."""
        return (
            f"That answer cannot be carried out: {failure.message}. Nothing was done. Answer again with `Thought:`, "
            "then `Action:` and one call of the Action Space."
        )


def texts_of(folder: Path) -> dict[str, Any]:
    """The texts of one version. Raises OSError, ValueError as reading its `prompt.toml` does."""
    return tomllib.loads((folder / "prompt.toml").read_text(encoding="utf-8"))


def create(name: str) -> UiTars:
    """The family of that name, which is data alone."""
    return UiTars(name, texts_of(family_folder(name)))
