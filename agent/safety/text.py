"""Text as rules read it: without invisible characters, and with look-alike letters replaced.

A word that a rule knows must not slip by because of a zero-width space in its middle or a full-width letter.
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
#: Letters of other alphabets that look like Latin ones (Unicode's confusables, the common ones).
_LOOKS_LIKE = str.maketrans(
    "АВСЕНІЈКМОРЅТХаеһіјкорсԁѕυухΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορϲꓲ‐‑‒–—―−",
    "ABCEHIJKMOPSTXaehijkopcdsuyxABEZHIKMNOPTYXavopcI-------",
)
#: Keys that enter a character but are not called by it.
_ENTERS = {
    "space": " ", "enter": "\n", "kp_enter": "\n", "tab": "\t", "kp_add": "+", "kp_subtract": "-", "kp_multiply": "*",
    "kp_divide": "/", "kp_decimal": ".",
} | {f"kp_{digit}": str(digit) for digit in range(10)}  # fmt: skip

#: Parts of a command that a shell takes for a space, and parts that it removes.
_SHELL_GAP = re.compile(r"\$\{IFS[^}]{0,20}\}|\$IFS(?:\$\d)?")
_SHELL_NOTHING = re.compile(r"\\\n|[\"'\\]|\$[@*!]|\$\{[@*]\}|`\s*`|\$\(\s*\)")
_SHELL_LIST = re.compile(r"\{([^{}\s]{1,200},[^{}\s]{0,200})\}")

#: What Shift makes of signs and digits on a US keyboard.
_SHIFTED = str.maketrans("`1234567890-=[]\\;',./", '~!@#$%^&*()_+{}|:"<>?')


@lru_cache(maxsize=8)  # every pattern of a policy reads the same few texts
def readings(text: str) -> tuple[str, ...]:
    """The ways in which a text may be read.

    As it is, without what cannot be seen, by the look of its letters, and as a shell would take it.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    # Twice: compatibility forms of an invisible character are other invisible characters.
    seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", lines)))
    bare = "".join(char for char in unicodedata.normalize("NFKD", seen) if not unicodedata.combining(char))
    plain = bare.translate(_LOOKS_LIKE)
    return text, seen, plain, _as_command(plain)


def _as_command(text: str) -> str:
    """A text without what hides a command from the eye and not from a shell: rm${IFS}-rf, r''m, {rm,-rf,/}."""
    gaps = _SHELL_LIST.sub(lambda found: found[1].replace(",", " "), _SHELL_GAP.sub(" ", text))
    return _SHELL_NOTHING.sub("", gaps)


def unseen(char: str) -> bool:
    """Whether a character shows nothing, although it is not white space."""
    return char == "\u2800" or _UNSEEN.match(char) is not None  # Braille's blank pattern is a symbol to Unicode


def places(text: str, piece: str) -> list[tuple[int, int]]:
    """Find the places in a text of a match in one of its readings; empty if that is unclear."""
    if not piece.strip():
        return []
    whole = [(match.start(), match.end()) for match in re.finditer(re.escape(piece), text)]
    if whole:
        return whole
    for deep in (False, True):
        read: list[str] = []
        at: list[int] = []
        for index, char in enumerate(text):
            seen = "" if unseen(char) else unicodedata.normalize("NFKC", "\n" if char == "\r" else char)
            if deep:
                bare = (one for one in unicodedata.normalize("NFKD", seen) if not unicodedata.combining(one))
                seen = "".join(bare).translate(_LOOKS_LIKE)
            read.append(seen)
            at += [index] * len(seen)
        found_at = [match.span() for match in re.finditer(re.escape(piece), "".join(read))]
        if found_at:
            return [(at[start], at[end - 1] + 1) for start, end in found_at]
    return []


def found(pattern: re.Pattern[str], text: str, before: str = "", judged: int | None = None) -> bool:
    """Whether a pattern is found in any reading of a text, also where it began in `before`, but not in that alone.

    So many characters of `before` as `judged` says were judged as they stand, None for all: where some were taken away
    again, what is left may say something else than it did.
    """
    return next(matches(pattern, text, before, judged), None) is not None


def matches(pattern: re.Pattern[str], text: str, before: str = "", judged: int | None = None) -> Iterator[str]:
    """What `found` finds, as it is read, without what an earlier text held of it."""
    settled = before if judged is None else before[:judged]
    texts = dict.fromkeys(zip(readings(settled), readings(before), readings(text), strict=True))
    for known, head, tail in texts:
        for match in pattern.finditer(head + tail):
            if match.end() > len(known) or not head:
                yield (head + tail)[max(match.start(), len(head)) : match.end()]
        if head:  # the caret may stand elsewhere by now, where nothing of that precedes it
            yield from (match[0] for match in pattern.finditer(tail))


def spelled(action: Action[DesktopPoint]) -> str:
    """The text that an action enters: typed, or as keys pressed one by one."""
    match action:
        case TypeText(text):
            return text
        case PressKeys(keys) | HoldKeys(keys) if not {"ctrl", "alt", "super"} & set(keys):
            entered = "".join(key if len(key) == 1 else _ENTERS.get(key, "") for key in keys)
            return entered.translate(_SHIFTED).upper() if "shift" in keys else entered
    return ""


#: Unicode's categories of control, format (bidi, zero width), lone surrogate and private characters.
_STEERING = frozenset({"Cc", "Cf", "Cs", "Co"})


def one_line(text: str, longest: int) -> str:
    """A stranger's text as a short name: without what cannot be seen or turns the reading round, on one line, cut."""
    seen = "".join(char if unicodedata.category(char) not in _STEERING else " " for char in _UNSEEN.sub("", text))
    line = " ".join(seen.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
