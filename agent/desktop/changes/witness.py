"""Records what changed on a Linux desktop during a run, from several sources that start in the background."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias, TypeVar

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import bounded, entry, matches
from agent.desktop.changes.dconf import DconfStore
from agent.desktop.changes.files import Files
from agent.desktop.changes.kde import KdeStore
from agent.desktop.changes.xfconf import XfconfStore
from agent.desktop.guard.own_windows import shows_our_page
from agent.desktop.linux import bus, places
from agent.desktop.protocol.clipboard import ClipboardWatch
from agent.desktop.protocol.windows import OpenWindows, Window, WindowId
from foundation.errors import EnvironmentLacksError

#: Seconds that the first query waits for the initial state: usually some 30 ms, longer with a hung daemon.
_READY_TIMEOUT = 1.5
#: Seconds that the first query, and each later one, waits for the scan of a large home.
_HOME_TIMEOUT, _HOME_TIMEOUT_LATER = 1.0, 0.1
#: Seconds without new writes after which settings count as settled. From click to dconf, an application takes some 100
#: ms.
_QUIET = 0.3
#: Polling interval in seconds; each poll takes some 0.3 ms.
_LOOK_AGAIN = 0.03

T = TypeVar("T")
#: `begin` records the initial state, `changes` returns what differs from it, and `remark` says what cannot be reported,
#: as a sentence. `mark` returns a value that changes whenever a setting is written; it is cheap.
Store: TypeAlias = DconfStore | KdeStore | XfconfStore
Source: TypeAlias = "Store | WindowChanges | ClipboardWatch | Files"


class LinuxWitness:
    """The `Witness` of Linux desktops. May be called from any thread.

    `environ` is that of the run's applications, which determines the bus and the home. Folders of `without`, such as
    the run's recording, are not watched.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        open_windows: OpenWindows,
        clipboard: ClipboardWatch,
        without: Sequence[Path] = (),
    ) -> None:
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._ready, self._home_ready = threading.Event(), threading.Event()
        self._asking = threading.Lock()
        self._last: list[Change] = []
        self._home_patience = _HOME_TIMEOUT
        self._files = Files(places.home(environ), tuple(without), self._ended.is_set)
        self._broken: list[str] = []
        self._environ = environ
        self._xfconf = XfconfStore(environ)
        self._stores: list[Store] = [DconfStore(environ), KdeStore(environ), self._xfconf]
        self._others: list[WindowChanges | ClipboardWatch] = [WindowChanges(open_windows), clipboard]
        self._starting = False  # whether the desktop itself has only just started
        self._started: dict[str, Change] = {}  # what the desktop wrote by itself while starting, by name
        threading.Thread(target=self._begin, name="witness", daemon=True).start()

    @property
    def remarks(self) -> list[str]:
        sentences = [*self._broken, *(one.remark for one in (*self._stores, *self._others, self._files))]
        if not self._home_ready.is_set():
            sentences.append("Your home is still being scanned: file changes are not reported yet.")
        return [remark for remark in sentences if remark]

    def changes(self) -> list[Change]:
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
        until = time.monotonic() + within
        if not self._ready.wait(min(within, _READY_TIMEOUT)):
            return
        with self._asking:
            last, since = self._mark(), time.monotonic()
            while (now := time.monotonic()) < until and now - since < _QUIET:
                time.sleep(_LOOK_AGAIN)
                if (mark := self._mark()) != last:
                    last, since = mark, time.monotonic()

    def _mark(self) -> Hashable:
        return tuple(store.mark() for store in self._stores)

    def close(self) -> None:
        """End the witness. Its thread closes the sources."""
        self._ended.set()

    def _begin(self) -> None:
        self._stores = [one for one in self._stores if self._begins(one)]
        self._others = [one for one in self._others if self._begins(one)]
        self._starting = bus.age(self._environ) <= entry("settings", "starting_age")
        self._ready.set()
        self._safely(self._files, self._files.begin)
        self._home_ready.set()
        for seconds in entry("settings", "starting_seconds") if self._starting else ():
            if self._ended.wait(max(0.0, self._began + seconds - time.monotonic())):
                break
            with self._asking:
                self._settings()
        self._ended.wait()
        with self._asking:
            self._files.close()
            self._xfconf.close()

    def _settings(self) -> list[Change]:
        """Return the changed settings. While a desktop starts, its own writes become the baseline."""
        changes: list[Change] = []
        starting = self._starting and time.monotonic() - self._began <= max(entry("settings", "starting_seconds"))
        for change in (change for store in self._stores for change in self._asked(store)):
            if starting and matches("settings", "starting", change.what):
                self._started[change.what] = change
            started = self._started.get(change.what)
            if started is None:
                changes.append(change)
            elif started.after != change.after:
                undo = change.undo and started.undo and {**change.undo, "before": started.undo["after"]}
                changes.append(Change("setting", change.what, started.after, change.after, undo))
        return changes

    def _begins(self, source: Source) -> bool:
        """Have a source record its initial state. Return whether it could; otherwise, everything would look new."""
        failed = len(self._broken)
        self._safely(source, source.begin)
        return len(self._broken) == failed

    def _asked(self, source: Source) -> list[Change]:
        return self._safely(source, source.changes) or []

    def _safely(self, source: object, call: Callable[[], T]) -> "T | None":
        """Call a source. A source that fails on unexpected data must not stop the other sources or the run."""
        try:
            return call()
        except Exception as error:
            remark = f"Not all changes are known: {type(source).__name__} failed ({type(error).__name__})."
            self._broken = list(dict.fromkeys([*self._broken, remark]))
            return None


class WindowChanges:
    """Compares the windows at the start with those now. A window that opened and closed in between is not reported."""

    def __init__(self, open_windows: OpenWindows) -> None:
        self._open = open_windows
        self._before: dict[WindowId, Window] | None = None
        self._shown: set[WindowId] = set()  # seen as ordinary windows at any time
        self.remark = ""

    def begin(self) -> None:
        self._before = self._now()

    def changes(self) -> list[Change]:
        now = None if self._before is None else self._now()
        if now is None or self._before is None:
            return []
        before, now = self._counted(self._before), self._counted(now)
        return list(_differences(before, now))

    def _counted(self, windows: dict[WindowId, Window]) -> dict[WindowId, Window]:
        """Leave out windows that come and go by themselves, and panel programs' windows that are not ordinary."""
        return {
            key: one
            for key, one in windows.items()
            if not matches("windows", "apps", one.app) and (key in self._shown or not _has_panels(one.app))
        }

    def _now(self) -> dict[WindowId, Window] | None:
        """Return the windows by id, or None if they are unknown. Connects anew, for the calling thread."""
        self.remark = "Windows are not known here: the receipt does not tell which opened and closed."
        try:
            windows = self._open()
            if windows is None:
                return None
            with closing(windows):
                known_before = self._before or {}
                # A browser that opened with our page is not the run's doing.
                existing = [one for one in windows.windows() if one.id in known_before or not shows_our_page(one.title)]
                # A minimised window is not ordinary but still exists; tooltips and menus never count.
                self._shown.update(window.id for window in existing if windows.is_ordinary(window.id))
                known = None if self._before is None else self._shown | self._before.keys()
                found = {window.id: window for window in existing if known is None or window.id in known}
        except EnvironmentLacksError:
            return None
        self.remark = ""
        return found


def _has_panels(app: str) -> bool:
    return matches("windows", "panels", app)


def _differences(before: dict[WindowId, Window], now: dict[WindowId, Window]) -> Iterator[Change]:
    """Yield windows that opened or closed, and applications that came or went; if there are none, changes of titles."""
    opened = [window for key, window in now.items() if key not in before]
    closed = [window for key, window in before.items() if key not in now]
    apps_before, apps_now = ({window.app for window in all_.values()} for all_ in (before, now))
    for app in dict.fromkeys(window.app for window in opened):
        if app not in apps_before and not _has_panels(app):
            title = next(window.title for window in opened if window.app == app)
            yield Change("app", bounded(app), None, bounded(title))
    for window in opened:
        yield Change("window", bounded(window.app), None, bounded(window.title))
    for window in closed:
        yield Change("window", bounded(window.app), bounded(window.title), None)
    for app in dict.fromkeys(window.app for window in closed):
        if app not in apps_now and not _has_panels(app):
            title = next(window.title for window in closed if window.app == app)
            yield Change("app", bounded(app), bounded(title), None)
    if not opened and not closed:
        for key, window in now.items():
            if window.title != before[key].title:
                yield Change("window", bounded(window.app), bounded(before[key].title), bounded(window.title))
