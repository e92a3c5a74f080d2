"""Offers a text as the selection that applications paste."""

import select
import time
from collections.abc import Callable, Sequence
from typing import Any

from agent.desktop.x11.connection import client_of, open_display

#: An application that has asked nothing for so many seconds has what it wants; longer is not waited.
_QUIET, _LONGEST = 0.06, 0.6


class SelectionOwner:
    """Offers a text for pasting, and knows when it was fetched; answers only while it serves.

    With a plain clipboard tool nobody can tell whether the text arrived, and restoring the person's clipboard too early
    pastes that instead. Being the owner answers both: a paste is over when the application has asked for the text.

    The text is for `client`, a connection, or for the focused application if that is None. Others look at any time, and
    do not count; another application that has the focus gets nothing, and is kept as `thief`.
    """

    def __init__(self, text: str, names: Sequence[str], client: int | None = None) -> None:
        from Xlib import X

        self._data = text.encode("utf-8")
        self._client = client
        self.thief = False
        self._asked = 0.0  # when it asked last, for anything
        self._display = open_display()
        window = self._display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        for name in names:
            window.set_selection_owner(self._display.intern_atom(name), X.CurrentTime)
        self._display.sync()

    def serve(self, seconds: float, *, until_fetched: bool = False) -> bool:
        """Answer requests for so long; whether the application that it is for fetched the text."""
        fetched, deadline = False, time.monotonic() + seconds
        while True:
            fetched = self._answer_all() or fetched
            left = deadline - time.monotonic()
            if left <= 0 or (fetched and until_fetched):
                return fetched
            select.select([self._display.fileno()], [], [], left)

    def serve_paste(self, timeout: float, check: Callable[[], None]) -> bool:
        """Serve until the text was fetched, and until that application asks nothing more; False when it was not."""
        deadline = time.monotonic() + timeout
        while not self.serve(_QUIET, until_fetched=True):
            check()
            if self.thief or time.monotonic() >= deadline:
                return False
        # Some fetch twice, and Chromium looks again and again at what there is before it takes what it fetched.
        deadline, self._asked = time.monotonic() + _LONGEST, time.monotonic()
        while (now := time.monotonic()) < deadline and now < self._asked + _QUIET:
            self.serve(self._asked + _QUIET - now)
        return True

    def close(self) -> None:
        """Offer it no more."""
        self._display.close()

    def _answer_all(self) -> bool:
        """Answer what was asked so far; whether the text was fetched."""
        from Xlib import X

        fetched = False
        while self._display.pending_events():
            event = self._display.next_event()
            fetched = (event.type == X.SelectionRequest and self._answer(event)) or fetched
        return fetched

    def _answer(self, request: Any) -> bool:
        """Answer one request; whether it was that of the application that the text is for, and for the text."""
        from Xlib import Xatom
        from Xlib.protocol import event

        atom = self._display.intern_atom
        utf8, targets = atom("UTF8_STRING"), atom("TARGETS")
        kinds = {utf8, Xatom.STRING, atom("TEXT"), atom("text/plain;charset=utf-8")}
        where = request.property or request.target  # obsolete clients leave the property out
        asks, has_focus = client_of(self._display, request.requestor.id), self._with_focus()
        wanted = has_focus if self._client is None else self._client
        self._asked = time.monotonic() if asks == wanted else self._asked
        steals = asks == has_focus != wanted and request.target in kinds
        self.thief = self.thief or steals
        if request.target == targets:
            request.requestor.change_property(where, Xatom.ATOM, 32, [targets, *sorted(kinds)])
        elif steals:
            where = 0
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
        return request.target in kinds and asks == wanted

    def _with_focus(self) -> int | None:
        """The connection whose window has the focus; None for no window."""
        focus = self._display.get_input_focus().focus
        return None if isinstance(focus, int) else client_of(self._display, focus.id)
