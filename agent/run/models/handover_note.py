"""What was done so far, in words, for a model that takes over."""

from agent.core.actions import TOUCHING, CallTool, OpenApp, VisitPage, points_of
from agent.events.run_events import Acted, Dropped, Event, PersonSaid, StepFinished, UserActed
from agent.safety.naming import named
from agent.safety.policy_rules.disclosure import Leaving, holds_secret

#: How many of the newest entries are told, and their maximum length. Longer texts add nothing new.
_MOST, _LONGEST = 40, 300
_NOTHING = "nothing"
_HIDDEN = "something in a part of the screen that you are not shown"


class StepsInWords:
    """Collects the actions of one model in words, until the other model takes over.

    Args:
        leaving: what the fallback model may not be told; None for a local model.
    """

    def __init__(self, leaving: Leaving | None) -> None:
        self._leaving = leaving
        self._entries: list[str] = []
        self._called = False  # a tool was called in this step

    def handle(self, event: Event) -> None:
        """Record an event."""
        match event:
            case Acted():
                self._called = isinstance(event.target, CallTool)
                self._entries.append(self._words(event))
            case Dropped(why=why):
                self._entries.append(f"an action was not done: {why}")
            case StepFinished(changed=False):
                self._entries.append("that changed nothing on the screen")
            case StepFinished(reply=str(reply)) if not (self._called and self._leaving):
                self._entries.append(f"the reply was: {reply}")
            case PersonSaid(text=text):
                self._entries.append(f"the person said: {text}")
            case UserActed(what=what):
                self._entries.append(f"the person used the computer: {what}")

    def take(self) -> str:
        """Return the words since the last call, on one line."""
        told, self._entries = self._entries[-_MOST:], []
        return "; ".join(" ".join(entry.split())[:_LONGEST] for entry in told) or _NOTHING

    def _words(self, event: Acted) -> str:
        if self._leaving is not None and _is_hidden(event, self._leaving):
            return _HIDDEN if event.error is None else f"{_HIDDEN} (failed)"
        if any(map(holds_secret, event.elements)):
            return "typing into a field for passwords"
        words = named(event.target, event.aim)
        if event.error is None:
            return words
        # An error may quote a hidden window.
        hides = self._leaving is not None and self._leaving.hide
        return f"{words} (failed)" if hides else f"{words} (failed: {event.error})"


def _is_hidden(event: Acted, leaving: Leaving) -> bool:
    """Return whether an action went to something hidden, or may have."""
    aim = event.aim
    if leaving.hide and isinstance(event.target, TOUCHING):
        unknown = not (aim.app or aim.window) and not isinstance(event.target, OpenApp | VisitPage)
        if unknown or aim.window.endswith("…"):  # the part that was cut off may have matched a hidden title
            return True
    boxes = [] if aim.field is None else [aim.field]
    return (
        leaving.hides(aim.app, aim.window)
        or any(map(leaving.keeps_element, event.elements))
        or any(map(leaving.keeps_point, points_of(event.target)))
        or any(map(leaving.covers, boxes))
    )
