"""Rejects words that negate an instruction, make it conditional, or leave open what is meant.

Ignoring them would make the engine do the opposite of the request. They are allowed within labels.
"""

import re
from functools import cache

from agent.literal.language.sentences import FinalRefusalError, NotUnderstoodError, split_instruction
from agent.literal.vocabulary import lexicon

_CONDITION = (
    r"if|unless|except|but|until|till|when|whenever|while|as soon as|as long as|in case|provided|otherwise|else|"
    r"whether|"
    r"because|depending|before|after|once(?= (?:it|the|this|that|you|everything))"
)
_NEGATION = r"do not|don['’]?t|never|without|instead of|rather than|not|cannot|can['’]?t|no longer"
_QUANTITY = (
    r"every|each|all|any|anything|everything|everyone|both|several|some|many|most|random|randomly|whatever|whichever"
)
_TIME = (
    r"tomorrow|tonight|daily|hourly|weekly|later today|in (?:\d+|an?|one|two|five|ten) (?:seconds?|minutes?|hours?|"
    r"days?)|"
    r"at \d{1,2}(?::\d\d)? ?(?:am|pm|o['’]clock)|at (?:noon|midnight)|regularly|repeatedly|forever"
)
_ALTERNATIVE = r"or|either|and/or|maybe|perhaps"
#: Clauses, comparisons, manners and times, which say more than any name on a screen, so that they are left over.
_LEFT_OVER = (
    r"(?:that|which|who|whom|whose|what|where|how) (?:i|you|we|he|she|they)"
    r"|(?:that|which|who) (?:is|are|was|has|had|did)"
    r"|(?:i|you|we|he|she|they) (?:am|are|is|was|were|have|has|had|did|do|saw|made|said|saved|got|like|opened|used)"
    r"|as \S+ as|similar to|(?:more |less |better |other )than|the other (?:person|one|day|computer|laptop|machine|way)"
    r"|yesterday|(?:\S+ )?ago|recently|last (?:time|week|month|year|night)"
    r"|(?:\S+wards|slowly|quickly|gently|carefully|nicely|softly|loudly|properly|correctly)$"
)
_WORDS = re.compile(
    rf"(?<![\w-])(?:(?P<condition>{_CONDITION})|(?P<negation>{_NEGATION})|(?P<time>{_TIME})|(?P<quantity>{_QUANTITY})"
    rf"|(?P<left>{_LEFT_OVER})|(?P<alternative>{_ALTERNATIVE}))(?![\w-])",
    re.IGNORECASE,
)
#: "all" and similar words in expressions that do not mean several things.
_HARMLESS = re.compile(
    r"all the way|both (?=\S+ and )|some(?= text| more\b)|any more|not so (?=\w+$)"
    r"|^replace (?:all|every|each)(?= (?:(?:occurrences?|instances?) of )?\x00)"
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
_WHY = {
    "condition": (
        "I cannot follow “{}”: I do what is said at once, and nothing that depends on something. Say only what to do"
    ),
    "negation": "I cannot follow “{}”: say only what to do, not what not to do",
    "time": "I cannot follow “{}”: I do what is said at once",
    "quantity": "I cannot follow “{}”: name each thing that is meant",
    "alternative": "I cannot follow “{}”: say which one is meant",
    "left": "I do not understand what “{}” adds: leave it out, or say what to do in other words",
}

#: Conditions that stay refused, also if a model reads the instruction, as times do. "When" and its like are final only
#: where they begin a part: "focus windows when the mouse enters them" names a setting.
_FINAL_CONDITION = re.compile(r"if|unless|in case|provided|depending|until|till|as soon as|as long as|whenever", re.I)


def check_refusals(text: str, *, final_only: bool = False) -> None:
    """Raise NotUnderstoodError for the first word that the engine cannot follow, with advice.

    The error is a FinalRefusalError if no reading could do what the word says; with `final_only` it always is.
    """
    harmless = [match.span() for match in _HARMLESS.finditer(text)]
    for match in _WORDS.finditer(text):
        if any(start <= match.start() < end for start, end in harmless) or (
            match["left"] is None and _in_label(text, match)
        ):
            continue
        kind = match.lastgroup or "condition"
        depends = kind == "condition" and (match.start() == 0 or bool(_FINAL_CONDITION.fullmatch(match[0])))
        final = kind == "time" or depends
        if final_only and not final:
            continue
        error = FinalRefusalError if final else NotUnderstoodError
        why = _WHY[kind].format(match[0])
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
def _label_verb() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?P<value>(?:choose|select|pick|(?:set|change|switch) .+? to))|{lexicon.label_verbs()})"
        r"(?: (?:the|a|option|box|check ?box|called|named|labelled))* ",
        re.IGNORECASE,
    )
