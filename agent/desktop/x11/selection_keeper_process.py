"""Owns a selection in several types at once (formatted text, files that were cut) until another program copies.

The X server does not store selections: their owner must keep running, here longer than a run. xclip can own only one
type. Imports nothing of ours, so that it starts quickly.

    python selection_keeper_process.py SELECTION

Standard input holds, for each type, a line with its name and its number of bytes, followed by these bytes.
"""

import os
import sys
from contextlib import suppress
from typing import Any, BinaryIO

#: Larger contents are sent in pieces of this size (INCR in the ICCCM): servers reject requests above 256 KiB.
_PIECE = 100_000


def read_kinds(source: BinaryIO) -> dict[str, bytes]:
    """Read the contents by type from standard input."""
    kinds: dict[str, bytes] = {}
    while line := source.readline():
        name, length = line.decode("ascii").split()
        kinds[name] = source.read(int(length))
    return kinds


class Keeper:
    """Owns the selection, and answers requests for it."""

    def __init__(self, display: Any, selection: str, kinds: dict[str, bytes]) -> None:
        from Xlib import X

        self._display = display
        self._kinds = {display.intern_atom(name): data for name, data in kinds.items()}
        self._targets = display.intern_atom("TARGETS")
        self._incremental = display.intern_atom("INCR")
        self._going: dict[tuple[int, int], tuple[int, bytes]] = {}  # window and property -> type and remaining data
        window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        window.set_selection_owner(display.intern_atom(selection), X.CurrentTime)
        display.sync()

    def run(self) -> None:
        """Serve until another program owns the selection."""
        from Xlib import X

        while True:
            event = self._display.next_event()
            if event.type == X.SelectionClear:
                return
            if event.type == X.SelectionRequest:
                self._answer(event)
            elif event.type == X.PropertyNotify and event.state == X.PropertyDelete:
                self._go_on(event)

    def _answer(self, request: Any) -> None:
        from Xlib import X, Xatom
        from Xlib.protocol import event

        where, requestor = request.property or request.target, request.requestor
        data = self._kinds.get(request.target)
        if request.target == self._targets:
            requestor.change_property(where, Xatom.ATOM, 32, [self._targets, *self._kinds])
        elif data is None:
            where = 0
        elif len(data) <= _PIECE:
            requestor.change_property(where, request.target, 8, data)
        else:
            requestor.change_attributes(event_mask=X.PropertyChangeMask)
            requestor.change_property(where, self._incremental, 32, [len(data)])
            self._going[requestor.id, where] = request.target, data
        requestor.send_event(
            event.SelectionNotify(
                time=request.time, requestor=requestor, selection=request.selection, target=request.target,
                property=where,
            )
        )  # fmt: skip
        self._display.flush()

    def _go_on(self, event: Any) -> None:
        """Send the next piece to a window that has read the last one; an empty piece ends the transfer."""
        key = event.window.id, event.atom
        if key not in self._going:
            return
        kind, left = self._going.pop(key)
        event.window.change_property(event.atom, kind, 8, left[:_PIECE])
        if left:
            self._going[key] = kind, left[_PIECE:]
        self._display.flush()


def main() -> None:
    """Own the selection named in the arguments, in a background process."""
    from Xlib import display, xauth

    xauth.print = lambda *_: None  # it warns on standard output if there is no cookie
    with suppress(Exception):  # a lost display raises any of a dozen exceptions
        keeper = Keeper(display.Display(), sys.argv[1], read_kinds(sys.stdin.buffer))
        if os.fork():  # the selection is owned now: the caller need not wait any longer
            os._exit(0)
        keeper.run()


if __name__ == "__main__":
    main()
