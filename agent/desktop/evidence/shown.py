"""Which windows opened and closed, and which applications came and went with them."""

from collections.abc import Iterator
from contextlib import closing

from agent.core.changes import Change
from agent.desktop.evidence.bookkeeping import is_app_of_desktop
from agent.desktop.evidence.settings import bounded
from agent.desktop.protocol.windows import OpenWindows, Window, WindowId
from foundation.errors import EnvironmentLacksError


class Shown:
    """The windows as they were, against how they are. A window that came and went again is none."""

    def __init__(self, open_windows: OpenWindows) -> None:
        self._open = open_windows
        self._before: dict[WindowId, Window] | None = None
        self.remark = ""

    def begin(self) -> None:
        """Take in how it is now."""
        self._before = self._now()

    def changes(self) -> list[Change]:
        """How it differs from that."""
        now = None if self._before is None else self._now()
        return [] if now is None or self._before is None else list(differences(self._before, now))

    def _now(self) -> dict[WindowId, Window] | None:
        """The windows, by a connection for the thread that asks; None where they are unknown."""
        self.remark = "Windows are not known here: the receipt does not tell which opened and closed."
        try:
            windows = self._open()
            if windows is None:
                return None
            with closing(windows):
                found = {
                    window.id: window
                    for window in windows.windows()
                    # A minimised window is not ordinary, but was there; a tooltip or a menu never counts.
                    if self._before is None or window.id in self._before or windows.is_ordinary(window.id)
                }
        except EnvironmentLacksError:
            return None
        self.remark = ""
        return found


def differences(before: dict[WindowId, Window], now: dict[WindowId, Window]) -> Iterator[Change]:
    """Windows that opened and closed, applications that came and went; titles only where nothing else differs."""
    before, now = ({key: one for key, one in all_.items() if not is_app_of_desktop(one.app)} for all_ in (before, now))
    opened = [window for key, window in now.items() if key not in before]
    closed = [window for key, window in before.items() if key not in now]
    apps_before, apps_now = ({window.app for window in all_.values()} for all_ in (before, now))
    for app in dict.fromkeys(window.app for window in opened):
        if app not in apps_before:
            title = next(window.title for window in opened if window.app == app)
            yield Change("app", bounded(app), None, bounded(title))
    for window in opened:
        yield Change("window", bounded(window.app), None, bounded(window.title))
    for window in closed:
        yield Change("window", bounded(window.app), bounded(window.title), None)
    for app in dict.fromkeys(window.app for window in closed):
        if app not in apps_now:
            title = next(window.title for window in closed if window.app == app)
            yield Change("app", bounded(app), bounded(title), None)
    if not opened and not closed:
        for key, window in now.items():
            if window.title != before[key].title:
                yield Change("window", bounded(window.app), bounded(before[key].title), bounded(window.title))
