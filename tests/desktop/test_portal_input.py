"""What is sent to a session for what a hand does: keys where the layout has them, and nothing that would be lost."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.input import LibeiWires, PortalInput
from agent.desktop.portal.session import Session, Stream
from agent.desktop.portal.text import PortalTextEntry
from agent.desktop.protocol.hand import ActionFailedError, Press
from agent.desktop.wayland.desktop import Pointer
from agent.desktop.wayland.devices import KEYBOARD, POINTER, Stroke, caps_lock_is_on, characters, us_layout
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError

ALL = POINTER | KEYBOARD
SHIFT, A, EQUAL = 42, 30, 13


class Wires:
    """Notes what is sent; may fail."""

    def __init__(self) -> None:
        self.sent: list[tuple[object, ...]] = []
        self.fails: set[int] = set()

    def move(self, point: DesktopPoint) -> None:
        self.sent.append(("move", point.x, point.y))

    def button(self, code: int, *, down: bool) -> None:
        self.sent.append(("button", code, down))

    def key(self, code: int, *, down: bool) -> None:
        if code in self.fails:
            raise BusError("gone")
        self.sent.append(("key", code, down))

    def scroll(self, dx: int, dy: int) -> None:
        self.sent.append(("scroll", dx, dy))


def opened(
    wires: Wires, seat: int = ALL, layout: Mapping[str, Stroke] | None = None, stop: StopSwitch | None = None
) -> PortalInput:
    read = us_layout() if layout is None else layout
    return PortalInput(wires, Pointer((9, 9)), seat, lambda: read, stop or StopSwitch())  # type: ignore[arg-type]


def keymap(symbols: str) -> bytes:
    """A keymap whose parts the library finds by themselves."""
    parts = 'xkb_keycodes { include "evdev" }; xkb_types { include "complete" }; xkb_compat { include "complete" };'
    return f'xkb_keymap {{ {parts} xkb_symbols {{ include "pc+{symbols}+inet(evdev)" }}; }};'.encode()


def test_the_pointer_goes_to_the_middle_of_a_unit() -> None:
    wires = Wires()
    opened(wires).move(3, 4)
    assert wires.sent == [("move", 3.5, 4.5)]


def test_on_a_seat_without_a_mouse_the_pointer_moves_twice_before_it_presses() -> None:
    wires = Wires()
    source = opened(wires, 0)
    source.press(Press("button", "left"))
    source.move(5, 5)
    places = [one[1:] for one in wires.sent[:2]]
    assert [one[0] for one in wires.sent] == ["move", "move", "button", "move"]
    assert len(set(places)) == 2


def test_on_a_seat_without_a_keyboard_shift_comes_and_goes_first() -> None:
    wires = Wires()
    source = opened(wires, POINTER)
    for _ in range(2):
        source.press(Press("key", "f9"))
        source.release([Press("key", "f9")])
    assert wires.sent[:2] == [("key", SHIFT, True), ("key", SHIFT, False)]
    assert len(wires.sent) == 6


def test_a_sign_above_another_is_pressed_with_shift_and_an_unknown_key_is_refused() -> None:
    wires = Wires()
    source = opened(wires)
    source.press(Press("key", "+"))
    source.release([Press("key", "+")])
    assert wires.sent == [
        ("key", SHIFT, True), ("key", EQUAL, True), ("key", EQUAL, False), ("key", SHIFT, False),
    ]  # fmt: skip
    assert not source.has_key("no such key") and not source.has_key("漢")
    with pytest.raises(ActionFailedError, match="no key"):
        source.press(Press("key", "漢"))


def test_keys_lie_where_the_layout_has_them_and_else_where_the_us_has_them() -> None:
    wires = Wires()
    source = opened(wires, layout={"a": Stroke(16)})
    for name in ("a", "c"):
        source.press(Press("key", name))
    assert wires.sent == [("key", 16, True), ("key", us_layout()["c"].code, True)]


def test_one_key_that_cannot_come_up_keeps_no_other_down() -> None:
    wires = Wires()
    wires.fails = {us_layout()["b"].code}
    with pytest.raises(BusError):
        opened(wires).release([Press("key", "b"), Press("key", "a")])
    assert wires.sent == [("key", A, False)]


def test_a_session_that_was_ended_says_why_it_takes_no_more_input() -> None:
    stop = StopSwitch()
    source = opened(Wires(), stop=stop)
    assert isinstance(source.lost(BusError("x")), EnvironmentLacksError)
    stop.stop("enough")
    assert isinstance(source.lost(BusError("x")), StoppedError)


@pytest.mark.parametrize(
    ("in_pixels", "told"), [(True, (200.0, 100.0)), (False, (100.0, 50.0))]
)  # fmt: skip
def test_points_are_told_in_the_units_of_the_calls(in_pixels: bool, told: tuple[float, float]) -> None:
    view = Viewport(Region(1000, 500, 640, 400), Size(1280, 800))
    sent: list[object] = []
    session = SimpleNamespace(
        in_pixels=in_pixels, viewport=view, handle_type="u", stream=SimpleNamespace(handle=1),
        _notify=lambda *a: sent.extend(a),
    )  # fmt: skip
    Session.move(session, DesktopPoint(1100, 550))  # type: ignore[arg-type]
    assert sent == ["PointerMotionAbsolute", "udd", 1, *told]


def test_a_character_counts_where_all_layouts_make_it_by_the_same_keys() -> None:
    us = characters(keymap("us"))
    assert {one: us[one] for one in us_layout()} == us_layout()
    both = characters(keymap("us+de:2"))
    assert both["a"] == Stroke(A) and not {"y", "z", "ö", "@", "'"} & both.keys()
    german = characters(keymap("de"))
    assert german["ö"] == Stroke(39) and german["z"] == us["y"]
    assert not {"^", "´", "@"} & german.keys()  # two of them are dead, one needs AltGr
    assert "a" not in characters(keymap("us+ru:2")) and "1" in characters(keymap("us+ru:2"))
    with pytest.raises(EnvironmentLacksError, match="keymap"):
        characters(b"no keymap")


def test_a_light_tells_that_letters_come_out_large(tmp_path: Path) -> None:
    assert not caps_lock_is_on(tmp_path)
    for name, value in (("input3::capslock", "0\n"), ("input4::numlock", "1\n"), ("input5::capslock", "1\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "brightness").write_text(value)
        assert caps_lock_is_on(tmp_path) is (name == "input5::capslock")


def test_letters_are_not_typed_where_caps_lock_would_change_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.desktop.portal.input.caps_lock_is_on", lambda: True)
    source = opened(Wires())
    assert source.strokes("a") is None
    assert source.strokes("12 !") is not None


class Lacking:
    """No clipboard."""

    lacks = "the desktop does not share it."


def entry(source: PortalInput, *, composes: bool = False) -> PortalTextEntry:
    clipboard = Lacking()
    return PortalTextEntry(source, clipboard, lambda: None, lambda: composes, lambda: "")  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(("text", "composes"), [("Wörld", False), ("a\tb", False), ("plain", True)])
def test_without_a_clipboard_a_text_that_keys_cannot_make_is_refused_and_none_of_it_typed(
    text: str, composes: bool
) -> None:
    wires = Wires()
    with pytest.raises(ActionFailedError, match="nothing was typed"):
        entry(opened(wires), composes=composes).enter(text, lambda _: None, lambda: None)
    assert wires.sent == []


def test_short_text_goes_by_keys_and_lines_end_by_enter() -> None:
    wires, pressed = Wires(), list[tuple[str, ...]]()
    entry(opened(wires)).enter("aA\n\n", pressed.append, lambda: None)
    assert [one[1:] for one in wires.sent] == [
        (A, True), (A, False), (SHIFT, True), (A, True), (A, False), (SHIFT, False),
    ]  # fmt: skip
    assert pressed == [("enter",), ("enter",)]


class Device:
    """A device of libei; all calls are noted."""

    def __init__(self, ei: "Ei", *capabilities: str) -> None:
        self.ei, self.capabilities = ei, capabilities
        self.regions = (SimpleNamespace(position=(100, 0), mapping_id="m"),)

    def __getattr__(self, name: str) -> object:
        def noted(*arguments: object) -> "Device":
            self.ei.sent.append((name, *arguments))
            return self

        return noted


class Ei:
    """What is used of the library."""

    EventType = SimpleNamespace(SEAT_ADDED=1, DEVICE_RESUMED=2, DEVICE_PAUSED=3, DEVICE_REMOVED=4, DISCONNECT=5)
    DeviceCapability = SimpleNamespace(POINTER_ABSOLUTE="pointer", BUTTON="button", SCROLL="scroll", KEYBOARD="key")

    def __init__(self) -> None:
        self.sent: list[tuple[object, ...]] = []
        self.bound: Sequence[str] = ()
        self.mouse, self.keyboard = Device(self, "pointer", "button", "scroll"), Device(self, "key")
        seat = SimpleNamespace(bind=lambda capabilities: setattr(self, "bound", capabilities))
        self.waiting = [SimpleNamespace(event_type=1, seat=seat), *map(self.resumed, (self.mouse, self.keyboard))]
        self.fd = os.open("/dev/null", os.O_RDONLY)  # always ready
        self.Sender = SimpleNamespace(create_for_fd=lambda *_, **__: self)

    def resumed(self, device: Device) -> SimpleNamespace:
        return SimpleNamespace(event_type=2, device=device)

    def dispatch(self) -> None:
        self.sent.append(("dispatch",))

    @property
    def events(self) -> list[SimpleNamespace]:
        waiting, self.waiting = self.waiting, []
        return waiting


@pytest.fixture
def ei() -> Iterator[Ei]:
    found = Ei()
    yield found
    os.close(found.fd)


def wired(ei: Ei) -> LibeiWires:
    return LibeiWires(ei, ei.fd, Stream(1, Region(500, 0, 640, 400), 1, "m"))


def sent(ei: Ei) -> list[tuple[object, ...]]:
    return [one for one in ei.sent if one[0] not in ("dispatch", "start_emulating")]


def test_each_event_of_libei_is_framed_and_sent_in_logical_units(ei: Ei) -> None:
    wires = wired(ei)
    assert set(ei.bound) == {"pointer", "button", "scroll", "key"}
    wires.move(DesktopPoint(510.5, 20.5))
    wires.button(0x110, down=True)
    wires.scroll(0, -1)
    wires.key(30, down=False)
    assert [one for one in sent(ei) if one != ("frame",)] == [
        ("pointer_motion_absolute", 110.5, 20.5), ("button", 0x110, True),
        ("scroll_discrete", 0, -120), ("keyboard_key", 30, False),
    ]  # fmt: skip
    assert sent(ei).count(("frame",)) == 4 and ei.sent[-1] == ("dispatch",)


def test_a_device_that_was_paused_is_waited_for(ei: Ei) -> None:
    wires = wired(ei)
    other = Device(ei, "key")
    ei.waiting = [SimpleNamespace(event_type=3, device=ei.keyboard), ei.resumed(other)]
    wires.key(30, down=True)
    assert sent(ei)[-2:] == [("keyboard_key", 30, True), ("frame",)]


def test_a_desktop_that_takes_its_devices_away_is_an_error(ei: Ei) -> None:
    wires = wired(ei)
    ei.waiting = [SimpleNamespace(event_type=5)]
    with pytest.raises(BusError, match="took its devices"):
        for _ in range(2):
            wires.key(30, down=True)
