"""Adds the verbs that people leave out of headings.

"Settings > Mouse: enable X" becomes "open Settings, click Mouse, enable X"; "In Window Tweaks, Focus tab, tick X" gets
"click the Focus tab", and "click Edit, then the Focus tab" a second "click". Only what is surely a heading is changed:
it stands at the beginning and an instruction follows.
"""

import re
from collections.abc import Sequence
from functools import cache

from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.numbers import amount_of
from agent.literal.vocabulary.places import panel_names

#: A name on the screen: it begins with a capital, or is a placeholder of a quotation.
_NAME = r"[A-Z\x00\x01][^,:;>→]{0,60}?"
_ARROW = r"(?:\s*(?:->|→|▸|»|›)\s*|\s+>\s+)"
_PATH = re.compile(
    rf"(?:(?i:in|under|at|from) )?(?:the )?(?P<first>{_NAME}|[a-z][^,:;>→.]{{0,40}}){_ARROW}"
    rf"(?P<rest>{_NAME}(?:{_ARROW}{_NAME})*)"
)
_TAB = re.compile(rf"(?:the )?(?!(?:In|On) [^,]*(?: on the |['’]s )){_NAME} tab|the {_NAME} page")
#: How a phrase about tabs in general begins, such as "New tab". It names no tab.
_OF_TABS = re.compile(r"(?i)(?:the )?(?:close|open|new|next|last|previous|switch|go|move|reload|this|same)\b")
_PANEL = re.compile(r"(?i)(?:the |my )?(?P<name>\S[^,:]{0,40}?) (?:settings|preferences|dialog)")
#: An application or panel with which headings begin.
_HEAD = re.compile(rf"(?P<verb>(?i:in|inside|within|open|launch|start|go to) )?(?:(?i:the|my) )?(?P<name>{_NAME})")
_PLACE = re.compile(rf"(?i)(?:in|inside|within) (?:the )?{_NAME}")
#: Separators between headings, and between the last heading and the instruction.
_BETWEEN = re.compile(r"((?:,? then |[,:] )(?:and )?(?:there,? )?(?:please,? )?)")
#: A verb that ends a path without a comma: "Under Privacy > Trash enable Delete Old Files".
_UP_TO_A_VERB = re.compile(
    r" (?=(?:enable|disable|tick|untick|turn|switch|set|choose|select|click|check) (?:on |off )?[A-Z\x00\x01])"
)
_USE = re.compile(
    rf"(?i)(?P<before>^(?:in|inside) [^,]{{1,40}}? |^|, | and | then )use (?:the )?(?:menu )?(?={_NAME}{_ARROW}{_NAME})"
)
#: "from the Style list in the preferences, choose X"; "set A to X and B to Y".
_FROM_LIST = re.compile(
    r"(?i)^from (?:the )?(?P<list>[^,]+?) (?:list|box|drop-?down) (?:in|of) (?P<place>[^,]+?),? "
    r"(?P<verb>choose|pick|select) (?P<value>.+)$"
)
_TWO_VALUES = re.compile(
    r"(?i)^(?P<verb>set|change|move|copy|rename) (?P<first>[^,]+? to \S+) and "
    r"(?!then\b|the rest\b|the others?\b)(?P<second>[^,]+? to \S+)$"
)
#: Verbs that are followed by a text to type. An unquoted text must not be parsed.
_HOLDS_TEXT = re.compile(
    r"(?is)(?:.*(?:\b(?:and|then),?|[,.:]) )?(?:type|write|enter|input|paste|insert|note|jot)\b"
    r"(?![^,.]*[\x00\x01])"
)
#: Verbs of clicking. A "then" with a name after them means a second click on that name.
_GOES_ON = re.compile(r"(?i)(?:in [^,]{1,40} )?(?P<verb>click|choose|select|pick|tap|open|go to)(?: on)? ")
#: "in the dialog that opens": the window in front.
_THAT_COMES = (
    r"in the (?:dialog|dialogue|window|menu|list) (?:that|which) (?:comes(?: up)?|pops up|shows up|opens|appears),? "
)
#: How a question, a negation or another instruction begins.
_OTHER = re.compile(
    r"(?i)(?:wh\w+|how|is|are|was|does|do|don|can|could|not?|never|instead|avoid|explain|copy|press|save)\b"
)
#: Words that occur in no name on the screen; then verbs that may also begin the name of a setting ("Close window",
#: "Trash"), and verbs that need more than a click on a folder's name.
_SAYS = re.compile(r"\b(?:is|are|was|were|has|have|does|do|did|not|there|I)\b")
_UNSURE = re.compile(
    r"(?:Close|Trash|Delete|Remove|Erase|Move(?! [^,.]+ to \d)|Minimi[sz]e|Maximi[sz]e|Hide|Open)\b"
    r"|(?i:(?:please |now )?"
    r"(?:delete|remove|trash|throw|erase|get rid|(?:drag|move)(?! [^,.]+ to (?:\d|the (?:right|left)))|rename|copy|put"
    r"|create|make (?:a|an|me)) )"
)
#: How a clause begins that is no name on the screen.
_CLAUSE = re.compile(r"(?:I|You|We|He|She|They|It|That|This|There|The|If|Only|Not?|Never|Do|Don)\b")


#: "type 'Grace' into First name and 'Hopper' into Last name".
_INTO_FIELD = re.compile("(?i)(?:type|write|enter) \x00\\d+\x00 (?:in|into) ")
_MORE_TEXT = re.compile("(?i)(?P<joint> and |, (?:and )?)(?=\x00\\d+\x00 (?:in|into) )")


def with_verbs(text: str) -> str:
    """Return an instruction with the verbs that its headings, and further texts for further fields, lack."""
    if (first := _INTO_FIELD.search(text)) is not None:
        text = text[: first.start()] + _MORE_TEXT.sub(r"\g<joint>type ", text[first.start() :])
    if _HOLDS_TEXT.match(text):
        return text
    verb = rf"(?={lexicon.verbs()}(?![\w'’-]))"
    items = re.split(
        r", and |, | and ", re.sub(r"^(?:[Tt]urn|[Ss]witch) (?!.* (?:leave|keep) )(?=.+ (?:on|off)$)", "", text)
    )
    if len(items) > 1 and all(re.search(r"\S (?:on|off)$", item) and not _starts_with_verb(item) for item in items):
        return ", ".join(f"turn {item}" for item in items)  # "Dark mode on, notifications off"
    text = _FROM_LIST.sub(r"in \g<place>, \g<verb> \g<value> in \g<list>", text)
    text = "".join(map(_with_second_verb, _BETWEEN.split(text)))
    text = _USE.sub(r"\g<before>click ", text)
    text = re.sub(rf"(^|, | and | then ){_THAT_COMES}{verb}", r"\1", text)
    return _with_clicks(_opened(re.sub(rf"(?<= and )there,? {verb}", "", text)))


def _with_second_verb(piece: str) -> str:
    """Repeat the verb for the second of two values: "set A to X and B to Y"."""
    two = _TWO_VALUES.match(piece)
    if two is None or _starts_with_verb(two["second"]):
        return piece
    return f"{two['verb']} {two['first']}, {two['verb']} {two['second']}"


def _opened(text: str) -> str:
    """Turn the headings at the beginning into steps, if something to do follows them."""
    pieces = _with_listed_names(_BETWEEN.split(text))
    text = "".join(pieces)
    place = f"{pieces[0]}, " if len(pieces) > 2 and _PLACE.fullmatch(pieces[0]) and _TAB.fullmatch(pieces[2]) else ""
    if (cut := _UP_TO_A_VERB.search(pieces[0])) is not None and pieces[0].casefold().startswith(
        ("in ", "under ", "at ")
    ):
        pieces[0:1] = [pieces[0][: cut.start()], ", ", pieces[0][cut.end() :]]
    at = 2 if place else 0
    steps: list[str] = []
    while at < len(pieces) and (step := _step(pieces[at], pieces[at - 1] if at else "")):
        steps.append(step)
        at += 2
    rest = "".join(pieces[at:])
    if not steps or (not rest and len(steps) == 1):
        return text
    if _UNSURE.match(rest):
        return text
    if pieces[at - 1 :] == [": ", rest] and _PATH.fullmatch(pieces[at - 2]) and amount_of(rest) is not None:
        before, _, last = steps[-1].rpartition("click ")
        return place + ", ".join([*steps[:-1], f"{before}set {last} to {rest}"])
    named = re.fullmatch(r"(?P<name>[^,:]{1,60}?):? (?P<amount>\d[^,]*)", rest)
    if (
        pieces[at - 1 : at] == [": "]
        and named
        and not _starts_with_verb(rest)
        and amount_of(named["amount"]) is not None
    ):
        rest = f"set {named['name']} to {named['amount']}"
    joints = pieces[1:at:2] if not rest else []
    if (rest and not _starts_with_verb(rest)) or any("then" not in joint for joint in joints):
        return text
    return place + ", ".join([*steps, rest] if rest else steps)


def _with_listed_names(pieces: list[str]) -> list[str]:
    """Add "click" to names between an application or panel and an instruction: "Settings, Mouse: enable X"."""
    head, at = _HEAD.fullmatch(pieces[0]), 2
    if head is None or not _is_panel(head["name"]) or head["name"].casefold() in _file_managers():
        return pieces
    has_panels = re.search("(?i)settings|preferences", head["name"]) is not None
    while at < len(pieces) and (_is_listed_name(pieces[at], has_panels) or _is_before_a_colon(pieces, at)):
        at += 2
    if at == 2 or at >= len(pieces) or _UNSURE.match(pieces[at]):
        return pieces
    if not (_starts_with_verb(pieces[at]) or lexicon.later_verb().match(pieces[at])):
        return pieces
    names = "|".join(map(re.escape, pieces[2:at:2]))
    if re.search(rf"(?i)\b(?:close|quit|\w+imi[sz]e|to) (?:{names})\b", "".join(pieces[at:])):
        return pieces  # applications: "open Settings, Spotify, then close Spotify"
    first = pieces[0] if head["verb"] else f"open {pieces[0]}"
    clicks = [part for name in pieces[2:at:2] for part in (", ", f"click {name}")]
    return [first, *clicks, ", ", *pieces[at:]]


def _is_listed_name(piece: str, is_in_settings: bool) -> bool:
    if _is_panel(piece):
        return is_in_settings and piece.casefold().replace(" & ", " and ") in panel_names()
    return (
        " and " not in piece
        and re.fullmatch(_NAME, piece) is not None
        and not (_starts_with_verb(piece) or _CLAUSE.match(piece))
    )


def _file_managers() -> Sequence[str]:
    """Return names of file managers, where a name is a folder: a click would only select it."""
    names: Sequence[str] = lexicon.config()["applications"]["file_managers"]
    return names


def _is_before_a_colon(pieces: list[str], at: int) -> bool:
    return pieces[at + 1 : at + 2] == [": "] and re.fullmatch(_NAME, pieces[at]) is not None


def _step(piece: str, joint: str) -> str:
    """Return the steps that a heading stands for; "" for any other piece."""
    if _TAB.fullmatch(piece) and not _OF_TABS.match(piece):  # "Focus tab", though "focus" is a verb
        return f"{'click' if piece.endswith('tab') else 'go to'} {piece}"
    if _starts_with_verb(piece) or _CLAUSE.match(piece):
        return ""
    if (path := _PATH.fullmatch(piece)) is not None:
        first, opens = path["first"], _is_panel(path["first"])
        if joint or _OTHER.match(first) or _SAYS.search(piece) or not (opens or re.match(_NAME, first)):
            return ""
        names = re.split(_ARROW, path["rest"])
        return ", ".join([f"{'open' if opens else 'click'} {first}", *(f"click {name}" for name in names)])
    if "then" in joint and re.fullmatch(f"(?:the )?{_NAME}", piece):
        return f"click {piece}"
    panel = None if joint else _PANEL.fullmatch(piece)
    return f"open {piece}" if panel is not None and _is_panel(panel["name"]) else ""


def _with_clicks(text: str) -> str:
    """Repeat the verb of "click A" for a name behind "then", and add it to a tab whose name is a verb."""
    pieces = _BETWEEN.split(text)
    for at in range(2, len(pieces), 2):
        piece, before = pieces[at], _GOES_ON.match(pieces[at - 2])
        if _TAB.fullmatch(piece) and not _OF_TABS.match(piece) and _starts_with_verb(piece):  # "Focus tab"
            pieces[at] = f"click {piece}"
            continue
        is_name = re.fullmatch(f"(?:the )?{_NAME}", piece) is not None and not _CLAUSE.match(piece)
        if before is None or "then" not in pieces[at - 1] or _starts_with_verb(piece) or not is_name or "+" in piece:
            continue
        verb = "go to" if piece.endswith(" page") else before["verb"].lower()
        if verb != "go to" or piece.endswith(" page"):  # "go to Dark Mode" would switch it on
            pieces[at] = f"{verb} {piece}"
    return "".join(pieces)


def _is_panel(name: str) -> bool:
    bare = re.sub("^(?:the|my) | (?:settings|preferences)$", "", name.casefold())
    return bare in lexicon.programs() or bare.replace(" & ", " and ") in panel_names()


def _starts_with_verb(piece: str) -> bool:
    return _verb().match(piece) is not None


@cache
def _verb() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:(?:and|please|now|then),? )*{lexicon.verbs()}(?![\w'’-])")
