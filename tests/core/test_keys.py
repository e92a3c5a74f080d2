"""Key names: every spelling in circulation becomes one name, and what is no key is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.keys import KEY_NAMES, MODIFIERS, UnknownKeyError, canonical_key, chord

PROPERTY = settings(deadline=None, max_examples=300)

SPELLINGS = {
    "ctrl": "ctrl Ctrl CTRL control Control Control_L Control_R ctrlleft ControlRight ControlOrMeta ctl",
    "alt": "alt Alt_L AltLeft option Option optionleft",
    "altgr": "altgr AltGr AltGraph Alt_R altright ISO_Level3_Shift",
    "shift": "shift Shift_L shiftright ShiftLeft",
    "super": "super Super_L cmd command Meta win winleft MetaLeft Windows meta_r",
    "enter": "enter Enter return Return RETURN ret",
    "escape": "esc Escape ESC",
    "space": "space Space spacebar",
    "backspace": "backspace BackSpace Backspace back_space bksp",
    "delete": "delete Delete del DEL",
    "page_up": "page_up pageup PageUp Page_Up pgup Prior",
    "page_down": "page_down pagedown PageDown Page_Down pgdn Next",
    "up": "up Up ArrowUp up_arrow arrow_up",
    "left": "left ArrowLeft LEFT leftarrow",
    "caps_lock": "capslock Caps_Lock CapsLock",
    "print_screen": "printscreen PrintScreen Print prtsc prntscrn",
    "menu": "menu Menu apps ContextMenu",
    "volume_up": "volumeup XF86AudioRaiseVolume",
    "media_play": "playpause MediaPlayPause",
    "kp_5": "KP_5 num5 Numpad5 kp5",
    "kp_enter": "KP_Enter NumpadEnter",
    "kp_add": "KP_Add NumpadAdd",
    "f5": "f5 F5",
    "f24": "F24",
    "a": "a A KeyA",
    "1": "1 Digit1",
    "-": "- minus Minus hyphen",
    "+": "+ plus",
    "[": "[ bracketleft BracketLeft",
    ",": ", comma Comma",
    "é": "é",
}


@pytest.mark.parametrize(
    ("name", "spelling"), [(name, word) for name, words in SPELLINGS.items() for word in words.split()]
)
def test_every_spelling_of_a_key_becomes_its_one_name(name: str, spelling: str) -> None:
    assert canonical_key(spelling) == name
    assert chord(spelling) == (name,)


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("ctrl+shift+t", ("ctrl", "shift", "t")),
        ("Ctrl + C", ("ctrl", "c")),
        ("ctrl-s", ("ctrl", "s")),
        ("Ctrl C", ("ctrl", "c")),
        ("ctrl,c", ("ctrl", "c")),
        ("shift ctrl t", ("ctrl", "shift", "t")),
        ("ctrl-alt-delete", ("ctrl", "alt", "delete")),
        ("ctrl++", ("ctrl", "+")),
        ("ctrl+shift++", ("ctrl", "shift", "+")),
        ("ctrl +", ("ctrl", "+")),
        ("ctrl--", ("ctrl", "-")),
        ("ctrl+-", ("ctrl", "-")),
        ("ctrl -", ("ctrl", "-")),
        ("ctrl+,", ("ctrl", ",")),
        ("Ctrl-=", ("ctrl", "=")),
        ("ctrl+ctrl", ("ctrl",)),
        ("keys=['ctrl\"", ("ctrl",)),
        ("keys=['ctrl', 'c']", ("ctrl", "c")),
        ("['ctrl','c']", ("ctrl", "c")),
        ('"enter"', ("enter",)),
        ("Page Down", ("page_down",)),
        ("page-down", ("page_down",)),
        ("caps lock", ("caps_lock",)),
        ("print screen", ("print_screen",)),
        ("left arrow", ("left",)),
        ("Alt Gr", ("altgr",)),
        ("Windows key", ("super",)),
        ("ctrl Page Down", ("ctrl", "page_down")),
        ("ctrl+Page Up", ("ctrl", "page_up")),
        ("alt f4", ("alt", "f4")),
        ("\n", ("enter",)),
        ("\t", ("tab",)),
        (" ", ("space",)),
        (["ctrl", "s"], ("ctrl", "s")),
        (["ctrl+s"], ("ctrl", "s")),
        (["s", "ctrl"], ("ctrl", "s")),
        (("ctrl", "+"), ("ctrl", "+")),
        (["keys=['ctrl\"", "c"], ("ctrl", "c")),
        # A modifier before a key is a chord, and not the name of its side.
        ("alt left", ("alt", "left")),
        ("alt-left", ("alt", "left")),
        ("win right", ("super", "right")),
        ("ctrl left arrow", ("ctrl", "left")),
        ("Control L", ("ctrl", "l")),
        ("super-l", ("super", "l")),
        ("alt r", ("alt", "r")),
    ],
)
def test_a_chord_is_read_as_models_write_it(written: str | list[str], keys: tuple[str, ...]) -> None:
    assert chord(written) == keys


NO_KEYS = ["", "  ", "hyperdrive", "f0", "f25", "kp_10", "key", "Digit12", "digit²", "\x00", "\x1b", "\u200b", "\ud800"]
NO_CHORDS = ["ctrl+", "ctrl-", "++", "+ctrl", "ctrl+hyper", "hello world", "ctrl+shift+page", "shift+click"]


@pytest.mark.parametrize("name", NO_KEYS + NO_CHORDS)
def test_what_is_no_key_is_refused(name: str) -> None:
    with pytest.raises(UnknownKeyError):
        chord(name)


@pytest.mark.parametrize("written", [[], [""], ["a", "b", "c", "d", "e", "f"], "a b c d e f"])
def test_a_chord_needs_one_to_five_keys(written: str | list[str]) -> None:
    with pytest.raises(UnknownKeyError):
        chord(written)


@PROPERTY
@given(st.lists(st.sampled_from(sorted(KEY_NAMES)) | st.sampled_from("abcxyz0129+-,=/é"), min_size=1, max_size=5))
def test_canonical_names_joined_by_plus_are_read_back(keys: list[str]) -> None:
    assert set(chord("+".join(keys))) == set(keys)
    assert chord(keys) == chord("+".join(keys))
    assert chord(chord(keys)) == chord(keys)


@PROPERTY
@given(st.text(max_size=40) | st.lists(st.text(max_size=8), max_size=4))
def test_any_text_gives_keys_or_a_refusal(written: str | list[str]) -> None:
    try:
        keys = chord(written)
    except UnknownKeyError:
        return
    assert keys
    assert all(key in KEY_NAMES or len(key) == 1 for key in keys)
    modifiers = [key for key in keys if key in MODIFIERS]
    assert list(keys[: len(modifiers)]) == modifiers


@PROPERTY
@given(st.text(min_size=2, max_size=12))
def test_a_name_is_either_refused_or_a_known_key(name: str) -> None:
    try:
        key = canonical_key(name)
    except UnknownKeyError:
        return
    assert key in KEY_NAMES or len(key) == 1
    assert canonical_key(key) == key
