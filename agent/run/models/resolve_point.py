"""Turns a model's decision into the points that are hit, before the policy sees them.

A grounder finds places that a planner names in words. An imprecise guess is repeated on an enlarged crop. The
element and the words at the point are compared with what the model wanted.
"""

import asyncio
import re
import time
from dataclasses import astuple, dataclass, replace
from functools import cache
from math import ceil
from typing import Literal, TypeAlias

from agent.core.actions import Absent, Click, LongPress, Scroll, map_points, points_of, shorten
from agent.core.geometry import CapturePoint, DesktopPoint, Grid, GridPoint, NamedPoint, Region, Size
from agent.events.run_events import Consulted, Emit
from agent.families.base import Decision, FailureKind, Family, ParseFailure, Plan
from agent.families.shared.answer_parts import as_text
from agent.model.asking import ModelClient
from agent.run.models.history import answer_tokens
from agent.run.observing.observe import Observation
from agent.screen.encode import EncodedImage, encode, fit, resize
from agent.screen.outline import Element, Outline
from foundation.configs import load_config
from foundation.images import ImageRule

Zoom: TypeAlias = Literal["auto", "off", "always"]

#: The crop of a closer look, as a share of each side of the screen. MAI-UI's report crops half of each side and
#: enlarges the crop to the size of the whole (arXiv 2512.22047, "zoom-in": 67.9 to 73.5 on ScreenSpot-Pro for 32B).
_CROP = 0.5
#: Models often miss targets whose shorter side, in sent pixels, is below this: Qwen3-VL's patch size.
_SMALL = 16
#: A screen that is sent with less than this share of its pixels has lost small text.
_REDUCED = 0.8
#: A model announces its next action in the last sentence of its thought.
_SENTENCE = re.compile(r"(?:[^.!?。！？\n]|[.!?](?=\S))+[.!?。！？]*")
_QUOTED = re.compile(r"“([^“”]{1,80})”|\"([^\"]{1,80})\"|(?<!\w)'([^']{1,80})'(?!\w)")
_LONGEST_AIM = 300


@dataclass(frozen=True, slots=True)
class PointModel:
    """A model that finds a point."""

    role: Literal["actor", "grounder", "relief"]
    client: ModelClient
    family: Family
    rule: ImageRule  # how images are resized for it


@dataclass(frozen=True, slots=True)
class TargetFinder:
    """Finds the points of a decision."""

    actor: PointModel  # the acting model, for a closer look
    grounder: PointModel | None = None  # a separate model for finding places; None if the actor finds them itself
    zoom: Zoom = "auto"  # when to take a closer look

    @property
    def _eye(self) -> PointModel:
        return self.grounder or self.actor

    async def settle(
        self, step: int, seen: Observation, result: Decision | Plan, insists: bool, emit: Emit
    ) -> Decision | ParseFailure:
        """Return the decision with its final points, or a failure to send back to the model.

        `insists`: the model was already told that something else is at the point. `emit` receives the extra requests as
        events. Raises ModelError: the grounder cannot be asked.
        """
        decision = await self._ground(step, seen, result, emit) if isinstance(result, Plan) else result
        if isinstance(decision, ParseFailure):
            return decision
        decision = await self._look_closer(step, seen, decision, emit)
        doubt = self._doubt(seen, decision)
        if doubt and not insists:
            return ParseFailure("mismatch", doubt, decision.thought)
        return replace(decision, doubt=doubt)

    async def _ground(self, step: int, seen: Observation, plan: Plan, emit: Emit) -> Decision | ParseFailure:
        """Find the places that a plan names by words."""
        named = [point for action in plan.actions for point in points_of(action)]
        if named and self.grounder is None:
            return ParseFailure("no_action", "it names a place, and there is no grounder to find it", plan.thought)
        places: dict[NamedPoint, GridPoint] = {}
        for name in dict.fromkeys(named):
            found = await self._find(step, self._eye, name.words, _Part(seen), "ground", emit)
            if isinstance(found, ParseFailure):
                message = f"{shorten(name.words, 200)} is not found on the screen"
                kind: FailureKind = "absent" if found.kind == "absent" else "bad_point"
                return ParseFailure(kind, message if kind == "absent" else f"{message}: {found.message}", plan.thought)
            places[name] = found
        actions = tuple(map_points(action, places.__getitem__) for action in plan.actions)
        return Decision(plan.thought, actions, plan.calls, aims=tuple(name.words for name in named))

    async def _look_closer(self, step: int, seen: Observation, decision: Decision, emit: Emit) -> Decision:
        """Ask again for a click's target, in a crop around it. Keep the first guess if that fails."""
        if (
            decision.exact
            or self.zoom == "off"
            or seen.frame is None
            or not self._eye.family.grounds
            or len(decision.actions) != 1
        ):
            return decision
        action, words = decision.actions[0], _wanted(decision)
        if not isinstance(action, Click | LongPress) or action.point is None or not words:
            return decision
        if self.zoom == "auto" and not _may_be_off(seen, action.point):
            return decision
        guess = seen.viewport.to_capture(action.point)
        part = _Part(seen, crop_around(Size(*seen.frame.image.size), guess))
        found = await self._find(step, self._eye, words, part, "zoom", emit)
        if isinstance(found, ParseFailure):
            return decision
        return replace(decision, actions=(replace(action, point=found),))

    async def _find(
        self, step: int, eye: PointModel, words: str, part: "_Part", why: Literal["ground", "zoom"], emit: Emit
    ) -> GridPoint | ParseFailure:
        """Ask a model for a point on a part of the screen. Return it on the grid of the captured screen."""
        began = time.perf_counter()
        image = await asyncio.to_thread(part.image, eye)
        request = eye.family.grounding_request(words, image)
        most = answer_tokens(eye.family, eye.client.endpoint.limits.context)
        answer = (await eye.client.complete(replace(request, max_tokens=most))).answer
        found = _point_in(eye.family.parse_grounding(answer, (image.size,)))
        placed = found if isinstance(found, ParseFailure) else part.on_screen(found)
        target = None if isinstance(placed, ParseFailure) else part.seen.viewport.to_desktop(placed)
        took = (time.perf_counter() - began) * 1000
        absent = isinstance(found, ParseFailure) and found.kind == "absent"
        model = eye.client.endpoint.model or ""
        emit(Consulted(step, eye.role, model, why, words, as_text(answer), target, absent, answer.usage, took))
        return placed

    def _doubt(self, seen: Observation, decision: Decision) -> str:
        """Return what contradicts the points, in words for the model and the person; "" for nothing."""
        outline = seen.outline
        if outline is None:
            return ""
        points = [(action, point) for action in decision.actions for point in points_of(action)]
        for words, (action, point) in zip(_said(decision), points, strict=False):
            if not words or isinstance(action, Scroll):  # a scroll names its goal, not what is under the pointer
                continue
            if other := contradiction(words, seen.viewport.to_desktop(point), outline):
                return other
        return ""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the screen that was seen: `crop` in captured pixels, or the whole screen."""

    seen: Observation
    crop: Region | None = None

    def image(self, eye: PointModel) -> EncodedImage:
        """Return the image of the part for the model. A crop is enlarged to the pixel count of the whole screenshot."""
        screenshot, frame = self.seen.images[-1], self.seen.frame
        if frame is None or (self.crop is None and screenshot.size == fit(eye.rule, screenshot.size)):
            return screenshot
        picture, size = frame.image, Size(*frame.image.size)
        if self.crop is not None:
            left, top, width, height = astuple(self.crop)
            picture, size = picture.crop((left, top, left + width, top + height)), screenshot.size
        facts = eye.family.facts
        return encode(resize(picture, fit(eye.rule, size)), facts.image_format, facts.quality)

    def on_screen(self, point: GridPoint) -> GridPoint:
        """Convert a point of the part to the grid of the captured screen."""
        if self.crop is None:
            return point
        across, down = point.share
        x, y = self.crop.left + across * self.crop.width, self.crop.top + down * self.crop.height
        return GridPoint(x, y, Grid.pixels(self.seen.viewport.captured))


def _point_in(read: Decision | ParseFailure) -> GridPoint | ParseFailure:
    """Return the point of a grounding answer."""
    if isinstance(read, ParseFailure):
        return read
    if isinstance(read.actions[0], Absent):
        return ParseFailure("absent", "it is not on the screen", read.thought)
    points = points_of(read.actions[0])
    return points[0] if points else ParseFailure("bad_point", "the grounder gave no point", read.thought)


def crop_around(size: Size, point: CapturePoint) -> Region:
    """Return the part of a captured image that a closer look at a point shows; it lies inside."""
    width, height = (max(1, round(side * _CROP)) for side in (size.width, size.height))
    left = min(max(0, round(point.x - width / 2)), size.width - width)
    top = min(max(0, round(point.y - height / 2)), size.height - height)
    return Region(left, top, width, height)


def _may_be_off(seen: Observation, point: GridPoint) -> bool:
    """Return whether a guess needs a closer look: a reduced screen, a small target, or no element there."""
    captured, sent = seen.viewport.captured, seen.images[-1].size
    if sent.area < _REDUCED * captured.area:
        return True
    outline = seen.outline
    if outline is None or not outline.elements:
        return False
    place = seen.viewport.to_desktop(point)
    element = outline.at(place)
    if element is None:  # between elements, in a window whose elements are known
        window = next((one.title for one in outline.windows if one.box.contains(place)), None)
        return any(one.window == window and one.source != "words" for one in outline.elements)
    scale = sent.width / seen.viewport.region.width
    return min(element.box.width, element.box.height) * scale < _SMALL


def _said(decision: Decision) -> tuple[str, ...]:
    """Return what the model says is at each point.

    It comes from its format's own field, or else is the only quoted name of its last sentence.
    """
    if decision.aims:
        return decision.aims
    names = _QUOTED.findall(_last_sentence(decision.thought))
    return (next(part for part in names[0] if part),) if len(names) == 1 else ()


def _wanted(decision: Decision) -> str:
    """Return what to ask for in a closer look, in the model's words; "" if it says nothing."""
    aim = next((words for words in decision.aims if words), "")
    return (aim or _last_sentence(decision.thought))[:_LONGEST_AIM].strip()


def _last_sentence(thought: str) -> str:
    sentences = [part.strip() for part in _SENTENCE.findall(thought[-2000:]) if part.strip()]
    return sentences[-1] if sentences else ""


_WORD = re.compile(r"\w+")
#: A label within this distance, in desktop pixels, may name the element at a point.
_NEAR = 48
#: Two words count as forms of one word (save, saving) if they share this many first characters, and this share of the
#: shorter one.
_STEM, _SHARE = 3, 0.6
#: A longer name is a text, and not the name of an element.
_LONGEST_NAME = 60


def contradiction(words: str, point: DesktopPoint, outline: Outline) -> str:
    """Return, as a clause, why the element at a point is not what the words ask for; "" if nothing says so."""
    wanted = _content(words)
    element = outline.at(point)
    if not wanted or element is None or not element.trusted or element.role not in _rules()["named_roles"]:
        return ""
    name = element.name or element.label
    if not _content(name) or len(name) > _LONGEST_NAME:
        return ""
    around = [one for one in outline.elements if one.source == "words" and _is_near(one, point)]
    known = [name, element.label, element.value or "", element.window, *(one.name for one in around)]
    if any(_alike(wanted, _content(text)) for text in known):
        return ""
    elsewhere = [one for one in outline.elements if one is not element and wanted <= _content(one.name or one.label)]
    if not elsewhere and element.source != "both" and element.role not in _rules()["written_roles"]:
        return ""  # a drawn element may have another name: a gear is named "Settings"
    return f"you want {shorten(words, 80)}, and at that point is the {element.words}"


def _content(text: str) -> frozenset[str]:
    """Return the words of a text that identify something."""
    return frozenset(word.casefold() for word in _WORD.findall(text[:400])) - _rules()["says_nothing"]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether the two share a word, or a form of one."""
    pairs = ((a, b, ceil(max(_STEM, _SHARE * min(len(a), len(b))))) for a in one for b in other)
    return any(a[:same] == b[:same] for a, b, same in pairs)


def _is_near(element: Element, point: DesktopPoint) -> bool:
    box = element.box
    beyond_x = max(box.left - point.x, 0, point.x - box.left - box.width)
    beyond_y = max(box.top - point.y, 0, point.y - box.top - box.height)
    return max(beyond_x, beyond_y) <= _NEAR


@cache
def _rules() -> dict[str, frozenset[str]]:
    return {name: frozenset(words) for name, words in load_config("likeness.toml").items()}
