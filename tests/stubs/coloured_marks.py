"""Screens with coloured marks on them, as the model in tests/models knows them, and the whole way to a click."""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from agent.core.actions import Click, map_points
from agent.core.geometry import CapturePoint, DesktopPoint, Region, Size, Viewport
from agent.families.base import Decision
from agent.model.asking import Patience
from agent.model.endpoint import Endpoint
from agent.model.engines import Engine
from agent.run.models.history import answer_tokens, pixel_budget
from agent.run.models.roles import open_model
from agent.screen.capture import Frame
from agent.screen.encode import encode, fit, resize
from foundation.endpoints import normalize_url

if TYPE_CHECKING:
    from PIL.Image import Image

SCENES = Path(__file__).parents[2] / "scripts" / "tiny-vlm"
#: So many questions are open at once: the server answers them together.
_AT_ONCE = 6


@dataclass(frozen=True)
class Marked:
    """A captured screen with marks, and where the one lies that is asked for."""

    frame: Frame
    ask: str
    mark: Region  # in captured pixels

    def holds(self, point: DesktopPoint | None) -> bool:
        """Whether a click there lands inside the mark."""
        if point is None or not self.frame.viewport.region.contains(point):
            return False
        at: CapturePoint = self.frame.viewport.desktop_to_capture(point)
        return self.mark.contains(DesktopPoint(at.x, at.y))


@cache
def _drawn(size: Size, seed: int) -> "tuple[Image, str, Region]":
    sys.path.insert(0, str(SCENES))
    try:
        import scenes
    finally:
        sys.path.remove(str(SCENES))
    rng = Random(seed)
    image, shapes = scenes.scene(rng, size.width, size.height, [], least=3, most=6)
    mark = max(shapes, key=lambda shape: shape.r)  # the models are rough, and what is clicked on is seldom tiny
    left, top, side = round(mark.x - mark.r), round(mark.y - mark.r), round(2 * mark.r)
    ask = rng.choice(scenes.ASKS).format(c=mark.colour, s=mark.shape)
    return image, ask, Region(left, top, side, side)


def marked(captured: Size, region: Region | None = None, seed: int = 0) -> Marked:
    """A screen of a captured size whose monitor lies there on the desktop (by default: alone, scale 1)."""
    image, ask, mark = _drawn(captured, seed)
    viewport = Viewport(region or Region(0, 0, captured.width, captured.height), captured)
    return Marked(Frame(image, viewport, 0.0), ask, mark)


@dataclass(frozen=True)
class Clicked:
    """What came of asking: the click on the desktop (None: no answer that can be used), and what the server counted."""

    point: DesktopPoint | None
    sent: Size
    answer: str
    prompt_tokens: int | None


def clicks(
    url: str, model: str, asked: Iterable[tuple[Marked, int | None]], *, family: str | None = None
) -> Sequence[Clicked]:
    """Where each screen is clicked, with its --max-pixels: from captured image to desktop, as a run does it."""

    async def ask_all() -> Sequence[Clicked]:
        engine = Engine("endpoint", Endpoint(normalize_url(url), "", model))
        async with AsyncExitStack() as opened:
            served = await open_model(engine, family, Patience(), opened)
            limits, facts = served.endpoint.limits, served.family.facts
            gate = asyncio.Semaphore(_AT_ONCE)

            async def ask(screen: Marked, max_pixels: int | None) -> Clicked:
                rule = facts.image.capped(pixel_budget(served.family, limits, max_pixels))
                size = fit(rule, screen.frame.viewport.captured)
                async with gate:
                    sent = encode(resize(screen.frame.image, size), facts.image_format, facts.quality)
                    request = served.family.grounding_request(screen.ask, sent)
                    limit = answer_tokens(served.family, limits.context)
                    done = await served.client.complete(replace(request, max_tokens=limit))
                result = served.family.parse_grounding(done.answer, (size,))
                point = None
                if isinstance(result, Decision):
                    action = map_points(result.actions[0], screen.frame.viewport.to_desktop)
                    point = action.point if isinstance(action, Click) else None
                return Clicked(point, size, done.answer.content, done.answer.usage.prompt)

            return await asyncio.gather(*(ask(screen, pixels) for screen, pixels in asked))

    return asyncio.run(ask_all())
