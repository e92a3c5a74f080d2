"""Adds the verbs that people leave out of paths and headings.

"Settings > Mouse: enable X" becomes "open Settings, click Mouse, enable X", and "use File > Save As" a click on each.
"In Window Tweaks, Focus tab, tick X" gets "click the Focus tab", and "click Edit, then the Focus tab" a second "click".
"""

import re
from functools import cache

from agent.literal.vocabulary import lexicon

_ARROW = re.compile(r"\s*(?:->|→|▸|»|›)\s*|\s+>\s+")
#: A name on the screen: it has a capital or is hidden, as quotations are.
_NAME = r"[A-Z\x00\x01]"
#: What separates the pieces of an instruction, and words in between that say nothing.
_BETWEEN = re.compile(r"((?:[,:;.!?] |,? then )(?:and )?(?:then )?(?:there,? )?)")
#: What stands before a path: a place, or a verb, which is a click.
_BEFORE = re.compile(
    r"(?P<place>.*?)\b(?:use|click|choose|select|open|pick|tap|go to|navigate to)(?: on)? (?:the )?(?:menu )?"
    r"|(?:in|on|under|at|inside|within|from|via) (?:the )?(?:menu )?",
    re.IGNORECASE | re.DOTALL,
)
_TAB = re.compile(rf"(?:the )?{_NAME}[^,]{{0,40}} tab|the {_NAME}[^,]{{0,40}} page")
_DIALOG = re.compile(r"(?!in |from |on )(?:the )?\S[^,]{0,40} (?:settings|preferences)", re.IGNORECASE)
_GOES_ON = re.compile(r"(?:.* )?(?P<verb>click|choose|select|pick|tap|open|go to)(?: on)? ", re.IGNORECASE)
#: "in the dialog that opens" is the window in front.
_THAT_COMES = re.compile(
    r"\bin the (?:dialog|dialogue|window|menu|list) (?:that|which) (?:comes|opens|appears|pops|shows)(?: up)?,? ",
    re.IGNORECASE,
)


def with_verbs(text: str) -> str:
    """Return an instruction with the verbs that its paths and headings lack."""
    pieces = _BETWEEN.split(_THAT_COMES.sub("", text))
    verb = ""  # of the last piece, if a name without a verb may follow it
    for at in range(0, len(pieces), 2):
        piece, joint = pieces[at], pieces[at - 1] if at else ""
        head, *names = _ARROW.split(piece)
        if names and joint != ": " and all(re.match(_NAME, name) for name in names):
            pieces[at], verb = _clicks(head, names), "click"
            if pieces[at + 1 : at + 2] == [": "] and not _starts_with_verb(pieces[at + 2]):
                steps, _, last = pieces[at].rpartition(", click ")
                pieces[at : at + 3] = [steps, ", ", f"set {last} to {pieces[at + 2]}"]
        elif _starts_with_verb(piece) or len(pieces) == 1:
            found = _GOES_ON.match(piece)
            verb = "" if found is None else found["verb"]
            pieces[max(at - 1, 0)] = re.sub("there,? ", "", joint) if at else piece
        elif _TAB.fullmatch(piece):
            pieces[at], verb = f"{'click' if piece.endswith('tab') else 'go to'} {piece}", "click"
        elif verb and "then" in joint and re.match(f"(?:the )?{_NAME}", piece):
            pieces[at] = f"{verb} {piece}"
        elif not at and _DIALOG.fullmatch(piece):
            pieces[at] = f"open {piece}"
    return "".join(pieces)


def _clicks(head: str, names: list[str]) -> str:
    """Return the clicks of a path, of which `head` is the first name with what stands before it."""
    before = _BEFORE.match(head)
    place = "" if before is None else before["place"] or ""
    first = head if before is None else head[before.end() :]
    verb = "open" if not place and _is_program(first) else "click"
    *rest, last = names
    cut = re.search(rf" (?:and )?(?={lexicon.verbs()}(?![\w'’-]))", last)  # of small letters: a name has capitals
    last = last if cut is None else f"{last[: cut.start()]}, {last[cut.end() :]}"
    return place + ", click ".join([f"{verb} {first}", *rest, last])


def _is_program(name: str) -> bool:
    bare = re.sub("^(?:the|my) ", "", name.casefold())
    return bare in lexicon.programs() or _DIALOG.fullmatch(name) is not None


def _starts_with_verb(piece: str) -> bool:
    return _verb().match(piece) is not None


@cache
def _verb() -> re.Pattern[str]:
    return re.compile(rf"(?:(?:and|please|now|then),? )*{lexicon.verbs()}(?![\w'’-])", re.IGNORECASE)
