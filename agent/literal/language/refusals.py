"""Rejects words that negate an instruction, make it conditional, or leave open what is meant.

Ignoring them would make the engine do the opposite of the request. They are allowed within labels.
"""

import re
from functools import cache

from agent.literal.language.sentences import FinalRefusalError, NotUnderstoodError, split_instruction
from agent.literal.vocabulary import lexicon
from foundation.configs import load_config

#: "all" and similar words in expressions that do not mean several things.
_HARMLESS = re.compile(
    r"all the way|both (?=\S+ and )|some(?= text| more\b)|any more|not so (?=\w+$)"
    r"|\breplace (?:all|every|each)(?= (?:(?:occurrences?|instances?) of )?\x00)"
    r"|^close (?:all|every|everything)(?: (?:the|other|open|windows?|apps?|applications?|programs?))*"
    r",? (?:but|except|other)\b",
    re.IGNORECASE,
)
#: Verbs for switches, and the least words of their label before a clause in it.
_SWITCHED = re.compile(r"(?:enable|disable|(?:de)?activate|(?:un)?check|(?:un)?tick|(?:turn|switch) (?:on|off)) ", re.I)
_FROM_A_LABEL = 3
_CLAUSE = re.compile(
    r" (?:it|the|this|that|these|there|you|i|we|he|she|they|my|your|a|an|any|possible|needed|necessary|shown|available|"
    r"present|asked|prompted|visible|not|so|required|tomorrow|then|done|finished|ready)\b",
    re.IGNORECASE,
)
#: Conditions and times that are refused even if a model reads the instruction. "When" and similar words are final only
#: at the beginning of a part: "focus windows when the mouse enters them" names a setting.
_FINAL_CONDITION = re.compile(r"if|unless|in case|provided|depending|until|till|as soon as|as long as|whenever", re.I)


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
        return match.lastgroup == "negation" and (match[0][0].isupper() or verb["value"] is not None)
    words = before.split()
    if not words[0][0].isupper() or not after:
        return False
    switched = _SWITCHED.match(text) and len(words) >= _FROM_A_LABEL and any(word.islower() for word in words)
    if _CLAUSE.match(after):  # "tick Show a warning if a job is running", but not "turn on Night Light if it is dark"
        return bool(switched)
    if match.lastgroup == "quantity":  # "Show all windows"
        return True
    return len(words) >= 2 and any(word.islower() for word in words)  # "Hide title of windows when maximized"


@cache
def _words() -> re.Pattern[str]:
    kinds = (f"(?P<{kind}>{entry['words']})" for kind, entry in load_config("grammar.toml")["refused"].items())
    return re.compile(rf"(?<![\w-])(?:{'|'.join(kinds)})(?![\w-])", re.IGNORECASE)


@cache
def _label_verb() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?P<value>(?:choose|select|pick|(?:set|change|switch) .+? to))|{lexicon.label_verbs()})"
        r"(?: (?:the|a|option|box|check ?box|called|named|labelled))* ",
        re.IGNORECASE,
    )
