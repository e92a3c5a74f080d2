"""What a model holds down over several actions, and what its next action really is by that: said here alone.

A key means little by itself: f4 while alt is held down is alt+f4, and a pointer that moves with a button down drags.
What comes out of here is what the policy judges, the person is asked about, the record tells and the hand does.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from agent.core.actions import (
    Action,
    Button,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    HoldKeys,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    OpenApp,
    PressKeys,
    Scroll,
    TypeText,
    VisitPage,
)
from agent.core.geometry import DesktopPoint
from agent.core.keys import MODIFIERS

#: Nothing stays down longer than this without a further action, in seconds.
HELD_AT_MOST = 10.0
#: What the hand lets go of keys for: a text arrives as it is, and a new window gets no chord.
LIFTING = (TypeText, OpenApp, VisitPage)


@dataclass(slots=True)
class Held:
    """The keys and the button that the model pressed and did not release."""

    keys: tuple[str, ...] = ()
    button: Button | None = None
    start: DesktopPoint | None = None  # where the button was pressed, where that is known

    def __bool__(self) -> bool:
        return bool(self.keys) or self.button is not None

    @property
    def words(self) -> str:
        """What is held, for a sentence."""
        button = [] if self.button is None else [f"the {self.button} button"]
        return " and ".join([*self.keys, *button])

    def effective(self, action: Action[DesktopPoint]) -> Action[DesktopPoint]:
        """The action with the keys that are down while it is done."""
        if not self.keys:
            return action
        match action:
            case PressKeys() | HoldKeys() | KeyDown():
                return replace(action, keys=_ordered((*self.keys, *action.keys)))
            case Click() | LongPress() | Move() | Drag() | Scroll() | ButtonDown() | ButtonUp():
                pointing: Any = action
                merged: Action[DesktopPoint] = replace(pointing, held=_ordered((*self.keys, *action.held)))
                return merged
        return action

    def judged(self, action: Action[DesktopPoint]) -> Action[DesktopPoint] | None:
        """What an effective action comes to, in the words that rules have; None for what only ends something."""
        match action:
            case KeyDown(keys):
                return PressKeys(keys) if set(keys) <= set(MODIFIERS) else HoldKeys(keys, HELD_AT_MOST)
            case KeyUp():
                return None
            case ButtonDown(DesktopPoint() as point, button, held):
                return Click(point, button, 1, held)
            case ButtonUp(None):  # where the pointer is, it was judged to go
                return None
            case ButtonUp(DesktopPoint() as point) | Move(DesktopPoint() as point) if self.button is not None:
                return Drag(self.start, point, action.held)
        return action

    def did(self, action: Action[DesktopPoint]) -> None:
        """An effective action was carried out."""
        match action:
            case KeyDown(keys):
                self.keys = _ordered((*self.keys, *keys))
            case KeyUp(keys):
                self.keys = tuple(key for key in self.keys if key not in keys)
            case ButtonDown(point, button):
                self.button, self.start = button, point
            case ButtonUp(_, button) if button == self.button:
                self.button, self.start = None, None

    def lift(self) -> tuple[str, ...]:
        """Keep only modifiers, which can be pressed again without effect; return the keys that are released."""
        gone = tuple(key for key in self.keys if key not in MODIFIERS)
        self.keys = tuple(key for key in self.keys if key in MODIFIERS)
        return gone

    def forget(self) -> str:
        """Everything was let go; what that was, in words."""
        words = self.words
        self.keys, self.button, self.start = (), None, None
        return words


def _ordered(keys: Iterable[str]) -> tuple[str, ...]:
    """Each key once, modifiers first."""
    unique = dict.fromkeys(keys)
    return (*(key for key in MODIFIERS if key in unique), *(key for key in unique if key not in MODIFIERS))
