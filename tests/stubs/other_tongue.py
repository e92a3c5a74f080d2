"""A model that really sees and answers as another family does: the tiny one, its words and numbers put differently.

Points in pixels of the image, fractions, other grids: what a client has to find out about a model is then true of one
whose points mean something, though no model that counts so is small enough for tests.
"""

import io
import re
from base64 import b64decode
from collections.abc import Callable
from typing import TypeAlias

from PIL import Image
from stubs.coloured_marks import Marked, clicks
from stubs.endpoint import Behaviour, Exchange, pictures, say, texts
from stubs.real_vllm import RealVllm

from agent.core.geometry import Region, Size, Viewport
from agent.screen.capture import Frame
from foundation.images import ImageRule

#: Writes an answer: x and y as shares of the image, and the size that the model's processor keeps of it.
Spelling: TypeAlias = Callable[[float, float, Size], str]

#: The most that the tiny model sees well.
_MOST = 600_000
#: The words of what is asked for, in any sentence.
_MARK = re.compile(
    r"\b(red|green|blue|yellow|orange|purple|cyan|pink) (square|circle|triangle|diamond|star|cross|ring|bullseye)\b",
    re.IGNORECASE,
)


def computer_use_pixels(x: float, y: float, kept: Size) -> str:
    """Qwen2.5-VL: a call of computer_use, in pixels of the image as it is kept."""
    point = f"[{round(x * kept.width)}, {round(y * kept.height)}]"
    call = f'{{"name": "computer_use", "arguments": {{"action": "left_click", "coordinate": {point}}}}}'
    return f"<tool_call>\n{call}\n</tool_call>"


def in_other_words(seeing: RealVllm, spell: Spelling, rule: ImageRule) -> Behaviour:
    """Answers what a scripted endpoint is asked: finds the mark on the last image, and writes where it is.

    Args:
        seeing: a server with the tiny model.
        spell: writes the answer.
        rule: by which the pretended model's processor resizes what it gets.
    """

    def behave(exchange: Exchange) -> None:
        asked = [found[0] for text in texts(exchange.body) for found in _MARK.finditer(text)]
        shown = pictures(exchange.body)
        if not asked or not shown:
            return say("There is nothing of the kind.")(exchange)
        with Image.open(io.BytesIO(b64decode(shown[-1]["image_url"]["url"].partition(",")[2]))) as opened:
            image = opened.convert("RGB")
        size = Size(*image.size)
        screen = Marked(
            Frame(image, Viewport.of_image(size), 0.0), f"click the {asked[-1].lower()}", Region(0, 0, 1, 1)
        )
        [clicked] = clicks(seeing.url, seeing.name, [(screen, _MOST)])
        if clicked.point is None:
            return say(clicked.answer)(exchange)
        kept = Size(*rule.fit(size.width, size.height))
        return say(spell(clicked.point.x / size.width, clicked.point.y / size.height, kept))(exchange)

    return behave
