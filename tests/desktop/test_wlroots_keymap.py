"""The keymap of our own keyboard, and the bytes that a Wayland connection speaks in."""

import struct
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.keys import KEY_NAMES
from agent.desktop.wayland.wire import Arguments, pack, socket_of
from agent.desktop.wlroots.input import Keymap, Stroke, is_key, portions


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
