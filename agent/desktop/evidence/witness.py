"""What changed on a Linux desktop while a run lasted: every source of evidence, begun in the background."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol, TypeVar

from agent.core.changes import Change
from agent.desktop.evidence.bookkeeping import (
    is_app_of_desktop,
    is_written_when_starting,
    starting_age,
    starting_seconds,
)
from agent.desktop.evidence.dconf import DconfStore
from agent.desktop.evidence.files import Files
from agent.desktop.evidence.home import Home
from agent.desktop.evidence.kde import KdeStore
from agent.desktop.evidence.settings import bounded
from agent.desktop.evidence.settings_monitor import SettingsMonitor
from agent.desktop.evidence.xfconf import XfconfStore
from agent.desktop.linux import bus, places
from agent.desktop.protocol.windows import OpenWindows, Window, WindowId
from foundation.errors import EnvironmentLacksError

#: Seconds that the first question waits for the beginning: some 30 ms, or as long as a hung daemon may take.
_READY_TIMEOUT = 1.5
#: Seconds that the first question waits for the look through a large home, and every later one.
_HOME_TIMEOUT, _HOME_TIMEOUT_LATER = 1.0, 0.1
#: Seconds without news after which settings count as written: an application takes some 100 ms from the click to dconf.
_QUIET = 0.3
#: Seconds between two looks for news, each some 0.3 ms.
_LOOK_AGAIN = 0.03

T = TypeVar("T")


class Asked(Protocol):
    """What knows of changes."""

    def changes(self) -> list[Change]:
        """How things differ from how they were."""


class Source(Protocol):
    """What knows one kind of thing."""

    @property
    def remark(self) -> str:
        """What it cannot tell, as a sentence; "" where it can tell all."""

    def begin(self) -> None:
        """Take in how it is now."""

    def changes(self) -> list[Change]:
        """How it differs from that."""


class LinuxWitness:
    """See `Witness`. May be asked from any thread.

    Args:
        environ: of the run's applications: whose bus and home count.
        open_windows: opens a connection to the windows.
        clipboard: tells what the clipboard holds.
        without: folders that are not watched, such as the one that the run is recorded in.
    """

    def __init__(
        self, environ: Mapping[str, str], open_windows: OpenWindows, clipboard: Source, without: Sequence[Path] = ()
    ) -> None:
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._ready, self._home_ready = threading.Event(), threading.Event()
        self._asking = threading.Lock()
        self._last: list[Change] = []
        self._home_patience = _HOME_TIMEOUT
        self._home = Home(places.home(environ), tuple(without), self._ended.is_set)
        self._files = Files(self._home)
        self._broken: list[str] = []
        self._environ = environ
        self._monitor = SettingsMonitor(environ)
        stores: list[Source] = [DconfStore(environ), KdeStore(environ), XfconfStore(environ, self._monitor)]
        self._stores, self._others = stores, [WindowChanges(open_windows), clipboard]
        self._starting = False  # whether the desktop itself was started just before
        self._started: dict[str, Change] = {}  # what the desktop wrote about itself when it started, by name
        threading.Thread(target=self._begin, name="witness", daemon=True).start()

    @property
    def remarks(self) -> list[str]:
        """See `Witness.remarks`."""
        waiting = (
            "" if self._home_ready.is_set() else "Your home is still being looked through: files are not told yet."
        )
        told = (*self._broken, *(one.remark for one in (*self._stores, *self._others)), self._home.remark, waiting)
        return [remark for remark in told if remark]

    def changes(self) -> list[Change]:
        """See `Witness.changes`."""
        with self._asking:
            if not self._ready.wait(_READY_TIMEOUT):
                return self._last
            found = [*self._settings(), *(change for source in self._others for change in self._asked(source))]
            patience, self._home_patience = self._home_patience, _HOME_TIMEOUT_LATER
            if self._home_ready.wait(patience):
                found += self._asked(self._files)
            self._last = found
            return list(found)

    def settle(self, within: float) -> None:
        """See `Witness.settle`."""
        until = time.monotonic() + within
        if not self._ready.wait(min(within, _READY_TIMEOUT)):
            return
        with self._asking:
            last, since = self._monitor.mark(), time.monotonic()
            while (now := time.monotonic()) < until and now - since < _QUIET:
                time.sleep(_LOOK_AGAIN)
                if (mark := self._monitor.mark()) != last:
                    last, since = mark, time.monotonic()

    def close(self) -> None:
        """See `Witness.close`."""
        self._ended.set()
        if self._home_ready.is_set():
            with self._asking:
                self._home.close()
                self._monitor.close()

    def _begin(self) -> None:
        self._safely(self._monitor, self._monitor.begin)  # before the stores: what is written meanwhile is heard
        for sources in (self._stores, self._others):
            for source in list(sources):
                if not self._safely(source, lambda source=source: (source.begin(), True)):  # type: ignore[misc]  # of two kinds
                    sources.remove(source)  # without a beginning, everything would seem new
        self._starting = bus.age(self._environ) <= starting_age()
        self._ready.set()
        self._safely(self._home, self._home.begin)
        self._home_ready.set()
        for seconds in starting_seconds() if self._starting else ():
            if self._ended.wait(max(0.0, self._began + seconds - time.monotonic())):
                break
            with self._asking:
                self._settings()
        if self._ended.is_set():
            with self._asking:
                self._home.close()
                self._monitor.close()

    def _settings(self) -> list[Change]:
        """The settings that changed; against what the desktop wrote when it started, where it did."""
        told: list[Change] = []
        starting = self._starting and time.monotonic() - self._began <= max(starting_seconds())
        for change in (change for store in self._stores for change in self._asked(store)):
            if starting and is_written_when_starting(change.what):
                self._started[change.what] = change
            started = self._started.get(change.what)
            if started is None:
                told.append(change)
            elif started.after != change.after:
                undo = change.undo and started.undo and {**change.undo, "before": started.undo["after"]}
                told.append(Change("setting", change.what, started.after, change.after, undo))
        return told

    def _asked(self, source: "Asked") -> list[Change]:
        return self._safely(source, source.changes) or []

    def _safely(self, source: object, call: Callable[[], T]) -> "T | None":
        """What a source says. One that breaks on what strangers' programs wrote must not cost the others, or a run."""
        try:
            return call()
        except Exception as error:
            remark = f"Not all changes are known: {type(source).__name__} failed ({type(error).__name__})."
            self._broken = list(dict.fromkeys([*self._broken, remark]))
            return None


class WindowChanges:
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
        return [] if now is None or self._before is None else list(_differences(self._before, now))

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


def _differences(before: dict[WindowId, Window], now: dict[WindowId, Window]) -> Iterator[Change]:
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
