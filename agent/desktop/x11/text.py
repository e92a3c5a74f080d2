"""How text gets into an X11 application: offered as the selection that it pastes, or pressed key by key.

Every class here opens its own connection, because Xlib connections must not be shared between threads.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent.desktop.x11.connection import open_display
from foundation.errors import EnvironmentLacksError


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
