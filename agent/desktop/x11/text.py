"""How text gets into an X11 application: offered as the selection that it pastes, or pressed key by key."""

import re
import select
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from agent.desktop.x11.connection import client_of, open_display, read_property, unless_gone, window_of
from foundation.configs import load_config


class SelectionOwner:
    """Offers a text for pasting, and knows when it was fetched; answers only while it serves.

    As CLIPBOARD, and as PRIMARY where that is what the focused application pastes, or where it has selected nothing
    itself: what it has selected is to be replaced (`configs/pasting.toml`).

    With a plain clipboard tool nobody can tell whether the text arrived, and restoring the person's clipboard too early
    pastes that instead. Being the owner answers both: a paste is over when the application has asked for the text.
    """

    def __init__(self, text: str) -> None:
        from Xlib import X

        self._data = text.encode("utf-8")
        self._display = open_display()
        window = self._display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        names = ["CLIPBOARD", *(["PRIMARY"] if not self._keeps_primary() else [])]
        for name in names:
            window.set_selection_owner(self._display.intern_atom(name), X.CurrentTime)
        self._display.sync()

    def serve(self, seconds: float, *, until_fetched: bool = False) -> bool:
        """Answer requests for so long; whether the focused application (others look at any time) fetched the text."""
        from Xlib import X

        fetched, deadline = False, time.monotonic() + seconds
        while True:
            while self._display.pending_events():
                event = self._display.next_event()
                if event.type == X.SelectionRequest and self._answer(event):
                    fetched = True
            left = deadline - time.monotonic()
            if left <= 0 or (fetched and until_fetched):
                return fetched
            select.select([self._display.fileno()], [], [], left)

    def serve_paste(self, timeout: float, check_stop: Callable[[], None], quiet: float = 0.05) -> bool:
        """Serve until the text was fetched; then a little longer, because some applications fetch twice."""
        deadline = time.monotonic() + timeout
        while not self.serve(quiet, until_fetched=True):
            check_stop()
            if time.monotonic() >= deadline:
                return False
        deadline = time.monotonic() + 0.5
        while self.serve(quiet, until_fetched=True) and time.monotonic() < deadline:
            pass
        return True

    def close(self) -> None:
        """Offer it no more."""
        self._display.close()

    @unless_gone()
    def _keeps_primary(self) -> bool:
        """Whether the focused application has selected something that is lost when somebody else owns PRIMARY."""
        focus = self._display.get_input_focus().focus
        owner = self._display.get_selection_owner(self._display.intern_atom("PRIMARY"))
        if isinstance(focus, int) or isinstance(owner, int):  # None or PointerRoot; nobody
            return False
        if client_of(self._display, focus.id) != client_of(self._display, owner.id):
            return False
        return not any(
            re.search(one, self._class_around(focus.id), re.I) for one in load_config("pasting.toml")["primary"]
        )

    def _class_around(self, identifier: int) -> str:
        """The class of the application whose window this is, or lies in; "" where none is told."""
        handle = window_of(self._display, identifier)
        while handle:
            if told := read_property(self._display, handle.id, "WM_CLASS"):
                text: str = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
                return text.rstrip("\0").split("\0")[-1]
            handle = handle.query_tree().parent
        return ""

    def _answer(self, request: Any) -> bool:
        """Answer one request; whether it was the focused application's, and for the text."""
        from Xlib import Xatom
        from Xlib.protocol import event

        atom = self._display.intern_atom
        utf8, targets = atom("UTF8_STRING"), atom("TARGETS")
        kinds = {utf8, Xatom.STRING, atom("TEXT"), atom("text/plain;charset=utf-8")}
        where = request.property or request.target  # obsolete clients leave the property out
        if request.target == targets:
            request.requestor.change_property(where, Xatom.ATOM, 32, [targets, *sorted(kinds)])
        elif request.target == Xatom.STRING:
            latin = self._data.decode("utf-8").encode("latin-1", "replace")
            request.requestor.change_property(where, Xatom.STRING, 8, latin)
        elif request.target in kinds:
            request.requestor.change_property(where, utf8, 8, self._data)
        else:
            where = 0
        request.requestor.send_event(
            event.SelectionNotify(
                time=request.time, requestor=request.requestor, selection=request.selection,
                target=request.target, property=where,
            )
        )  # fmt: skip
        self._display.flush()
        if request.target not in kinds:
            return False
        focus = self._display.get_input_focus().focus
        if isinstance(focus, int):  # None or PointerRoot: no window has the focus
            return False
        return client_of(self._display, focus.id) == client_of(self._display, request.requestor.id)


def type_keys(text: str, before_each: Callable[[], None]) -> bool:
    """Press the keys of plain text, for applications that take keys and no pasted text (calculators, games).

    False, with nothing pressed, where this keyboard layout lacks a character. `before_each` is called before every key,
    and may raise to stop; no key stays down.
    """
    from Xlib import XK, X
    from Xlib.ext import xtest

    with closing(open_display()) as display:
        strokes = [_stroke(display, char) for char in text]
        shift = display.keysym_to_keycode(XK.XK_Shift_L)
        if None in strokes:
            return False
        for code, shifted in filter(None, strokes):
            before_each()
            keys = [shift, code] if shifted else [code]
            for kind, pressed in ((X.KeyPress, keys), (X.KeyRelease, keys[::-1])):
                for key in pressed:
                    xtest.fake_input(display, kind, key)
            display.sync()
            time.sleep(0.008)  # toolkits that compress motion also drop keys that come faster than they redraw
    return True


def _stroke(display: Any, char: str) -> tuple[int, bool] | None:
    """Keycode and shift for a character; None when this keyboard layout lacks it."""
    from Xlib import XK

    keysym = {"\n": XK.XK_Return, "\t": XK.XK_Tab}.get(char, ord(char))
    if keysym > 0xFF and char not in "\n\t":
        return None
    # Columns 0 and 1 of the layout are the plain and the shifted key; higher ones need other modifiers.
    places = sorted((column, code) for code, column in display.keysym_to_keycodes(keysym) if column < 2)
    return (places[0][1], places[0][0] == 1) if places else None
