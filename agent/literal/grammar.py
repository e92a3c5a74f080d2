"""Understands literal instructions: one sentence becomes a list of goals.

The engine follows what is written and nothing else, so this is a small grammar, not a language model: known verbs,
joined by "and", "then", commas and full stops. What it does not understand, it says.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from agent.actions import Button
from agent.keys import UnknownKeyError, chord
from agent.literal.goals import Choose, Click, Close, Goal, Open, Press, Scroll, Target, Toggle, Type, Wait
from agent.literal.sentences import NotUnderstoodError, Part, split_instruction

#: What the named groups of a rule matched, "" for those that are not there.
Groups: TypeAlias = Mapping[str, str]
Builder: TypeAlias = Callable[[Part, Groups], list[Goal]]

_KINDS_OF_APPLICATION = "app|application|program|window|folder|directory"
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = re.compile(
    rf"\s+(?:(?P<word>once|twice|thrice)|(?P<number>\d{{1,2}}|{'|'.join(_NUMBERS)})\s*(?:times|x))$", re.IGNORECASE
)


def read_instruction(instruction: str) -> list[Goal]:
    """The goals of an instruction, in order. Raises NotUnderstoodError, which names the part."""
    goals = [goal for part in split_instruction(instruction) for goal in _read_part(part)]
    if not goals:
        raise NotUnderstoodError("The instruction is empty.")
    return goals


def _read_part(part: Part) -> list[Goal]:
    for pattern, build in _RULES:
        if match := pattern.fullmatch(part.text):
            return build(part, match.groupdict(default=""))
    raise NotUnderstoodError(f"I do not understand “{part.shown(part.text)}”.")


def _open(part: Part, match: Groups) -> list[Goal]:
    name = match["name"]
    if re.search(r"\b(?:menu|tab)$", name, re.I):
        return [Click(Target(part.thing(name)))]
    return [Open(re.sub(rf"\s+(?:{_KINDS_OF_APPLICATION})$", "", part.thing(name), flags=re.I))]


def _click(part: Part, match: Groups) -> list[Goal]:
    kind = re.sub(r"[ -]", "", match["kind"].lower())
    button: Button = "right" if kind.startswith("right") else "middle" if kind.startswith("middle") else "left"
    count = 2 if kind.startswith("double") else 1
    what, times = _times(match["what"])
    if not what.strip(" \x00"):
        raise NotUnderstoodError("I do not understand a click without a target.")
    return [Click(_target(part, item), button, count) for item in _list(what) for _ in range(times)]


def _list(text: str) -> list[str]:
    """ "7, + and 5" as its items; a text without commas is one item."""
    if "," not in text:
        items = re.split(r"\s+and\s+|\s+then\s+", text)
        return items if len(items) > 1 and all(len(item) <= 2 for item in items) else [text]
    return [item for item in re.split(r"\s*,\s*(?:and\s+|then\s+)?|\s+and\s+|\s+then\s+", text) if item]


def _press(part: Part, match: Groups) -> list[Goal]:
    what, times = _times(match["what"])
    goals: list[Goal] = []
    for item in re.split(r"\s*,\s*(?:and\s+|then\s+)?|\s+(?:and|then)\s+(?:then\s+)?", what):
        if not item.strip():
            continue
        name = part.shown(item)
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
            goals.extend([Click(Target(part.thing(item)))] * times)
    return goals


def _times(text: str) -> tuple[str, int]:
    match = _COUNT.search(text)
    if match is None:
        return text, 1
    number = (match["number"] or "1").lower()
    counted = _NUMBERS.index(number) + 1 if number in _NUMBERS else int(number)
    times = {"once": 1, "twice": 2, "thrice": 3}.get((match["word"] or "").lower(), counted)
    return text[: match.start()], max(1, min(times, 20))


def _type(part: Part, match: Groups) -> list[Goal]:
    text = match["text"].strip()
    typed = part.shown(text)
    if text.startswith("\x00"):
        typed = typed.replace("\\n", "\n").replace("\\t", "\t")
    else:
        typed = re.sub(r"^the (?:text|words?)\s+", "", typed, flags=re.I)
    if "\x00" in text and not re.fullmatch("\x00\\d+\x00", text):
        raise NotUnderstoodError(f"I do not understand “{typed}”: what to type is in quotes, and more follows.")
    if not typed:
        raise NotUnderstoodError("I do not understand what to type.")
    return [Type(typed, Target(part.thing(match["into"])) if match.get("into") else None)]


def _toggle(part: Part, match: Groups) -> list[Goal]:
    return [
        Toggle(_target(part, match["what"]), match["state"].lower() in ("on", "enable", "activate", "check", "tick"))
    ]


def _target(part: Part, text: str) -> Target:
    name, inside, whole = part.thing_and_place(text)
    return Target(name, inside=inside, whole=whole)


def _switch_to(part: Part, match: Groups) -> list[Goal]:
    what = match["what"]
    if re.search(r"\b(?:mode|theme|style)$", what, re.I):
        return [Toggle(Target(part.thing(what)), on=True)]
    return [Click(Target(part.thing(what)), or_open=True)]


def _set_to(part: Part, match: Groups) -> list[Goal]:
    value, inside, _ = part.thing_and_place(match["value"])
    if re.fullmatch(r"[\d.,]+\s*\S{0,3}", value):
        raise NotUnderstoodError(f"I cannot set a number (“{value}”); I can click, type and press keys.")
    return [Choose(value, Target(part.thing(match["what"]), inside=inside))]


def _scroll(_part: Part, match: Groups) -> list[Goal]:
    direction = (match["direction"] or "down").lower()
    if match["end"]:
        end = {"bottom": "down", "end": "down", "top": "up", "beginning": "up", "start": "up"}[match["end"].lower()]
        return [Scroll(end, 10, to_end=True)]
    amount = int(match["amount"]) if match["amount"] else 0
    per_time = 5 if match["unit"].lower().startswith("time") else 1
    notches = amount * per_time if amount else {"a bit": 2, "a little": 2}.get(match["some"].lower(), 5)
    return [Scroll(direction, max(1, min(notches, 50)))]


def _wait(_part: Part, match: Groups) -> list[Goal]:
    amount = float(match["amount"]) if match["amount"] else 1.0
    if match["unit"].lower().startswith("min"):
        amount *= 60
    return [Wait(min(max(amount, 0.1), 60.0))]


def _close(part: Part, match: Groups) -> list[Goal]:
    thing = part.thing(match["what"])
    thing = re.sub(rf"\s*\b(?:{_KINDS_OF_APPLICATION}|dialog)$", "", thing, flags=re.I)
    return [Close("" if thing.lower() in ("it", "this", "that") else thing)]


#: "the box next to" before a label.
_BOX = r"(?:(?:the\s+)?(?:check\s?)?box\s+(?:next\s+to\s+|beside\s+|for\s+)?)?"
_END = r"(?P<end>bottom|end|top|beginning|start)"
_PATTERNS: list[tuple[str, Builder]] = [
    (r"(?:switch|turn|toggle)\s+(?P<state>on|off)\s+(?P<what>.+)", _toggle),
    (r"(?:switch|turn|toggle)\s+(?P<what>.+?)\s+(?P<state>on|off)", _toggle),
    (rf"(?P<state>enable|activate|check|tick|disable|deactivate|uncheck|untick)\s+{_BOX}(?P<what>.+)", _toggle),
    (r"toggle\s+(?P<what>.+)", lambda part, match: [Click(Target(part.thing(match["what"])))]),
    (r"select\s+(?:all|everything)(?:\s+(?:the\s+)?text)?", lambda _part, _match: [Press(("ctrl", "a"))]),
    (r"(?:(?:switch|change|set it)\s+to|use)\s+(?P<what>.+)", _switch_to),
    (r"(?:set|change)\s+(?P<what>.+?)\s+to\s+(?P<value>.+)", _set_to),
    (r"(?:open|launch|start|run)(?:\s+up)?\s+(?P<name>.+)", _open),
    (r"(?:(?:go|navigate)\s+(?:to|into)|in|inside)\s+(?P<what>.+)", _switch_to),
    (r"(?:type|write|input|enter|paste)(?:\s+in)?\s+(?P<text>.+?)\s+into\s+(?P<into>.+)", _type),
    (r"(?:type|write|input|enter|paste)\s+(?P<text>.+?)\s+(?:in|to|on)\s+(?P<into>the\s+[^\x00]+?\s+"
     r"(?:field|box|bar|entry|window|editor|input))", _type),
    (r"(?:type|write|input|enter|paste)\s+(?P<text>\x00\d+\x00)\s+(?:in|to|on)\s+(?P<into>.+)", _type),
    (r"(?:(?:type|write|input|paste)(?:\s+in)?|enter)\s+(?P<text>.+)", _type),
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
]  # fmt: skip
_RULES = [(re.compile(pattern, re.IGNORECASE | re.DOTALL), build) for pattern, build in _PATTERNS]
