"""How text gets into an application: all of it by keys of our own keyboard, so that no clipboard is touched."""

from collections.abc import Callable

from agent.desktop.protocol.windows import Connection, OpenWindows
from agent.desktop.wayland.receiver import Receiver
from agent.desktop.wlroots.input import WlrootsInput


class WlrootsTextEntry:
    """See `TextEntry`.

    Args:
        source: the keyboard.
        open_windows: tells which window gets what is typed, where that is known.
    """

    def __init__(self, source: Callable[[], WlrootsInput], open_windows: OpenWindows) -> None:
        self._source = source
        self._open_windows = open_windows

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        """See `TextEntry.enter`. Line ends within the text are Enter too.

        Where another window takes the focus meanwhile, nothing more is typed, and how much was is said.
        """
        windows = Connection(self._open_windows)
        try:
            check = Receiver(windows.get(), len(text), check_stop)
            body = text.rstrip("\n")
            self._source().type(body, check.before_key)
            for _ in text[len(body) :]:
                check.look()
                press(("enter",))
        finally:
            windows.close()
