"""The literal engine's family: what it is sent comes back as the same values."""

from hypothesis import given
from hypothesis import strategies as st

from agent.core.actions import Finish
from agent.core.changes import Change
from agent.core.geometry import Region, Size
from agent.families.base import Call, Decision, PastStep, PromptRequest
from agent.families.literal.family import render
from agent.families.literal.screen_text import ScreenText, read_screen, write_screen
from agent.families.registry import get_family
from agent.screen.outline import Element, Outline, ShownWindow
from foundation.chat_stream import Answer

TEXTS = st.text(max_size=20)
BOXES = st.builds(Region, *[st.integers(-50, 3000)] * 4)
ELEMENTS = st.builds(
    Element,
    id=st.integers(0, 999),
    role=TEXTS,
    name=TEXTS,
    box=BOXES,
    value=st.none() | TEXTS,
    states=st.frozensets(TEXTS, max_size=3),
    window=TEXTS,
    source=st.sampled_from(["tree", "words", "both"]),
    trusted=st.booleans(),
    app=TEXTS,
    parent=st.none() | st.integers(0, 999),
    label=TEXTS,
    limits=st.none() | st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)),
)
WINDOWS = st.builds(ShownWindow, title=TEXTS, app=TEXTS, box=BOXES, active=st.booleans())
OUTLINES = st.builds(
    Outline,
    st.builds(Size, st.integers(1, 9999), st.integers(1, 9999)),
    st.lists(ELEMENTS, max_size=4).map(tuple),
    st.lists(WINDOWS, max_size=2).map(tuple),
    TEXTS,
)
CHANGES = st.builds(Change, st.sampled_from(["setting", "file"]), TEXTS, st.none() | TEXTS, st.none() | TEXTS)


@given(st.none() | OUTLINES, st.lists(CHANGES, max_size=3))
def test_a_screen_as_text_is_read_back_whole(outline, changes):
    screen = ScreenText(outline, tuple(changes), {"LANG": "de_DE.UTF-8"})
    assert read_screen(write_screen(screen)) == screen


@given(TEXTS)
def test_what_a_person_writes_is_no_screen(text):
    assert read_screen(text) is None


def test_past_screens_are_sent_as_text_and_only_the_one_of_now_as_a_picture():
    seen = Outline(Size(10, 10), ())
    step = PastStep("click it", (Call("computer_use", {"action": "wait"}),), images=(None,), shown=True, outline=seen)
    request = get_family("literal").request(PromptRequest("do it", (None,), steps=(step,), outline=seen))
    kinds = [[type(part).__name__ for part in message.parts] for message in request.messages]
    assert kinds == [["TextPart"], ["TextPart"], ["TextPart"], ["TextPart", "ImagePart"]]


def test_the_end_of_a_run_brings_its_evidence():
    arguments = {"action": "terminate", "status": "success", "text": "x", "evidence": ["it is on"], "verified": True}
    result = get_family("literal").parse(Answer(render("so", Call("computer_use", arguments))), (Size(10, 10),))
    assert isinstance(result, Decision)
    assert result.actions == (Finish(True, "x", ("it is on",), True),)
