"""The text of an approval question: the action, its target, its full text, the reasons, and what else can be allowed.

The text is not cut here. The interface decides how much fits at once, and must not accept approval of text that was not
shown.
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

#: A longer name or chord goes into the text, which is shown in full.
_LONGEST_NAME, _LONGEST_KEYS = 40, 40
#: Longest window title in the line. A page chooses its title, so it may be anything.
_LONGEST_TITLE = 40
#: Characters of previously typed text to show if a rule matched in it.
_BEFORE = 80
#: A longer name is cut and its length is stated; the rest does not help to decide.
_MOST_OF_A_NAME = 600


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, ready to be shown."""

    what: str  # type 1,514 characters on 2 lines; click “Delete”
    where: str  # into Xfce4-terminal, window “me@host: ~”; "" if unknown
    text: str  # all that is entered, opened or called; "" if `what` is complete
    ours: bool  # whether we, not the model, wrote the text's line ends
    marks: tuple[Span, ...]  # the parts of the text that a rule matched
    found: tuple[str, ...]  # matches, as the rules read them, that cannot be located in the text
    facts: tuple[str, ...]  # further facts that are too long for a line
    reasons: tuple[str, ...]
    scope: str  # what a permission for the rest of the run would allow; "" if only once


def asked(action: Action[DesktopPoint], question: Question) -> Asked:
    """Return the question about an action in the form in which it is shown."""
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
    """Describe a window by its application, which the system reports, and its title, which the window chooses."""
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
    """Whether the line cannot show a name completely and literally."""
    return one_line(name, _LONGEST_NAME) != name or "“" in name or "”" in name


def _facts(known: Situation) -> list[str]:
    """Return the words and the name at the target if they are too long for the line."""
    names = [("written there", known.words), *((f"the {one.role}", one.name or one.label) for one in known.elements)]
    return [f"{label}: {_shortened(name)}" for label, name in names if len(" ".join(name.split())) > _LONGEST_NAME]


def _before(action: Action[DesktopPoint], question: Question) -> list[str]:
    typed = question.situation.typed
    if not typed or not question.matched or not isinstance(action, TYPING):
        return []
    return [f"typed there just before: {typed[-_BEFORE:]}"]


def _shortened(name: str) -> str:
    more = len(name) - _MOST_OF_A_NAME
    return name if more <= 0 else f"{name[:_MOST_OF_A_NAME]}… ({more:,} characters more)"
