"""What is known of the desktop when an action is judged, and who finds it out."""

from dataclasses import dataclass
from typing import Protocol

from agent.actions import Action
from agent.geometry import DesktopPoint, Region
from agent.screen.outline import Element


@dataclass(frozen=True, slots=True)
class Place:
    """A window, as far as the platform tells."""

    app: str  # the name of its application's class, such as Firefox
    title: str  # a page can choose its own, so it never allows anything
    region: Region | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of the desktop when an action is judged; None or "" where it is not known."""

    focused: Place | None = None  # the window that gets what is typed
    under: Place | None = None  # the window under the action's (last) point
    words: str = ""  # what is written where the action points
    #: What a click would hit where the action points, at both ends for a drag, and for what is typed the element that
    #: gets it. Names are a stranger's text, as words are: they make a rule ask, and never keep one from asking.
    elements: tuple[Element, ...] = ()
    origin: Place | None = None  # the window that a drag starts in
    #: Name, identifier and program of the application that would be opened; empty where none would be.
    opens: tuple[str, ...] | None = None
    #: What was typed into the focused window just before, so that a text in pieces is judged as a whole.
    typed: str = ""
    judged: int | None = None  # so many characters of it were judged as they stand; None for all
    erased: tuple[str, ...] = ()  # what else may stand there, where it is not known how much was taken away again


UNKNOWN = Situation()


class Surroundings(Protocol):
    """Looks at the desktop for the policy. May block: called on a worker."""

    def of(self, action: Action[DesktopPoint]) -> Situation:
        """What is known where this action would land; never raises for what cannot be known."""

    def glance(self, action: Action[DesktopPoint]) -> Situation:
        """Only what the action would hit, and in which window; the same bounds hold."""
