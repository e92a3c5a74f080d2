"""What changed on a Linux desktop while a run lasted: every source of evidence, begun in the background."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from agent.changes import Change
from agent.desktop.linux import places
from agent.desktop.linux.dconf import DconfStore
from agent.desktop.linux.files import Files
from agent.desktop.linux.home import Home
from agent.desktop.linux.kde import KdeStore
from agent.desktop.linux.shown import Shown
from agent.desktop.linux.xfconf import XfconfStore
from agent.desktop.windows import OpenWindows

#: Seconds that the first question waits for the beginning: some 30 ms, or as long as a hung daemon may take.
_READY_TIMEOUT = 1.5
#: Seconds that it waits for the look through a large home.
_HOME_TIMEOUT = 1.0


T = TypeVar("T")


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
        self._ended = threading.Event()
        self._ready, self._home_ready = threading.Event(), threading.Event()
        self._asking = threading.Lock()
        self._last: list[Change] = []
        self._home = Home(places.home(environ), tuple(without), self._ended.is_set)
        self._files = Files(self._home)
        self._broken: list[str] = []
        stores: list[Source] = [DconfStore(environ), KdeStore(environ), XfconfStore(environ)]
        self._sources = [*stores, Shown(open_windows), clipboard]
        threading.Thread(target=self._begin, name="witness", daemon=True).start()

    @property
    def remarks(self) -> list[str]:
        """See `Witness.remarks`."""
        waiting = (
            "" if self._home_ready.is_set() else "Your home is still being looked through: files are not told yet."
        )
        told = (*self._broken, *(one.remark for one in self._sources), self._home.remark, waiting)
        return [remark for remark in told if remark]

    def changes(self) -> list[Change]:
        """See `Witness.changes`."""
        with self._asking:
            if not self._ready.wait(_READY_TIMEOUT):
                return self._last
            found = [change for source in self._sources for change in self._safely(source, source.changes) or ()]
            if self._home_ready.wait(_HOME_TIMEOUT):
                found += self._safely(self._files, self._files.changes) or ()
            self._last = found
            return list(found)

    def close(self) -> None:
        """See `Witness.close`."""
        self._ended.set()
        if self._home_ready.is_set():
            with self._asking:
                self._home.close()

    def _begin(self) -> None:
        for source in list(self._sources):
            if not self._safely(source, lambda source=source: (source.begin(), True)):  # type: ignore[misc]
                self._sources.remove(source)  # without a beginning, everything would seem new
        self._ready.set()
        self._safely(self._home, self._home.begin)
        self._home_ready.set()
        if self._ended.is_set():
            self._home.close()

    def _safely(self, source: object, call: Callable[[], T]) -> "T | None":
        """What a source says. One that breaks on what strangers' programs wrote must not cost the others, or a run."""
        try:
            return call()
        except Exception as error:
            remark = f"Not all changes are known: {type(source).__name__} failed ({type(error).__name__})."
            self._broken = list(dict.fromkeys([*self._broken, remark]))
            return None
