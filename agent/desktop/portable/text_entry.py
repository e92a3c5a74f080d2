"""Text through the clipboard of Windows or macOS."""

import time
from collections.abc import Callable


class PyperclipTextEntry:
    """Text through the clipboard of Windows or macOS, with pyperclip."""

    def enter(self, text: str, press_paste: Callable[[], None], check_stop: Callable[[], None]) -> None:
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
