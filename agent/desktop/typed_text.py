"""Remembers what was typed into a window, to judge a text that comes in pieces."""

from dataclasses import dataclass

from agent.actions import Action, HoldKeys, PressKeys
from agent.desktop.windows import WindowId
from agent.geometry import DesktopPoint
from agent.safety.text import spelled

#: Of what was typed before, so much is kept to judge a text that comes in pieces.
_REMEMBERED = 300
#: Of its beginnings, so many are kept in mind when an unknown part was erased.
_ERASED = 40


@dataclass(frozen=True, slots=True)
class TypedText:
    """What was typed into a window without a pause: a text may come in pieces, and be corrected.

    Args:
        window: which.
        text: the text, its end.
        judged: so many characters of it were judged as they stand; None for all.
        erased: what may stand there instead, where it is not known how much was taken away.
    """

    window: WindowId | None
    text: str = ""
    judged: int | None = None
    erased: tuple[str, ...] = ()

    def after(self, action: Action[DesktopPoint]) -> "TypedText":
        """What stands there after an action."""
        if not (isinstance(action, PressKeys | HoldKeys) and "backspace" in action.keys):
            entered = spelled(action)
            kept = tuple((one + entered)[-_REMEMBERED:] for one in self.erased)  # still not known which of them it is
            return TypedText(self.window, (self.text + entered)[-_REMEMBERED:], None, kept)
        if isinstance(action, PressKeys) and not {"ctrl", "alt", "super"} & set(action.keys):
            return TypedText(self.window, self.text[:-1], 0, tuple(one[:-1] for one in self.erased))
        # A word, a line, or as many as the key repeats: whatever is left is a beginning of what stood there.
        ends = range(max(0, len(self.text) - _ERASED), len(self.text))
        return TypedText(self.window, self.text, 0, tuple(self.text[:end] for end in ends))
