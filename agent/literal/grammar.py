"""Understands literal instructions: one sentence becomes a list of goals.

The engine follows what is written and nothing else, so this is a small grammar, not a language model: known verbs,
joined by "and", "then", commas and full stops. What it does not understand, it says.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from agent.actions import Button
from agent.keys import UnknownKeyError, chord


@dataclass(frozen=True, slots=True)
class Open:
    """Start an application, or open what is shown under that name."""

    name: str


@dataclass(frozen=True, slots=True)
class Press:
    """Press a chord."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """Click something that is shown.

    Args:
        target: its text.
        button: which button.
        count: 2 for a double click.
        inside: the application or window it is said to be in.
        whole: target and inside as they were written, should that be one name.
        near: what it is said to belong to.
        or_open: it may also be an application to open.
    """

    target: str
    button: Button = "left"
    count: int = 1
    inside: str = ""
    whole: str = ""
    near: str = ""
    or_open: bool = False


@dataclass(frozen=True, slots=True)
class Toggle:
    """Switch something on or off."""

    target: str
    on: bool
    inside: str = ""
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Enter:
    """Type text, where the focus is or into a named field."""

    text: str
    into: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Scroll; `to_end` until nothing moves any more."""

    direction: str
    notches: int = 5
    to_end: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Close:
    """Close the window in front."""

    target: str = field(default="")


Goal: TypeAlias = Open | Press | Point | Toggle | Enter | Turn | Pause | Close

#: What the engine can do, for the person who asked for something else.
UNDERSTOOD = (
    "open X, click X, double-click X, right-click X, type '...' (into X), press ctrl+s, scroll down, wait, "
    "enable X, disable X, select X, close; joined by and, then and commas"
)

_VERBS = (
    *("open", "launch", "start", "run", "click", "tap", "press", "hit", "push", "choose", "select", "pick"),
    *("double-click", "doubleclick", "right-click", "rightclick", "middle-click", "type", "write", "enter", "input"),
    *("paste", "scroll", "wait", "enable", "disable", "activate", "deactivate", "turn", "switch", "toggle", "check"),
    *("uncheck", "tick", "untick", "close", "quit", "exit", "go", "navigate", "set", "change", "use", "show", "find"),
)
_VERB_WORDS = "|".join(
    [*map(re.escape, sorted(_VERBS, key=len, reverse=True)), r"double[ -]click", r"right[ -]click", r"middle[ -]click"]
)
_JOINTS = re.compile(
    rf"\s*(?:[,;.]\s+(?:and\s+)?(?:then\s+)?|\s(?:and\s+then|and|then|afterwards|after that)[,\s]\s*)"
    rf"(?=(?:please\s+|now\s+|finally\s+|also\s+|i[nm]\s+(?:the\s+)?[\w ]{{1,30}},\s*)?(?:{_VERB_WORDS})\b)",
    re.IGNORECASE,
)
#: Words that turn an instruction around: read over, they would do the opposite of what was asked.
_CONDITIONS = re.compile(
    r"\b(?:do not|don['’]?t|never|without|unless|except|if|but|instead|until|all windows)\b", re.IGNORECASE
)
_COURTESY = re.compile(
    r"^(?:(?:please|now|then|first|finally|next|also|just|and|ok|okay|hey|could you|can you|would you|will you|"
    r"i want you to|i would like you to|i'd like you to|i want to|i need to|help me|let's|to)\b[,\s]*)+",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "`": "`", "«": "»"}
#: Words that only say what kind of thing is meant. Not among them: words that are often part of a label themselves.
_NOUNS = (
    "button|tab|menu item|menu entry|menu|icon|link|check ?box|switch|toggle|option|field|text field|"
    "text box|input box|label|radio button"
)
_KINDS_OF_APPLICATION = "app|application|program|window|folder|directory"
#: Takes the match of a rule and the quoted texts, and gives goals.
Builder: TypeAlias = Callable[[re.Match[str], list[str]], list[Goal]]

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = re.compile(
    rf"\s+(?:(?P<word>once|twice|thrice)|(?P<number>\d{{1,2}}|{'|'.join(_NUMBERS)})\s*(?:times|x))$", re.IGNORECASE
)


class NotUnderstoodError(ValueError):
    """A part of the instruction that the grammar does not know."""


def read_instruction(instruction: str) -> list[Goal]:
    """The goals of an instruction, in order.

    Raises:
        NotUnderstoodError: a part is not understood; its message names the part.
    """
    text, quoted = _hide_quotes(instruction)
    text = re.sub(r"\s*[;\n]\s*", ", ", text.strip())
    if match := _CONDITIONS.search(text):
        raise NotUnderstoodError(f"I cannot follow “{match[0]}”: say only what to do.")
    goals: list[Goal] = []
    for part in _JOINTS.split(" ".join(text.split()).rstrip(" .!?")):
        goals.extend(_read_part(part.strip(" ,;"), quoted))
    if not goals:
        raise NotUnderstoodError("The instruction is empty.")
    return goals


def _hide_quotes(text: str) -> tuple[str, list[str]]:
    """Quoted texts replaced by marks, so that words in them are not read as instructions."""
    quoted: list[str] = []
    out: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        closing = _QUOTES.get(char)
        apostrophe = char in "'’" and index > 0 and text[index - 1].isalnum()
        end = text.find(closing, index + 1) if closing and not apostrophe else -1
        while end > 0 and char == "'" and end + 1 < len(text) and text[end + 1].isalnum():
            end = text.find("'", end + 1)  # an apostrophe inside the quotation
        if end > index:
            out.append(f"\x00{len(quoted)}\x00")
            quoted.append(text[index + 1 : end])
            index = end + 1
        else:
            out.append(char)
            index += 1
    return "".join(out), quoted


def _show_quotes(text: str, quoted: list[str]) -> str:
    return re.sub("\x00(\\d+)\x00", lambda match: quoted[int(match[1])], text).strip()


def _read_part(part: str, quoted: list[str]) -> list[Goal]:
    part = _COURTESY.sub("", part).strip()
    if not part:
        return []
    for pattern, build in _RULES:
        if match := pattern.fullmatch(part):
            return build(match, quoted)
    raise NotUnderstoodError(f"I do not understand “{_show_quotes(part, quoted)}”.")


def _thing(text: str, quoted: list[str]) -> str:
    """The name of a thing, without articles and the words that say what kind of thing it is."""
    if match := re.fullmatch(rf"\s*(?:on\s+|the\s+|a\s+)*\x00(\d+)\x00(?:\s+(?:{_NOUNS}))?\s*", text, re.I):
        return quoted[int(match[1])]
    name = _show_quotes(text, quoted)
    name = re.sub(r"^(?:(?:on|at|onto|the|a|an|my|this|that)\s+)+", "", name, flags=re.I)
    name = re.sub(rf"^(?:{_NOUNS})\s+(?:called|named|labelled|labeled)\s+", "", name, flags=re.I)
    name = re.sub(r"^(search) (?:box|field|bar|entry)$", r"\1", name, flags=re.I)
    shorter = re.sub(rf"\s+(?:{_NOUNS})$", "", name, flags=re.I)
    return (shorter or name).strip(" ,.")


def _with_place(text: str, quoted: list[str]) -> tuple[str, str, str]:
    """ "X in Y" as (X, Y, the whole): what stands after "in" may be a place or belong to the name."""
    match = re.fullmatch(r"(?P<thing>.+?)\s+(?:in|under|from|inside|within)\s+(?:the\s+)?(?P<place>.+)", text, re.I)
    if match is None:
        return _thing(text, quoted), "", ""
    return _thing(match["thing"], quoted), _thing(match["place"], quoted), _thing(text, quoted)


def _open(match: re.Match[str], quoted: list[str]) -> list[Goal]:
    name = match["name"]
    if re.search(r"\b(?:menu|tab)$", name, re.I):
        return [Point(_thing(name, quoted))]
    return [Open(re.sub(rf"\s+(?:{_KINDS_OF_APPLICATION})$", "", _thing(name, quoted), flags=re.I))]


def _click(match: re.Match[str], quoted: list[str]) -> list[Goal]:
    kind = re.sub(r"[ -]", "", match["kind"].lower())
    button: Button = "right" if kind.startswith("right") else "middle" if kind.startswith("middle") else "left"
    count = 2 if kind.startswith("double") else 1
    what, times = _times(match["what"])
    if not what.strip(" \x00"):
        raise NotUnderstoodError("I do not understand a click without a target.")
    return [
        Point(name, button, count, inside, whole)
        for item in _list(what)
        for name, inside, whole in [_with_place(item, quoted)]
        for _ in range(times)
    ]


def _list(text: str) -> list[str]:
    """ "7, + and 5" as its items; a text without commas is one item."""
    if "," not in text:
        items = re.split(r"\s+and\s+|\s+then\s+", text)
        return items if len(items) > 1 and all(len(item) <= 2 for item in items) else [text]
    return [item for item in re.split(r"\s*,\s*(?:and\s+|then\s+)?|\s+and\s+|\s+then\s+", text) if item]


def _press(match: re.Match[str], quoted: list[str]) -> list[Goal]:
    what, times = _times(match["what"])
    goals: list[Goal] = []
    for item in re.split(r"\s*,\s*(?:and\s+|then\s+)?|\s+(?:and|then)\s+(?:then\s+)?", what):
        if not item.strip():
            continue
        name = _show_quotes(item, quoted)
        if len(digits := name.split()) > 1 and all(len(digit) == 1 for digit in digits):  # "1 2 3": one after the other
            goals.extend([Press(chord(digit)) for digit in digits] * times)
            continue
        bare = re.sub(r"^the\s+|\s+keys?$", "", name, flags=re.I).strip()
        is_button = re.search(r"\bbutton$", name, re.I) is not None
        try:
            if is_button:
                raise UnknownKeyError
            goals.extend([Press(chord(bare))] * times)
        except UnknownKeyError:
            if re.search(r"[+]", bare) and not is_button and len(bare) > 3:
                raise NotUnderstoodError(f"I do not know the keys “{bare}”.") from None
            goals.extend([Point(_thing(item, quoted))] * times)
    return goals


def _times(text: str) -> tuple[str, int]:
    match = _COUNT.search(text)
    if match is None:
        return text, 1
    number = (match["number"] or "1").lower()
    counted = _NUMBERS.index(number) + 1 if number in _NUMBERS else int(number)
    times = {"once": 1, "twice": 2, "thrice": 3}.get((match["word"] or "").lower(), counted)
    return text[: match.start()], max(1, min(times, 20))


def _enter(match: re.Match[str], quoted: list[str]) -> list[Goal]:
    text = match["text"].strip()
    into = match.groupdict().get("into")
    typed = _show_quotes(text, quoted)
    if not text.startswith("\x00"):
        typed = re.sub(r"^the (?:text|words?)\s+", "", typed, flags=re.I)
    else:
        typed = typed.replace("\\n", "\n").replace("\\t", "\t")
    if "\x00" in text and not re.fullmatch("\x00\\d+\x00", text):
        raise NotUnderstoodError(f"I do not understand “{typed}”: what to type is in quotes, and more follows.")
    if not typed:
        raise NotUnderstoodError("I do not understand what to type.")
    return [Enter(typed, None if into is None else _thing(into, quoted))]


def _toggle(*, on: bool | None = None) -> Builder:
    def build(match: re.Match[str], quoted: list[str]) -> list[Goal]:
        wanted = on if on is not None else match["state"].lower() == "on"
        name, inside, whole = _with_place(match["what"], quoted)
        return [Toggle(name, wanted, inside, whole)]

    return build


def _flip(match: re.Match[str], quoted: list[str]) -> list[Goal]:
    return [Point(_thing(match["what"], quoted))]


def _select_all(match: re.Match[str], quoted: list[str]) -> list[Goal]:  # noqa: ARG001
    return [Press(("ctrl", "a"))]


def _switch_to(match: re.Match[str], quoted: list[str]) -> list[Goal]:
    what = match["what"]
    if re.search(r"\b(?:mode|theme|style)$", what, re.I):
        return [Toggle(_thing(what, quoted), on=True)]
    return [Point(_thing(what, quoted), or_open=True)]


def _set_to(match: re.Match[str], quoted: list[str]) -> list[Goal]:
    value, inside, whole = _with_place(match["value"], quoted)
    if re.fullmatch(r"[\d.,]+\s*\S{0,3}", value):
        raise NotUnderstoodError(f"I cannot set a number (“{value}”); I can click, type and press keys.")
    return [Point(value, inside=inside, whole=whole, near=_thing(match["what"], quoted))]


def _scroll(match: re.Match[str], quoted: list[str]) -> list[Goal]:  # noqa: ARG001
    direction = (match["direction"] or "down").lower()
    if match["end"]:
        end = {"bottom": "down", "end": "down", "top": "up", "beginning": "up", "start": "up"}[match["end"].lower()]
        return [Turn(end, 10, to_end=True)]
    amount = int(match["amount"]) if match["amount"] else 0
    per_time = 5 if match["unit"] and match["unit"].lower().startswith("time") else 1
    notches = amount * per_time if amount else {"a bit": 2, "a little": 2}.get((match["some"] or "").lower(), 5)
    return [Turn(direction, max(1, min(notches, 50)))]


def _wait(match: re.Match[str], quoted: list[str]) -> list[Goal]:  # noqa: ARG001
    amount = float(match["amount"]) if match["amount"] else 1.0
    if (match["unit"] or "").lower().startswith("min"):
        amount *= 60
    return [Pause(min(max(amount, 0.1), 60.0))]


def _close(match: re.Match[str], quoted: list[str]) -> list[Goal]:
    what = match["what"] or ""
    thing = _thing(what, quoted)
    thing = re.sub(rf"\s*\b(?:{_KINDS_OF_APPLICATION}|dialog)$", "", thing, flags=re.I)
    return [Close("" if thing.lower() in ("it", "this", "that") else thing)]


#: "the box next to" before a label.
_BOX = r"(?:(?:the\s+)?(?:check\s?)?box\s+(?:next\s+to\s+|beside\s+|for\s+)?)?"
_END = r"(?P<end>bottom|end|top|beginning|start)"
_RULES: list[tuple[re.Pattern[str], Builder]] = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), build)
    for pattern, build in (
        (r"(?:switch|turn|toggle)\s+(?P<state>on|off)\s+(?P<what>.+)", _toggle()),
        (r"(?:switch|turn|toggle)\s+(?P<what>.+?)\s+(?P<state>on|off)", _toggle()),
        (rf"(?:enable|activate|check|tick)\s+{_BOX}(?P<what>.+)", _toggle(on=True)),
        (rf"(?:disable|deactivate|uncheck|untick)\s+{_BOX}(?P<what>.+)", _toggle(on=False)),
        (r"toggle\s+(?P<what>.+)", _flip),
        (r"select\s+(?:all|everything)(?:\s+(?:the\s+)?text)?", _select_all),
        (r"(?:switch|change|set it)\s+to\s+(?P<what>.+)", _switch_to),
        (r"use\s+(?P<what>.+)", _switch_to),
        (r"(?:set|change)\s+(?P<what>.+?)\s+to\s+(?P<value>.+)", _set_to),
        (r"(?:open|launch|start|run)(?:\s+up)?\s+(?P<name>.+)", _open),
        (r"(?:(?:go|navigate)\s+(?:to|into)|in|inside)\s+(?P<what>.+)", _switch_to),
        (r"(?:type|write|input|enter|paste)(?:\s+in)?\s+(?P<text>.+?)\s+into\s+(?P<into>.+)", _enter),
        (r"(?:type|write|input|enter|paste)\s+(?P<text>.+?)\s+(?:in|to|on)\s+(?P<into>the\s+[^\x00]+?\s+"
         r"(?:field|box|bar|entry|window|editor|input))", _enter),
        (r"(?:type|write|input|enter|paste)\s+(?P<text>\x00\d+\x00)\s+(?:in|to|on)\s+(?P<into>.+)", _enter),
        (r"(?:type|write|input|paste)(?:\s+in)?\s+(?P<text>.+)", _enter),
        (r"enter\s+(?P<text>.+)", _enter),
        (r"(?P<kind>double[ -]?click|right[ -]?click|middle[ -]?click|click|tap|choose|select|pick)\s+(?P<what>.+)",
         _click),
        (r"(?:press|hit|push)\s+(?P<what>.+)", _press),
        (r"scroll(?:\s+(?:all the way\s+)?(?P<direction>up|down|left|right))?"
         r"(?:\s+(?P<some>a bit|a little))?"
         r"(?:\s+(?:by\s+)?(?P<amount>\d{1,3})\s*(?P<unit>times?|notches|clicks|lines)?)?"
         r"(?:\s+to\s+the\s+" + _END + r")?", _scroll),
        (r"wait(?:\s+(?:for\s+)?(?:a\s+(?:moment|second|bit)|(?P<amount>\d+(?:\.\d+)?)\s*"
         r"(?P<unit>s|sec|secs|second|seconds|min|minute|minutes)?))?", _wait),
        (r"(?:close|quit|exit)(?:\s+(?P<what>.+))?", _close),
    )
]  # fmt: skip


def describe_goal(goal: Goal) -> str:
    """The goal in words."""
    match goal:
        case Open(name):
            return f"open “{name}”"
        case Press(keys):
            return f"press {'+'.join(keys)}"
        case Point(target, button, count):
            verb = "double-click" if count == 2 else "click" if button == "left" else f"{button}-click"
            return f"{verb} “{target}”"
        case Toggle(target, on):
            return f"{'enable' if on else 'disable'} “{target}”"
        case Enter(text, into):
            return f"type “{text[:40]}”" + (f" into “{into}”" if into else "")
        case Turn(direction, _, to_end):
            return f"scroll {direction}" + (" to the end" if to_end else "")
        case Pause(seconds):
            return f"wait {seconds:g} s"
        case Close(target):
            return f"close “{target}”" if target else "close the window"
