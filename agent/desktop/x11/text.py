"""Enters text into X11 applications, by keys or by pasting, into the window that has the focus.

Keys replace the selected text in every toolkit and touch no clipboard, but they are slow, have only the characters of
the layout, and programs may complete or correct them. Pasting takes any text at once, but chord, selection and whether
the selected text is replaced differ between programs (configs/pasting.toml).
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.desktop.apps.catalogue import takes_text
from agent.desktop.guard.targets import named
from agent.desktop.linux_desktop import FETCH_TIMEOUT, KEYS_AT_FIRST, MOST_KEYS, NOTHING_TOOK_IT, Typing
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.protocol.windows import Window
from agent.desktop.x11.connection import (
    ancestry,
    client_of,
    describe,
    open_display,
    outermost,
    read_property,
    text_of,
    unless_gone,
    window_of,
    window_types,
    with_focus,
)
from agent.desktop.x11.selections import SelectionOwner, saved
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

#: Bytes that are read of a process's memory map; browsers have 1 MB.
_MOST_READ = 4_000_000
_LIBRARY = re.compile(r"/([^/\s]+\.so)\b")


@dataclass(frozen=True, slots=True)
class Receiver:
    """The window that had the keyboard focus when it was read."""

    focus: int  # the X window that gets keys
    client: int  # the client that created it
    window: Window  # the child of the root that contains it; its PID is in the PID namespace of its program
    desktop: bool = False  # whether it is the desktop itself


def find_receiver(display: Any) -> Receiver | None:
    """Return the window that has the focus; None if no particular window has it."""
    focus = with_focus(display)
    return None if focus is None or focus.id == display.screen().root.id else _described(display, int(focus.id))


def is_managed(display: Any) -> bool:
    """Whether a window manager runs (EWMH), which focuses windows. Without one, the focus follows the pointer."""
    return bool(read_property(display, display.screen().root.id, "_NET_SUPPORTING_WM_CHECK"))


def is_tk(display: Any, receiver: Receiver) -> bool:
    """Whether Tk shows a window. Tk programs are registered on the root window, for Tk's `send`."""
    registered = text_of(read_property(display, display.screen().root.id, "InterpRegistry"))
    matches = (re.match(r"[0-9a-f]+", entry) for entry in registered.split("\0"))
    windows = [int(found[0], 16) for found in matches if found]
    # A killed program stays registered, and its identifiers are reused by another program.
    theirs = [one for one in windows if client_of(display, one) == receiver.client]
    return any(read_property(display, one, "TK_APPLICATION") for one in theirs)


def has_focus(display: Any, receiver: Receiver) -> bool:
    """Whether the window still has the focus. A program may move the focus within one window."""
    focus = with_focus(display)
    return focus is not None and (focus.id == receiver.focus or outermost(display, focus.id) == receiver.window.id)


@unless_gone()
def _described(display: Any, focus: int) -> Receiver | None:
    """Describe the focused window, from its own properties and those of the windows around it."""
    around = list(ancestry(display, focus))
    windows = [found for one in around if (found := describe(display, one)) is not None]
    app, title = (next((text for one in windows if (text := getattr(one, name))), "") for name in ("app", "title"))
    pid = next((one.pid for one in windows if one.pid), None)
    cared_for = any(read_property(display, one, "WM_STATE") is not None for one in around)
    if not cared_for and not _is_on_screen(display, around[-1]):
        return None  # window managers focus an invisible window if no other has the focus
    desktop = any("DESKTOP" in window_types(display, one) for one in around)
    return Receiver(focus, client_of(display, focus), Window(around[-1], title, app, pid), desktop)


def _is_on_screen(display: Any, identifier: int) -> bool:
    size, screen = window_of(display, identifier).get_geometry(), display.screen()
    inside = size.x < screen.width_in_pixels and size.y < screen.height_in_pixels
    return bool(inside and size.x + size.width > 0 and size.y + size.height > 0)


def libraries_of(pid: int) -> frozenset[str]:
    """Return the names of the libraries that a process has loaded; empty if it may not be inspected."""
    with suppress(OSError), Path("/proc", str(pid), "maps").open("rb") as file:
        return frozenset(_LIBRARY.findall(os.fsdecode(file.read(_MOST_READ))))
    return frozenset()


class Ping:
    """Sends a ping that toolkits answer when they process their events (_NET_WM_PING in the EWMH).

    No other code may read the events of `display`. `focus` is a window of the application.
    """

    def __init__(self, display: Any, focus: int) -> None:
        self._display = display
        self._atom = display.intern_atom("_NET_WM_PING")
        self._window = self._answering(focus)
        if self._window is not None:
            self._send(self._window)

    def is_waited_for(self) -> bool:
        """Whether the application supports pings and has not answered yet."""
        from Xlib import X

        while self._window is not None and self._display.pending_events():
            event = self._display.next_event()
            if event.type == X.ClientMessage and event.data[0] == 32 and event.data[1][0] == self._atom:
                self._window = None
        return self._window is not None

    @unless_gone()
    def _answering(self, focus: int) -> int | None:
        """Return the window with the focus, or one around it, that answers pings; None if none does."""
        supported = (
            one
            for one in ancestry(self._display, focus)
            if self._atom in (read_property(self._display, one, "WM_PROTOCOLS") or ())
        )
        return next(supported, None)

    @unless_gone()
    def _send(self, identifier: int) -> None:
        from Xlib import X
        from Xlib.protocol import event

        self._display.screen().root.change_attributes(event_mask=X.SubstructureNotifyMask)
        window, protocols = window_of(self._display, identifier), self._display.intern_atom("WM_PROTOCOLS")
        data = (32, [self._atom, X.CurrentTime, identifier, 0, 0])
        window.send_event(event.ClientMessage(window=window, client_type=protocols, data=data), event_mask=0)
        self._display.sync()


#: Bytes pasted at once; longer text is split. X servers reject properties above 256 KiB without special requests.
_PIECE_BYTES = 60_000
#: Seconds to wait for an application that hangs, and between two looks at it.
_HANGS, _POLL = 10.0, 0.2
#: Seconds in which clipboard managers read a new selection; their read must not count as the paste.
_MANAGERS_LOOK = 0.03
#: Seconds between two keys: toolkits that compress motion events also drop keys that come faster than they redraw.
_BETWEEN = 0.008
_NO_FOCUS = "nothing has the keyboard focus, so nothing was typed: click where to type first"
_DESKTOP = "only the desktop itself has the keyboard focus, and it took no text: click where to type first"

Stroke = tuple[int, bool]  # keycode, and whether shift is held with it


@dataclass(frozen=True, slots=True)
class Way:
    """How to enter text into an application."""

    keys: bool = True  # whether short text is typed by keys
    selections: tuple[str, ...] = ("CLIPBOARD", "PRIMARY")  # the selections that it may paste from
    types_over: bool = False  # whether only keys replace the selected text; ctrl+v pastes then


def way_of(
    app: str, libraries: Iterable[str], *, composes: bool, tk: bool, selected: bool, desktop: bool = False
) -> Way:
    """Return how to enter text into an application, by its class and loaded libraries (configs/pasting.toml).

    `composes`: its keys go through an input method. `selected`: it owns PRIMARY, so some text in it is selected.
    `desktop`: it is the desktop itself, where keys are shortcuts unless a file is being renamed.
    """
    known = load_config("pasting.toml")
    keys = not (composes or desktop or takes_text(app, "completing"))
    if takes_text(app, "primary"):
        return Way(keys, ("PRIMARY", "CLIPBOARD"))
    if tk:
        return Way(keys, ("CLIPBOARD",), types_over=True)
    toolkit = any(re.search(one, library) for one in known["clipboard"] for library in libraries)
    return Way(keys, ("CLIPBOARD",) if toolkit or selected else ("CLIPBOARD", "PRIMARY"))


class Keyboard:
    """Presses keys of the present layout, which is never changed. None can stay down, even if this process dies."""

    def __init__(self, display: Any) -> None:
        from Xlib import XK

        self._display = display
        self._shift = display.keysym_to_keycode(XK.XK_Shift_L)

    def strokes(self, text: str) -> list[Stroke] | None:
        """Return the keys for a text; None if the layout lacks one of its characters."""
        found = [self._stroke(char) for char in text]
        return None if None in found else [one for one in found if one is not None]

    def is_plain(self, text: str) -> bool:
        """Whether keys type their normal characters now: the first layout is active, and no Caps Lock changes them."""
        from Xlib import X

        mask = self._display.screen().root.query_pointer().mask
        group = mask >> 13 & 3  # XKB's layout, in bits that the core protocol does not use
        return not group and not (mask & X.LockMask and any(char.isalpha() for char in text))

    def has_input_method(self) -> bool:
        """Whether an input method serves this display; it may compose other characters from keys."""
        servers = read_property(self._display, self._display.screen().root.id, "XIM_SERVERS") or ()
        return any(not isinstance(self._display.get_selection_owner(server), int) for server in servers)

    def press(self, strokes: list[Stroke], before_each: Callable[[], None]) -> None:
        """Press keys one after the other. `before_each` may raise."""
        for code, shifted in strokes:
            before_each()
            self._press([self._shift, code] if shifted else [code])
            time.sleep(_BETWEEN)

    def _press(self, keys: list[int]) -> None:
        """Send press and release together, so that no key stays down or repeats, even if this process is killed."""
        from Xlib import X
        from Xlib.ext import xtest

        for kind, codes in ((X.KeyPress, keys), (X.KeyRelease, keys[::-1])):
            for code in codes:
                xtest.fake_input(self._display, kind, code)
        self._display.sync()

    def _stroke(self, char: str) -> Stroke | None:
        """Return keycode and shift for a character; None if this layout lacks it."""
        from Xlib import XK

        keysym = {"\n": XK.XK_Return, "\t": XK.XK_Tab}.get(char, ord(char))
        if (keysym > 0xFF or not char.isprintable()) and char not in "\n\t":
            return None
        # Columns 0 and 1 of the layout are the plain and the shifted key; higher ones need other modifiers.
        places = sorted((column, code) for code, column in self._display.keysym_to_keycodes(keysym) if column < 2)
        return (places[0][1], places[0][0] == 1) if places else None


class X11TextEntry:
    """Text entry on X11; needs xclip to restore the clipboard. Raises EnvironmentLacksError: xclip is missing."""

    def __init__(self, pid_here: Callable[[int], int] = lambda pid: pid) -> None:
        self._pid_here = pid_here
        if shutil.which("xclip") is None:
            raise EnvironmentLacksError("The program xclip is missing.", "Install it: apt-get install xclip.")

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        """Enter the text and restore the selections; see `TextEntry.enter`.

        If another window takes the focus meanwhile, stop. The error then says how much was typed.
        """
        with closing(open_display()) as display:
            receiver = find_receiver(display)

            def now() -> Window | None:
                if receiver is not None and has_focus(display, receiver):
                    return receiver.window
                found = find_receiver(display)
                return None if found is None else found.window

            window = None if receiver is None else receiver.window
            typing = Typing(text, press, check_stop, window, now)
            typing.enter(_Entering(display, receiver, typing, self._pid_here).enter)


class _Entering:
    """Enters one text into the window that has the focus."""

    def __init__(self, display: Any, receiver: Receiver | None, typing: Typing, pid_here: Callable[[int], int]) -> None:
        self._display = display
        self._keyboard = Keyboard(display)
        self._receiver = receiver
        self._typing = typing
        self._pid_here = pid_here

    def enter(self) -> None:
        """Enter the text, without the line ends at its end. Raises ActionFailedError."""
        receiver, typing = self._receiver, self._typing
        text = typing.text
        if receiver is None and is_managed(self._display):
            raise ActionFailedError(_NO_FOCUS)
        way = Way(keys=False) if receiver is None else self._way(receiver)
        if way.keys and len(text) <= KEYS_AT_FIRST and not set(text) & {"\n", "\t"} and self._type():
            return
        with saved(self._display, way.selections):
            if way.types_over:
                self._type_over()
            for number, piece in enumerate(pieces(text[typing.done :], _PIECE_BYTES)):
                typing.check()
                if self._paste(piece, way):
                    typing.done += len(piece)
                    continue
                if receiver is not None and receiver.desktop:
                    raise ActionFailedError(_DESKTOP)
                # An application that hung and pastes late must not get the person's own clipboard.
                with closing(SelectionOwner("", way.selections)) as nothing:
                    if number or len(text) > MOST_KEYS or not self._type(lambda: nothing.serve(0)):
                        raise ActionFailedError(NOTHING_TOOK_IT)

    def _way(self, receiver: Receiver) -> Way:
        owner, pid = self._display.get_selection_owner(self._display.intern_atom("PRIMARY")), receiver.window.pid
        return way_of(
            receiver.window.app,
            () if pid is None else libraries_of(self._pid_here(pid)),
            composes=self._keyboard.has_input_method(),
            tk=is_tk(self._display, receiver),
            desktop=receiver.desktop,
            selected=not isinstance(owner, int) and client_of(self._display, owner.id) == receiver.client,
        )

    def _type(self, meanwhile: Callable[[], object] = lambda: None) -> bool:
        """Type the rest by keys. Return False, with nothing typed, if the keyboard cannot type it."""
        rest = self._typing.text[self._typing.done :]
        strokes = self._keyboard.strokes(rest)
        if strokes is None or not self._keyboard.is_plain(rest):
            return False

        def before_each() -> None:
            self._typing.before_key()
            meanwhile()

        self._keyboard.press(strokes, before_each)
        return True

    def _type_over(self) -> None:
        """Replace the selected text by the first character of the new text, or by a character that is deleted again."""
        char = self._typing.text[0]
        first = self._keyboard.strokes(char) if char not in "\n\t" else None
        self._typing.check()
        if first is not None and self._keyboard.is_plain(char):
            self._keyboard.press(first, lambda: None)
            self._typing.done = 1
        else:
            self._typing.press(("x",))
            self._typing.press(("backspace",))

    def _paste(self, text: str, way: Way) -> bool:
        """Paste a text. Return False if nothing took it."""
        client = self._receiver.client if self._receiver is not None else None
        with closing(SelectionOwner(text, way.selections, client)) as owner:
            owner.serve(_MANAGERS_LOOK)
            self._typing.press(("ctrl", "v") if way.types_over else ("shift", "insert"))
            taken = owner.serve_paste(FETCH_TIMEOUT, self._typing.check_stop) or self._takes_late(owner)
            if owner.thief:
                raise self._typing.lost()
            return taken

    def _takes_late(self, owner: SelectionOwner) -> bool:
        """Whether an application that hangs takes the text later. Raises ActionFailedError if it keeps hanging."""
        if self._receiver is None or owner.thief:
            return False
        ping, deadline = Ping(self._display, self._receiver.focus), time.monotonic() + _HANGS
        while ping.is_waited_for():
            if owner.serve_paste(_POLL, self._typing.check_stop):
                return True
            if time.monotonic() >= deadline:
                raise ActionFailedError(f"{named(self._receiver.window)} does not answer: wait, and look what arrived")
        # It may have answered the ping before the keys reached it.
        return owner.serve_paste(_POLL, self._typing.check_stop)


def pieces(text: str, most: int) -> list[str]:
    """Split a text into pieces of at most `most` UTF-8 bytes, between characters."""
    found: list[str] = []
    data = text.encode("utf-8")
    while data:
        piece = data[:most].decode("utf-8", "ignore")
        found.append(piece)
        data = data[len(piece.encode("utf-8")) :]
    return found
