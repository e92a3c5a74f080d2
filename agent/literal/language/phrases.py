"""Recognizes ordinary phrasing by the table of `configs/sentences.toml`."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from agent.literal.vocabulary import lexicon, quotes
from agent.literal.vocabulary.lexicon import config
from agent.literal.vocabulary.numbers import amount_of
from agent.literal.vocabulary.places import is_switch, known_thing

_EXPANDED = {
    r"\bi'?m\b": "i am", r"\bi'?d (?=like|love|"
                         r"prefer)": "i would ", r"\bit'?s (?=\w+)": "it is ", r"\bthat'?s\b": "that is",
    r"\bcan'?t\b|\bcan "
    r"not\b": "cannot", r"\bdon'?t\b": "do not", r"\bi'?ve\b": "i have", r"\beverything's\b": "everything is",
    r"^we (?=do not|don'?t|want|need|like|would)": "i ",
    r"\bshouldn'?t\b": "should not", r"\b(where|what)'?s\b": r"\1 is", r"\bi'?d rather\b": "i would rather",
    r"\b(text|screen|mouse|font|volume|sound|pointer|cursor)'s (?=too|so|way|much|a|far)": r"\1 is ",
}  # fmt: skip
_PIECE = re.compile(r"\((?P<one>[^()]*)\)|\[(?P<maybe>[^\[\]]*)\]|\{(?P<name>\w+)\}|(?P<word>\S+)")
#: "for me", "for my eyes" at the end of a complaint.
_FOR_WHOM = re.compile(
    r" for (?:me|us|my (?:\w+ )?(?:eyes|taste|liking|hand|hands)|(?:a|an|my) \w+|him|her)$", re.IGNORECASE
)
#: Other wordings of "should": "the panel should hide" is also "have the panel hide".
_WANTS = r"(?:i want|i need|let|make|have|get|see that|make sure(?: that)?|ensure(?: that)?)"
_WANTS_NOT = r"(?:i do not (?:want|like|need)|do not let|do not have|never let|never have)"
_COMPARATIVE = re.compile(
    r"bigger|larger|smaller|louder|quieter|brighter|dimmer|darker|faster|slower|longer|shorter|higher|lower|wider|"
    r"narrower|taller|thicker|thinner|warmer|cooler",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"(?:turned |switched )?(?:on|off)|(?:en|dis|un)?abled?|(?:de)?activated|(?:un)?checked|(?:un)?ticked|"
    r"(?:in)?active|hidden|invisible|shown|visible|gone|away|true|false|full ?-?screen|maximi[sz]ed|minimi[sz]ed",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"\b(?:not|never|if|when|while|until|unless|or|than|better|nicer|good|nice|fine|ok|normal|different|same|as|like|"
    r"possible|less|more|too|be|to|cool|cooler|prettier|fixed|pretty|changed|right|correct|perfect|"
    r"happy|fun|random|modern|clean|cleaner)\b",
    re.IGNORECASE,
)
_MOST_OF_A_NAME = 60


@dataclass(frozen=True, slots=True)
class Phrase:
    """A recognized sentence of ordinary phrasing."""

    does: str  # the builder of its goals (agent/literal/language/rules); "" if it is ambiguous
    groups: Mapping[str, str]  # the builder's arguments
    complaint: bool = False  # it only says what is wrong, and is ignored if an instruction follows
    about: str = ""  # what "it" refers to afterwards


def find_phrase(text: str, quoted: list[str], *, wishes: bool = False) -> Phrase | None:
    """Match a part of an instruction against the table; None without a match.

    Args:
        text: the part, with its quotations hidden.
        quoted: the hidden quotations.
        wishes: whether to search the wishes, the last resort for text that nothing else understands.
    """
    spelled = quotes.show_names(text, quoted).replace("’", "'")
    for short, full in _EXPANDED.items():
        spelled = re.sub(short, full, spelled, flags=re.IGNORECASE)
    spelled = " ".join(spelled.split())
    for one in dict.fromkeys((spelled, _FOR_WHOM.sub("", spelled))):
        for said in dict.fromkeys((one, wanted(one))):
            if (phrase := _find(" " + said, "wishes" if wishes else "phrases")) is not None:
                return phrase
    return None


def wanted(text: str) -> str:
    """Replace other wordings of a wish by "i want"."""
    return _want().sub("i want ", text, count=1)


def _find(spelled: str, table: str) -> Phrase | None:
    for pattern, entry in _table(table):
        if (match := pattern.fullmatch(spelled)) and (groups := _meant(match.groupdict(default=""))) is not None:
            templates = entry.get("with", {})
            if "{opposite}" in templates.values() and not groups["opposite"]:
                continue
            said = defaultdict(str, groups)  # not every wording has every group
            filled = {name: template.format_map(said) for name, template in templates.items()}
            about = str(entry.get("about", "")).format_map(said)
            return Phrase(entry["does"], filled, bool(entry.get("complaint")), about)
    return None


def _meant(groups: Mapping[str, str]) -> dict[str, str] | None:
    """Convert the groups for the builder; None if one is not of the kind that its name gives."""
    meant: dict[str, str] = {}
    for name, text in groups.items():
        read = _KINDS.get(name)
        if (said := text if read is None else read(text)) is None:
            return None
        meant[name] = said
    if "how" in meant:
        meant["opposite"] = config()["opposites"].get(meant["how"].casefold(), "")
    return meant


def _switch(text: str) -> str | None:
    return text if is_switch(_bare(text)) else None


def _thing(text: str) -> str | None:
    return text if known_thing(_bare(text)) else None


def _app(text: str) -> str | None:
    name = re.sub(r" (?:window|app|application|program)$", "", _bare(text), flags=re.IGNORECASE)
    mine = re.match("my ", text, re.IGNORECASE)  # "my files" are files
    return name if name.casefold() in lexicon.programs() and not mine else None


def _program(text: str) -> str | None:
    return None if known_thing(_bare(text)) else _app(text)


def _window(text: str) -> str | None:
    if re.fullmatch(r"(?:this|the|that|my|the current)(?: \w+)? window|it", text, re.IGNORECASE):
        return text
    return _app(text)


def _time(text: str) -> str | None:
    """Normalize a time to minutes; None for anything else."""
    amount = amount_of(text)
    if amount is None or amount[0] <= 0:
        return None
    return f"{amount[0]:g} minutes" if amount[1] in ("m", "min", "mins", "minute", "minutes") else None


def _number(text: str) -> str | None:
    amount = amount_of(text)
    return None if amount is None or amount[1] in ("more", "fewer", "less", "extra", "other") else text


def _value(text: str) -> str | None:
    return None if _STATE.fullmatch(text) or _NO_VALUE.search(text) or _COMPARATIVE.search(text) else text


def _one_of(pattern: str) -> Callable[[str], str | None]:
    return lambda text: text if re.fullmatch(pattern, text, re.IGNORECASE) else None


def _bare(text: str) -> str:
    return re.sub(r"^(?:(?:the|my|a|an|any|those|that|some|your|this) )+", "", text, flags=re.IGNORECASE)


#: Validators of groups by name. Other groups accept any words.
_KINDS: Mapping[str, Callable[[str], str | None]] = {
    "switch": _switch,
    "thing": _thing,
    "app": _app,
    "program": _program,
    "window": _window,
    "time": _time,
    "number": _number,
    "value": _value,
    "more": _one_of(_COMPARATIVE.pattern),
    "file": _one_of(r"(?:the file )?[\w ()-]{1,60}\.[a-z][a-z0-9]{0,5}"),
    "kind": _one_of(r"(?:icon |cursor |window |gtk )?theme|style|font|icons|wallpaper|keyboard layout"),
    "folder": _one_of(r"documents|downloads|pictures|music|videos|home|desktop"),
}


@cache
def _want() -> re.Pattern[str]:
    return re.compile(rf"^{lexicon.either(config()['wants']['words'])} (?=\S)", re.IGNORECASE)


@cache
def _table(name: str) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    return [
        (re.compile(expression, re.IGNORECASE), entry)
        for entry in config()[name]
        for says in entry["says"]
        for expression in _expressions(says)
    ]


def _expressions(says: str) -> list[str]:
    """Return the regular expressions for a phrase: as written, and with other wordings of "should"."""
    own = [_expression(says)]
    subject, should, does = says.partition(" should ")
    if not should:
        return own
    negative = does.startswith("not ")
    does = does.removeprefix("not ")
    who, what = _expression(subject), _expression(does)
    if not negative:
        return [*own, rf" {_WANTS}{who}(?: to| should| will| can)?{what}"]
    ing = _expression(_in_ing(does))
    stopped = rf" (?:stop|prevent|keep){who}(?: from)?{ing}"
    return [
        *own,
        rf" {_WANTS_NOT}{who}(?: to)?{what}",
        rf" {_WANTS_NOT}{who}{ing}",
        stopped,
        rf" (?:i want|let|make|have){who}(?: to)? not(?: to)?{what}",
    ]


def _in_ing(does: str) -> str:
    """Put verbs into their -ing form: "(turn off|go black)" becomes "(turning off|going black)"."""

    def change(words: str) -> str:
        first, space, rest = words.partition(" ")
        return lexicon.gerund(first) + space + rest

    if found := re.match(r"\(([^()]*)\)", does):
        return f"({'|'.join(change(words) for words in found[1].split('|'))}){does[found.end() :]}"
    return change(does)


def _expression(says: str) -> str:
    """Return the regular expression for a phrase of the table; every piece includes the space before it."""
    pieces: list[str] = []
    for piece in _PIECE.finditer(says):
        if piece["name"]:
            pieces.append(rf" (?P<{piece['name']}>[^ ].{{0,{_MOST_OF_A_NAME}}}?)")
        elif piece["word"]:
            pieces.append(" " + re.escape(piece["word"]))
        else:
            inside = "|".join(re.escape(choice) for choice in (piece["one"] or piece["maybe"]).split("|"))
            pieces.append(f" (?:{inside})" if piece["one"] else f"(?: (?:{inside}))?")
    return "".join(pieces)
