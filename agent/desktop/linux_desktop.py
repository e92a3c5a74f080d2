"""What Linux desktops share under every display system: witness, elements, and text entry that checks the focus."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from agent.desktop.guard.targets import named
from agent.desktop.protocol.clipboard import Clipboard, ClipboardWatch
from agent.desktop.protocol.desktop import Desktop
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.protocol.windows import Window
from agent.desktop.protocol.witness import Witness
from agent.desktop.trees.elements import AtspiElements
from agent.desktop.trees.switch import buses, session_bus


class LinuxDesktop(Desktop):
    """The base of every desktop on Linux."""

    _environ: Mapping[str, str]
    _clipboard: Clipboard

    def open_witness(self, environ: Mapping[str, str], without: Sequence[Path] = ()) -> Witness | None:
        from agent.desktop.changes.witness import LinuxWitness

        return LinuxWitness(environ, self.open_windows, ClipboardWatch(self._clipboard), without)

    def open_elements(self) -> Elements | None:
        """Without windows, elements are unknown too."""
        windows = self.open_windows()
        if windows is None:
            return None
        find_bus = partial(buses, session_bus(self._environ), windows.announced_bus())
        return AtspiElements(find_bus, windows, self.monitors)


#: Text up to this many characters is typed by keys first, and up to this many if pasting fails.
KEYS_AT_FIRST, MOST_KEYS = 60, 200
#: Seconds after which an application that has not fetched the text counts as not taking pasted text.
FETCH_TIMEOUT = 1.5
#: Seconds without a request after which an application has all it needs, and the longest wait for that. Some fetch
#: twice, and Chromium lists the types several times before it uses what it fetched.
QUIET, LONGEST = 0.06, 0.6
NOTHING_TOOK_IT = "nothing on the screen took the text: is the right field focused?"


class Typing:
    """One text on its way into the window that has the focus, and how many of its characters are entered.

    `window` had the focus at the start. `now` returns the focused window; without `window`, it is unused. The focus is
    checked once per `every` keys.
    """

    def __init__(
        self,
        text: str,
        press: Callable[[tuple[str, ...]], None],
        check_stop: Callable[[], None],
        window: Window | None,
        now: Callable[[], Window | None],
        every: int = 1,
    ) -> None:
        self.text = text.rstrip("\n")
        self.press, self.check_stop = press, check_stop
        self.window = window
        self.done = 0
        self._enters = len(text) - len(self.text)
        self._now, self._every = now, every

    def enter(self, enter_text: Callable[[], None]) -> None:
        """Enter the text by `enter_text`, then press Enter for each newline at its end."""
        if self.text:
            enter_text()
        self.done = len(self.text)
        for _ in range(self._enters):
            self.check()
            self.press(("enter",))

    def before_key(self) -> None:
        """Raise if typing must stop; otherwise count a key."""
        self.check_stop()
        if self.done % self._every == 0:
            self.check()
        self.done += 1

    def check(self) -> None:
        """Raise if the run was stopped, and ActionFailedError if another window has the focus."""
        self.check_stop()
        if self.window is None:
            return
        now = self._now()
        if now is None or now.id != self.window.id:
            raise self.lost()

    def lost(self) -> ActionFailedError:
        """Return the error for a lost focus, which says how much of the text was entered."""
        now = self._now()
        to = "went away" if now is None else f"went to {named(now)}"
        if self.done == len(self.text):
            return ActionFailedError(f"the keyboard focus {to} after this was typed, so Enter was not pressed")
        # The key before the last check may have gone to the new window.
        part = f"at most the first {self.done} of {len(self.text)} characters are" if self.done else "none of it is"
        return ActionFailedError(
            f"the keyboard focus {to} while this was typed: {part} in {named(self.window)}, and the rest was not typed"
        )
