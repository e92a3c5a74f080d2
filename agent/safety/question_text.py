"""What a person is asked: the action and its place in a line, all of its text, why, and what “always” would allow.

Nothing of it is cut off here. Whoever shows it decides what fits at once, and lets nobody approve what was not shown.
"""

import json
from dataclasses import dataclass

from agent.core.actions import TYPING, Action, CallTool, HoldKeys, OpenApp, PressKeys, TypeText, VisitPage, describe
from agent.core.geometry import DesktopPoint
from agent.safety.naming import aim_of
from agent.safety.policy import Question
from agent.safety.situation import Place, Situation
from agent.safety.text import one_line, places
from agent.safety.visible_text import LINE_END, Span, merged

#: A name or chord that is longer is told in the text, where all of it is seen.
_LONGEST_NAME, _LONGEST_KEYS = 40, 40
#: The longest title of a window in the line; it is a page's own words, and may be anything.
_LONGEST_TITLE = 40
#: Characters of earlier typed text that are shown if a rule found something in it.
_BEFORE = 80
#: A longer name is cut, and its length is given: nobody decides by the rest of it.
_MOST_OF_A_NAME = 600


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, ready to be shown."""

    what: str  # type 1,514 characters on 2 lines; click “Delete”
    where: str  # into Xfce4-terminal, window “me@host: ~”; "" where it is not known
    text: str  # all that is entered, opened or called; "" where `what` says it all
    ours: bool  # whether the line ends in the text are ours
    marks: tuple[Span, ...]  # the parts of the text that a rule found
    found: tuple[str, ...]  # what rules found, as they read it, where its place in the text cannot be told
    facts: tuple[str, ...]  # what else is known and too long for a line
    reasons: tuple[str, ...]
    scope: str  # "" where it cannot be allowed for good


def asked(action: Action[DesktopPoint], question: Question) -> Asked:
    """An action and the question about it, as they are shown."""
    known = question.situation
    text = _text(action)
    spans = [span for piece in question.matched for span in places(text, piece)]
    lost = [piece for piece in question.matched if piece.strip() and not places(text, piece)]
    facts = [*_facts(known), *_before(action, question)]
    return Asked(
        what=_what(action, known, text),
        where=_where(action, known),
        text=text,
        ours=isinstance(action, OpenApp | VisitPage | CallTool),
        marks=merged(spans),
        found=tuple(dict.fromkeys(lost)) if text else (),
        facts=tuple(facts),
        reasons=question.reasons or (question.reason,),
        scope=question.scope,
    )


def _what(action: Action[DesktopPoint], known: Situation, text: str) -> str:
    match action:
        case TypeText():
            lines = len(LINE_END.split(text.rstrip("\r\n"))) if text else 0
            count = "nothing" if not text else f"{len(text):,} characters" if len(text) > 1 else "1 character"
            return f"type {count}" + (f" on {lines:,} lines" if lines > 1 else "")
        case OpenApp() if text:
            return "open"
        case VisitPage():
            return "visit a web page"
        case CallTool(name):
            return "call a tool" if _is_long(name) else f"call the tool “{name}”"
        case PressKeys() if text:
            return f"press {len(action.keys)} keys at once"
        case HoldKeys(_, seconds) if text:
            return f"hold {len(action.keys)} keys for {seconds:g} s"
    return describe(action, aim_of(action, known).names)


def _where(action: Action[DesktopPoint], known: Situation) -> str:
    if isinstance(action, OpenApp):
        opens = ", ".join(dict.fromkeys(one_line(one, _LONGEST_NAME) for one in known.opens or () if one))
        return f"which starts {opens}" if opens else ""
    if isinstance(action, VisitPage):
        opens = next((one_line(one, _LONGEST_NAME) for one in known.opens or () if one), "")
        return f"with {opens}" if opens else ""
    if isinstance(action, CallTool):
        return "outside of the desktop"
    if isinstance(action, TYPING):
        field = next(iter(aim_of(action, known).names), "")
        place = _place(known.focused)
        if not field and not place:
            return ""
        how = "into" if isinstance(action, TypeText) else "in"
        return f"{how} {field} in {place}" if field and place else f"{how} {field or place}"
    origin = f"from {_place(known.origin)} to " if known.origin and known.origin != known.under else ""
    place = _place(known.under)
    return f"{origin or 'in '}{place}" if place else ""


def _place(place: Place | None) -> str:
    """A window by its application, which the system tells, and its title, which it chose itself."""
    if place is None:
        return ""
    app, title = one_line(place.app, _LONGEST_NAME), one_line(place.title, _LONGEST_TITLE)
    return f"{app} “{title}”" if app and title else app or (f"“{title}”" if title else "")


def _text(action: Action[DesktopPoint]) -> str:
    match action:
        case TypeText(text):
            return text
        case VisitPage(url):
            return url
        case OpenApp(name, application) if _is_long(name) or _is_long(application):
            return f"{name}\nwith {application}" if application else name
        case CallTool(name, arguments):
            head = f"{name}\n" if _is_long(name) else ""
            return head + json.dumps(dict(arguments), ensure_ascii=False, indent=1)
        case PressKeys(keys) | HoldKeys(keys) if len("+".join(keys)) > _LONGEST_KEYS:
            return "+".join(keys)
    return ""


def _is_long(name: str) -> bool:
    """Whether a name is not told whole by the line: it would be cut, or spelled otherwise."""
    return one_line(name, _LONGEST_NAME) != name or "“" in name or "”" in name


def _facts(known: Situation) -> list[str]:
    """The words and the name at the target, if they are too long for the line."""
    told = [("written there", known.words), *((f"the {one.role}", one.name or one.label) for one in known.elements)]
    return [f"{what}: {_shortened(name)}" for what, name in told if len(" ".join(name.split())) > _LONGEST_NAME]


def _before(action: Action[DesktopPoint], question: Question) -> list[str]:
    typed = question.situation.typed
    if not typed or not question.matched or not isinstance(action, TYPING):
        return []
    return [f"typed there just before: {typed[-_BEFORE:]}"]


def _shortened(name: str) -> str:
    more = len(name) - _MOST_OF_A_NAME
    return name if more <= 0 else f"{name[:_MOST_OF_A_NAME]}… ({more:,} characters more)"
