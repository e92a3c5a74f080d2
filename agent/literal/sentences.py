"""Cuts an instruction into its parts, one for each verb, and finds the names of things in them."""

import re
from dataclasses import dataclass

_VERBS = (
    *("open", "launch", "start", "run", "click", "tap", "press", "hit", "push", "choose", "select", "pick"),
    *("double-click", "doubleclick", "right-click", "rightclick", "middle-click", "type", "write", "enter", "input"),
    *("paste", "scroll", "wait", "enable", "disable", "activate", "deactivate", "turn", "switch", "toggle", "check"),
    *("uncheck", "tick", "untick", "close", "quit", "exit", "go", "navigate", "set", "change", "use", "show", "find"),
)
_VERB_WORDS = "|".join(
    [*map(re.escape, sorted(_VERBS, key=len, reverse=True)), r"double[ -]click", r"right[ -]click", r"middle[ -]click"]
)
_JOINTS = re.compile(
    rf"\s*(?:[,;.]\s+(?:and\s+)?(?:then\s+)?|\s(?:and\s+then|and|then|afterwards|after that)[,\s]\s*)"
    rf"(?=(?:please\s+|now\s+|finally\s+|also\s+|i[nm]\s+(?:the\s+)?[\w ]{{1,30}},\s*)?(?:{_VERB_WORDS})\b)",
    re.IGNORECASE,
)
#: Words that turn an instruction around: read over, they would do the opposite of what was asked.
_CONDITIONS = re.compile(
    r"\b(?:do not|don['’]?t|never|without|unless|except|if|but|instead|until|all windows)\b", re.IGNORECASE
)
_COURTESY = re.compile(
    r"^(?:(?:please|now|then|first|finally|next|also|just|and|ok|okay|hey|could you|can you|would you|will you|"
    r"i want you to|i would like you to|i'd like you to|i want to|i need to|help me|let's|to)\b[,\s]*)+",
    re.IGNORECASE,
)
#: An apostrophe within a word neither opens nor closes a quotation.
_QUOTED = re.compile(
    r"""(?<![^\W_])'(.*?)'(?![^\W_])|"(.*?)"|“(.*?)”|‘(.*?)’|`(.*?)`|«(.*?)»""", re.DOTALL
)  # fmt: skip
#: Words that only say what kind of thing is meant. Not among them: words that are often part of a label themselves.
_NOUNS = (
    "button|tab|menu item|menu entry|menu|icon|link|check ?box|switch|toggle|option|field|text field|"
    "text box|input box|label|radio button"
)


class NotUnderstoodError(ValueError):
    """A part of the instruction that the grammar does not know."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an instruction."""

    text: str  # each quotation replaced by a mark, so that words in it are not read as instructions
    quoted: list[str]  # the quotations of the instruction

    def shown(self, text: str) -> str:
        """A piece of the part as it was written."""
        return re.sub("\x00(\\d+)\x00", lambda match: self.quoted[int(match[1])], text).strip()

    def thing(self, text: str) -> str:
        """The name of a thing, without articles and the words that say what kind of thing it is."""
        if match := re.fullmatch(rf"\s*(?:on\s+|the\s+|a\s+)*\x00(\d+)\x00(?:\s+(?:{_NOUNS}))?\s*", text, re.I):
            return self.quoted[int(match[1])]
        name = self.shown(text)
        name = re.sub(r"^(?:(?:on|at|onto|the|a|an|my|this|that)\s+)+", "", name, flags=re.I)
        name = re.sub(rf"^(?:{_NOUNS})\s+(?:called|named|labelled|labeled)\s+", "", name, flags=re.I)
        name = re.sub(r"^(search) (?:box|field|bar|entry)$", r"\1", name, flags=re.I)
        shorter = re.sub(rf"\s+(?:{_NOUNS})$", "", name, flags=re.I)
        return (shorter or name).strip(" ,.")

    def thing_and_place(self, text: str) -> tuple[str, str, str]:
        """ "X in Y" as (X, Y, the whole): what stands after "in" may be a place or belong to the name."""
        match = re.fullmatch(r"(?P<thing>.+?)\s+(?:in|under|from|inside|within)\s+(?:the\s+)?(?P<place>.+)", text, re.I)
        if match is None:
            return self.thing(text), "", ""
        return self.thing(match["thing"]), self.thing(match["place"]), self.thing(text)


def split_instruction(instruction: str) -> list[Part]:
    """Its parts, in order, without courtesy. Raises NotUnderstoodError where it says what not to do, or when."""
    text, quoted = _hide_quotes(instruction)
    text = re.sub(r"\s*[;\n]\s*", ", ", text.strip())
    if match := _CONDITIONS.search(text):
        raise NotUnderstoodError(f"I cannot follow “{match[0]}”: say only what to do.")
    pieces = _JOINTS.split(" ".join(text.split()).rstrip(" .!?"))
    texts = (_COURTESY.sub("", piece.strip(" ,;")).strip() for piece in pieces)
    return [Part(text, quoted) for text in texts if text]


def _hide_quotes(text: str) -> tuple[str, list[str]]:
    quoted: list[str] = []

    def hide(found: re.Match[str]) -> str:
        quoted.append(found[found.lastindex or 0])
        return f"\x00{len(quoted) - 1}\x00"

    return _QUOTED.sub(hide, text), quoted
