"""The stop key: which chords are one, and that it works wherever the focus is."""

import pytest
from stubs.display import PlainDisplay, wait_until

from agent.desktop.protocol.desktop import DEFAULT_CHORD, parse_chord
from agent.desktop.x11.watches import StopKey
from agent.safety.stop import StopSwitch
from foundation.errors import UsageError


def test_chords_are_modifiers_and_one_key() -> None:
    assert parse_chord(DEFAULT_CHORD) == (["ctrl", "alt", "shift"], "escape")
    assert parse_chord(" Super + F12 ") == (["super"], "f12")
    assert parse_chord("none") == ([], "")


@pytest.mark.parametrize("chord", ["escape", "ctrl", "ctrl+shift", "hyper+x", "ctrl+", "+"])
def test_what_would_be_pressed_by_accident_or_is_no_chord_is_refused(chord: str) -> None:
    with pytest.raises(UsageError, match="stop key"):
        parse_chord(chord)


@pytest.mark.e2e
@pytest.mark.parametrize("held", ["", "Caps_Lock", "Num_Lock", "super", "a"])
def test_the_chord_stops_whatever_else_is_down_or_locked(display: PlainDisplay, held: str) -> None:
    stop = StopSwitch()
    key = StopKey(stop)
    assert key.remark == ""
    if held.endswith("Lock"):
        display.call("xdotool", "key", held)
    elif held:
        display.call("xdotool", "keydown", held)
    display.call("xdotool", "key", "Escape", "key", "ctrl+alt+Escape")
    assert not stop.stopped
    display.call("xdotool", "key", "ctrl+alt+shift+Escape")
    assert stop.wait(30)
    assert stop.reason == "the stop key was pressed"


@pytest.mark.e2e
def test_a_chord_that_another_program_has_is_a_remark_and_stops_all_the_same(display: PlainDisplay) -> None:
    first, second = StopKey(StopSwitch()), StopKey(stop := StopSwitch())
    assert "Another program uses" in second.remark
    down = [word for key in ("ctrl", "alt", "shift", "Escape") for word in ("keydown", key)]
    display.call("xdotool", *down, "sleep", "0.3")
    assert stop.wait(30)
    first.close()


@pytest.mark.e2e
def test_a_key_that_is_closed_stops_nothing_and_gives_the_chord_back(display: PlainDisplay) -> None:
    stop = StopSwitch()
    StopKey(stop).close()
    wait_until(lambda: StopKey(StopSwitch()).remark == "", "the chord is free")
    display.call("xdotool", "key", "ctrl+alt+shift+Escape")
    assert not stop.wait(0.2)
