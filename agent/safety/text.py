"""Normalizes text for rules: removes invisible characters and replaces look-alike letters.

Otherwise a zero-width space or a full-width letter inside a word would hide it from a rule.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from agent.core.actions import Action, HoldKeys, PressKeys, TypeText
from agent.core.geometry import DesktopPoint

#: Characters without a shape of their own: Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties, 16.0), the
#: interlinear annotation marks, and control characters other than tab and line end.
_UNSEEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
#: Letters of other alphabets that look like Latin letters (the common ones among Unicode's confusables).
_LOOKS_LIKE = str.maketrans(
    "АВСЕНІЈКМОРЅТХаеһіјкорсԁѕυухΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορϲꓲ‐‑‒–—―−",
    "ABCEHIJKMOPSTXaehijkopcdsuyxABEZHIKMNOPTYXavopcI-------",
)
#: Keys that enter a character other than their name.
_ENTERS = {
    "space": " ", "enter": "\n", "kp_enter": "\n", "tab": "\t", "kp_add": "+", "kp_subtract": "-", "kp_multiply": "*",
    "kp_divide": "/", "kp_decimal": ".",
} | {f"kp_{digit}": str(digit) for digit in range(10)}  # fmt: skip

#: Parts of a command that a shell expands to a space, and parts that it removes.
_SHELL_GAP = re.compile(r"\$\{IFS[^}]{0,20}\}|\$IFS(?:\$\d)?")
_SHELL_NOTHING = re.compile(r"\\\n|[\"'\\]|\$[@*!]|\$\{[@*]\}|`\s*`|\$\(\s*\)")
_SHELL_LIST = re.compile(r"\{([^{}\s]{1,200},[^{}\s]{0,200})\}")

#: Shifted signs and digits on a US keyboard.
_SHIFTED = str.maketrans("`1234567890-=[]\\;',./", '~!@#$%^&*()_+{}|:"<>?')


@lru_cache(maxsize=64)  # all patterns of a policy search the same few texts
def readings(text: str) -> tuple[str, ...]:
    """Return the ways in which a text can be read.

    These are: as it is, without invisible characters, with look-alike letters replaced, and as a shell would read it.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    # Twice: compatibility forms of an invisible character are other invisible characters.
    seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", lines)))
    bare = "".join(char for char in unicodedata.normalize("NFKD", seen) if not unicodedata.combining(char))
    plain = bare.translate(_LOOKS_LIKE)
    return text, seen, plain, _as_command(plain)


def _as_command(text: str) -> str:
    """Undo shell tricks that hide a command from readers but not from the shell: rm${IFS}-rf, r''m, {rm,-rf,/}."""
    gaps = _SHELL_LIST.sub(lambda found: found[1].replace(",", " "), _SHELL_GAP.sub(" ", text))
    return _SHELL_NOTHING.sub("", gaps)


def unseen(char: str) -> bool:
    """Whether a character is invisible but not white space."""
    return char == "\u2800" or _UNSEEN.match(char) is not None  # Unicode classes the blank Braille pattern as a symbol


def places(text: str, piece: str) -> list[tuple[int, int]]:
    """Return the positions of a match in a text; empty if only another reading of the text has it."""
    return [match.span() for match in re.finditer(re.escape(piece), text)] if piece.strip() else []


def found(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a pattern matches in any reading of a text."""
    return any(map(pattern.search, set(readings(text))))


def matches(pattern: re.Pattern[str], text: str, before: str = "", after: str = "") -> Iterator[str]:
    """Yield the matches in any reading of a text, as the pattern reads them, without the part in `before`.

    A match may begin in `before` and go on in `after`, but not lie in one of them alone.
    """
    texts = dict.fromkeys(zip(readings(before), readings(text), readings(after), strict=True))
    for head, middle, rest in texts:
        tail = middle + rest
        for match in pattern.finditer(head + tail):
            if (match.end() > len(head) or not head) and (match.start() < len(head + middle) or not rest):
                yield (head + tail)[max(match.start(), len(head)) : match.end()]
        if head:  # the caret may have moved to a place without this text before it
            yield from (match[0] for match in pattern.finditer(tail) if match.start() < len(middle) or not rest)


def spelled(action: Action[DesktopPoint]) -> str:
    """Return the text that an action enters, by typing or by single key presses."""
    match action:
        case TypeText(text):
            return text
        case PressKeys(keys) | HoldKeys(keys) if not {"ctrl", "alt", "super"} & set(keys):
            entered = "".join(key if len(key) == 1 else _ENTERS.get(key, "") for key in keys)
            return entered.translate(_SHIFTED).upper() if "shift" in keys else entered
    return ""


#: Unicode categories of control, format (bidi, zero width), lone surrogate and private-use characters.
_STEERING = frozenset({"Cc", "Cf", "Cs", "Co"})


def one_line(text: str, longest: int) -> str:
    """Return untrusted text as a short name: one line, cut, without invisible or direction-changing characters."""
    seen = "".join(char if unicodedata.category(char) not in _STEERING else " " for char in _UNSEEN.sub("", text))
    line = " ".join(seen.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
