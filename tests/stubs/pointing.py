"""A scripted model that finds the marks of a calibration's picture, and counts on whatever grid a test wants."""

import json
import struct
from base64 import b64decode
from collections.abc import Callable

from stubs.endpoint import Behaviour, Exchange, FakeEndpoint, pictures, say, texts

from agent.core.geometry import Grid, Size
from agent.run.calibration.trial import Mark, marks


def in_mai_ui(x: float, y: float) -> str:
    """An answer of MAI-UI to a question for one point."""
    return f'<answer>\n{{"coordinate":[{x:g},{y:g}]}}\n</answer>'


def in_computer_use(x: float, y: float) -> str:
    """The same of a Qwen2.5-VL."""
    call = {"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [round(x), round(y)]}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


#: Models by their names, and how they answer.
WRITES: dict[str, Callable[[float, float], str]] = {
    "MAI-UI-8B": in_mai_ui, "Qwen2.5-VL-7B-Instruct": in_computer_use, "UI-TARS-1.5-7B": lambda x, y: f"({x:g},{y:g})",
}  # fmt: skip


class Pointing(FakeEndpoint):
    """The endpoint.

    Args:
        model: one of `WRITES`.
        counts: the grid that it counts on, by the size of the image as it comes.
        answers: what it says instead, by the mark and the answer that it would give; None for the latter.
        after: what it says when it is asked anything else, in order.
        counted: prompt tokens that its server reports.
    """

    def __init__(
        self,
        model: str,
        counts: Callable[[Size], Grid],
        answers: Callable[[Mark, str], str] | None = None,
        after: tuple[Behaviour, ...] = (),
        counted: int = 5000,
    ) -> None:
        self.sizes: list[Size] = []  # of the images with marks, as they came
        left = list(after)

        def behave(exchange: Exchange) -> None:
            asked = "\n".join(texts(exchange.body, "user"))
            mark = next((mark for mark in marks() if mark.question in asked), None)
            if mark is None:
                left.pop(0)(exchange)
                return
            data = b64decode(pictures(exchange.body)[0]["image_url"]["url"].partition(",")[2])
            size = Size(*struct.unpack(">II", data[16:24]))
            self.sizes.append(size)
            grid = counts(size)
            written = WRITES[model](mark.at[0] * grid.width + grid.left, mark.at[1] * grid.height + grid.top)
            say(written if answers is None else answers(mark, written), prompt=counted)(exchange)

        super().__init__(lambda _: behave, [{"id": model, "object": "model", "owned_by": "other"}])
