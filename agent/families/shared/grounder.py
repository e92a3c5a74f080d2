"""Models that only find places: the `--grounder` of a planner."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.core.geometry import Size
from agent.families.base import Call, Decision, Family, ParseFailure, PromptRequest
from agent.families.shared.point_answers import Which, pointed
from agent.families.shared.points import grid_of
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer
from foundation.errors import UsageError

_SHARED: Mapping[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: The image size to assume when there is no image, in `mai-agent prompt`.
_UNSEEN = (1920, 1080)


class Grounder(Family):
    """A family that is defined by its `family.toml` alone, in the table `[question]`.

    - `system` and `text`: the texts, with the placeholders {instruction}, {width} and {height} (of the image as sent).
      Without `system`, there is no system message;
    - `asked_with`: instead of `system`, the name of a text that several grounders share (`grounder.toml`);
    - `before`: a text before the image;
    - `which`: the point that counts, out of several ("only", "first", "last"), or "box" for the corners of a box;
    - `absent`: an answer that means that the target is not there.
    """

    acts = False

    def __init__(self, name: str) -> None:
        super().__init__(name)
        question: Mapping[str, Any] = self.data["question"]
        system = _SHARED[question["asked_with"]] if "asked_with" in question else question.get("system", "")
        self._system: str = system.strip()
        self._text: str = question.get("text", "{instruction}")
        self._before: str = question.get("before", "")
        self._which: Which = question.get("which", "only")
        self._absent: str | None = question.get("absent")

    def request(self, prompt: PromptRequest) -> ChatRequest:  # noqa: ARG002
        """Raise UsageError: a grounder is never asked for an action."""
        raise UsageError(
            f"The models of {self.facts.name} find places and decide nothing.",
            "Use one as --grounder beside a planner, or `mai-agent act --grounding`.",
        )

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        """Return the request for a point: the image, then the text."""
        size = Size(*self.facts.image.fit(*_UNSEEN)) if image is None else image.size
        values = {"width": str(size.width), "height": str(size.height), "instruction": instruction}
        system, before, text = (
            re.sub(r"\{(width|height|instruction)\}", lambda mark: values[mark[1]], template)
            for template in (self._system, self._before, self._text)
        )
        message = Message("user", (*([TextPart(before)] if before else []), ImagePart(image), TextPart(text)))
        return ChatRequest([*([Message.text("system", system)] if system else []), message], self.facts.sampling)

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the point in an answer, as a click."""
        return self.parse_grounding(answer, sent)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the point in an answer, as a click."""

        def is_absent(text: str, points: Sequence[tuple[float, float]]) -> bool:
            return not points and text.strip().strip("`").removeprefix("json").strip() == self._absent

        return pointed(answer, grid_of(self.facts.grounding, sent), self._which, is_absent)

    def written(self, thought: str, calls: Sequence[Call]) -> str:  # noqa: ARG002
        """Write an answer: a point."""
        return json.dumps(calls[0].arguments)
