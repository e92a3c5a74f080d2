"""Reads a wish about a setting by its words, in whatever order they stand.

A wish is about a thing of `configs/places/things.toml` if it has all words of one of the thing's names or of its
`about`. All other words must be in the lists under `[wish]` in `configs/sentences.toml`: words that ask, that deny or
complain, and that add nothing. A wish with any other word is not read.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.measures import direction_of, measured_by
from agent.literal.vocabulary.numbers import amount_of, is_unit
from agent.literal.vocabulary.places import is_choice, is_switch, names_of_things
from foundation.configs import load_config

#: Stems of one or more words.
_Stems: TypeAlias = tuple[str, ...]
#: The words of a name in any order, each with its alternatives.
_Bag: TypeAlias = tuple[frozenset[_Stems], ...]

#: Most words between two words of an alternative: "turn the big screen off".
_MOST_BETWEEN = 2
_LEAST_OF_A_STEM = 3
#: Most letters of the words that are left out of names: articles, prepositions.
_MOST_OF_A_PARTICLE = 3
#: Least number of words beside a thing's name that the rules cannot take for a part of a label.
_MANY = 3
#: What is no wish: a question, a preference, "not everything".
_NO_WISH = re.compile(
    r"(?i)(?:should|does|is|are|was|did|has|what|which|who|how|when|where|why|must|may) .+|do (?!not\b).+"
    r"|can you (?:see|find|hear|tell)\b.*|i (?:really )?like (?!to ).*"
    r"|.*\b(?:not|never|no)\b.*\b(?:every\w*|all(?! the time))\b.*|.*[^\w\s'’/.%&+-].*"
)
#: How a clause begins that tells something: with who does it, or with a subject (the known name goes in) and its verb.
_STATEMENT = (
    r"(?i)(?:(?:i|we|they)(?:['’](?:m|ve|re))?|(?:it|that|this|there)['’]s) \w"
    r"|(?:my|our|the|this|that|those|these|it|there|everything|nothing|{})\b[^,;]*?"
    r" (?:is|are|was|were|has|have|can|cannot|can['’]t|does|do|get|keep|hurt|make|\w{{2,}}s) \S"
)
#: Words with which a clause may ask for something, or say of what or how much.
_MAY_ASK = re.compile(
    r"(?i)\b(?:want|need|like|love|prefer|wish|hope|mean|meant|would|should|shall|must|ought|please|let|rather|instead"
    r"|only|but|except|unless|if|until|or|then|first|second|third|last|other|next|not (?:the|this|that)|called|named"
    r"|password)\b"
    r"|['’]d\b|[\d\x00\"“”]"
)
#: After a verb that begins an order: "wrap the lines".
_DETERMINERS = ("the", "my", "a", "all", "any", "those", "these", "what", "of", "to")
_COMPARATIVE = re.compile(load_config("grammar.toml")["fragments"]["comparative"])


@dataclass(frozen=True, slots=True)
class _Subject:
    """Words that mean a thing."""

    thing: str
    name: str  # how people call the thing
    words: str  # the name that has these words; "" for other words
    same: bool  # False if the words mean that the thing is off: "notifications" for Do Not Disturb
    bag: _Bag
    beside: frozenset[_Stems]  # what adds nothing in a wish about this thing
    denied: str  # the choice for the thing when it is not wanted; "" for a switch


def read_wish(text: str, *, surely: bool = False) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    """Yield the readings of a wish: entries of the grammar's table and their arguments.

    `surely` leaves out what the grammar's rules may read better: things called by their names, sizes and speeds.
    """
    if _NO_WISH.fullmatch(text.strip()):
        return
    for program, rest in programs_in(text.strip()):
        said = re.sub(r"\bkeep (.+?) from\b", r"stop \1", rest.casefold())
        if (read := _read(said)) is None:
            continue
        subject, does, arguments, complaint = read
        others = rest.count(" ") - subject.words.count(" ") if _is_named(subject, said) else _MANY
        if surely and (len(subject.bag) == 1 or 0 < others < _MANY or does == "change" or "unit" in arguments):
            continue
        if re.search(rf"\bin {re.escape(arguments.get('value', 'it'))}$", said):
            continue  # "in 5 minutes" says when
        at = rest.casefold().find(arguments["what"].casefold())  # as it is written, if it stands there
        what = rest[at : at + len(arguments["what"])] if at >= 0 else arguments["what"]
        arguments["what"] = f"{what} in {program}" if program else what
        groups = defaultdict(str, arguments | {"about": arguments["what"]})
        yield {"does": does, "with": arguments, "complaint": complaint}, groups


def told_about(text: str) -> str:
    """Return the one thing or program that a statement names: "my mouse crawls across the screen".

    "" if the clause is no statement, names none or several, or may ask for something.
    """
    said = f" {text.casefold()} "
    named = [name for name in {*names_of_things(), *lexicon.programs()} if f" {name} " in said]
    longest = max(named, key=len, default="")
    tells = re.match(_STATEMENT.format(re.escape(longest)), text) and not _MAY_ASK.search(text)
    return longest if longest and tells and all(name in longest for name in named) else ""


def _read(said: str) -> tuple[_Subject, str, dict[str, str], bool] | None:
    """Return what a wish is about, the builder, its arguments, and whether it only complains.

    None if it has no reading, or if two things have as many of its words.
    """
    words = said.split()
    stems = [_stem(word) for word in words]
    read: list[tuple[int, tuple[_Subject, str, dict[str, str], bool]]] = []
    for subject in _subjects():
        if (used := _positions(subject.bag, stems)) is None:
            continue
        rest = [word for at, word in enumerate(words) if at not in used]
        if _is_named(subject, said):  # no word of "Do Not Disturb" counts elsewhere
            rest = said.replace(subject.words.casefold(), "", 1).split()
        own = words[0] if 0 in used else ""
        if (meant := _meant(subject, rest, own=own, named=_is_named(subject, said))) is not None:
            read.append((len(used), (subject, *meant)))
    best = [one for size, one in read if size == max(size for size, _ in read)]
    if len({(subject.thing, does) for subject, does, _, _ in best}) != 1:
        return None
    return next((one for one in best if _is_named(one[0], said)), best[0])


def _is_named(subject: _Subject, said: str) -> bool:
    return bool(subject.words) and f" {subject.words.casefold()} " in f" {said} "


def programs_in(said: str) -> Iterator[tuple[str, str]]:
    """Yield a wish without a program, and with the program that it names, taken out of it."""
    yield "", said
    app = rf"(?:the |my )?(?P<app>{lexicon.either(lexicon.applications())})"
    for form in (
        rf"(?P<before>.+) in {app}(?P<after>(?: .+)?)",
        rf"(?P<before>(?:(?:do not )?(?:have|let|make|get|i want|i need|i would like) )?){app} "
        r"(?P<after>(?:(?:should|must|ought)\b|to |(?<=\w )\w).+)",
    ):
        if found := re.fullmatch(form, said, re.IGNORECASE):
            yield found["app"], f"{found['before']}{found['after']}"


def _meant(
    subject: _Subject, words: Sequence[str], *, own: str, named: bool
) -> tuple[str, dict[str, str], bool] | None:
    """Return the builder, its arguments, and whether the wish only complains; None if it cannot be read.

    `words` are those beside the thing's own. `own` is the word of the thing that begins the wish, "" for
    none. `named` is whether the thing is called by one of its names.
    """
    left, extra = _without(words, subject.beside)
    orders = _is_order(subject, own, words) and (named or extra > 0 or not _is_at_once(own))
    found: dict[str, int] = {}
    left, found["scolds"] = _without(left, _as_written("scolds"), str)
    for kind in ("hates", "denies", "negates", "stops", "states", "asks"):
        left, found[kind] = _without(left, _phrases(kind))
    left, _ = _without(left, _as_written("orders") | _as_written("fills"), str)
    asks, complains = bool(found["asks"] or orders), bool(found["hates"] or found["scolds"])
    nots, stops = found["denies"] + found["negates"], bool(found["stops"] + found["states"])
    if left:
        return _measured(subject, " ".join(left)) if asks and not (nots or stops or complains) else None
    if (
        (found["negates"] and not asks and words[0] not in ("no", "never"))  # "the keys no longer repeat" tells
        or (found["stops"] and not (asks or nots or _begins(words, "stops")))  # as does "the keys stop repeating"
        or (found["states"] and not (asks or found["stops"]))  # and "the menu bar is gone"
        or (found["hates"] and (nots or stops))
        or (complains and (nots and stops if nots or stops else asks))
        or nots > 1
        or not (nots or stops or complains or asks)
    ):
        return None
    wanted = not complains and nots == stops  # "I don't want it to stop"
    what, on = subject.words if named else subject.name, wanted is subject.same
    if subject.denied and not on:
        return "set_to", {"verb": "set", "what": what, "value": subject.denied}, False
    if subject.denied or not is_switch(what):
        return None
    return "toggle", {"state": "on" if on else "off", "what": what}, bool(nots or complains) and not asks


def _begins(words: Sequence[str], kind: str) -> bool:
    """Return whether words begin with a phrase of a kind."""
    return any(tuple(map(_stem, words[: len(phrase)])) == phrase for phrase in _phrases(kind))


def _is_order(subject: _Subject, own: str, words: Sequence[str]) -> bool:
    """Return whether a wish begins with a verb: with `own` of the thing's words, or with the first of the others."""
    first = words[0] if words else ""
    if not own:  # "set the clock to 24 hours", but not "set the clock"
        return _begins(words, "orders") and not (first in ("set", "change") and "to" not in words)
    alone = not first and len(subject.bag) > 1  # "reverse scrolling"
    return alone or first in _DETERMINERS or (_stem(first),) in subject.beside  # "wrap the lines"


def _is_at_once(verb: str) -> bool:
    """Return whether an order with a verb is no setting by itself: "lock the screen"."""
    return (_stem(verb),) in _phrases("at_once")


def _measured(subject: _Subject, said: str) -> tuple[str, dict[str, str], bool] | None:
    """Return what a wish means that has a comparative or an amount beside what is known."""
    name = subject.words or subject.name
    if _COMPARATIVE.fullmatch(said) and direction_of(said, measured_by(said, name)):
        return "change", {"what": name, "way": said}, False
    amount = None if is_switch(name) or is_choice(name) else amount_of(said)
    if amount is None or not is_unit(amount[1]):
        return None
    return "set_to", {"verb": "set", "what": name, "value": said, "unit": amount[1]}, False


def _positions(bag: _Bag, stems: Sequence[str]) -> set[int] | None:
    """Return where the words of a bag stand; None if one of them is missing."""
    used: set[int] = set()
    for alternatives in bag:
        found = [at for alternative in alternatives for at in _all_positions(alternative, stems)]
        if not found:
            return None
        used.update(*found)
    return used


def _all_positions(alternative: _Stems, stems: Sequence[str]) -> Iterator[set[int]]:
    for start, stem in enumerate(stems):
        if stem != alternative[0]:
            continue
        at, positions = start, {start}
        for word in alternative[1:]:
            near = range(at + 1, min(at + 2 + _MOST_BETWEEN, len(stems)))
            at = next((later for later in near if stems[later] == word), -1)
            if at < 0:
                break
            positions.add(at)
        else:
            yield positions


def _without(
    words: Iterable[str], phrases: frozenset[_Stems], key: Callable[[str], str] | None = None
) -> tuple[list[str], int]:
    """Return words without the phrases, and how many phrases there were. Longer phrases go first."""
    key = key or _stem
    left, count, words = [], 0, list(words)
    sizes = sorted({len(phrase) for phrase in phrases}, reverse=True)
    while words:
        size = next((size for size in sizes if tuple(map(key, words[:size])) in phrases), 0)
        count += bool(size)
        left += words[:1] if not size else []
        words = words[size or 1 :]
    return left, count


@cache
def _stem(word: str) -> str:
    """Return a word without its ending: "blinking", "blinks" and "blink" are one."""
    stem = re.sub("ies$", "y", word.replace("’", "'").removesuffix("'s"))
    for ending in ("es", "s", "ing", "ed", "e"):
        if stem.endswith(ending) and len(stem) - len(ending) >= _LEAST_OF_A_STEM - (ending == "ing"):
            stem = stem.removesuffix(ending)
    return stem[:-1] if len(stem) > _LEAST_OF_A_STEM and stem[-1] == stem[-2] else stem


def _stems(words: str) -> _Stems:
    return tuple(map(_stem, words.split()))


def _listed(name: str) -> list[str]:
    words: str = lexicon.config()["wish"][name]
    return words.replace("\n", "").split("|")


@cache
def _phrases(name: str) -> frozenset[_Stems]:
    return frozenset(map(_stems, _listed(name)))


@cache
def _as_written(name: str) -> frozenset[_Stems]:
    """Return phrases that count only as they are written. By its stem, "theme" would be "them"."""
    return frozenset(tuple(words.split()) for words in _listed(name))


@cache
def _subjects() -> tuple[_Subject, ...]:
    return tuple(_read_subjects())


def _read_subjects() -> Iterator[_Subject]:
    for thing, entry in load_config("places/things.toml").items():
        beside = frozenset(map(_stems, entry.get("beside", "").split("|"))) - {()}
        name, denied = entry["names"][0], entry.get("denied", "")
        for key, same in (("names", True), ("opposites", False), ("about", True), ("against", False)):
            for words in entry.get(key, ()):
                named = words if key == "names" else ""
                if (bag := _bag(words)) and not _COMPARATIVE.search(named):  # "bigger text" is one name
                    yield _Subject(thing, name, named, same, bag, beside, denied)


def _bag(words: str) -> _Bag:
    """Return the words of a name that mean something; "(a|b c)" are alternatives."""
    nothing = {_stems(word) for word, *more in _as_written("fills") if not more and len(word) <= _MOST_OF_A_PARTICLE}
    nothing |= {*_phrases("orders"), *_phrases("asks")}
    groups = re.findall(r"\(([^()]*)\)|([^\s()]+)", words.casefold())
    read = (
        frozenset(stems for words in (several or one).split("|") for stems in _alike(words)) for several, one in groups
    )
    return tuple(group for group in read if not group <= nothing)


def _alike(words: str) -> frozenset[_Stems]:
    """Return the stems of words, with others of the same meaning."""
    own = _stems(words)
    same = (frozenset(map(_stems, alike.split("|"))) for alike in lexicon.config()["wish"]["alike"])
    return frozenset({own}).union(*(alike for alike in same if own in alike))
