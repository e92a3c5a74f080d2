"""How a model is shown the screen: the screenshot, that with numbered elements, or these as text alone."""

import base64
import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops
from stubs.desk import run
from stubs.endpoint import Checks, pictures, texts

from agent.core.actions import Click
from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.events.run_events import Decided, Event, Observed, RunFinished, Warned
from agent.families.base import ParseFailure
from agent.families.registry import get_family
from agent.model.endpoint import Limits
from agent.record.bundle import Recorder
from agent.record.read import read_bundle
from agent.record.replay import replay as replayed
from agent.safety.policy import Policy
from agent.screen.drawing import draw_marks
from agent.screen.outline import Element, Outline
from foundation.chat_stream import Answer

SAVE = Element(5, "push button", "Save", Region(100, 60, 40, 20))
OUTLINE = Outline(Size(256, 256), (SAVE, Element(9, "text", "Name", Region(10, 200, 100, 20))))
CLICK = {"thought": "Save it.", "action": "click", "element": 5}
DONE = {"thought": "It is saved.", "action": "finish", "status": "success", "text": "Saved."}


async def seen(see: str, *script: Any, watch: Any = lambda *_: None, **more: Any) -> tuple[list[Event], Any]:
    """The events of a run that is shown the screen so; an answer may be given as its call."""
    answers = [json.dumps(one) if isinstance(one, dict) else one for one in script]
    options = {"family": "generic", "outlines": [OUTLINE], **more}
    return await run(answers, watch, settings={"see": see, "options": {"see": see}}, **options)


def opened(part: dict[str, Any]) -> Image.Image:
    data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
    return Image.open(BytesIO(data)).convert("RGB")


async def test_a_model_without_eyes_is_told_the_elements_and_clicks_one_by_its_number() -> None:
    told, one = await seen("outline", CLICK, DONE, checks=Checks(images=0))
    assert one.hand.done == [Click(DesktopPoint(120, 70))]
    assert isinstance(told[-1], RunFinished)
    assert told[-1].outcome == "done"
    assert [pictures(request) for request in one.endpoint.requests] == [[], []]
    assert '5 push button "Save" @ 469,273' in texts(one.endpoint.requests[0], "user")[-1]
    assert [event.image for event in told if isinstance(event, Observed)] == [None, None]
    assert not [event for event in told if isinstance(event, Warned)]


async def test_roles_alternate_and_only_the_screen_now_is_told() -> None:
    _, one = await seen("outline", CLICK, CLICK, DONE)
    messages = one.endpoint.requests[-1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [json.loads(text)["element"] for text in texts(one.endpoint.requests[-1], "assistant")] == [5, 5]
    assert sum("The screen now" in text for text in texts(one.endpoint.requests[-1], "user")) == 1


async def test_an_answer_may_only_name_elements_that_are_there() -> None:
    told, one = await seen("outline", {**CLICK, "element": 77}, CLICK, DONE)
    failure = next(event.failure for event in told if isinstance(event, Decided) and event.failure)
    assert "there is no element 77 on the screen" in failure.message
    assert "there is no element 77" in texts(one.endpoint.requests[1], "user")[-1]
    assert len(one.hand.done) == 1
    schema = one.endpoint.requests[0]["response_format"]["json_schema"]["schema"]
    assert {"enum": [5, 9]} in [shape["properties"].get("element") for shape in schema["anyOf"]]


async def test_a_model_with_eyes_sees_the_numbers_on_the_screenshot() -> None:
    _, one = await seen("marks", CLICK, {"thought": "", "action": "click", "point": [500, 500]}, DONE)
    assert one.hand.done == [Click(DesktopPoint(120, 70)), Click(DesktopPoint(128, 128))]
    (part,) = pictures(one.endpoint.requests[0])
    box = ImageChops.difference(opened(part), Image.new("RGB", (256, 256), "white")).getbbox()
    assert box is not None
    assert box[:2] == (2, 60), "frames and numbers of both elements, and nothing else"


def test_the_number_of_a_line_of_text_stands_before_it() -> None:
    words = Element(42, "label", "Appearance", Region(100, 100, 80, 14), source="words")
    marked = draw_marks(Image.new("RGB", (256, 256), "white"), [words], Viewport.of_image(Size(256, 256)))
    inside = marked.crop((102, 102, 178, 112))
    assert inside.getcolors() == [(76 * 10, (255, 255, 255))], "the text itself is not hidden"
    assert marked.crop((80, 98, 99, 112)).getcolors() != [(19 * 14, (255, 255, 255))]


async def test_a_server_that_takes_no_images_is_told_the_elements_instead_and_it_is_said() -> None:
    told, one = await seen("marks", CLICK, DONE, checks=Checks(images=0))
    assert one.hand.done == [Click(DesktopPoint(120, 70))]
    [warning] = [event.message for event in told if isinstance(event, Warned)]
    assert "takes no images" in warning
    assert "as text" in warning
    assert len(one.endpoint.checks.refusals) == 1, "it is asked with an image once"
    assert "You do not see the screen" in texts(one.endpoint.requests[1], "system")[0]


@pytest.mark.parametrize("known", [True, False], ids=["told", "found out"])
async def test_a_small_context_is_told_fewer_elements(known: bool) -> None:
    many = [Element(number, "push button", f"Button {number}", Region(0, 0, 9, 9)) for number in range(10, 400)]
    limits, outlines = Limits(context=3000 if known else None), [Outline(Size(256, 256), (SAVE, *many))]
    told, one = await seen("outline", CLICK, DONE, checks=Checks(context=3000), limits=limits, outlines=outlines)
    assert isinstance(told[-1], RunFinished)
    assert told[-1].outcome == "done"
    assert bool(one.endpoint.checks.refusals) != known
    assert "more elements are not listed" in texts(one.endpoint.requests[-1], "user")[-1]


async def test_a_family_with_eyes_of_its_own_is_shown_marks_and_told_what_they_are() -> None:
    answer = '<tool_call>{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [468, 273]}}</tool_call>'
    over = '<tool_call>{"name": "mobile_use", "arguments": {"action": "terminate", "status": "fail"}}</tool_call>'
    _, one = await seen("marks", answer, over, family="mai-ui")
    assert '5 push button "Save" @ 468,273' in texts(one.endpoint.requests[0], "user")[-1], "on its own grid of 999"
    assert one.hand.done[0].point.rounded() == (119, 69)


@pytest.mark.parametrize("family", ["generic", "mai-ui"])
async def test_a_screenshot_alone_brings_no_elements(family: str) -> None:
    _, one = await seen("screenshot", "?", family=family)
    assert len(pictures(one.endpoint.requests[0])) == 1
    assert "push button" not in "".join(texts(one.endpoint.requests[0]))


async def test_a_run_by_numbers_is_recorded_so_that_it_can_be_replayed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "save it")
    await seen("outline", CLICK, DONE, watch=lambda event, _: recorder.handle(event))
    recorder.close()
    bundle = read_bundle(recorder.path)
    assert bundle.steps[0].boxes == {"5": (100, 60, 40, 20), "9": (10, 200, 100, 20)}
    assert [step.same for step in replayed(bundle, get_family("generic"), Policy.load("never"))] == [True, True]


def test_an_element_that_is_scrolled_out_of_sight_cannot_be_named() -> None:
    hidden = replace(SAVE, states=frozenset({"offscreen"}))
    result = get_family("generic").parse_seen(
        Answer(json.dumps(CLICK)), [Size(256, 256)], Outline(Size(256, 256), (hidden,))
    )
    assert isinstance(result, ParseFailure)
    assert "element 5 is not in sight" in result.message
