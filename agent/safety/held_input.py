"""Tracks what the model holds down over several actions, and derives what its next action really does.

F4 while alt is held is alt+F4, and moving the pointer with a button down is a drag. The policy, the approval question,
the record and the hand all use these results.
"""

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
from agent.core.keys import MODIFIERS, in_order

#: Seconds without an action after which a held button, and everything else, is released.
HELD_AT_MOST = 10.0
#: Actions before which held keys are released: they would change typed text, and send chords to a new window.
LIFTING = (TypeText, OpenApp, VisitPage)


@dataclass(slots=True)
class Held:
    """The keys and the button that the model has pressed and not yet released."""

    keys: tuple[str, ...] = ()
    button: Button | None = None
    start: DesktopPoint | None = None  # where the button was pressed; None if unknown

    def __bool__(self) -> bool:
        return bool(self.keys) or self.button is not None

    @property
    def words(self) -> str:
        """The held input in words, for a sentence."""
        button = [] if self.button is None else [f"the {self.button} button"]
        return " and ".join([*self.keys, *button])

    def effective(self, action: Action[DesktopPoint]) -> Action[DesktopPoint]:
        """Return the action including the keys that are held during it."""
        if not self.keys:
            return action
        match action:
            case PressKeys() | HoldKeys() | KeyDown():
                return replace(action, keys=in_order((*self.keys, *action.keys)))
            case Click() | LongPress() | Move() | Drag() | Scroll() | ButtonDown() | ButtonUp():
                pointing: Any = action
                merged: Action[DesktopPoint] = replace(pointing, held=in_order((*self.keys, *action.held)))
                return merged
        return action

    def judged(self, action: Action[DesktopPoint]) -> Action[DesktopPoint] | None:
        """Convert an effective action to an action that rules know; None if it only releases
        something.
        """
        match action:
            case KeyDown(keys):
                return PressKeys(keys) if set(keys) <= set(MODIFIERS) else HoldKeys(keys, HELD_AT_MOST)
            case KeyUp():
                return None
            case ButtonDown(DesktopPoint() as point, button, held):
                return Click(point, button, 1, held)
            case ButtonUp(None):  # the move to this position was judged before
                return None
            case ButtonUp(DesktopPoint() as point) | Move(DesktopPoint() as point) if self.button is not None:
                return Drag(self.start, point, action.held)
        return action

    def did(self, action: Action[DesktopPoint]) -> None:
        """Note that an effective action was carried out."""
        match action:
            case KeyDown(keys):
                self.keys = in_order((*self.keys, *keys))
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
        """Note that everything was released. Return what that was, in words."""
        words = self.words
        self.keys, self.button, self.start = (), None, None
        return words
