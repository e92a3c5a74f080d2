"""How text gets into an application."""

import sys
import time
from collections.abc import Callable
from typing import Protocol

PressPaste = Callable[[], None]


class TextEntry(Protocol):
    """Enters text where the keyboard focus is."""

    def enter(self, text: str, press_paste: PressPaste, check_stop: Callable[[], None]) -> None:
        """Enter the text; raises ActionFailedError when nothing takes it, and whatever `check_stop` raises."""
        ...


class PyperclipTextEntry:
    """Text through the clipboard of Windows or macOS, with pyperclip."""

    def enter(self, text: str, press_paste: PressPaste, check_stop: Callable[[], None]) -> None:
        """Paste the text; the old text of the clipboard is put back."""
        import pyperclip

        check_stop()
        before = pyperclip.paste()
        try:
            pyperclip.copy(text)
            press_paste()
            time.sleep(0.3)  # these systems do not tell when the text was fetched
        finally:
            pyperclip.copy(before)


def text_entry() -> TextEntry:
    """The way text is entered on this system."""
    if not sys.platform.startswith("linux"):
        return PyperclipTextEntry()
    from agent.desktop.x11.clipboard import X11TextEntry

    return X11TextEntry()
