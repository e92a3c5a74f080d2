"""What is known of the desktop when an action is judged, and who finds it out."""

from dataclasses import dataclass
from typing import Protocol

from agent.actions import Action
from agent.geometry import DesktopPoint, Region


@dataclass(frozen=True, slots=True)
class Place:
    """A window, as far as the platform tells.

    Args:
        app: the name of its application's class, such as Firefox.
        title: its title; a page can choose its own, so it never allows anything.
        region: where it is.
    """

    app: str
    title: str
    region: Region | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of the desktop; None or "" where it is not known.

    Args:
        focused: the window that gets what is typed.
        under: the window under the action's (last) point.
        words: what is written where the action points.
        origin: the window that a drag starts in.
        opens: name, identifier and program of the application that would be opened; empty where none would be.
        typed: what was typed into the focused window just before, so that a text in pieces is judged as a whole.
        judged: so many characters of it were judged as they stand; None for all.
        erased: what else may stand there instead, where it is not known how much was taken away again.
    """

    focused: Place | None = None
    under: Place | None = None
    words: str = ""
    origin: Place | None = None
    opens: tuple[str, ...] | None = None
    typed: str = ""
    judged: int | None = None
    erased: tuple[str, ...] = ()


UNKNOWN = Situation()


class Surroundings(Protocol):
    """Looks at the desktop for the policy. May block: called on a worker."""

    def of(self, action: Action[DesktopPoint]) -> Situation:
        """What is known where this action would land; never raises for what cannot be known."""
