"""Canonical key names: maps the names that models use for keys to one closed set.

Input libraries silently ignore unknown names ("cmd", "page_down", "ArrowUp"), which looks to the model like a key
without effect. Here an unknown name is an error that the model sees.
"""

import re
import unicodedata
from collections.abc import Iterable

from foundation.configs import load_config

_TABLE = load_config("keys.toml")

#: Every canonical name. Any single printable character is a key as well.
KEY_NAMES = frozenset([*_TABLE["names"].split(), *(f"f{number}" for number in range(1, 25))])

MODIFIERS = ("ctrl", "alt", "altgr", "shift", "super")


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-]+", "", name).lower()


_ALIASES = {_plain(alias): name for name, aliases in _TABLE["aliases"].items() for alias in aliases.split()}
_LOOKUP: dict[str, str] = _ALIASES | {_plain(name): name for name in sorted(KEY_NAMES)}
_WHITE = {" ": "space", "\n": "enter", "\r": "enter", "\t": "tab"}
#: Keys of the keypad, and DOM's names of letters and digits (KeyA, Digit1).
_NUMBERED = re.compile(r"(?:numpad|kp|num)(?P<pad>[0-9])|key(?P<letter>[^\W\d_])|digit(?P<digit>[0-9])")
_WORD = re.compile(r"[^\s+,\-]+|[+,\-]")
# Between two keys: a sign followed by another key, or whitespace. "ctrl+" alone is an incomplete chord.
_BETWEEN = re.compile(r"\s*([+,\-])\s*(?=\S)|\s+")


class UnknownKeyError(ValueError):
    """A name is not a key. The message is written for the model."""


def canonical_key(name: str) -> str:
    """Return the canonical name of one key. Raises UnknownKeyError: there is no such key."""
    if name in _WHITE:
        return _WHITE[name]
    stripped = name.strip()
    if len(stripped) == 1:
        if unicodedata.category(stripped)[0] in "LNPS":
            return stripped.lower() if stripped.isascii() else stripped
        raise UnknownKeyError(f"{name!r} is not a key")
    plain = _plain(stripped)
    if plain in _LOOKUP:
        return _LOOKUP[plain]
    if match := _NUMBERED.fullmatch(plain):
        return f"kp_{match['pad']}" if match["pad"] else match["letter"] or match["digit"]
    raise UnknownKeyError(f"{name[:40]!r} is not a key: use names such as ctrl, enter, page_down, f5, or one character")


def chord(keys: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys of one chord, modifiers first, without duplicates.

    Accepts the forms that models write: "ctrl+shift+t", "ctrl-s", "Ctrl C", ["ctrl", "s"], ["ctrl+s"], "ctrl++", and
    the stray brackets and quotes of a broken list ("keys=['ctrl\"").

    Raises UnknownKeyError: a name is not a key, or the list is empty.
    """
    names: list[str] = []
    for part in [keys] if isinstance(keys, str) else keys:
        names.extend(_split(part))
    canonical = [canonical_key(name) for name in names]
    if not canonical:
        raise UnknownKeyError("no key was named")
    if len(canonical) > 5:
        raise UnknownKeyError(f"{len(canonical)} keys at once are not a chord: use type for text")
    return in_order(canonical)


def in_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return each key once, modifiers first."""
    unique = dict.fromkeys(keys)
    return (*(key for key in MODIFIERS if key in unique), *(key for key in unique if key not in MODIFIERS))


def _split(text: str) -> list[str]:
    """Return the key names in a written chord. Raises UnknownKeyError: the chord is incomplete."""
    if len(text.strip()) <= 1:
        return [text] if text else []
    cleaned = re.sub(r"^\s*keys?\s*=\s*", "", text).strip()
    if len(cleaned) > 1 and cleaned[0] in "['\"(":
        cleaned = re.sub(r"[\[\]'\"()]", "", cleaned).strip()
    cleaned = re.sub(r"(?<=\w)['\"\])]+$", "", cleaned)  # the end of a list that was split into pieces: "v']"
    words: list[str] = []
    joints: list[bool] = []  # whether a word may continue the word before: "Page Down" may, "page+down" may not
    at, joint = 0, False
    while word := _WORD.match(cleaned, at):
        words.append(word[0])
        joints.append(joint)
        at = word.end()
        if not (between := _BETWEEN.match(cleaned, at)):
            break
        joint = between[1] in (None, "-")
        at = between.end()
    if at < len(cleaned) or not words:
        raise UnknownKeyError(f"{text[:40]!r} is not a chord: write it as ctrl+shift+t")
    names: list[str] = []
    while words:
        length = next(
            (some for some in (3, 2) if len(words) >= some and all(joints[1:some]) and _is_name(words[:some])), 1
        )
        names.append("_".join(words[:length]))
        del words[:length], joints[:length]
    return names


def _is_name(words: list[str]) -> bool:
    """Whether several words name one key. A modifier before a key is a chord: "alt left" is not the left Alt key."""
    if not _is_key("_".join(words)):
        return False
    return not (_is_key(words[0]) and canonical_key(words[0]) in MODIFIERS and _is_key(words[1]))


def _is_key(name: str) -> bool:
    try:
        canonical_key(name)
    except UnknownKeyError:
        return False
    return True
