"""The keymap of our own keyboard: that of the United States, with further characters on keys that are spare."""

from collections.abc import Iterable

from agent.desktop.wayland.keys import Stroke, us_layout
from foundation.configs import load_config

_TABLE = load_config("evdev.toml")
_KEYS: dict[str, int] = _TABLE["keys"]
_SPARE = range(_TABLE["spare"]["first"], _TABLE["spare"]["last"] + 1)
#: XKB's codes are those of Linux and 8 more (the X11 protocol keeps the first ones).
_OFFSET = 8
#: Characters that are keys of their own.
_CONTROLS = {"\n": "enter", "\r": "enter", "\t": "tab", "\b": "backspace", "\x1b": "escape"}


_LAYOUT = us_layout()


class Keymap:
    """Where each character is now. Keys by name and the layout's own characters stay where they are."""

    def __init__(self) -> None:
        self._spare: dict[str, int] = {}  # characters on spare keys, the one used last at the end

    def add(self, characters: Iterable[str]) -> bool:
        """Find a place for all of these (see `portions` for how many); whether the keymap is another one now."""
        wanted = dict.fromkeys(one for one in characters if not _is_there(one))
        fresh = [one for one in wanted if one not in self._spare]
        for one in wanted:
            if one in self._spare:  # stays longest
                self._spare[one] = self._spare.pop(one)
        for one in fresh:
            taken = set(self._spare.values())
            free = next((code for code in _SPARE if code not in taken), None)
            self._spare[one] = self._spare.pop(next(iter(self._spare))) if free is None else free
        return bool(fresh)

    def of_key(self, name: str) -> Stroke | None:
        """A key by its name in `agent.core.keys`; None where it has to be added."""
        if name in _KEYS:
            return Stroke(_KEYS[name])
        stroke = _LAYOUT.get(name)
        if stroke is not None and not stroke.shift:
            return stroke
        return Stroke(self._spare[name]) if name in self._spare else None

    def of_character(self, character: str) -> Stroke:
        """The key of a character that was added. Raises KeyError: it was not."""
        if character in _CONTROLS:
            return Stroke(_KEYS[_CONTROLS[character]])
        return _LAYOUT.get(character) or Stroke(self._spare[character])

    def text(self) -> str:
        """All of it, in XKB's own words; the compositor's library knows the parts that it includes."""
        codes = "".join(f" <M{code}> = {code + _OFFSET};" for code in self._spare.values())
        symbols = "".join(f" key <M{code}> {{ [ U{ord(one):04X} ] }};" for one, code in self._spare.items())
        return (
            'xkb_keymap { xkb_keycodes { include "evdev" ' + codes + " };"
            ' xkb_types { include "complete" }; xkb_compatibility { include "complete" };'
            ' xkb_symbols { include "pc+us+inet(evdev)+level3(ralt_switch)"' + symbols + " }; };"
        )


def is_key(name: str) -> bool:
    """Whether a name of `agent.core.keys` can be pressed."""
    return name in _KEYS or (len(name) == 1 and name.isprintable())


def portions(text: str) -> list[str]:
    """A text in portions, each of which finds room in one keymap."""
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
    """Whether a character, or a key of one, needs no spare key."""
    return character in _CONTROLS or character in _LAYOUT
