"""A witness that tells what a test says, in the way in which it says."""

import threading
from collections.abc import Callable

from agent.core.changes import Change

DARK = Change("setting", "xfconf xsettings /Net/ThemeName", "Adwaita", "Adwaita-dark")
OPENED = Change("window", "xfce4-settings-manager", None, "Settings")


class FakeWitness:
    """Tells `found`; `behave` is called at every question first, and may hang or raise."""

    def __init__(self, *found: Change, remarks: tuple[str, ...] = ()) -> None:
        self.found = list(found)
        self.remarks = list(remarks)
        self.behave: Callable[[], object] = lambda: None
        self.asked = 0
        self.settled: list[float] = []  # the seconds that it was given each time
        self.closed = threading.Event()

    def open(self) -> "FakeWitness":
        return self

    def changes(self) -> list[Change]:
        self.asked += 1
        self.behave()
        return list(self.found)

    def settle(self, within: float) -> None:
        self.settled.append(within)

    def close(self) -> None:
        self.closed.set()
