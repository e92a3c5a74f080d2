"""Wayland's wire protocol, with made-up compositors: messages, keymaps, what is lacking, windows by name alone."""

import os
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stubs.display import wait_until
from stubs.fake_compositor import FakeCompositor
from stubs.sway import PlainSway

from agent.core.actions import Click, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.core.keys import KEY_NAMES
from agent.desktop.factory import asks_consent, check_display, open_desktop, wants_portal
from agent.desktop.guard.desktop import GuardedDesktop
from agent.desktop.protocol.clipboard import ClipboardWatch, HungError
from agent.desktop.protocol.desktop import Abilities
from agent.desktop.protocol.windows import Windows
from agent.desktop.wayland import selection, wire
from agent.desktop.wayland.selection import WlrootsClipboard, read_all, write_all
from agent.desktop.wayland.wire import Arguments, Connection, pack, socket_of
from agent.desktop.wlroots.desktop import WlrootsDesktop
from agent.desktop.wlroots.input import Keymap, Stroke, is_key, portions
from agent.safety.policy import Policy, Question
from agent.safety.situation import Place, Situation
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

HEADER = struct.Struct("=IHH")
REGISTRY, CALLBACK, DONE, GLOBAL = 2, 3, 0, 0
#: What answers the first roundtrip of a connection.
GREETING = HEADER.pack(CALLBACK, DONE, 12) + b"\0\0\0\0"

Serve = Callable[..., str]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """A compositor that says some bytes to whoever comes, and reads nothing."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = str(tmp_path / "wayland")
    server.bind(path)
    server.listen()
    came: list[socket.socket] = []

    def start(said: bytes) -> str:
        def answer() -> None:
            came.append(server.accept()[0])
            came[-1].sendall(said)

        threading.Thread(target=answer, daemon=True).start()
        return path

    yield start
    for one in (server, *came):
        one.close()


@pytest.mark.parametrize(
    "said",
    [
        HEADER.pack(REGISTRY, GLOBAL, 0),  # of no length: whatever follows would never be reached
        HEADER.pack(REGISTRY, GLOBAL, 12) + b"\0\0\0\0",  # without the text that it must have
        HEADER.pack(REGISTRY, GLOBAL, 16) + struct.pack("=II", 1, 4000),  # with a text that is not whole
    ],
)
def test_what_is_no_message_ends_the_connection_in_words(serve: Serve, said: bytes) -> None:
    with pytest.raises(EnvironmentLacksError, match="an invalid message"):
        Connection(serve(said))


def test_a_file_that_did_not_come_is_told() -> None:
    with pytest.raises(EnvironmentLacksError, match="an invalid message"):
        Arguments(b"", wire.deque()).file()


def test_a_compositor_that_reads_nothing_holds_nobody_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_TIMEOUT", 0.2)
    connection = Connection(serve(GREETING))
    began = time.monotonic()
    with pytest.raises(EnvironmentLacksError):
        for _ in range(10_000):
            connection.request(1, 0, "s", "x" * 4000)
    assert time.monotonic() - began < 5
    connection.close()


def test_a_large_clipboard_is_read_within_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_TIMEOUT", 2.0)  # on a busy machine; it takes 0.2
    data = os.urandom(1 << 20) * 32
    reading, writing = os.pipe()
    threading.Thread(target=write_all, args=(writing, data), daemon=True).start()
    assert read_all(reading) == data
    os.close(reading)


def test_who_hands_nothing_over_is_given_up() -> None:
    reading, writing = os.pipe()
    with pytest.raises(HungError):
        read_all(reading)
    os.close(reading)
    os.close(writing)


def test_who_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_TIMEOUT", 0.1)
    reading, writing = os.pipe()
    began = time.monotonic()
    write_all(writing, bytes(1 << 20))
    assert time.monotonic() - began < 5
    with pytest.raises(OSError):
        os.fstat(writing)
    os.close(reading)


def test_who_goes_away_while_something_is_handed_over_does_no_harm() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    write_all(writing, b"text")
    with pytest.raises(OSError):
        os.fstat(writing)


@given(st.text())
def test_every_portion_of_a_text_finds_room_and_each_character_its_own_key(text: str) -> None:
    keymap = Keymap()
    assert "".join(portions(text)) == text
    for portion in portions(text):
        keymap.add(portion)
        strokes = {character: keymap.of_character(character) for character in portion}
        others = {one: stroke for one, stroke in strokes.items() if one not in "\n\r\t\b\x1b"}
        assert len(set(others.values())) == len(others)
        assert all(stroke.code + 8 <= 255 for stroke in strokes.values())  # X11's programs know no more


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=300))
def test_what_is_in_the_keymap_is_told_in_it_and_nothing_twice(text: str) -> None:
    keymap = Keymap()
    for portion in portions(text):
        changed = keymap.add(portion)
        told = keymap.text()
        assert all(f"U{ord(character):04X}" in told for character in portion)
        assert not keymap.add(portion) or not changed
        codes = [word for word in told.split() if word.startswith("<M")]
        assert len(codes) == 2 * len(set(codes))


def test_every_named_key_but_none_else_can_be_pressed() -> None:
    keymap = Keymap()
    assert [name for name in sorted(KEY_NAMES) if not is_key(name) or keymap.of_key(name) is None] == []
    assert not is_key("no such key") and not is_key("")
    assert keymap.of_key("a") == Stroke(30) and keymap.of_character("A") == Stroke(30, shift=True)
    assert keymap.of_key("é") is None
    keymap.add("é")
    assert keymap.of_key("é") == keymap.of_character("é")
    assert keymap.of_key("+") is None
    keymap.add("+", as_keys=True)
    assert keymap.of_key("+") is not None and not keymap.of_key("+").shift
    assert keymap.of_character("+").shift


def test_a_layout_without_changes_needs_no_spare_keys() -> None:
    keymap = Keymap()
    assert not keymap.add("".join(chr(code) for code in range(0x20, 0x7F)) + "\n\t")


#: What a string of Wayland can hold.
STRINGS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.integers(0, 2**32 - 1), st.integers(-(2**31), 2**31 - 1), STRINGS)
def test_what_is_packed_is_read_back(number: int, signed: int, text: str) -> None:
    data = pack("uis", (number, signed, text))
    assert len(data) % 4 == 0
    arguments = Arguments(data, deque())
    assert (arguments.number(), arguments.signed(), arguments.text()) == (number, signed, text)


@pytest.mark.parametrize(("value", "told"), [(0.0, 0), (1.0, 256), (-15.0, -3840), (0.5, 128)])
def test_fractions_are_told_in_256ths(value: float, told: int) -> None:
    assert pack("f", (value,)) == struct.pack("=i", told)


def test_a_socket_is_named_by_its_path_or_in_the_folder_of_the_session() -> None:
    assert socket_of({"WAYLAND_DISPLAY": "/some/where", "XDG_RUNTIME_DIR": "/run/user/7"}) == "/some/where"
    assert socket_of({"WAYLAND_DISPLAY": "wayland-1", "XDG_RUNTIME_DIR": "/run/user/7"}) == "/run/user/7/wayland-1"
    assert socket_of({"XDG_RUNTIME_DIR": "/run/user/7"}) == ""


SCREENCOPY = "zwlr_screencopy_manager_v1"
POINTERS, KEYBOARDS = "zwlr_virtual_pointer_manager_v1", "zwp_virtual_keyboard_manager_v1"


@pytest.mark.parametrize(
    ("offered", "lacking"),
    [
        ((), f"{SCREENCOPY}, {POINTERS}, {KEYBOARDS}, wl_seat"),
        ((POINTERS, "wl_seat"), f"{SCREENCOPY}, {KEYBOARDS}"),
        ((SCREENCOPY, "wl_seat"), f"{POINTERS}, {KEYBOARDS}"),
        ((POINTERS, KEYBOARDS, "wl_seat"), f"{SCREENCOPY}"),
    ],
)
def test_what_a_compositor_keeps_from_programs_is_said(tmp_path: Path, offered: tuple[str, ...], lacking: str) -> None:
    environ = {"WAYLAND_DISPLAY": "wayland-fake", "XDG_RUNTIME_DIR": str(tmp_path)}
    with FakeCompositor(tmp_path, offered=offered):
        with pytest.raises(EnvironmentLacksError, match=f"it lacks {lacking}"):
            check_display(environ)
        assert wants_portal(environ), "the doctor says what a portal would need"
        assert not asks_consent(environ), "nobody asks the person where there is no portal"


def test_a_clipboard_that_no_program_is_told_of_is_said_to_be_that(tmp_path: Path) -> None:
    with FakeCompositor(tmp_path) as compositor:
        watch = ClipboardWatch(WlrootsClipboard(compositor.path))
        watch.begin()
        assert watch.remark == "The clipboard is not watched: this desktop lets no program read it."
        assert watch.changes() == []


POINT = DesktopPoint(300, 300)
PROBE = "tests/stubs/probe_window.py"


@pytest.fixture(scope="module")
def sway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainSway]:
    with PlainSway() as found:
        for title in ("first", "second"):
            found.start("/usr/bin/python3", PROBE, str(tmp_path_factory.mktemp("probe") / "log"), title)
            wait_until(lambda title=title: f'"{title}"' in str(found.tree()).replace("'", '"'), f"{title} is there", 15)
        found.do("fullscreen disable")  # which lets no other window have the keyboard
        yield found


@pytest.fixture
def desktop(sway: PlainSway, monkeypatch: pytest.MonkeyPatch) -> Iterator[WlrootsDesktop]:
    """As on a compositor that is not sway."""
    for name, value in (sway.variables | {"SWAYSOCK": ""}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DISPLAY", raising=False)
    found = open_desktop(StopSwitch())
    assert isinstance(found, WlrootsDesktop)
    yield found
    found.screen.close()
    found.close()


@pytest.fixture
def windows(desktop: WlrootsDesktop) -> Iterator[Windows]:
    found = desktop.open_windows()
    assert found is not None
    yield found
    found.close()


@pytest.mark.e2e
def test_the_names_of_windows_and_the_one_with_the_keyboard_are_known(windows: Windows) -> None:
    known = {one.title: one.id for one in windows.windows()}
    assert sorted(known) == ["first", "second"]
    active = windows.active()
    assert active is not None and active.title == "second"
    assert windows.activate(known["first"])
    wait_until(lambda: (now := windows.active()) is not None and now.title == "first", "the first one has the keyboard")
    assert windows.stacking()[-1] == known["first"]
    assert windows.activate(known["second"])
    assert not windows.activate("another")


@pytest.mark.e2e
def test_where_windows_are_is_not_claimed_and_none_is_taken_for_hidden(windows: Windows) -> None:
    one = windows.windows()[0]
    assert (windows.at(300, 300), windows.region(one.id), windows.layers()) == (None, None, [])
    with pytest.raises(EnvironmentLacksError, match="none can be hidden"):
        windows.visible(frozenset({one.id}))


@pytest.mark.e2e
def test_the_policy_goes_by_the_window_with_the_keyboard_and_asks_before_clicks(desktop: WlrootsDesktop) -> None:
    assert (desktop.abilities.windows, desktop.abilities.names) == (False, True)
    protected = GuardedDesktop(desktop, dry_run=True, ours=False)
    policy = Policy.load("risky")
    typed = protected.surroundings.of(TypeText("hello"))
    assert typed.focused is not None and typed.focused.title == "second"
    assert policy.question(TypeText("hello"), typed) is None
    clicked = policy.question(Click(POINT), protected.surroundings.of(Click(POINT)))
    assert clicked is not None and "not known on this desktop which window is there" in clicked.reason
    assert clicked.scope == ""  # allowed for good, it would be allowed anywhere
    protected.close()


def question(
    action: TypeText | PressKeys | Click[DesktopPoint], abilities: Abilities, **told: Place
) -> Question | None:
    return Policy.load("risky").question(action, Situation(words="Dark", untold=abilities.untold, **told))


@pytest.mark.slow
def test_what_a_desktop_never_tells_is_asked_about_and_what_it_tells_is_not() -> None:
    full, names, none = Abilities(), Abilities(windows=False, names=True), Abilities(windows=False)
    editor = Place("Mousepad", "notes")
    asks: Callable[..., bool] = lambda *given, **told: question(*given, **told) is not None  # noqa: E731
    assert not asks(Click(POINT), full, under=editor)
    assert asks(Click(POINT), names)
    assert asks(Click(POINT), none)
    assert not asks(TypeText("hello"), full, focused=editor)
    assert not asks(TypeText("hello"), names, focused=editor)
    assert asks(TypeText("hello"), none)
    assert asks(TypeText("ls"), names, focused=Place("foot", "~"))
    assert not asks(PressKeys(("ctrl", "c")), names, focused=editor)
    assert asks(PressKeys(("ctrl", "c")), none)


def test_what_lacks_is_named() -> None:
    names, none = Abilities(windows=False, names=True), Abilities(windows=False)
    assert [one for one in Abilities().lacks() if "window" in one] == []
    assert len([one for one in names.lacks() if "window" in one]) == 1
    assert any("which window has the keyboard" in one for one in none.lacks())
