"""What an action really is by what is held down, and that rules about chords hold however these are pressed."""

import pytest

from agent.core.actions import (
    Action,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    HoldKeys,
    KeyDown,
    KeyUp,
    Move,
    PressKeys,
    TypeText,
    Wait,
)
from agent.core.geometry import DesktopPoint
from agent.safety.held_input import HELD_AT_MOST, Held
from agent.safety.policy import Policy
from agent.safety.situation import Place, Situation

HERE, THERE = DesktopPoint(5.0, 6.0), DesktopPoint(70.0, 80.0)
RISKY = Policy.load("risky")


def after(*actions: Action[DesktopPoint]) -> Held:
    held = Held()
    for action in actions:
        held.did(held.effective(action))
    return held


@pytest.mark.parametrize(
    ("action", "effective"),
    [
        (PressKeys(("f4",)), PressKeys(("ctrl", "alt", "f4"))),
        (HoldKeys(("a",), 2.0), HoldKeys(("ctrl", "alt", "a"), 2.0)),
        (KeyDown(("w",)), KeyDown(("ctrl", "alt", "w"))),
        (Click(HERE, held=("shift",)), Click(HERE, held=("ctrl", "alt", "shift"))),
        (Move(HERE), Move(HERE, ("ctrl", "alt"))),
        (Drag(HERE, THERE), Drag(HERE, THERE, ("ctrl", "alt"))),
        (TypeText("w"), TypeText("w")),
        (KeyUp(("alt",)), KeyUp(("alt",))),
        (Wait(1), Wait(1)),
    ],
)
def test_an_action_is_one_with_the_keys_that_are_down(
    action: Action[DesktopPoint], effective: Action[DesktopPoint]
) -> None:
    assert after(KeyDown(("alt",)), KeyDown(("ctrl",))).effective(action) == effective


def test_what_came_up_is_down_no_more() -> None:
    assert not after(KeyDown(("ctrl", "shift")), KeyUp(("ctrl",)), KeyUp(("shift", "a")))
    assert not after(ButtonDown(HERE), ButtonUp(THERE))
    assert after(ButtonDown(HERE), ButtonUp(THERE, "right")).words == "the left button"
    assert after(KeyDown(("ctrl", "a")), ButtonDown(HERE)).words == "ctrl and a and the left button"


def test_modifiers_outlive_an_answer_and_other_keys_do_not() -> None:
    held = after(KeyDown(("ctrl", "a")))
    assert held.lift() == ("a",)
    assert held.keys == ("ctrl",)


@pytest.mark.parametrize(
    ("before", "action", "judged"),
    [
        ([], KeyDown(("ctrl",)), PressKeys(("ctrl",))),
        ([], KeyDown(("backspace",)), HoldKeys(("backspace",), HELD_AT_MOST)),
        ([KeyDown(("ctrl",))], KeyUp(("ctrl",)), None),
        ([], ButtonDown(HERE, "right"), Click(HERE, "right")),
        ([], Move(THERE), Move(THERE)),
        ([ButtonDown(HERE)], Move(THERE), Drag(HERE, THERE)),
        ([ButtonDown(HERE)], ButtonUp(THERE), Drag(HERE, THERE)),
        ([ButtonDown(None)], ButtonUp(THERE), Drag(None, THERE)),
        ([ButtonDown(HERE), Move(THERE)], ButtonUp(None), None),
    ],
)
def test_what_is_judged_is_what_it_comes_to(
    before: list[Action[DesktopPoint]], action: Action[DesktopPoint], judged: Action[DesktopPoint] | None
) -> None:
    held = after(*before)
    assert held.judged(held.effective(action)) == judged


@pytest.mark.parametrize(
    ("down", "then", "asks"),
    [
        (("alt",), PressKeys(("f4",)), "alt+f4"),
        (("alt",), KeyDown(("f4",)), "alt+f4"),
        (("ctrl",), PressKeys(("w",)), "ctrl+w"),
        (("ctrl", "alt"), HoldKeys(("t",), 0.1), "ctrl+alt+t"),
    ],
)
def test_a_chord_that_is_asked_about_is_asked_about_however_it_is_pressed(
    down: tuple[str, ...], then: Action[DesktopPoint], asks: str
) -> None:
    held = after(*(KeyDown((key,)) for key in down))
    place = Situation(Place("Mousepad", "notes"))
    judged = held.judged(held.effective(then))
    assert judged is not None
    question = RISKY.question(judged, place)
    assert question is not None
    assert question.reasons == RISKY.question(PressKeys(tuple(asks.split("+"))), place).reasons  # type: ignore[union-attr]
    alone = Held().judged(then)
    assert alone is not None
    assert RISKY.question(alone, place) is None


@pytest.mark.parametrize("action", [KeyDown(("enter",)), KeyDown(("kp_enter",)), KeyDown(("space",))])
def test_a_key_that_goes_down_presses(action: KeyDown) -> None:
    from agent.core.geometry import Region
    from agent.screen.outline import Element

    button = Element(1, "push button", "Delete", Region(0, 0, 50, 20))
    judged = Held().judged(action)
    assert judged is not None
    question = RISKY.question(judged, Situation(Place("Thunar", "x"), elements=(button,)))
    assert question is not None
    assert "buttons that delete" in question.reason


def test_a_button_that_goes_down_or_is_let_go_on_something_presses_it_or_drops_on_it() -> None:
    down = Held().judged(ButtonDown(HERE))
    assert down is not None
    assert RISKY.question(down, Situation(under=Place("Thunar", "x"), words="Delete")) is not None
    up = after(ButtonDown(HERE)).judged(ButtonUp(THERE))
    assert up is not None
    assert RISKY.question(up, Situation(under=Place("Xfce4-terminal", "x"))) is not None
