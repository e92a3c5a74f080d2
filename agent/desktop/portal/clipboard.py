"""The clipboard that belongs to a session: read, lent for a paste, and given back as it was."""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from agent.desktop.linux.bus import BusError
from agent.desktop.portal.session import ClipboardListener, Session
from agent.desktop.protocol.clipboard import HungError
from agent.desktop.wayland.selection import read_all, write_all

#: Kinds of plain text that a text is offered as: Wayland's names, and those that X11's programs know.
_TEXT = ("text/plain;charset=utf-8", "text/plain", "UTF8_STRING", "STRING", "TEXT")
#: Managers of clipboards keep nothing of what is marked so (KDE's own convention).
_NOT_KEPT = {"x-kde-passwordManagerHint": b"secret"}
#: Managers look at what is new at once, and their look must not count as a paste: seconds that they have. GNOME's took
#: 0.02; where none came in that time, none is waited for any more.
_MANAGER_LOOKS = 1.0
#: An application that has asked nothing for so many seconds has what it wants; longer is not waited.
_QUIET, _LONGEST = 0.06, 0.6
_TICK = 0.01
#: An empty clipboard: where nobody owns it, GNOME's keeper of clipboards would bring back what it saw last.
_EMPTY = {"text/plain": b""}
#: No more bytes than these are kept of what the clipboard held.
_MOST = 64_000_000


class PortalClipboard:
    """See `Clipboard`; used from any thread.

    Args:
        session: whose it is.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kinds: Sequence[str] = ()
        self._ours = False
        self._given: Mapping[str, bytes] = {}  # what we gave last
        self._wanted: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        self._reading = threading.Lock()
        self._lending = threading.Lock()
        self._fetched: list[float] = []  # when texts were fetched
        self._has_manager = True  # until it is known that there is none
        self.lacks = "" if session.has_clipboard else "the desktop does not share it."
        if not self.lacks:
            session.listen_clipboard(ClipboardListener(self._changed, self._want))
            threading.Thread(target=self._serve, name="clipboard", daemon=True).start()

    def kinds(self) -> list[str]:
        """See `Clipboard.kinds`."""
        return list(self._kinds)

    def read(self, kind: str) -> bytes | None:
        """See `Clipboard.read`."""
        if kind not in self._kinds:
            return None
        if self._ours:  # nobody else would answer
            return self._given.get(kind)
        with self._reading:
            try:
                file = self._session.read_clipboard(kind)
            except BusError as error:
                raise HungError from error
            try:
                return read_all(file)
            finally:
                os.close(file)

    def close(self) -> None:
        """Hand nothing over any more; safe to call twice."""
        self._wanted.put(("", -1))

    @contextmanager
    def lent(self) -> Iterator["Loan"]:
        """The clipboard for a while, which holds afterwards what it held. Raises BusError: it cannot be had."""
        with self._lending:
            before = self._saved()
            try:
                yield Loan(self)
            finally:
                with suppress(BusError):
                    self._give(before)

    def _saved(self) -> dict[str, bytes]:
        """All that it holds, as far as whoever holds it answers."""
        found: dict[str, bytes] = {}
        left = _MOST
        for kind in _worth_keeping(self._kinds):
            try:
                data = self.read(kind)
            except HungError:
                break
            if data is not None and len(data) <= left:
                found[kind] = data
                left -= len(data)
        return found

    def _give(self, kinds: Mapping[str, bytes]) -> None:
        self._given = kinds or _EMPTY
        self._session.give_clipboard(list(self._given))
        self._kinds, self._ours = list(kinds), True

    def _changed(self, kinds: Sequence[str], ours: bool) -> None:
        self._kinds, self._ours = () if ours and self._given is _EMPTY else kinds, ours

    def _want(self, kind: str, serial: int) -> None:
        self._wanted.put((kind, serial))

    def _serve(self) -> None:
        """Hand over what was given, to whoever asks, as long as the session lasts."""
        self._session.on_closed(self.close)
        while True:
            kind, serial = self._wanted.get()
            if serial < 0:
                return
            data = self._given.get(kind)
            try:
                if data is not None:
                    write_all(self._session.write_clipboard(serial), data)
                self._session.clipboard_written(serial, done=data is not None)
            except BusError:
                continue
            if kind in _TEXT:
                self._fetched.append(time.monotonic())


class Loan:
    """The clipboard while it is lent, for texts that are pasted."""

    def __init__(self, clipboard: PortalClipboard) -> None:
        self._clipboard = clipboard

    def offer(self, text: str, check: Callable[[], None] = lambda: None) -> None:
        """Let it hold a text, and let managers have their look; `check` may raise. Raises BusError."""
        clipboard = self._clipboard
        looks = len(clipboard._fetched)
        clipboard._give({kind: text.encode() for kind in _TEXT} | _NOT_KEPT)
        if clipboard._has_manager:
            clipboard._has_manager = _until(lambda: len(clipboard._fetched) > looks, _MANAGER_LOOKS, check)

    def pasted(self, press: Callable[[], None], seconds: float, check: Callable[[], None]) -> bool:
        """Press what pastes; whether an application fetched the text then, and has what it wants."""
        fetched = self._clipboard._fetched
        before = len(fetched)
        press()
        if not _until(lambda: len(fetched) > before, seconds, check):
            return False
        # Some fetch twice, and browsers look again and again at what there is before they take what they fetched.
        _until(lambda: time.monotonic() - fetched[-1] > _QUIET, _LONGEST)
        return True


def _until(true: Callable[[], bool], seconds: float, check: Callable[[], None] = lambda: None) -> bool:
    """Wait until something is true; whether it is."""
    deadline = time.monotonic() + seconds
    while not true():
        check()
        if time.monotonic() >= deadline:
            return False
        time.sleep(_TICK)
    return True


def _worth_keeping(kinds: Sequence[str]) -> list[str]:
    """All kinds but of pictures, of which one will do: each of the others is made when it is asked for."""
    pictures = [one for one in kinds if one.startswith("image/")]
    best = "image/png" if "image/png" in pictures else next(iter(pictures), "")
    return [one for one in kinds if one not in pictures or one == best]
