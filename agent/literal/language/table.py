"""The table of the grammar: the forms of an instruction's parts, and the builder that makes goals of each form.

All lists of the table work alike. `configs/grammar.toml` has the rules as regular expressions, `configs/sentences.toml`
ordinary phrasing in a shorter notation: the phrases, which are tried before the rules, and the wishes, the last resort.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from agent.literal.language.wishes import read_wish
from agent.literal.vocabulary import lexicon, quotes
from agent.literal.vocabulary.lexicon import config
from agent.literal.vocabulary.numbers import NUMBER, amount_of, expression_of
from agent.literal.vocabulary.places import is_switch, known_thing
from foundation.configs import load_config

#: The arguments of a builder by name; "" for those that were not said.
Groups: TypeAlias = Mapping[str, str]
Table: TypeAlias = Literal["phrases", "rules", "wishes"]

_PIECE = re.compile(r"\((?P<one>[^()]*)\)|\[(?P<maybe>[^\[\]]*)\]|\{(?P<name>\w+)\}|(?P<word>\S+)")
_MOST_OF_A_NAME = 60


def matches(table: Table, text: str, quoted: list[str]) -> Iterator[tuple[Mapping[str, Any], Groups]]:
    """Yield the entries that fit a part of an instruction, with the arguments of their builders.

    `quoted` are the texts behind the part's placeholders. Known names in a phrase's arguments are added.
    """
    says = (text,) if table == "rules" else _spellings(text, quoted)
    for spelling in says:
        for pattern, entry in _compiled(table):
            if (match := pattern.fullmatch(spelling)) is None:
                continue
            if (groups := _meant(match.groupdict(default=""), quoted)) is None:
                continue
            arguments = entry.get("with", {}) | {"about": entry.get("about", "")}
            filled = defaultdict(str, groups | {name: value.format_map(groups) for name, value in arguments.items()})
            for name, value in filled.items():
                filled[name] = value if table == "rules" else _hidden(value, quoted)
            yield entry, filled
        if table == "wishes" or (table == "phrases" and not re.match(rf"(?i) {lexicon.label_verbs()} ", spelling)):
            for wish, said in read_wish(spelling, surely=table == "phrases"):
                yield wish, defaultdict(str, {name: _hidden(value, quoted) for name, value in said.items()})


def wanted(text: str) -> str:
    """Replace other wordings of a wish by "i want"."""
    return _want().sub("i want ", text, count=1)


def _spellings(text: str, quoted: list[str]) -> Iterable[str]:
    """Return the wordings of a part as phrases have them: in full words, with "i want", with "should"."""
    spelled = quotes.show_names(text, quoted).replace("’", "'")
    for short, full in config()["in_full"].items():
        spelled = re.sub(short, full, spelled, flags=re.IGNORECASE)
    spelled = re.sub(r"\b(?:those|these)(?= \w)", "the", " ".join(spelled.split()), flags=re.IGNORECASE)
    should = re.sub(r"(?i)^i want (\S.*?) to (?=\w)", r"\1 should ", wanted(spelled))
    return dict.fromkeys((f" {spelled}", f" {wanted(spelled)}", f" {should}"))


def _meant(groups: dict[str, str], quoted: list[str]) -> defaultdict[str, str] | None:
    """Return the meanings of groups; None if a group is not of the kind that its name requires."""
    meant = defaultdict(str, groups)
    for name, text in groups.items():
        if text and (read := _KINDS.get(name)) is not None:
            shown = quotes.show(text, quoted)
            if (meaning := read(shown)) is None:
                return None
            meant[name] = text if meaning == shown else meaning
    return meant


def _hidden(argument: str, quoted: list[str]) -> str:
    """Hide quotations and known names in an argument of a phrase, also a name that begins with a verb."""
    argument = quotes.hide_quotes(argument, quoted) if "'" in argument else argument
    return quotes.hide_names(f"the {argument}", lexicon.names(), lexicon.beginnings(), quoted).removeprefix("the ")


@cache
def fragment(name: str) -> str:
    """Return a named fragment of the rules' regular expressions."""
    return NUMBER if name == "number" else _expanded(load_config("grammar.toml")["fragments"][name])


def _expanded(text: str) -> str:
    """Replace "<<name>>" in a regular expression by the fragments."""
    return re.sub(r"<<(\w+)>>", lambda found: fragment(found[1]), text)


def _app(text: str) -> str | None:
    name = re.sub(r" (?:window|app|application|program)$", "", _bare(text), flags=re.IGNORECASE)
    mine = re.match("my ", text, re.IGNORECASE)  # "my files" are files
    return name if name.casefold() in lexicon.programs() and not mine else None


def _window(text: str) -> str | None:
    if re.fullmatch(r"(?:this|the|that|my|the current)(?: \w+)? window|it", text, re.IGNORECASE):
        return text
    return _app(text)


def _time(text: str) -> str | None:
    """Return a time in minutes; None for anything else."""
    amount = amount_of(text)
    if amount is None or amount[0] <= 0 or amount[1] not in ("m", "min", "mins", "minute", "minutes"):
        return None
    return f"{amount[0]:g} minutes"


def _number(text: str) -> str | None:
    amount = amount_of(text)
    return None if amount is None or amount[1] in ("more", "fewer", "less", "extra", "other") else text


def _option(text: str) -> str | None:
    vague = rf"\b(?:{fragment('no_value')})\b|{fragment('comparative')}"
    no_value = re.fullmatch(fragment("standing"), text, re.IGNORECASE) or re.search(vague, text, re.IGNORECASE)
    return None if no_value else text


def _if(check: Callable[[str], object]) -> Callable[[str], str | None]:
    return lambda text: text if check(text) else None


def _one_of(pattern: str) -> Callable[[str], str | None]:
    return _if(lambda text: re.fullmatch(pattern, text, re.IGNORECASE))


def _bare(text: str) -> str:
    return re.sub(r"^(?:(?:the|my|a|an|any|those|that|some|your|this) )+", "", text, flags=re.IGNORECASE)


#: Validators of groups by name. Other groups accept any words.
_KINDS: Mapping[str, Callable[[str], str | None]] = {
    "switch": _if(lambda text: is_switch(_bare(text))),
    "thing": _if(lambda text: known_thing(_bare(text))),
    "app": _app,
    "program": lambda text: None if known_thing(_bare(text)) else _app(text),
    "window": _window,
    "time": _time,
    "number": _number,
    "sum": _if(expression_of),
    "option": _option,
    "more": _if(lambda text: re.fullmatch(fragment("comparative"), text, re.IGNORECASE)),
    "opposite": lambda text: config()["opposites"].get(text.casefold()),
    "file": _one_of(r"(?:the file )?[\w ()-]{1,60}\.[a-z][a-z0-9]{0,5}"),
    "look": _one_of(r"(?:icon |cursor |window |gtk )?theme|style|font|icons|wallpaper|keyboard layout"),
    "folder": _one_of(r"documents|downloads|pictures|music|videos|home|desktop"),
}


@cache
def _want() -> re.Pattern[str]:
    return re.compile(rf"(?i)^{lexicon.either(config()['wants']['words'])} (?=\S)")


@cache
def _compiled(table: Table) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    entries = load_config("grammar.toml")["rules"] if table == "rules" else config()[table]
    return [
        (re.compile(expression, re.IGNORECASE | re.DOTALL), entry)
        for entry in entries
        for says in entry["says"]
        for expression in ([_expanded(says)] if table == "rules" else [_expression(says)])
    ]


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
