"""What was done so far, in words, for a model that takes over from another one."""

from agent.core.actions import TOUCHING, CallTool, OpenApp, VisitPage, points_of
from agent.events.run_events import Acted, Dropped, Event, PersonSaid, StepFinished, UserActed
from agent.safety.naming import named
from agent.safety.policy_rules.disclosure import Leaving, holds_secret

#: The newest so many entries are told, each so long at most; what goes on for longer says nothing new.
_MOST, _LONGEST = 40, 300
_NOTHING = "nothing"
_HIDDEN = "something in a part of the screen that you are not shown"


class StepsInWords:
    """Keeps the words of what each of two models did until the other one takes them.

    Args:
        leaving: what the second one may not be told; None for a model on this machine.
    """

    def __init__(self, leaving: Leaving | None) -> None:
        self._leaving = leaving
        self._entries: list[str] = []
        self._called = False  # a tool, in this step

    def handle(self, event: Event) -> None:
        """Take an event in."""
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
        """The words since the last call, on one line."""
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
        # An error may quote a window that is hidden.
        hides = self._leaving is not None and self._leaving.hide
        return f"{words} (failed)" if hides else f"{words} (failed: {event.error})"


def _is_hidden(event: Acted, leaving: Leaving) -> bool:
    """Whether an action went to what is hidden, or may have."""
    aim = event.aim
    if leaving.hide and isinstance(event.target, TOUCHING):
        unknown = not (aim.app or aim.window) and not isinstance(event.target, OpenApp | VisitPage)
        if unknown or aim.window.endswith("…"):  # a title that was cut may have been one to hide
            return True
    boxes = [] if aim.field is None else [aim.field]
    return (
        leaving.hides(aim.app, aim.window)
        or any(map(leaving.keeps_element, event.elements))
        or any(map(leaving.keeps_point, points_of(event.target)))
        or any(map(leaving.covers, boxes))
    )
