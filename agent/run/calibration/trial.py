"""Draws marks at known places, asks a model for them, and decides how to correct its answers."""

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent.core.actions import points_of
from agent.core.geometry import CapturePoint, Grid, GridPoint, Size, Viewport
from agent.families.base import Family, ParseFailure
from agent.families.shared.point_answers import pointed
from agent.families.shared.points import grid_of
from agent.model.asking import Progress, Retrying, Waiting
from agent.model.refusals import ModelError
from agent.run.calibration.fit import Fit, Sighting, Sizes, best_fit, words_of
from agent.run.models.history import answer_tokens, pixel_budget
from agent.run.models.roles import ServedModel
from agent.screen.encode import encode, resize
from agent.screen.encode import fit as fitted
from foundation.chat_stream import Answer
from foundation.configs import load_config

Tell: TypeAlias = Callable[[str], None]

#: as said: points are in the family's space; resized: they are for smaller images; corrected: they are on another
#: grid.
Verdict: TypeAlias = Literal["as said", "resized", "corrected"]

#: Kinds of parse failure that an answer in another space causes.
_OTHER_SPACE = ("off_screen", "bad_point")
#: Share of a measured size that the server certainly leaves unchanged: measured sizes are off by a few per cent.
_SURELY = 0.95


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of the picture."""

    colour: str
    shape: str
    rgb: tuple[int, ...]
    at: tuple[float, float]  # centre, as shares of the picture's width and height

    @property
    def words(self) -> str:
        """Return the mark's name."""
        return f"{self.colour} {self.shape}"

    @property
    def question(self) -> str:
        """Return the question to the model."""
        return f"click the {self.words}"

    def on(self, size: Size) -> CapturePoint:
        """Return the mark's centre in pixels of a picture."""
        return CapturePoint(self.at[0] * size.width, self.at[1] * size.height)


@dataclass(frozen=True, slots=True)
class Correction:
    """The change that makes a model's clicks land where it means them."""

    verdict: Verdict
    words: str  # a sentence for the person
    grid: Grid | None = None  # the grid of the points, in place of the family's
    max_pixels: int | None = None  # a lower pixel budget, below which the server does not resize images

    def applied(self, model: ServedModel) -> ServedModel:
        """Return the model with the correction applied."""
        endpoint, family = model.endpoint, model.family
        if self.max_pixels is not None:
            known = endpoint.limits.max_pixels
            lower = self.max_pixels if known is None else min(known, self.max_pixels)
            endpoint = replace(endpoint, limits=replace(endpoint.limits, max_pixels=lower))
        if self.grid is not None:
            family = family.counting(self.grid)
        return replace(model, endpoint=endpoint, family=family)


@dataclass(frozen=True, slots=True)
class Asked(Sighting):
    """One question and its result."""

    mark: Mark
    lack: str  # why the answer has no two numbers; "" if it has
    prompt_tokens: int | None  # tokens of the question with the image, as the server counted


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trial."""

    sizes: Sizes
    asked: tuple[Asked, ...]
    grid: Grid  # the grid that the points are on
    correction: Correction | None  # None if the points cannot be used
    refusal: str = ""  # why they cannot be used, as a clause

    def clicks(self) -> list[tuple[Mark, CapturePoint | None]]:
        """Return the click for each mark, in captured pixels."""
        viewport = Viewport.of_image(self.sizes.captured)
        return [
            (one.mark, None if one.written is None else viewport.to_capture(GridPoint(*one.written, self.grid)))
            for one in self.asked
        ]

    def distances(self) -> list[float | None]:
        """Return the distance of each click from its mark, in captured pixels; None for a missing click."""
        ends = [(mark.on(self.sizes.captured), clicked) for mark, clicked in self.clicks()]
        return [None if to is None else math.dist((at.x, at.y), (to.x, to.y)) for at, to in ends]


async def try_out(model: ServedModel, screen: Size, wanted: int | None = None, tell: Tell = lambda _: None) -> Outcome:
    """Find the coordinate space of a model's points on a screen of this size.

    It takes three questions if all is well, otherwise five, and one more if the server makes images smaller. The family
    must be one that can be asked for a point. `wanted` is the pixel budget of a screenshot; None suits the endpoint.
    `tell` receives progress messages.

    Raises ModelError: the model cannot be asked. UsageError: no screenshot fits.
    """
    name, first = model.endpoint.model or "the model", load_config("calibration.toml")["fit"]["first"]
    tell(f"Looking where {name} clicks, at marks in known places on {screen} ...")
    trial = _Trial(model, screen, pixel_budget(model.family, model.endpoint.limits, wanted), tell)
    answers = await trial.ask(marks()[:first])
    fit = trial.fit(answers)
    if fit is None or fit.space.kind != "own" or not all(fit.explained):
        answers += await trial.ask(marks()[first:])
        fit = trial.fit(answers)
    if fit is None:
        return Outcome(trial.sizes, answers, trial.own, None, trial.why(answers))
    if fit.space.kind == "own":
        words = f"{name} clicks where it should: {_hits(fit)}, {trial.off(fit)} ({words_of(trial.own, trial.sizes)})."
        correction = Correction("as said", words + trial.loss(answers))
        return Outcome(trial.sizes, answers, trial.own, correction)
    mended = await _mended(model, screen, trial, fit, tell)
    found = f"{name} counts on {fit.space.words}, in place of {words_of(trial.own, trial.sizes)}"
    if mended is not None:
        words = f"{found}: screenshots are sent at {mended.sizes.sent}, which the server leaves as it is."
        return Outcome(trial.sizes, answers, fit.space.grid, Correction("resized", words, None, mended.budget))
    words = f"{found}: its points are read that way ({_hits(fit)}, {trial.off(fit)})."
    return Outcome(trial.sizes, answers, fit.space.grid, Correction("corrected", words, fit.space.grid))


class _Trial:
    """The picture at one size, and the questions about it."""

    def __init__(self, model: ServedModel, screen: Size, budget: int, tell: Tell) -> None:
        self._model = model
        self._tell = tell
        self.budget = budget
        facts = model.family.facts
        picture = draw(screen)
        sent = fitted(facts.image.capped(budget), screen)
        self._image = encode(resize(picture, sent), facts.image_format, facts.quality)
        self.sizes = Sizes(screen, sent, side_of(screen))
        self.own = grid_of(facts.grounding, (sent,))

    async def ask(self, wanted: Sequence[Mark]) -> tuple[Asked, ...]:
        """Ask for marks: the first alone, because the server must process the image, then all others at once."""
        first = await self._ask(wanted[0])
        return (first, *await asyncio.gather(*map(self._ask, wanted[1:])))

    async def _ask(self, mark: Mark) -> Asked:
        family, client = self._model.family, self._model.client
        request = family.grounding_request(mark.question, self._image)

        async def answer_within(context: int | None) -> Answer:
            most = answer_tokens(family, context)
            return (await client.complete(replace(request, max_tokens=most), self._progress)).answer

        try:
            answer = await answer_within(self._model.endpoint.limits.context)
        except ModelError as error:
            if error.kind != "context_too_long" or not error.limit:
                raise
            answer = await answer_within(error.limit)  # a run learns the limit from an error, too
        written = written_point(family, answer, self.sizes.sent)
        point, lack = (None, written) if isinstance(written, str) else (written, "")
        return Asked(mark.at, point, mark, lack, answer.usage.prompt)

    def _progress(self, progress: Progress) -> None:
        match progress:
            case Waiting():
                self._tell(progress.words)
            case Retrying(reason, _):
                self._tell(reason)

    def fit(self, answers: Sequence[Asked]) -> Fit | None:
        """Return the space that explains the answers."""
        return best_fit(answers, self.own, self.sizes)

    def off(self, fit: Fit) -> str:
        """Return the mean error of the explained answers, in words."""
        width, height = self.sizes.captured.width, self.sizes.captured.height
        near = [by for by, counts in zip(fit.off, fit.explained, strict=True) if by is not None and counts]
        mean = sum(((x * width) ** 2 + (y * height) ** 2) ** 0.5 for x, y in near) / len(near)
        return f"{mean:.0f} pixels off on average"

    def why(self, answers: Sequence[Asked]) -> str:
        """Return why the answers cannot be used, as a clause."""
        lacking = [one for one in answers if one.written is None]
        if len(lacking) > 1:
            return f"for {len(lacking)} of {len(answers)} marks it gave no point ({lacking[0].lack})"
        return "its points are far from the marks in every known space"

    def loss(self, answers: Sequence[Asked]) -> str:
        """Return a warning if the server's token count shows that it shrinks images; "" otherwise."""
        counted = [one.prompt_tokens for one in answers if one.prompt_tokens]
        expected_tokens = self._model.family.facts.image.tokens(self.sizes.sent.width, self.sizes.sent.height)
        if not counted or min(counted) >= expected_tokens:
            return ""
        return (
            f" The server shrinks images: it counts {min(counted)} tokens for a screenshot that has "
            f"{expected_tokens}. Clicks are right all the same, but small text is lost."
        )


async def _mended(model: ServedModel, screen: Size, trial: _Trial, fit: Fit, tell: Tell) -> _Trial | None:
    """Return a trial at a size that the server does not resize, if the family's points are right again.

    That can work if a family answers in pixels of the image, and the server shrank the image that was sent.
    """
    facts, grid, sent = model.family.facts, fit.space.grid, trial.sizes.sent
    smaller = grid.width < sent.width and grid.height < sent.height
    if not isinstance(facts.grounding, str) or fit.space.kind not in ("resized", "scaled") or not smaller:
        return None
    budget = fit.space.max_pixels or int(grid.width * grid.height * _SURELY)
    if budget < facts.image.min_pixels:
        return None
    again = _Trial(model, screen, budget, tell)
    # a wrong scale shows most far from the origin, along x and y
    farthest = max(marks(), key=lambda mark: min(mark.at))
    [one] = await again.ask([farthest])
    found = again.fit([one])
    return again if found is not None and found.space.kind == "own" else None


def written_point(family: Family, answer: Answer, sent: Size) -> tuple[float, float] | str:
    """Return the two numbers of a grounding answer, even if they are off the family's grid; else why there are none."""
    read = family.parse_grounding(answer, (sent,))
    if isinstance(read, ParseFailure) and read.kind in _OTHER_SPACE:
        read = pointed(answer, Grid.relative(1))
    if isinstance(read, ParseFailure):
        return read.message
    points = points_of(read.actions[0])
    return (points[0].x, points[0].y) if points else "it says that it is not there"


def _hits(fit: Fit) -> str:
    return f"{sum(fit.explained)} of {len(fit.explained)} marks"


if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw


@cache
def marks() -> tuple[Mark, ...]:
    """Return all marks, in the order of the questions."""
    return tuple(
        Mark(mark["colour"], mark["shape"], tuple(mark["rgb"]), (float(mark["at"][0]), float(mark["at"][1])))
        for mark in load_config("calibration.toml")["marks"]
    )


def side_of(size: Size) -> float:
    """Return the side of a mark in a picture of this size, in pixels."""
    numbers = load_config("calibration.toml")["picture"]
    return float(max(numbers["smallest"], numbers["side"] * min(size.width, size.height)))


def draw(size: Size) -> "Image":
    """Draw the picture with all marks."""
    from PIL import Image, ImageDraw

    background = tuple(load_config("calibration.toml")["picture"]["background"])
    picture = Image.new("RGB", (size.width, size.height), background)
    pen = ImageDraw.Draw(picture)
    for mark in marks():
        _draw_mark(pen, mark, mark.on(size), side_of(size) / 2)
    return picture


def draw_clicks(size: Size, clicks: Iterable[tuple[Mark, CapturePoint | None]]) -> "Image":
    """Draw the picture, with a line from each mark to its click, and a cross at the click."""
    from PIL import ImageDraw

    picture = draw(size)
    pen = ImageDraw.Draw(picture)
    arm = side_of(size) / 3
    width = max(2, round(arm / 8))
    for mark, clicked in clicks:
        if clicked is None:
            continue
        x, y = min(max(clicked.x, 0.0), size.width - 1.0), min(max(clicked.y, 0.0), size.height - 1.0)
        at = mark.on(size)
        pen.line((at.x, at.y, x, y), fill=mark.rgb, width=width)
        for lean in (1, -1):
            ends = (x - arm, y - lean * arm, x + arm, y + lean * arm)
            pen.line(ends, fill="white", width=3 * width)
            pen.line(ends, fill=mark.rgb, width=width)
    return picture


def _draw_mark(pen: "ImageDraw", mark: Mark, at: CapturePoint, half: float) -> None:
    box = (at.x - half, at.y - half, at.x + half, at.y + half)
    if mark.shape == "circle":
        pen.ellipse(box, fill=mark.rgb)
    elif mark.shape == "diamond":
        corners = ((at.x, at.y - half), (at.x + half, at.y), (at.x, at.y + half), (at.x - half, at.y))
        pen.polygon(corners, fill=mark.rgb)
    else:
        pen.rectangle(box, fill=mark.rgb)
