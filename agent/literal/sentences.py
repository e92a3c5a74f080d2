"""Cuts an instruction into its parts, one for each verb, and takes off what is said out of courtesy."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from agent.literal import lexicon, quotes

#: Characters of an instruction, and of it outside quotation marks: more is a text, not an instruction.
_MOST = 100_000
_MOST_UNQUOTED = 4000
#: Characters of one part outside quotation marks, so that no expression works long on it.
_MOST_PART = 400
_CONTROL = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127])
_TYPING = re.compile(r"(?:type|write|enter|input|paste)\b", re.IGNORECASE)


class NotUnderstoodError(ValueError):
    """A part of the instruction that the grammar does not know."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an instruction."""

    text: str  # each quotation replaced by a mark, so that words in it are not read as instructions
    quoted: list[str]  # the quotations of the instruction
    it: str = ""  # what "it" is there, "" where nothing was named before
    it_is_open: bool = False  # whether that was opened, so that it has a window

    def shown(self, text: str) -> str:
        """A piece of the part as it was written."""
        return " ".join(quotes.show(text, self.quoted).split(" ")).strip()

    def quotation(self, text: str) -> str | None:
        """The quotation that a piece is; None where it is none, or more than one."""
        return quotes.only_quotation(text, self.quoted)


def split_instruction(instruction: str) -> tuple[list[str], list[str]]:
    """The parts of an instruction in order, without courtesy, and its quotations.

    Raises NotUnderstoodError for what is too long to be an instruction.
    """
    if len(instruction) > _MOST:
        raise NotUnderstoodError("The instruction is too long.")
    cleaned = unicodedata.normalize("NFC", instruction).translate(_CONTROL).replace("\r", "\n")
    quoted: list[str] = []
    text = quotes.hide_quotes(cleaned, quoted)
    if len(text) > _MOST_UNQUOTED:
        raise NotUnderstoodError("The instruction is too long: put long texts in quotation marks.")
    text = quotes.hide_names(text, lexicon.names(), lexicon.beginnings(), quoted)
    text = re.sub(r"\s+[–—]+\s+|\s*(?:\.{3}|…)\s+", ", ", re.sub(r"[\s.,]*[;\n]\s*", ". ", text.strip()))
    text = " ".join(text.split())
    parts = [without_courtesy(piece) for piece in _pieces(text)]
    if any(len(part) > _MOST_PART for part in parts):
        raise NotUnderstoodError("A part of the instruction is too long: put long texts in quotation marks.")
    return [part for part in parts if part], quoted


def without_courtesy(text: str) -> str:
    """A part of an instruction without what is said around it out of courtesy."""
    before, after, gerund, only = _courtesy()
    bare = text.strip(" ,;.!?")
    for _ in range(8):
        shorter = after.sub("", bare).strip(" ,;.!?")
        if match := gerund.match(shorter):
            shorter = f"{_infinitive(match['verb'])}{shorter[match.end() :]}"
        elif match := before.match(shorter):
            shorter = shorter[match.end() :]
        if shorter == bare or not shorter or _only_verb().fullmatch(shorter):
            break
        bare = shorter
    return "" if only.fullmatch(bare) else bare


def _pieces(text: str) -> Iterator[str]:
    """The text, cut before each verb that begins a part and after each sentence."""
    typing = False
    for sentence in re.split(r"(?<=[.!?])\s+(?=\S)", text):
        pieces = _joints().split(sentence)
        if typing and not _verb_first().match(without_courtesy(pieces[0])):
            raise NotUnderstoodError("What to type goes over several sentences: put it in quotation marks.")
        kept = ""
        for piece in pieces:
            if kept and _is_end_of_label(kept, piece):
                kept += f" and {piece}"
                continue
            if kept and _is_next_label(kept, piece):
                kept += f" then {piece}"
                continue
            if kept:
                yield kept
            kept = piece
        yield kept
        typing = bool(_TYPING.match(without_courtesy(kept))) and not quotes.has_quotation(kept)


def _is_end_of_label(before: str, piece: str) -> bool:
    """Whether a verb without an object is the end of a label: "click Cut and paste"."""
    if re.match(r"(?:press|hit|push|strike) ", without_courtesy(before), re.IGNORECASE):
        return piece.strip(" .!?").casefold() in ("delete", "insert", "enter", "undo", "find")  # names of keys
    match = re.fullmatch(rf"{lexicon.label_verbs()} (?:the )?(?P<label>\S+)", without_courtesy(before), re.IGNORECASE)
    bare = re.fullmatch(rf"{lexicon.verbs()}", piece.strip(" .!?"), re.IGNORECASE)
    return match is not None and bare is not None and match["label"][0].isupper()


def _is_next_label(before: str, piece: str) -> bool:
    """Whether a verb is a label's: "click File, then Save As"."""
    return bool(
        re.match(rf"(?i:{lexicon.label_verbs()}) (?:(?:on|the) )*[A-Z\x00]", without_courtesy(before))
        and re.fullmatch(r"[A-Z][\w…]*(?: [A-Z][\w…]*){0,2}", piece.strip(" .!?"))
    )


@cache
def _joints() -> re.Pattern[str]:
    courtesy = lexicon.either(lexicon.config()["courtesy_before"])
    place = r"(?:in|inside|within) (?:the )?[^ ,.][^,.]{0,40}, ?"
    return re.compile(
        rf"(?: ?[,.:!] ?(?:and )?(?:then )?| (?:and then|and|then|afterwards|after that),? )"
        rf"(?=(?:{courtesy},? ){{0,3}}(?:{place})?{lexicon.verbs()}(?![\w’'-]))"
        rf"|(?: ?, ?(?:and |then ){{0,2}}| and then | and | then )(?=(?:in|inside|within) (?:the )?[^ "
        rf",.][^,.]{{0,40}}, ?(?:{courtesy} )?{lexicon.verbs()}(?![\w’'-]))",
        re.IGNORECASE,
    )


@cache
def _only_verb() -> re.Pattern[str]:
    return re.compile(lexicon.verbs(), re.IGNORECASE)


@cache
def _verb_first() -> re.Pattern[str]:
    return re.compile(rf"{lexicon.verbs()}(?![\w’'-])", re.IGNORECASE)


@cache
def _courtesy() -> tuple[re.Pattern[str], ...]:
    table = lexicon.config()
    both = lexicon.either([*table["courtesy_before"], *table["courtesy_after"]])
    verbs = {_gerund(verb) for verb in [*table["verbs"].split(), "have"]}
    return (
        re.compile(rf"{lexicon.either(table['courtesy_before'])}(?![\w’'-])[, ]*(?=[^ ,])", re.IGNORECASE),
        re.compile(rf"(?<=[^ ,])(?:,| )[, ]*{lexicon.either(table['courtesy_after'])}$", re.IGNORECASE),
        re.compile(rf"{lexicon.either(table['courtesy_ing'])} (?P<verb>{lexicon.either(verbs)})\b", re.IGNORECASE),
        re.compile(rf"{both}(?:[, ]+{both}){{0,4}}", re.IGNORECASE),
    )


_DOUBLED = ("set", "put", "run", "tap", "hit", "get")


def _gerund(verb: str) -> str:
    if verb in _DOUBLED:
        return f"{verb}{verb[-1]}ing"
    return f"{verb.removesuffix('e')}ing"


def _infinitive(gerund: str) -> str:
    verbs = lexicon.config()["verbs"].split()
    return next((verb for verb in verbs if _gerund(verb) == gerund.casefold()), gerund)
