"""How text gets into an application: all of it by keys of our own keyboard, so that no clipboard is touched."""

from collections.abc import Callable

from agent.desktop.wlroots.input import WlrootsInput


class WlrootsTextEntry:
    """See `TextEntry`."""

    def __init__(self, source: Callable[[], WlrootsInput]) -> None:
        self._source = source

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        """See `TextEntry.enter`. Line ends within the text are Enter too."""
        check_stop()
        body = text.rstrip("\n")
        self._source().type(body, check_stop)
        for _ in text[len(body) :]:
            press(("enter",))
