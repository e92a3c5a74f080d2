"""What all text entry on Wayland shares: trailing line ends become Enter, and the focus must stay in its window."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.protocol.windows import Connection, OpenWindows, Windows

#: The focus is checked once per this many keys, because a check takes as long as a key.
_LOOK_EVERY = 8


class FocusCheck:
    """Checks that the window that had the focus at the start still has it, and counts the keys typed so far."""

    def __init__(self, windows: Windows | None, length: int, check_stop: Callable[[], None]) -> None:
        self.windows = windows
        self.window = None if windows is None else windows.active()
        self.check_stop = check_stop
        self._length = length
        self._keys = 0

    def before_key(self) -> None:
        """Raise if typing must stop."""
        self.check_stop()
        if self._keys % _LOOK_EVERY == 0:
            self.look()
        self._keys += 1

    def look(self) -> None:
        """Raise ActionFailedError if another window has the focus now."""
        self.check_stop()
        if self.windows is None or self.window is None:
            return
        now = self.windows.active()
        if now is not None and now.id == self.window.id:
            return
        went = "went away" if now is None else f"went to {now.title or now.app!r}"
        raise ActionFailedError(
            f"the keyboard focus {went} while this was typed: at most the first {self._keys} of "
            f"{self._length} characters are in {self.window.title or self.window.app!r}, and the rest was not typed"
        )


class CheckedTextEntry(ABC):
    """Text entry that stops when another window takes the focus, and reports how much was typed."""

    def __init__(self, open_windows: OpenWindows) -> None:
        self._open_windows = open_windows

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        windows = Connection(self._open_windows)
        try:
            focus = FocusCheck(windows.get(), len(text), check_stop)
            body = text.rstrip("\n")
            if body:
                self._enter(body, press, focus)
            for _ in text[len(body) :]:
                focus.look()
                press(("enter",))
        finally:
            windows.close()

    @abstractmethod
    def _enter(self, text: str, press: Callable[[tuple[str, ...]], None], focus: FocusCheck) -> None:
        """Enter text that does not end in a line end."""
