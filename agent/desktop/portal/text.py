"""Enters text in a session: short text by keys that the layout has, all other text by pasting.

No character is ever dropped: text that the keyboard lacks is pasted or refused, whereas the desktop would skip it. The
clipboard is lent for a paste, and restored afterwards.
"""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from agent.desktop.apps.catalogue import takes_text
from agent.desktop.changes import dconf
from agent.desktop.linux.bus import BusError
from agent.desktop.linux_desktop import (
    FETCH_TIMEOUT,
    KEYS_AT_FIRST,
    LONGEST,
    MOST_KEYS,
    NOTHING_TOOK_IT,
    QUIET,
    Typing,
)
from agent.desktop.portal.input import PortalInput
from agent.desktop.portal.session import CLIPBOARD, Session
from agent.desktop.protocol.clipboard import HungError, contents
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.protocol.windows import OpenWindows
from agent.desktop.wayland.desktop import CheckedTextEntry
from agent.desktop.wayland.selection import read_all, write_all

#: MIME types under which text is offered: Wayland's names and those of X11 programs.
_TEXT = ("text/plain;charset=utf-8", "text/plain", "UTF8_STRING", "STRING", "TEXT")
#: Clipboard managers do not store content with this marker (a KDE convention).
_NOT_KEPT = {"x-kde-passwordManagerHint": b"secret"}
#: Seconds to wait for a clipboard manager, which reads new content at once: its read must not count as a paste. GNOME's
#: took 0.02 s. If none reads in this time, later offers do not wait.
_MANAGER_LOOKS = 1.0
_TICK = 0.01
#: Stands for an empty clipboard. If the clipboard had no owner, GNOME's clipboard manager would restore the last
#: content it saw.
_EMPTY = {"text/plain": b""}


class PortalClipboard:
    """The `Clipboard` of a session. May be used from any thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._given: Mapping[str, bytes] = {}  # what we offered last
        self._reading = threading.Lock()
        self._fetched: list[float] = []  # when texts were fetched
        self._has_manager = True  # until it is known that there is none
        self.lacks = "" if session.has_clipboard else "the desktop does not share it."
        if not self.lacks:
            threading.Thread(target=self._serve, name="clipboard", daemon=True).start()

    def kinds(self) -> list[str]:
        kinds, ours = self._session.clipboard
        return [] if ours and self._given is _EMPTY else kinds

    def read(self, kind: str) -> bytes | None:
        if kind not in self.kinds():
            return None
        if self._session.clipboard[1]:  # the request would come back to us
            return self._given.get(kind)
        with self._reading:
            try:
                file = self._session.file(CLIPBOARD, "SelectionRead", "s", kind)
            except BusError as error:
                raise HungError from error
            try:
                return read_all(file)
            finally:
                os.close(file)

    def close(self) -> None:
        """Stop serving content. Safe to call twice."""
        self._session.clipboard_requests.put(("", -1))

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Lend the clipboard, and restore its content afterwards. Raises BusError: the clipboard cannot be used."""
        before = contents(self, _worth_keeping(self.kinds()))
        try:
            yield
        finally:
            with suppress(BusError):
                self._give(before)

    def offer(self, text: str, check: Callable[[], None] = lambda: None) -> None:
        """Put a text on the lent clipboard, and wait until clipboard managers have read it. Raises BusError."""
        looks = len(self._fetched)
        self._give({kind: text.encode() for kind in _TEXT} | _NOT_KEPT)
        if self._has_manager:
            self._has_manager = _until(lambda: len(self._fetched) > looks, _MANAGER_LOOKS, check)

    def pasted(self, press: Callable[[], None], seconds: float, check: Callable[[], None]) -> bool:
        """Press the keys for a paste. Return whether an application then fetched the text."""
        fetched = self._fetched
        before = len(fetched)
        press()
        if not _until(lambda: len(fetched) > before, seconds, check):
            return False
        _until(lambda: time.monotonic() - fetched[-1] > QUIET, LONGEST)
        return True

    def _give(self, kinds: Mapping[str, bytes]) -> None:
        self._given = kinds or _EMPTY
        offered = {self._session.mime_types: ("as", [*self._given])}
        self._session.call(CLIPBOARD, "SetSelection", "a{sv}", offered)
        self._session.clipboard = [*self._given], True

    def _serve(self) -> None:
        """Serve the offered content to applications until the session ends."""
        self._session.on_closed(self.close)
        while True:
            kind, serial = self._session.clipboard_requests.get()
            if serial < 0:
                return
            data = self._given.get(kind)
            try:
                if data is not None:
                    write_all(self._session.file(CLIPBOARD, "SelectionWrite", "u", serial), data)
                self._session.call(CLIPBOARD, "SelectionWriteDone", "ub", serial, data is not None)
            except BusError:
                continue
            if kind in _TEXT:
                self._fetched.append(time.monotonic())


def _until(true: Callable[[], bool], seconds: float, check: Callable[[], None] = lambda: None) -> bool:
    """Wait until a condition is true. Return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        check()
        if time.monotonic() >= deadline:
            return False
        time.sleep(_TICK)
    return True


def _worth_keeping(kinds: Sequence[str]) -> list[str]:
    """Return the types to save: all but duplicate image formats, to which the owner converts one image on demand."""
    pictures = [one for one in kinds if one.startswith("image/")]
    best = "image/png" if "image/png" in pictures else next(iter(pictures), "")
    return [one for one in kinds if one not in pictures or one == best]


_PASTE, _PASTE_IN_TERMINALS = ("ctrl", "v"), ("ctrl", "shift", "v")
_NO_WAY = (
    "this keyboard lacks some of the characters (or Caps Lock is on), and the desktop does not share its clipboard: "
    "nothing was typed"
)
_INPUT_SOURCES = "/org/gnome/desktop/input-sources/sources"
_INPUT_METHODS = ("GTK_IM_MODULE", "QT_IM_MODULE", "XMODIFIERS")


class PortalTextEntry(CheckedTextEntry):
    """Enters text by keys or by pasting.

    `composes` returns whether keys go through an input method and so do not type their letters. `told_app` returns the
    focused application's name; it is called only if no window is known to have the focus.
    """

    def __init__(
        self,
        source: PortalInput,
        clipboard: PortalClipboard,
        open_windows: OpenWindows,
        composes: Callable[[], bool],
        told_app: Callable[[], str],
    ) -> None:
        super().__init__(open_windows, self._enter)
        self._source = source
        self._clipboard = clipboard
        self._composes = composes
        self._told_app = told_app

    def _enter(self, typing: Typing) -> None:
        text, clipboard = typing.text, self._clipboard
        app = self._told_app() if typing.window is None else typing.window.app
        if len(text) <= KEYS_AT_FIRST and not takes_text(app, "completing") and self._type(typing):
            return
        if clipboard.lacks:
            if not self._type(typing):
                raise ActionFailedError(_NO_WAY)
            return
        try:
            with clipboard.lent():
                clipboard.offer(text, typing.check_stop)
                typing.check()
                # Ctrl+V means something else in a terminal, and text pasted after it would be misread.
                chord = _PASTE_IN_TERMINALS if takes_text(app, "primary") else _PASTE
                if clipboard.pasted(partial(typing.press, chord), FETCH_TIMEOUT, typing.check_stop):
                    return
                # The loan lasts until here: an application that hung and fetches late must get this text, not the
                # user's content.
                if len(text) <= MOST_KEYS and self._type(typing):
                    return
        except BusError as error:
            raise ActionFailedError(f"the clipboard cannot be used ({error})") from error
        raise ActionFailedError(NOTHING_TOOK_IT)

    def _type(self, typing: Typing) -> bool:
        """Type the text by keys. Return False, with nothing typed, if the keyboard cannot."""
        strokes = None if self._composes() else self._source.strokes(typing.text)
        if strokes is None:
            return False
        self._source.type(strokes, typing.before_key)
        return True


def composes(environ: Mapping[str, str]) -> bool:
    """Whether one of the user's input sources is an input method, whose keys do not type letters directly.

    The source in use now is not reported. GNOME always runs IBus and lists its engines among the input sources;
    elsewhere, applications' environment variables name Fcitx.
    """
    with suppress(OSError, subprocess.SubprocessError):
        if sources := dconf.current(environ, _INPUT_SOURCES):
            return "('ibus', " in sources
    return any("fcitx" in environ.get(name, "").lower() for name in _INPUT_METHODS)
