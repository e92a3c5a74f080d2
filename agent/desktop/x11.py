"""What the desktop room needs of X11 beyond pyautogui: a usable cookie file, windows, and text by selection.

Uses python3-xlib, which pyautogui brings along. Every class here opens its own connection, because Xlib connections
must not be shared between threads.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agent.errors import EnvironmentLacksError
from agent.geometry import Region


def open_display() -> Any:
    """A connection to the X server of DISPLAY.

    Raises:
        EnvironmentLacksError: there is none, or it refuses this user.
    """
    prepare_xlib()
    try:
        from Xlib.display import Display

        return Display()
    except Exception as error:  # python3-xlib raises its own, OSError, AttributeError or struct.error here
        raise no_display(error) from error


def no_display(error: BaseException) -> EnvironmentLacksError:
    """The sentence for a display that cannot be opened."""
    return EnvironmentLacksError(
        f"The display {os.environ.get('DISPLAY', '')!r} takes no input ({' '.join(str(error).split()) or error!r}).",
        "Is the X server there, and may this user connect to it (XAUTHORITY)? --sandbox brings a display of its own.",
    )


def display_lost(error: BaseException) -> EnvironmentLacksError:
    """The sentence for a display that was there and is not any more; Xlib tells it by any of a dozen exceptions."""
    name = os.environ.get("DISPLAY", "")
    lost = EnvironmentLacksError(f"The display {name!r} went away.", "Is the X server still running?")
    lost.__cause__ = error
    return lost


def prepare_xlib() -> None:
    """Make python3-xlib usable where there is no X cookie, as with a plain Xvfb.

    It fails on a missing ~/.Xauthority even where the server asks for no cookie, and prints a warning on standard
    output, which belongs to our own output, when it finds none.
    """
    path = os.environ.get("XAUTHORITY") or str(Path.home() / ".Xauthority")
    if not Path(path).exists():
        os.environ["XAUTHORITY"] = os.devnull
    from Xlib import xauth

    xauth.print = lambda *_: None
    _mend_lost_connections()


@cache
def _mend_lost_connections() -> None:
    """Make python3-xlib 0.15 say that a connection is lost, instead of waiting on it for good.

    Its handler of a failed send indexes the exception, which Python 3 does not allow; that leaves the connection marked
    as being sent on, and every later call waits for that send to end.
    """
    from Xlib import error
    from Xlib.protocol.display import Display

    original = Display.send_and_recv

    def send_and_recv(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return original(self, *arguments, **options)
        except (TypeError, OSError) as problem:
            if self.socket_error is None:
                self.socket_error = error.ConnectionClosedError("server: the connection was lost")
            raise self.socket_error from problem

    Display.send_and_recv = send_and_recv


@dataclass(frozen=True, slots=True)
class Window:
    """A top-level window that the window manager knows."""

    id: int
    title: str
    app: str  # the class part of WM_CLASS
    pid: int | None


class WindowList:
    """The windows of the desktop, as the window manager lists them (EWMH)."""

    def __init__(self) -> None:
        self._display = open_display()
        self._root = self._display.screen().root

    def windows(self) -> list[Window]:
        """All top-level windows, in the order in which they appeared."""
        return [window for identifier in self._ids("_NET_CLIENT_LIST") if (window := self._describe(identifier))]

    def active(self) -> Window | None:
        """The window that has the focus."""
        identifiers = self._ids("_NET_ACTIVE_WINDOW")
        return self._describe(identifiers[0]) if identifiers and identifiers[0] else None

    def stacking(self) -> list[int]:
        """The identifiers of all top-level windows, the lowest first."""
        return self._ids("_NET_CLIENT_LIST_STACKING")

    def at(self, x: int, y: int) -> Window | None:
        """The top-most window at a point of the desktop; a menu or other helper counts as the window that it is of."""
        known = set(self._ids("_NET_CLIENT_LIST"))
        top = handle = self._root.translate_coords(self._root, x, y).child
        while handle:  # from the frame down to the window in it; the server knows shapes and what lets clicks through
            if handle.id in known:
                return self._describe(handle.id)
            handle = handle.translate_coords(self._root, x, y).child
        if not top:
            return None
        framed = self._within(top, known)
        return self._describe(framed) if framed else self._helper(top, known)

    def region(self, identifier: int) -> Region | None:
        """Where a window is, without its frame; None when it is gone."""
        from Xlib import error

        try:
            handle = self._display.create_resource_object("window", identifier)
            size, corner = handle.get_geometry(), handle.translate_coords(self._root, 0, 0)
        except error.XError:
            return None
        return Region(-corner.x, -corner.y, max(1, size.width), max(1, size.height))

    def is_ordinary(self, identifier: int) -> bool:
        """Whether a window is there to be worked with: shown, and neither a panel nor the desktop itself."""
        from Xlib import X, error

        handle = self._display.create_resource_object("window", identifier)
        try:
            if handle.get_attributes().map_state != X.IsViewable:  # minimised, or on another workspace
                return False
        except error.XError:
            return False
        kinds = {self._display.get_atom_name(kind) for kind in self._property(handle, "_NET_WM_WINDOW_TYPE") or ()}
        return not kinds or bool(kinds & {"_NET_WM_WINDOW_TYPE_NORMAL", "_NET_WM_WINDOW_TYPE_DIALOG"})

    def pointer(self) -> tuple[int, int]:
        """Where the pointer is."""
        at = self._root.query_pointer()
        return at.root_x, at.root_y

    def _within(self, handle: Any, known: set[int], depth: int = 3) -> int | None:
        """The known window that a frame is around, for points on the frame itself (title, borders, buttons)."""
        from Xlib import error

        try:
            children = handle.query_tree().children
        except error.XError:  # it closed in between
            return None
        found = next((child.id for child in children if child.id in known), None)
        if found is None and depth:
            found = next((one for child in children if (one := self._within(child, known, depth - 1))), None)
        return found

    def _helper(self, handle: Any, known: set[int]) -> Window | None:
        """A window without the window manager's care (a menu, a dock of old): by its own class, or by who made it."""
        own = self._describe(handle.id)
        if own is not None and own.app:
            return own
        client = ~self._display.display.info.resource_id_mask
        owner = next((one for one in known if one & client == handle.id & client), None)
        return own if owner is None else self._describe(owner)

    def activate(self, identifier: int) -> bool:
        """Ask the window manager to bring a window to the front; False when it is not there any more."""
        from Xlib import X
        from Xlib.protocol import event

        if identifier not in self._ids("_NET_CLIENT_LIST"):
            return False
        message = event.ClientMessage(
            window=self._display.create_resource_object("window", identifier),
            client_type=self._display.intern_atom("_NET_ACTIVE_WINDOW"),
            data=(32, [2, X.CurrentTime, 0, 0, 0]),  # 2: asked for by a pager, that is by the person (EWMH)
        )
        self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        self._display.sync()
        return True

    def window(self, identifier: int) -> Window | None:
        """A window by its identifier; None when it is gone."""
        return self._describe(identifier)

    def client(self, identifier: int) -> int | None:
        """The top-level window that a window is or lies in; None when there is none."""
        from Xlib import error

        known = self._ids("_NET_CLIENT_LIST")
        handle = self._display.create_resource_object("window", identifier)
        try:
            while handle and handle.id not in known:
                handle = handle.query_tree().parent
        except error.XError:
            return None
        return handle.id if handle else None

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):  # the server may be gone already
            self._display.close()

    def _ids(self, name: str) -> list[int]:
        value = self._property(self._root, name)
        return [int(identifier) for identifier in value] if value is not None else []

    def _describe(self, identifier: int) -> Window | None:
        handle = self._display.create_resource_object("window", identifier)
        title = self._property(handle, "_NET_WM_NAME")
        if title is None:
            title = self._property(handle, "WM_NAME")
        wm_class = self._property(handle, "WM_CLASS")
        pid = self._property(handle, "_NET_WM_PID")
        if title is None and wm_class is None:
            return None
        app = _text(wm_class).rstrip("\0").split("\0")[-1] if wm_class is not None else ""
        return Window(identifier, _text(title), app, int(pid[0]) if pid is not None and len(pid) else None)

    def _property(self, window: Any, name: str) -> Any:
        from Xlib import X, error

        try:
            found = window.get_full_property(self._display.intern_atom(name), X.AnyPropertyType)
        except error.XError:  # the window closed in between
            return None
        return None if found is None else found.value


def window_list() -> WindowList | None:
    """The windows of this desktop, where there is an X server that tells; None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return WindowList()
    except EnvironmentLacksError:
        return None


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


class SelectionOwner:
    """Offers a text as CLIPBOARD and PRIMARY, and knows when it was fetched.

    With a plain clipboard tool nobody can tell whether the text arrived, and restoring the person's clipboard too early
    pastes that instead. Being the owner answers both: a paste is over when the application has asked for the text.
    """

    def __init__(self, text: str) -> None:
        self._data = text.encode("utf-8")
        self._fetched = threading.Event()
        self._armed = threading.Event()
        self._quit = threading.Event()
        self._failure: BaseException | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="selection", daemon=True)

    def __enter__(self) -> "SelectionOwner":
        self._thread.start()
        if not self._ready.wait(3):
            self._quit.set()
            raise EnvironmentLacksError("The X server does not answer.", "Is the display still there?")
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._quit.set()
        self._thread.join(1)

    def arm(self) -> None:
        """From now on, a fetch by the focused application counts as the paste (others look at once, or any time)."""
        self._armed.set()

    def wait_fetched(self, timeout: float, check_stop: Callable[[], None], quiet: float = 0.05) -> bool:
        """Wait until the text was fetched; then a little longer, because some applications fetch twice."""
        until = time.monotonic() + timeout
        while not self._fetched.wait(quiet):
            check_stop()
            if time.monotonic() >= until:
                return False
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            self._fetched.clear()
            if not self._fetched.wait(quiet):
                break
        return True

    def _serve(self) -> None:
        display = None
        try:
            display = open_display()
            self._own_and_answer(display)
        except BaseException as error:  # handed to the thread that waits
            self._failure = error
            self._ready.set()
        finally:
            if display is not None:
                with suppress(Exception):
                    display.close()

    def _own_and_answer(self, display: Any) -> None:
        from Xlib import X

        window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        for name in ("CLIPBOARD", "PRIMARY"):
            window.set_selection_owner(display.intern_atom(name), X.CurrentTime)
        display.sync()
        self._ready.set()
        while not self._quit.is_set():
            while display.pending_events():
                event = display.next_event()
                if event.type == X.SelectionRequest:
                    self._answer(display, event)
            self._quit.wait(0.005)

    def _answer(self, display: Any, request: Any) -> None:
        from Xlib import Xatom
        from Xlib.protocol import event

        utf8, targets = display.intern_atom("UTF8_STRING"), display.intern_atom("TARGETS")
        kinds = {utf8, Xatom.STRING, display.intern_atom("TEXT"), display.intern_atom("text/plain;charset=utf-8")}
        where = request.property or request.target  # obsolete clients leave the property out
        if request.target == targets:
            request.requestor.change_property(where, Xatom.ATOM, 32, [targets, *sorted(kinds)])
        elif request.target in kinds:
            kind = utf8 if request.target != Xatom.STRING else Xatom.STRING
            data = self._data if kind == utf8 else self._data.decode("utf-8").encode("latin-1", "replace")
            request.requestor.change_property(where, kind, 8, data)
        else:
            where = 0
        request.requestor.send_event(
            event.SelectionNotify(
                time=request.time, requestor=request.requestor, selection=request.selection,
                target=request.target, property=where,
            )
        )  # fmt: skip
        display.flush()
        if request.target in kinds and self._armed.is_set() and _same_client(display, request.requestor):
            self._fetched.set()


def _same_client(display: Any, window: Any) -> bool:
    """Whether a window belongs to the application that has the keyboard focus.

    The upper bits of an X resource identifier name the client that made it (X11 protocol, connection setup).
    """
    focus = display.get_input_focus().focus
    if isinstance(focus, int):  # None or PointerRoot: no window has the focus
        return False
    client = ~display.display.info.resource_id_mask
    return bool(focus.id & client == window.id & client)


class Keyboard:
    """Presses the keys of plain text, for applications that take keys and no pasted text (calculators, games)."""

    def __init__(self) -> None:
        self._display = open_display()

    def strokes(self, text: str) -> list[tuple[int, bool]] | None:
        """Keycode and shift for every character; None when this keyboard layout lacks one of them."""
        from Xlib import XK

        found: list[tuple[int, bool]] = []
        for char in text:
            keysym = {"\n": XK.XK_Return, "\t": XK.XK_Tab}.get(char, ord(char))
            if keysym > 0xFF and char not in "\n\t":
                return None
            # Columns 0 and 1 of the layout are the plain and the shifted key; higher ones need other modifiers.
            places = sorted((column, code) for code, column in self._display.keysym_to_keycodes(keysym) if column < 2)
            if not places:
                return None
            found.append((places[0][1], places[0][0] == 1))
        return found

    def press(self, strokes: list[tuple[int, bool]], before_each: Callable[[], None]) -> None:
        """Press and release them one by one; `before_each` may raise to stop, and no key stays down."""
        from Xlib import XK, X
        from Xlib.ext import xtest

        shift = self._display.keysym_to_keycode(XK.XK_Shift_L)
        for code, shifted in strokes:
            before_each()
            for kind, key in ((X.KeyPress, shift), (X.KeyPress, code), (X.KeyRelease, code), (X.KeyRelease, shift)):
                if key != shift or shifted:
                    xtest.fake_input(self._display, kind, key)
            self._display.sync()
            time.sleep(0.008)  # toolkits that compress motion also drop keys that come faster than they redraw

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self._display.close()
