"""The keymap of our virtual keyboard: the US layout, with further characters on spare keys."""

from collections.abc import Iterable

from agent.desktop.wayland.keys import EVDEV, Stroke, us_layout

_KEYS: dict[str, int] = EVDEV["keys"]
_SPARE = range(EVDEV["spare"]["first"], EVDEV["spare"]["last"] + 1)
#: XKB keycodes are Linux keycodes plus 8 (the X11 protocol reserves the first 8).
_OFFSET = 8
#: Characters that have keys of their own.
_CONTROLS = {"\n": "enter", "\r": "enter", "\t": "tab", "\b": "backspace", "\x1b": "escape"}
_LAYOUT = us_layout()


class Keymap:
    """The present position of each character. Named keys and the US layout's own characters never move."""

    def __init__(self) -> None:
        self._spare: dict[str, int] = {}  # characters on spare keys, most recently used last

    def add(self, characters: Iterable[str]) -> bool:
        """Make room for all these characters (see `portions` for how many fit). Return whether the keymap changed."""
        wanted = dict.fromkeys(one for one in characters if not _is_there(one))
        fresh = [one for one in wanted if one not in self._spare]
        for one in wanted:
            if one in self._spare:  # becomes the most recently used
                self._spare[one] = self._spare.pop(one)
        for one in fresh:
            taken = set(self._spare.values())
            free = next((code for code in _SPARE if code not in taken), None)
            self._spare[one] = self._spare.pop(next(iter(self._spare))) if free is None else free
        return bool(fresh)

    def of_key(self, name: str) -> Stroke | None:
        """Return the stroke of a key name of `agent.core.keys`, or None if the key must be added first."""
        if name in _KEYS:
            return Stroke(_KEYS[name])
        stroke = _LAYOUT.get(name)
        if stroke is not None and not stroke.shift:
            return stroke
        return Stroke(self._spare[name]) if name in self._spare else None

    def of_character(self, character: str) -> Stroke:
        """Return the stroke of a character that was added. Raises KeyError: it was not added."""
        if character in _CONTROLS:
            return Stroke(_KEYS[_CONTROLS[character]])
        return _LAYOUT.get(character) or Stroke(self._spare[character])

    def text(self) -> str:
        """Return the keymap in XKB's text format. The compositor's libxkbcommon resolves the includes."""
        codes = "".join(f" <M{code}> = {code + _OFFSET};" for code in self._spare.values())
        symbols = "".join(f" key <M{code}> {{ [ U{ord(one):04X} ] }};" for one, code in self._spare.items())
        return (
            'xkb_keymap { xkb_keycodes { include "evdev" ' + codes + " };"
            ' xkb_types { include "complete" }; xkb_compatibility { include "complete" };'
            ' xkb_symbols { include "pc+us+inet(evdev)+level3(ralt_switch)"' + symbols + " }; };"
        )


def is_key(name: str) -> bool:
    """Whether a key name of `agent.core.keys` can be pressed."""
    return name in _KEYS or (len(name) == 1 and name.isprintable())


def portions(text: str) -> list[str]:
    """Split a text into portions that each fit into one keymap."""
    found: list[str] = []
    portion, held = "", set[str]()
    for character in text:
        new = set() if _is_there(character) else {character}
        if len(held | new) > len(_SPARE):
            found.append(portion)
            portion, held = "", set()
        portion += character
        held |= new
    return [*found, portion] if portion else found


def _is_there(character: str) -> bool:
    """Whether a character, or its key, needs no spare key."""
    return character in _CONTROLS or character in _LAYOUT
