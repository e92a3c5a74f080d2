"""What the user's instruction says about an action: "send the mail" covers "Send", once, where a mail is visible."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, takewhile

from agent.core.actions import TYPING, Action, Drag, HoldKeys, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.core.roles import role_group
from agent.safety.addresses import facts_of, names_site, visited
from agent.safety.situation import Fact, Place, Situation
from agent.safety.targets import captions, is_page
from agent.safety.words import plain
from foundation.configs import load_config

_SWITCHES = role_group("what is on or off")
#: A quotation. An apostrophe within a word is no quotation mark.
_QUOTED = re.compile(r"(?:[\"“„«‘]|(?<!\w)')([^\"“”„«»‘’']{1,80})(?:[\"”“»]|['’](?!\w))")
#: An address. At the beginning of a line it may contain spaces, as in a browser's address field.
_ADDRESS = re.compile(r"(?mi)^[ \t]*https?://[^\n]+|https?://\S+")
#: At most this many lines of a text are checked for addresses.
_MOST_LINES = 50
_WORD = re.compile(r"[^\W_]+")
#: Two words are equal up to their endings if they begin with the same letters: at least _STEM, and all but _ENDING of
#: the shorter word. Their lengths may differ by _LONGEST_ENDING.
_STEM, _ENDING, _LONGEST_ENDING = 4, 2, 4
#: The end of a sentence. The dot of a host, a number or a title (Mr.) is none.
_STOP = re.compile(r"(?<!\bmr\.)(?<!\bms\.)(?<!\bmrs\.)(?<!\bdr\.)(?<!\bst\.)(?<=[.;!?…])\s+", re.IGNORECASE)
#: The text after a colon is content, like a quotation. After only one or two words it is the instruction itself ("In
#: Writer: print it"). After a colon at the end of a line, all further lines are content.
_CONTENT = re.compile(r"(\S+[ \t]+\S+[ \t]+\S+):(?:[ \t]+\S.*|\s*\n[\s\S]*)")
#: First of the private-use characters that stand for quotations while a text is split; they belong to no word.
_FIRST_SIGN = 0xE000
#: Words, and commas between clauses.
_TOKEN = re.compile(r"[^\W_]+|,(?=\s|$)")
#: Two words that give a time of day: "18 00", "at 5", "5pm".
_CLOCK = re.compile(r"(?:\d+|at|um|alle|om) \d+|\d+(?:am|pm|h|uhr)\b.*")
#: Names: words with a capital within a sentence.
_NAME = re.compile(r"(?<=[\w,] )[A-Z]\w+")
#: Scripts that do not separate words with spaces, and Hangul, whose endings are written onto the word (here as `plain`
#: leaves it, taken apart).
_UNDIVIDED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u1100-\u11ff]")
#: A chord, such as "ctrl+n", whose keys are no words.
_CHORD = re.compile(r"\b[\w-]+(?:\s?\+\s?[\w-]+)+")
#: A lower-case word with a Portuguese letter. No language with such letters negates with "no"; Portuguese "no" means
#: "in the".
_PORTUGUESE = re.compile(r"(?<!\w)[^\W\d_A-ZÀ-Þ]*[ãõêâ]")
#: Contracted negations: "don't", "n'envoie".
_CONTRACTED = re.compile(r"(?<=n)['’]t\b|\bn['’](?=\w)", re.IGNORECASE)


@dataclass(slots=True)
class Sentence:
    """The instruction of a run, and which of its mentions were already used."""

    text: str  # as the user wrote it. Quoted parts are names or content; their words request nothing
    _done: Counter[str] = field(default_factory=Counter)

    def facts(self, action: Action[DesktopPoint], seen: Situation) -> frozenset[Fact]:
        """Return the facts about an action that follow from the instruction."""
        facts: set[Fact] = set()
        if isinstance(action, TypeText):
            facts = _of_addresses(action.text, self.text) | _of_addresses(seen.sent or "", self.text)
            words = set(_content(plain(action.text)))
            said = words <= set(_content(plain(self.text)))
            if self._only_reads():
                facts |= set() if said else {"only read"}
            elif words and said and not self._withholds():
                facts.add("in your words")
            return frozenset(facts)
        if isinstance(action, PressKeys | HoldKeys):
            facts |= _of_addresses(seen.sent or "", self.text)
            if self._quotes_chord(action.keys):
                return frozenset({*facts, "in your words"})
        if self._only_reads():
            facts.add("only read")
        called = _captions(action, seen)
        if not called or any(not one or self._done[one] >= self._times(one) for one in called):
            return frozenset(facts)
        orders = self._orders(called[0], _visible(action, seen))
        shows_object = self._sees_object(called[0], action, seen)
        roles = {one.role for one in seen.elements}
        covers = orders or not (roles & {"push button"} or (roles & _SWITCHES and self._switches_nothing(called[0])))
        # A dialog may ask about something else: "Clear the search field" orders no "Clear" that deletes the history.
        if covers and (shows_object or not _is_asked(action, seen)):
            facts.add("in your words")
        if orders and shows_object:
            facts.add("in your words, with its object")
        return frozenset(facts)

    def did(self, action: Action[DesktopPoint], seen: Situation) -> None:
        """Note that the action was carried out: the instruction covers each mention once."""
        for caption in _captions(action, seen):
            self._done[caption] += 1

    def _times(self, caption: str) -> int:
        """Return how often the instruction names a caption, counting all its significant words."""
        if self._withholds():
            return 0
        if caption in map(_bare, _QUOTED.findall(self._wish())):
            return 1
        if _UNDIVIDED.search(caption):
            return _bare(self._wish()).count(caption)
        commanded = [word for clause in self._clauses() for word in clause if word not in _listed("common")]
        counts = [sum(_same(one, other) for other in commanded) for one in _content(caption)]
        return min(counts, default=0)

    def _orders(self, caption: str, visible: Sequence[str]) -> bool:
        """Whether the instruction orders now what a caption says. "Translate the post" does not order "Post".

        A later sentence of the same line may revoke the order ("Scratch that"), unless it continues it ("Then ...").
        """
        if caption in map(_bare, _QUOTED.findall(self._wish())) or _UNDIVIDED.search(caption):
            return True
        english = not _listed("english").isdisjoint(_WORD.findall(plain(self.text)))
        objects = [*visible, *map(plain, _NAME.findall(self.text))]
        return any(
            _is_same_deed(one, deed)
            for sentences in self._lines()
            for number, sentence in enumerate(sentences)
            if all(later.goes_on for later in sentences[number + 1 :])
            for clause in sentence.clauses
            for deed in _deeds(clause, objects, english=english)
            for one in _content(caption)
        )

    def _switches_nothing(self, caption: str) -> bool:
        """Whether the instruction names something only to open, read or write it: "Open the settings of my VPN"."""
        words = _content(caption)
        naming = [clause for clause in self._clauses() if any(_same(one, word) for one in clause for word in words)]
        others = _listed("opening") | _listed("reading") | _listed("making")
        return bool(naming) and all(clause[0] in others for clause in naming)

    def _only_reads(self) -> bool:
        """Whether the instruction only asks for information, or to find, open or show something."""
        verbs = [clause[0] for clause in self._clauses() if clause]
        return bool(self.text.strip()) and all(verb in _listed("opening") | _listed("reading") for verb in verbs)

    def _wish(self) -> str:
        """Return the instruction without questions, and without texts after a colon: these request no press."""
        quotations: list[str] = []

        def hide(found: re.Match[str]) -> str:
            quotations.append(found[0])
            return chr(_FIRST_SIGN + len(quotations) - 1)

        lines = _CONTENT.sub(r"\1 ", _QUOTED.sub(hide, self.text)).splitlines()
        wish = "\n".join(" ".join(one for one in _STOP.split(line) if not _is_question(one)) for line in lines)
        return wish.translate({_FIRST_SIGN + number: text for number, text in enumerate(quotations)})

    def _lines(self) -> list[list["_Sentence"]]:
        """Return the sentences of each line of the wish."""
        lines = _QUOTED.sub(" ", self._wish()).splitlines()
        return [[_read(plain(one)) for one in _STOP.split(line)] for line in lines]

    def _clauses(self) -> list[list[str]]:
        """Return the words of all clauses that tell this program to do something."""
        return [clause for sentences in self._lines() for sentence in sentences for clause in sentence.clauses]

    def _withholds(self) -> bool:
        """Whether any part of the instruction has a negation, sets a condition, or demands to be asked first."""
        text = _CHORD.sub(" ", _QUOTED.sub(" ", self.text))
        if _CONTRACTED.search(text):
            return True
        spaced = f" {' '.join(_WORD.findall(plain(text)))} "
        if _PORTUGUESE.search(text):
            spaced = spaced.replace(" no ", " ")
        return any(one in spaced if _UNDIVIDED.search(one) else f" {one} " in spaced for one in _listed("withholding"))

    def _named(self) -> list[str]:
        """Return all significant words of the instruction."""
        words = _content(plain(_QUOTED.sub(" ", self._wish())))
        return [one for one in words if one not in _listed("pressing")]

    def _sees_object(self, caption: str, action: Action[DesktopPoint], seen: Situation) -> bool:
        """Whether something else that the instruction names is visible there. True if it names nothing else."""
        program = _program(seen.focused if isinstance(action, TYPING) else seen.under)
        others = [one for one in self._named() if one not in program]
        others = [one for one in others if not any(_same(one, word) for word in _content(caption))]
        return not others or any(_same(one, other) for one in others for other in _visible(action, seen))

    def _quotes_chord(self, keys: tuple[str, ...]) -> bool:
        written = re.escape("+".join(keys)).replace(r"\+", r"\s?[+-]\s?")
        return (
            any(len(key) > 1 for key in keys)
            and not self._withholds()
            and re.search(rf"(?<!\w){written}(?!\w)", self._wish(), re.IGNORECASE) is not None
        )


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of the instruction."""

    clauses: list[list[str]]  # the words of the clauses that tell this program to do something
    goes_on: bool  # it says nothing, thanks, or begins with "then" or the like


def _read(sentence: str) -> _Sentence:
    """Return a sentence's clauses.

    - A clause that begins with a verb of reading ("tell me", "find") only asks for information. In the rest of the
      sentence, a verb counts only with an object ("and send it", "and send the answer"). Other words count as nouns.
    - From a relative on ("that I can send", "which teams may invite"), the rest of the sentence says what others do.
    - A clause with a person in it ("I send it") says what that person does, except for "I want (you) to" at its start.
    """
    clauses: list[list[str]] = [[]]
    commands = begins = True
    reads = described = False
    last = ""
    tokens = _TOKEN.findall(sentence)
    for part, following in pairwise([*_without_wish(tokens), ""]):
        if not part[0].isalnum() or part in _listed("joining clauses") or (part == "i" and not begins):
            clauses.append([])
            begins = True
            continue
        is_verb = begins and part not in _listed("common")
        begins = False
        if is_verb and part in _listed("reading"):
            commands, reads = False, True
            clauses[-1].append(part)
        elif is_verb:  # "find and replace" has one object
            commands = not reads or following in _listed("objects") or last in _listed("reading")
        last = part
        if part in _listed("persons") and not described:
            clauses[-1], commands = [], False
        if part in _listed("auxiliaries") and len(clauses[-1]) == 1:  # "Send will be done by Tom"
            clauses[-1] = []
        described = described or (part in _listed("relatives") | _listed("auxiliaries") and not is_verb)
        if commands and not described:
            clauses[-1].append(part)
    return _Sentence(clauses, not tokens or tokens[0] in _listed("joining clauses") | _listed("thanks"))


def _deeds(clause: Sequence[str], names: Sequence[str], *, english: bool) -> list[str]:
    """Return the words of a clause that may be an order to do something now.

    Usually this is the first word. If the clause begins with an article, it is an infinitive at the end ("die Mail
    senden"). After "click" and similar verbs, it is any word up to "to". English verbs can also be nouns, so there an
    object must follow: a pronoun, an article, a preposition, a name, or the name of something visible ("Send is greyed
    out" has no object). A clause with a time of day orders nothing now.
    """
    clock = any(_CLOCK.fullmatch(f"{one} {other}") for one, other in pairwise([*clause, ""]))
    if not clause or clock or _listed("times").intersection(clause):
        return []
    first, *others = clause
    if first in _listed("common"):
        return [one for one in others[-1:] if one.endswith("en")]
    if first in _listed("pressing"):
        return [*takewhile(lambda one: one != "to", clause)]
    second = others[0] if others else ""
    is_object = not second or not english or second in _listed("objects") | _listed("prepositions")
    return [first] if is_object or any(_same(second, one) for one in names) else []


def _is_same_deed(caption: str, deed: str) -> bool:
    """Whether a verb fits a caption. A longer ending may be a negation or a past tense: Turkish gönderme, göndermiş."""
    return _same(caption, deed) and not (deed.startswith(caption) and len(deed) > len(caption) + 1)


def _is_question(sentence: str) -> bool:
    """Whether a sentence is a question. "Can you ..." is not a question but a request."""
    first = _WORD.search(plain(sentence))
    if first is None or first[0] in _listed("asking"):
        return first is not None
    return sentence.rstrip().endswith(("?", "？")) and first[0] not in _listed("wishing")


def _without_wish(parts: list[str]) -> list[str]:
    """Leave out "I want (you) to", "ich möchte" and the like at the beginning."""
    polite = _listed("wishing") | _listed("own persons")
    length = next((at for at, part in enumerate(parts) if part not in polite), len(parts))
    return parts[length:] if _listed("wishing") & set(parts[:length]) else parts


def _visible(action: Action[DesktopPoint], seen: Situation) -> list[str]:
    """Return the significant words at the action's target: of its window, its dialog and its elements."""
    place = seen.focused if isinstance(action, TYPING) else seen.under
    texts = [seen.asked, *(one.label for one in seen.elements), *((place.app, place.title) if place else ())]
    return [word for text in texts for word in _content(plain(text))]


def _is_asked(action: Action[DesktopPoint], seen: Situation) -> bool:
    """Whether a press answers a dialog."""
    place = seen.focused if isinstance(action, TYPING) else seen.under
    return bool(seen.asked) or (place is not None and place.dialog)


def _program(place: Place | None) -> list[str]:
    """Return the words of a window's program and of a page's host: "on WhatsApp" names no object."""
    return [] if place is None else _content(plain(f"{place.app} {place.site}"))


def _of_addresses(text: str, sentence: str) -> set[Fact]:
    """Return the facts about the addresses in a text that is typed, or that Enter sends."""
    written = [one.strip() for one in _ADDRESS.findall(text)]
    lines = [line for line in text.splitlines()[:_MOST_LINES] if visited(line) is not None]
    facts: set[Fact] = set()
    if any("carries much" in facts_of(url, sentence) for url in written):
        facts.add("carries much")
    named = all(names_site(url, sentence) for url in written)
    if not named or not all(names_site(visited(line) or "", sentence, line) for line in lines):
        facts.add("unnamed address")
    return facts


def _captions(action: Action[DesktopPoint], seen: Situation) -> list[str]:
    """Return the captions that the instruction must name: for a drag both ends, in a page all, else the first."""
    typing = isinstance(action, TYPING)
    called = captions(seen, typing=typing)
    if isinstance(action, Drag):
        return [_bare(" ".join(called))]
    return [*map(_bare, called)] if is_page(seen.focused if typing else seen.under) else [*map(_bare, called[:1])]


def _bare(text: str) -> str:
    return " ".join(_WORD.findall(plain(text)))


def _content(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word not in _listed("common")]


def _same(one: str, other: str) -> bool:
    """Whether two words differ only in their endings, or are synonyms in the lists. "Sending" is no command to send."""
    if one.rstrip("s").endswith("ing") != other.rstrip("s").endswith("ing"):
        return False
    if one == other or any(one in group and other in group for group in _synonyms()):
        return True
    shared = max(_STEM, min(len(one), len(other)) - _ENDING)
    return min(len(one), len(other)) >= _STEM and abs(len(one) - len(other)) <= _LONGEST_ENDING and (
        one[:shared] == other[:shared]
    )  # fmt: skip


@cache
def _listed(name: str) -> frozenset[str]:
    return frozenset(plain(one).replace("'", " ") for one in load_config("policies/sentence.toml")[name])


@cache
def _synonyms() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(map(plain, group)) for group in load_config("policies/sentence.toml")["same"])
