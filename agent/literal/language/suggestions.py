"""Suggests the nearest sentence that the grammar understands."""

from functools import cache

from agent.literal.vocabulary import lexicon

#: Similarity from which a word counts as a misspelled verb, of 100.
_ALIKE = 75
#: Similarity from which an example sentence is suggested, of 100.
_NEAR = 60

_QUESTIONS = frozenset("what who where why when which how is are was".split())  # noqa: SIM905


def nearest(text: str) -> str:
    """Return a suggestion with a leading space; "" if nothing is near."""
    if (suggestion := _nearest(" ".join(text[:200].split()))) is None:
        return ""
    return f" The nearest that I understand: “{suggestion}”."


@cache
def _nearest(text: str) -> str | None:
    from rapidfuzz import fuzz, process

    words = text.split(" ")
    if not words[0]:
        return None
    verbs = [verb for verb in lexicon.config()["verbs"].split() if len(verb) > 2]
    best = process.extractOne(words[0].casefold(), verbs, scorer=fuzz.ratio, score_cutoff=_ALIKE)
    if words[0].casefold() in _QUESTIONS:
        return None
    if best is not None and best[0] != words[0].casefold() and len(words) > 1:
        return f"{best[0]} {' '.join(words[1:])}"
    if (thing := _thing_in(text)) is not None:
        return f"turn on {thing}"
    examples = lexicon.config()["examples"]["sentences"]
    same_verb = [example for example in examples if example.split(" ")[0] == words[0].casefold()]
    found = process.extractOne(text, same_verb or examples, scorer=fuzz.ratio, score_cutoff=0 if same_verb else _NEAR)
    return None if found is None else str(found[0])


def _thing_in(text: str) -> str | None:
    """Return the longest name in the tables of places that the text contains."""
    from agent.literal.vocabulary.places import names_of_things

    lowered = f" {text.casefold()} "
    held = [name for name in names_of_things() if len(name) > 8 and f" {name} " in lowered]
    return max(held, key=len, default=None)
