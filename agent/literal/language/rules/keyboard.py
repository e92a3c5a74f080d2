"""Builders for keys, text, scrolling and waiting; and helpers for other builders: texts to type, and repetitions."""

import re
from contextlib import suppress
from typing import Any

from agent.core.keys import MODIFIERS, UnknownKeyError, chord
from agent.literal.goals import Click, Goal, Press, Scroll, Target, Type, Wait
from agent.literal.language.sentences import NotUnderstoodError, Part
from agent.literal.language.table import Groups, fragment
from agent.literal.language.targets import place_name, read_target
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.numbers import number_of
from agent.literal.vocabulary.places import known_thing, panel_names

_MOST_SECONDS = 60.0
#: Verbs that are followed by literal text.
_WRITING = re.compile(r"(?i)(?:write|type|enter)\b|.+: ?")
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_COUNT = re.compile(
    r"(?i) (?:(?P<word>once|twice|thrice)"
    r"|(?P<number>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten) ?(?:times|x))$"
)
_MOST_TIMES = 20
_ENTERED = frozenset({"documents", "downloads", "pictures", "music", "videos", "desktop", "home"})
#: Names of keys that are rather labels of buttons.
_LABELS = frozenset({"next", "prior", "stop", "option"})


def _press(part: Part, match: Groups) -> list[Goal]:
    what, count = times(match["what"])
    if re.fullmatch(r"\x00\d+\x00 (?:and|then) \x00\d+\x00", what) is None and (keys := _held(part, what)):
        return [Press(keys)] * count
    goals: list[Goal] = []
    for item in re.split(r" ?, ?(?:and |then ){0,2}| (?:and then|and|then) ", what):
        if item.strip():
            goals.extend(_press_one(part, item) * count)
    held = [goal for goal in goals[:-1] if isinstance(goal, Press) and set(goal.keys) <= set(MODIFIERS)]
    if held:
        raise NotUnderstoodError(f"I do not hold “{held[0].keys[0]}” alone: write the keys together, as ctrl+c.")
    return goals


def _held(part: Part, text: str) -> tuple[str, ...] | None:
    """Parse "Alt and F4", "ctrl and shift and t" as one key combination; None if no modifier comes first."""
    names = [re.sub(r"^the | keys?$", "", name, flags=re.IGNORECASE) for name in part.shown(text).split(" and ")]
    try:
        keys = [key for name in names for key in chord(name)]
    except UnknownKeyError:
        return None
    held = len(names) > 1 and all(key in MODIFIERS for key in keys[:-1]) and keys[-1] not in MODIFIERS
    return chord(keys) if held else None


def _press_one(part: Part, item: str) -> list[Goal]:
    name = part.shown(item)
    bare = re.sub(r"^(?:(?:on|the) )*| keys?$", "", name, flags=re.IGNORECASE).strip()
    bare = re.sub(r"(?i)^key (?=\S)|^(?:key combination|shortcut|keyboard shortcut|keys|key) ", "", bare)
    if not re.search(r"\bbutton$", name, re.IGNORECASE):
        try:
            keys = () if bare.casefold() in _LABELS and not name.endswith(" key") else chord(bare)
            pressed = re.findall(r"\w+|[^\w\s+]", bare.casefold())
            if len([key for key in keys if key not in MODIFIERS]) > 1 or len(set(pressed)) < len(pressed):
                raise NotUnderstoodError(f"I do not know how to press “{bare}”: say “press” before each key.")
            if keys:
                return [Press(keys)]
        except UnknownKeyError:
            if purpose := re.fullmatch(rf"(\S+(?: \S+)?) (?:to {lexicon.verbs()}\b|in the (?:dialog|window)).*", bare):
                with suppress(UnknownKeyError):
                    return [Press(chord(purpose[1]))]  # "press escape to close the dialog"
            if "+" in bare and len(bare) > 3:
                raise NotUnderstoodError(f"I do not know the keys “{bare}”.") from None
    return [Click(read_target(part, item))]


def _type(part: Part, match: Groups) -> list[Goal] | None:
    text = re.sub(r"^(?:the (?:text|words?)|in) ", "", match["text"].strip(), flags=re.IGNORECASE)
    if match["verb"].casefold() == "put" and (not match["into"] or part.quotation(text) is None):
        return None
    shown = "" if part.quotation(text) is not None or match["into"] else part.shown(text)
    if match["verb"].casefold() == "enter" and _is_place(shown):
        raise NotUnderstoodError(f"I do not know whether to type “{shown}”: put what to type in quotation marks.")
    typed = text_to_type(part, text, match["verb"])
    if not typed:
        raise NotUnderstoodError("I do not understand what to type.")
    if re.search(r"(?:and|then|,) \x00", match["into"] or ""):
        raise NotUnderstoodError(f"I do not understand what “{part.shown(match['into'])}” is: say each by itself.")
    into = read_target(part, match["into"]) if match["into"] else None
    if into is not None and into.ordinal and re.search(r"\bline\b", match["into"]):
        raise NotUnderstoodError(f"I type where the cursor is, and cannot go to {part.shown(match['into'])}.")
    return [Type(typed, into, replace=match["verb"].casefold().startswith(("replace", "fill")))]


def _search(part: Part, match: Groups) -> list[Goal]:
    inside = place_name(part, match["place"]) if match["place"] else ""
    shown = part.shown(match["text"])
    if part.quotation(match["text"]) is None and is_described(shown):
        raise NotUnderstoodError(f"I do not know what “{shown}” is: put it in quotation marks.")
    return [Type(shown, Target("search", "entry", inside=inside))]


def _scroll(part: Part, match: Groups) -> list[Goal]:
    direction: Any = (match["direction"] or "down").lower()
    inside = place_name(part, match["inside"] or match["what"]) if match["inside"] or match["what"] else ""
    if end := match["end"].lower():
        direction = "up" if end in ("top", "beginning", "start") else "down"
    if match["all"] or end:
        return [Scroll(direction, 10, to_end=True, inside=inside)]
    once = _TIMES.get(match["amount"].lower())
    per_time = 5 if once or match["unit"].lower().startswith(("time", "page")) else 1
    amount = once or int(number_of(match["amount"]) or 0)
    notches = amount * per_time if amount else {"a bit": 2, "a little": 2, "a lot": 15}.get(match["some"].lower(), 5)
    return [Scroll(direction, max(1, min(notches, 50)), inside=inside)]


def _wait(_part: Part, match: Groups) -> list[Goal]:
    amount = number_of(match["amount"]) if match["amount"] else 1.0
    if amount is None:
        raise NotUnderstoodError("I wait for a time only: “wait 5 seconds”.")
    amount *= {"ms": 0.001, "mil": 0.001, "min": 60}.get(match["unit"][:3].lower(), 1)
    if amount > _MOST_SECONDS:
        raise NotUnderstoodError(f"I wait for {_MOST_SECONDS:g} seconds at most.")
    return [Wait(max(amount, 0.1))]


def text_to_type(part: Part, text: str, verb: str) -> str:
    """Return the text to type: a quotation, or the plain words after write, type or enter.

    Raises NotUnderstoodError for anything else, which may be a description of the text or no text at all.
    """
    if (quotation := part.quotation(text)) is not None:
        return quotation.replace("\\n", "\n").replace("\\t", "\t")
    shown = part.shown(text)
    if "\x00" in text:
        raise NotUnderstoodError(f"I do not understand “{shown}”: what to type is in quotes, and more follows.")
    if not _WRITING.match(verb) or is_described(shown):
        raise NotUnderstoodError(f"I do not know whether to type “{shown}”: put what to type in quotation marks.")
    return shown


def _is_place(shown: str) -> bool:
    """Return whether words name a place or a mode that can be entered."""
    name = shown.casefold()
    known = name in lexicon.programs() or name in panel_names() or name in _ENTERED or bool(known_thing(name))
    return known or re.search(r"\bmode$|^full ?screen", name) is not None


def is_described(shown: str) -> bool:
    """Return whether unquoted words may describe a text or a place instead of being the text."""
    return re.search(fragment("describes"), shown, re.IGNORECASE) is not None


def times(text: str) -> tuple[str, int]:
    """Split "three times" off the end of a text, and return the text and the count. Raises NotUnderstoodError."""
    match = _COUNT.search(text)
    if match is None:
        return text, 1
    count = _TIMES[match["word"].lower()] if match["word"] else int(number_of(match["number"]) or 0)
    if count > _MOST_TIMES:
        raise NotUnderstoodError(f"I do something {_MOST_TIMES} times at most, and not {count} times.")
    return text[: match.start()], max(1, count)
