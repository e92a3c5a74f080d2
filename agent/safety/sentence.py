"""What the person's own sentence says of an action: "send the mail" covers "Send", once, where a mail is seen."""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from agent.actions import TYPING, Action, Drag, HoldKeys, PressKeys, TypeText
from agent.geometry import DesktopPoint
from agent.safety.addresses import facts_of, names_site
from agent.safety.situation import Fact, Situation
from agent.safety.spots import captions
from agent.safety.words import plain
from foundation.configs import load_config

_QUOTED = re.compile(r"[\"“„«‘']([^\"“”„«»‘’']{1,80})[\"”“»’']")
#: An address; one that begins a line goes on after spaces, as browsers take it, and may lack what says that it is one.
_ADDRESS = re.compile(r"(?mi)^[ \t]*https?://[^\n]+|https?://\S+")
_BARE = re.compile(
    r"(?mi)^[ \t]*(?:(?:(?:[\w-]+\.)+(?:[a-z]{2,24}|\d{1,10})|localhost|\[[0-9a-f:.]+\])(?::\d+)?(?:[/?#][^\n]*)?"
    r"|[\w-]+/)[ \t]*$"
)
_WORD = re.compile(r"[^\W_]+")
#: Words are the same whatever their endings, if so many letters of the shorter one agree.
_STEM, _ENDING, _LONGEST_ENDING = 4, 2, 4
#: Between a word and what denies it lie at most so many others.
_DENIES_WITHIN = 3
#: Languages in which words are not divided.
_UNDIVIDED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(slots=True)
class Sentence:
    """The instruction of one run, and what of it was done already.

    Args:
        text: as the person wrote it; what stands in quotes is a name or content, and asks for nothing by its words.
    """

    text: str
    _done: Counter[str] = field(default_factory=Counter)

    def facts(self, action: Action[DesktopPoint], seen: Situation) -> frozenset[Fact]:
        """What it says of an action, against what is known of where that goes."""
        if isinstance(action, PressKeys | HoldKeys) and self._quotes_chord(action.keys):
            return frozenset({"in your words"})
        if isinstance(action, TypeText):
            return _of_addresses(action.text, self.text)
        caption = _caption(action, seen)
        if not caption or self._done[caption] >= self._times(caption):
            return frozenset()
        facts: set[Fact] = {"in your words"}
        if self._sees_object(caption, action, seen):
            facts.add("in your words, with its object")
        return frozenset(facts)

    def did(self, action: Action[DesktopPoint], seen: Situation) -> None:
        """It was carried out: what is said once is done once."""
        self._done[_caption(action, seen)] += 1

    def _times(self, caption: str) -> int:
        """How often the sentence names a caption: all of its words that say something."""
        if caption in map(_bare, _QUOTED.findall(self.text)):
            return 1
        if _UNDIVIDED.search(caption):
            return _bare(self.text).count(caption)
        asked = self._asked()
        counts = [sum(_same(one, other) for other in asked) for one in _content(caption)]
        return min(counts, default=0)

    def _asked(self) -> list[str]:
        """The words of the sentence that ask for something: none that are denied."""
        words = _WORD.findall(plain(_QUOTED.sub(" ", self.text)))
        return [
            word
            for at, word in enumerate(words)
            if word not in _told().common and not _told().denying & set(words[max(0, at - _DENIES_WITHIN) : at])
        ]

    def _sees_object(self, caption: str, action: Action[DesktopPoint], seen: Situation) -> bool:
        """Whether something else that the sentence names is seen there; so it is where it names nothing else."""
        others = [one for one in self._asked() if not any(_same(one, word) for word in _content(caption))]
        place = seen.focused if isinstance(action, TYPING) else seen.under
        texts = [seen.asked, *(one.label for one in seen.elements), *((place.app, place.title) if place else ())]
        there = [word for text in texts for word in _content(plain(text))]
        return not others or any(_same(one, other) for one in others for other in there)

    def _quotes_chord(self, keys: tuple[str, ...]) -> bool:
        written = re.escape("+".join(keys)).replace(r"\+", r"\s?[+-]\s?")
        return (
            any(len(key) > 1 for key in keys)
            and re.search(rf"(?<!\w){written}(?!\w)", self.text, re.IGNORECASE) is not None
        )


def _of_addresses(text: str, sentence: str) -> frozenset[Fact]:
    """What is known of the addresses in a text that is typed."""
    written = [one.strip() for one in _ADDRESS.findall(text)]
    bare = [f"http://{one.strip()}" for one in _BARE.findall(text)]
    much = any("carries much" in facts_of(url, sentence) for url in written)
    unnamed = any(not names_site(url, sentence) for url in (*written, *bare))
    told: tuple[tuple[Fact, bool], ...] = (("carries much", much), ("unnamed address", unnamed))
    return frozenset(fact for fact, holds in told if holds)


def _caption(action: Action[DesktopPoint], seen: Situation) -> str:
    called = captions(seen, typing=isinstance(action, TYPING))
    return _bare(" ".join(called if isinstance(action, Drag) else called[:1]))


def _bare(text: str) -> str:
    return " ".join(_WORD.findall(plain(text)))


def _content(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word not in _told().common]


def _same(one: str, other: str) -> bool:
    """Whether two words are the same but for their endings, or mean the same by the lists."""
    if one == other or any(one in group and other in group for group in _told().same):
        return True
    shared = max(_STEM, min(len(one), len(other)) - _ENDING)
    return min(len(one), len(other)) >= _STEM and abs(len(one) - len(other)) <= _LONGEST_ENDING and (
        one[:shared] == other[:shared]
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Told:
    common: frozenset[str]
    denying: frozenset[str]
    same: tuple[frozenset[str], ...]


@cache
def _told() -> _Told:
    data = load_config("policies/sentence.toml")
    return _Told(
        frozenset(map(plain, data["common"])),
        frozenset(map(plain, data["denying"])),
        tuple(frozenset(map(plain, group)) for group in data["same"]),
    )
