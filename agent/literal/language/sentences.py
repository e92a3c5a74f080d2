"""Splits an instruction into parts, one for each verb, removes polite phrases, and refuses what cannot be followed.

Words that negate an instruction, make it conditional, or leave open what is meant are refused: without them the engine
would do the opposite of the request. They are allowed within labels.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from agent.literal.language.headings import with_verbs
from agent.literal.language.table import Table, matches
from agent.literal.vocabulary import lexicon, quotes
from foundation.configs import load_config

#: Most characters of an instruction, in total and outside quotation marks.
_MOST = 100_000
_MOST_UNQUOTED = 4000
#: Most characters of a part outside quotation marks, so that regular expressions stay fast.
_MOST_PART = 400
_CONTROL = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127])
TYPING = re.compile(r"(?i)(?:type|write|enter|input|paste)\b")

#: "all" and similar words in expressions that do not mean several things.
_HARMLESS = re.compile(
    r"(?i)all the way|both (?=\S+ and )|some(?= text| more\b)|any more|not so (?=\w+$)"
    r"|\breplace (?:all|every|each)(?= (?:(?:occurrences?|instances?) of )?\x00)"
    r"|^close (?:all|every|everything)(?: (?:the|other|open|windows?|apps?|applications?|programs?))*"
    r",? (?:but|except|other)\b"
)
#: Verbs for switches, and the fewest words of a label before a clause that belongs to it.
_SWITCHED = re.compile(r"(?i)(?:enable|disable|(?:de)?activate|(?:un)?check|(?:un)?tick|(?:turn|switch) (?:on|off)) ")
_FROM_A_LABEL = 3
_CLAUSE = re.compile(
    r"(?i) (?:it|the|this|that|these|there|you|i|we|he|she|they|my|your|a|an|any|possible|needed|necessary|shown|"
    r"available|present|asked|prompted|visible|not|so|required|tomorrow|then|done|finished|ready)\b"
)
#: Conditions and times that are refused even if a model reads the instruction. "When" and similar words are refused
#: this way only at the beginning of a part: "focus windows when the mouse enters them" names a setting.
_FINAL_CONDITION = re.compile(r"(?i)if|unless|in case|provided|depending|until|till|as soon as|as long as|whenever")


class NotUnderstoodError(ValueError):
    """A part of the instruction that the grammar does not know."""


class FinalRefusalError(NotUnderstoodError):
    """A part that no reading can fulfil."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an instruction."""

    text: str  # with a placeholder for each quotation, so that its words are not parsed
    quoted: list[str]  # the quotations of the instruction
    it: str = ""  # what "it" refers to; "" if nothing was named before
    it_is_open: bool = False  # "it" was opened, so it has a window
    it_is_file: bool = False  # "it" is a file or folder

    def shown(self, text: str) -> str:
        """Return a piece of the part as it was written."""
        return " ".join(quotes.show(text, self.quoted).split(" ")).strip()

    def quotation(self, text: str) -> str | None:
        """Return the quotation if the piece is exactly one; else None."""
        return quotes.only_quotation(text, self.quoted)


def split_instruction(instruction: str) -> tuple[list[str], list[str]]:
    """Return the parts of an instruction in order, without polite phrases, and its quotations.

    Raises NotUnderstoodError if the instruction is too long.
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
    text = _with_place_last(re.sub(r"(?i)\bits window\b", "it", text))
    text = with_verbs(_without_gerunds(_without_reasons(" ".join(text.split()))))
    pieces = list(_pieces(text))
    parts = [without_courtesy(piece) for piece in pieces]
    for piece, part in zip(pieces, parts, strict=True):
        _check_ending(piece, part)
    if any(len(part) > _MOST_PART for part in parts):
        raise NotUnderstoodError("A part of the instruction is too long: put long texts in quotation marks.")
    return [part for part in parts if part], quoted


#: Words before a place at the end: "turn on X, it's in Y", "X off, please, on the Y page".
_BEFORE_A_PLACE = re.compile(
    r"(?i)(?:,? please)?(?:,? (?:which|that)(?: is|['’]s| are| lies?)|,(?: it(?: is|['’]s))?) "
    r"(?=(?P<place>(?:in|on|inside|under|from) (?:the |my )?[^\s,.:!?][^,.:!?]*)(?:[.!?]|$))"
)


def _with_place_last(text: str) -> str:
    """Remove the words and the comma before a place at the end. A text to type is left alone."""
    verb = re.compile(rf"(?i) {lexicon.verbs()}(?![\w'’-])")

    def joined(match: re.Match[str]) -> str:
        told = text[: match.start()].rpartition(". ")[2]
        is_order = match[0].endswith(", ") and verb.search(match["place"])  # "click A, in B click C"
        return match[0] if is_order or TYPING.search(told) else " "

    return _BEFORE_A_PLACE.sub(joined, text)


#: Endings that are certainly polite, and prepositions that end a typed text.
_SURELY = re.compile(r"(?i)(?:.*,| please| for me)+")
_REQUEST = re.compile(r"(?i)(?:can|could|would|will) you\b")
_GOES_INTO = re.compile(r"(?i) (?:in|into|to|on) ")


def _check_ending(piece: str, part: str) -> None:
    """Raise NotUnderstoodError if the last words may be polite or belong to the text: "type see you again"."""
    ending = piece.strip(" ,;.!?").rpartition(part)[2] if part else ""
    if _NAMES.match(part) and _MAY_END_A_NAME.fullmatch(ending):  # "click Buy now"
        raise NotUnderstoodError(
            f"I do not know whether “{ending.strip()}” belongs to the name: put the name in quotation marks."
        )
    if not TYPING.match(part) or "\x00" in part:
        return
    if not ending and (mark := re.search(r"[!?]+$", piece)) is not None and not _REQUEST.match(piece):
        ending = mark[0]
    if ending and not _SURELY.match(ending) and not _GOES_INTO.search(part):
        raise NotUnderstoodError(f"I do not know whether to type “{ending.strip()}”: put the text in quotation marks.")


#: A label or name that begins with a capital, and ends the part; and words that may be the end of it.
_NAMES = re.compile(
    r"(?:(?i:click|tap|press|push|hit|choose|select|pick|tick|untick|check|uncheck)(?: on)?(?: the [a-z ]+)?"
    r"|.+ (?:called|named|labell?ed|titled)) [A-Z][^\x00]*$"
)
_MAY_END_A_NAME = re.compile(r"(?i)(?: for)? (?:now|again|thanks|thank you|today)")
_SUBJECT = r"(?:i|i['’](?:m|d|ve|ll)|it|it['’]s|that['’]s|that|they|my \w+|the \w+|there|we|you never know)"
_ASKED = r"(?:(?:please|(?:can|could|would|will) you(?: please)?),? )?"
#: A reason before an instruction, joined by "so".
_REASON_BEFORE = re.compile(rf"(?i)(?P<why>{_SUBJECT} (?:[^.;]|\.(?=\S))+?), so (?P<what>{_ASKED}{lexicon.verbs()} .+)")
#: A complaint after an instruction: "turn it down a little, it's too loud".
_COMPLAINT_AFTER = re.compile(
    rf"(?i)(?P<order>(?:^|(?<=[.!?] )){lexicon.verbs()} [^.!?]+?), (?:it|they|that|this|(?:my|the|your) [\w ]{{1,30}}?)"
    r"(?:['’]s| is| are|['’]re) (?:\w+ )?too \w+(?=[.!?]|$)"
)
#: A reason after an instruction, as a clause or a sentence: ", it's easier on my eyes", ". I keep hitting it".
_REASON_AFTER = re.compile(
    r"(?:, |[.!?] )(?P<why>(?:[Ii]t(?:['’]s| (?!was\b)\w+s)"
    r"|(?:I|we) (?:keep|always|often|hardly|barely|find|like|prefer|hate|forget|lose)"
    r"|I (?:can(?:['’]t|not)|can (?:hardly|barely)) (?:see|read|hear|find|reach|tell)\b"
    r"|[Mm]y \w+ (?:is|are|hurts?|keeps?|gets?|feels?)|[Tt]he (?:\w+ ){1,3}\w+s(?= (?:me|us|my)\b))"
    r"(?P<rest>(?: (?!and\b|then\b)[a-z'’]+)+))(?=[.!?](?: |$)|$)"
)
#: Words with which such a clause may say what to do, or which thing is meant: "..., it's the second one".
_MAY_ORDER = re.compile(
    r"^ (?:the|my|your)\b|\b(?:in|on(?! my eyes\b)|off|under|at|from|to|should|must|needs|has|want|called|named"
    r"|instead|too)\b"
)
_BECAUSE = re.compile(
    r",? because (?P<why>(?:(?! and | then )[^.,!?;\x00])+)(?=[.!?](?: |$)|$|,? (?:and |then ){1,2}"
    rf"{lexicon.verbs()}(?![\w'’-]))|^[Bb]ecause (?P<before>[^.,!?;\x00]+), (?={lexicon.verbs()} )"
)
_ASIDE = re.compile(
    r"(?i)(?P<verb>open|start|launch|show|close|make|create|find|turn|switch|set|change|get|give|bring|put)"
    r"(?P<on> on| off| up| down)? (?:(?:for me|me please|please|pls|plz|kindly|quickly|just),? )+(?=\S)"
)


def _without_reasons(text: str) -> str:
    """Remove the reasons for an instruction. A complaint stays, because it may name what "it" refers to."""
    reason = _REASON_BEFORE.fullmatch(text)
    if reason is not None and not _is_wish(reason["why"]):
        text = reason["what"]

    def without(match: re.Match[str]) -> str:
        told, why = text[: match.start()].rpartition(". ")[2], next(filter(None, match.groups()))
        orders = match.re is _REASON_AFTER and (_MAY_ORDER.search(match["rest"]) or _is_wish(why))
        clause = re.sub(r"\bcan(?:['’]t|not)\b", "", why)  # "I can't see well" forbids nothing
        return match[0] if orders or _words().search(clause) or TYPING.search(told) else ""

    text = _REASON_AFTER.sub(without, _BECAUSE.sub(without, text))
    text = re.sub(r"(?i)\bmore (slow|quick)(?:ly)?\b", r"\1er", text)
    text = _COMPLAINT_AFTER.sub(lambda found: found[0] if TYPING.match(found["order"]) else found["order"], text)
    return re.sub(r"(\w) for me (?=(?:called|named|titled) )", r"\1 ", _ASIDE.sub(r"\g<verb>\g<on> ", text))


def _is_wish(text: str) -> bool:
    """Whether the table of phrases says what to do about a text, such as a complaint."""
    tables: tuple[Table, ...] = ("phrases", "wishes")
    return any(True for table in tables for _ in matches(table, without_courtesy(text), []))


def _without_gerunds(text: str) -> str:
    """Put the later verbs of "would you mind opening A and closing B" into their base form."""
    verbs = lexicon.either(map(lexicon.gerund, lexicon.verb_list()))
    ing = lexicon.either(lexicon.config()["courtesy_ing"])
    first = re.match(rf"(?:\S+,? ){{0,3}}?{ing} {verbs}\b", text, re.IGNORECASE)
    if first is None:
        return text
    more = re.compile(rf"(?i)(?P<joint>(?:,| and| then)(?: then| also)? )(?P<verb>{verbs})\b")
    rest = more.sub(lambda found: found["joint"] + _infinitive(found["verb"]), text[first.end() :])
    return text[: first.end()] + rest


def without_courtesy(text: str) -> str:
    """Remove the polite phrases around a part of an instruction."""
    before, after, gerund, only = _courtesy()
    bare = text.strip(" ,;.!?")
    for _ in range(8):
        shorter = after.sub("", bare).strip(" ,;.!?")
        if match := gerund.match(shorter):
            shorter = f"{_infinitive(match['verb'])}{shorter[match.end() :]}"
        elif match := before.match(shorter):
            shorter = shorter[match.end() :]
        if shorter == bare or not shorter:
            break
        bare = shorter
    return "" if only.fullmatch(bare) else bare


def _pieces(text: str) -> Iterator[str]:
    """Split the text after each sentence and before each verb that begins a part."""
    typing = False
    for sentence in re.split(r"(?<=[.!?])\s+(?=\S)", text):
        pieces = _joints().split(sentence)
        first = re.match(rf"{lexicon.verbs()}(?![\w’'-])", without_courtesy(pieces[0]), re.IGNORECASE)
        if typing and first is None:
            raise NotUnderstoodError("What to type goes over several sentences: put it in quotation marks.")
        kept = ""
        for piece in pieces:
            if kept and _is_next_label(kept, piece):
                kept += f" then {piece}"
                continue
            if re.fullmatch("(?i)in (?:the )?[^,]{1,40}", kept) and re.match("(?i)on .+ (?:tab|page)", piece):
                kept += f", {piece}"
                continue
            if kept:
                yield kept
            kept = piece
        yield kept
        typing = bool(TYPING.match(without_courtesy(kept))) and "\x00" not in kept


def _is_next_label(before: str, piece: str) -> bool:
    """Return whether a verb begins the next label: "click File, then Save As"."""
    return bool(
        re.match(rf"(?i:{lexicon.label_verbs()}) (?:(?:on|the) )*[A-Z\x00]", without_courtesy(before))
        and re.fullmatch(r"[A-Z][\w…]*(?: [A-Z][\w…]*){0,2}", piece.strip(" .!?"))
    )


@cache
def _joints() -> re.Pattern[str]:
    courtesy = lexicon.either(lexicon.config()["courtesy_before"])
    place = r"(?:in|inside|within) (?:the )?[^ ,.][^,.]{0,40}, ?"
    return re.compile(
        rf"(?i)(?: ?[,.:!] ?(?:and )?(?:then )?| (?:and then|and|then|afterwards|after that),? )"
        rf"(?=(?:{courtesy},? ){{0,3}}(?:{place})?{lexicon.verbs()}(?![\w’'-]))"
        rf"|(?: ?, ?(?:and |then )?| and )(?=on (?:the )?[^ ,.][^,.]{{0,30}} (?:tab|page),? "
        rf"{lexicon.verbs()}(?![\w’'-]))"
        rf"|(?: ?, ?(?:and |then ){{0,2}}| and then | and | then )(?=(?:in|on|under|from|inside|within) "
        rf"(?:(?:the|my) [^ ,.]|(?-i:[A-Z\x00]))[^,.]{{0,40}} {lexicon.verbs()} (?:the |on |off )?(?-i:[A-Z\x00]))"
        rf"|(?: ?, ?(?:and |then ){{0,2}}| and then | and | then )(?=(?:in|inside|within) (?:the )?[^ "
        rf",.][^,.]{{0,40}}, ?(?:{courtesy} )?{lexicon.verbs()}(?![\w’'-]))"
    )


@cache
def _courtesy() -> tuple[re.Pattern[str], ...]:
    table = lexicon.config()
    both = lexicon.either([*table["courtesy_before"], *table["courtesy_after"]])
    verbs = {lexicon.gerund(verb) for verb in [*lexicon.verb_list(), "have"]}
    return (
        re.compile(rf"(?i){lexicon.either(table['courtesy_before'])}(?![\w’'-])[, ]*(?=[^ ,])"),
        re.compile(rf"(?i)(?<=[^ ,])(?:,| )[, ]*{lexicon.either(table['courtesy_after'])}$"),
        re.compile(rf"(?i){lexicon.either(table['courtesy_ing'])} (?P<verb>{lexicon.either(verbs)})\b"),
        re.compile(rf"(?i){both}(?:[, ]+{both}){{0,4}}"),
    )


def _infinitive(gerund: str) -> str:
    return next((verb for verb in lexicon.verb_list() if lexicon.gerund(verb) == gerund.casefold()), gerund)


def check_refusals(text: str, *, final_only: bool = False) -> None:
    """Raise NotUnderstoodError for the first word that the engine cannot follow, with advice.

    The error is a FinalRefusalError if no reading could do what the word says; with `final_only` it always is.
    """
    harmless = [match.span() for match in _HARMLESS.finditer(text)]
    for match in _words().finditer(text):
        if any(start <= match.start() < end for start, end in harmless) or (
            match["left"] is None and _in_label(text, match)
        ):
            continue
        kind = match.lastgroup or "condition"
        depends = kind == "condition" and (match.start() == 0 or bool(_FINAL_CONDITION.fullmatch(match[0])))
        final = kind in ("time", "question") or depends
        if final_only and not final:
            continue
        error = FinalRefusalError if final else NotUnderstoodError
        why = load_config("grammar.toml")["refused"][kind]["why"].format(match[0])
        raise error(f"{why}. If it is part of a name, put the name in quotation marks.")


def check_final(instruction: str) -> None:
    """Raise FinalRefusalError if an instruction says anything that no reading of it could do."""
    for piece in split_instruction(instruction)[0]:
        check_refusals(piece, final_only=True)


def _in_label(text: str, match: re.Match[str]) -> bool:
    """Return whether the word belongs to a label: it follows a verb that takes one, and the label is capitalized."""
    verb = _label_verb().match(text)
    if verb is None or verb.end() > match.start():
        return False
    before, after = text[verb.end() : match.start()], text[match.end() :]
    if not before.strip():  # "click Don't Save", "choose Never", "set screen blank to never", "tick When resizing"
        if match.lastgroup == "condition":
            return match[0][0].isupper() and bool(after) and not _CLAUSE.match(after)
        if match.lastgroup == "quantity":  # "choose All Files in Show Thumbnails"
            return match[0][0].isupper() and re.match(r" [A-Z]", after) is not None
        return match.lastgroup == "negation" and (match[0][0].isupper() or verb["value"] is not None)
    words = before.split()
    if not words[0][0].isupper() or not after:
        return False
    switched = _SWITCHED.match(text) and len(words) >= _FROM_A_LABEL and any(word.islower() for word in words)
    if words[-1].casefold() == "only":  # "switch on Large Text only when I plug in a monitor"
        return False
    if _CLAUSE.match(after):  # "tick Show a warning if a job is running", but not "turn on Night Light if it is dark"
        return bool(switched)
    if match.lastgroup == "quantity":  # "Show all windows"
        return True
    return len(words) >= 2 and any(word.islower() for word in words)  # "Hide title of windows when maximized"


@cache
def _words() -> re.Pattern[str]:
    kinds = (f"(?P<{kind}>{entry['words']})" for kind, entry in load_config("grammar.toml")["refused"].items())
    return re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(kinds)})(?![\w-])")


@cache
def _label_verb() -> re.Pattern[str]:
    return re.compile(
        rf"(?i)(?:(?P<value>(?:choose|select|pick|(?:set|change|switch) .+? to))|{lexicon.label_verbs()})"
        r"(?: (?:the|a|option|box|check ?box|called|named|labelled))* "
    )
