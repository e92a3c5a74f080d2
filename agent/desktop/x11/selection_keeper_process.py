"""Owns a selection in several types at once (formatted text, files that were cut) until another program copies.

The X server does not store selections: their owner must keep running, here longer than a run. xclip can own only one
type. Imports nothing of ours, so that it starts quickly.

    python selection_keeper_process.py SELECTION

Standard input holds, for each type, a line with its name and its number of bytes, followed by these bytes.
"""

import os
import sys
from collections.abc import Mapping, Sequence
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


class Owner:
    """Owns selections, and answers requests for them. `kinds` holds the type of the reply and the data, by target."""

    def __init__(self, display: Any, selections: Sequence[str], kinds: Mapping[str, tuple[str, bytes]]) -> None:
        from Xlib import X

        atom = display.intern_atom
        self.display = display
        self.kinds = {atom(target): (atom(kind), data) for target, (kind, data) in kinds.items()}
        self._targets, self._incremental = atom("TARGETS"), atom("INCR")
        self._going: dict[tuple[int, int], tuple[int, bytes]] = {}  # window and property -> type and remaining data
        window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        for name in selections:
            window.set_selection_owner(atom(name), X.CurrentTime)
        display.sync()

    def run(self) -> None:
        """Serve until another program owns the selection."""
        from Xlib import X

        while True:
            event = self.display.next_event()
            if event.type == X.SelectionClear:
                return
            if event.type == X.SelectionRequest:
                self.answer(event)
            elif event.type == X.PropertyNotify and event.state == X.PropertyDelete:
                self._go_on(event)

    def answer(self, request: Any, *, refuses: bool = False) -> None:
        """Answer one request. With `refuses`, deliver no content."""
        from Xlib import X, Xatom
        from Xlib.protocol import event

        atom, requestor = request.property or request.target, request.requestor  # obsolete clients name no property
        kind, data = self.kinds.get(request.target, (0, b""))
        if request.target == self._targets:
            requestor.change_property(atom, Xatom.ATOM, 32, [self._targets, *self.kinds])
        elif refuses or not kind:
            atom = 0
        elif len(data) <= _PIECE:
            requestor.change_property(atom, kind, 8, data)
        else:
            requestor.change_attributes(event_mask=X.PropertyChangeMask)
            requestor.change_property(atom, self._incremental, 32, [len(data)])
            self._going[requestor.id, atom] = kind, data
        requestor.send_event(
            event.SelectionNotify(
                time=request.time, requestor=requestor, selection=request.selection, target=request.target,
                property=atom,
            )
        )  # fmt: skip
        self.display.flush()

    def _go_on(self, event: Any) -> None:
        """Send the next piece to a window that has read the last one; an empty piece ends the transfer."""
        key = event.window.id, event.atom
        if key not in self._going:
            return
        kind, left = self._going.pop(key)
        event.window.change_property(event.atom, kind, 8, left[:_PIECE])
        if left:
            self._going[key] = kind, left[_PIECE:]
        self.display.flush()


def main() -> None:
    """Own the selection named in the arguments, in a background process."""
    from Xlib import display, xauth

    xauth.print = lambda *_: None  # it warns on standard output if there is no cookie
    with suppress(Exception):  # a lost display raises any of a dozen exceptions
        kinds = {name: (name, data) for name, data in read_kinds(sys.stdin.buffer).items()}
        keeper = Owner(display.Display(), [sys.argv[1]], kinds)
        if os.fork():  # the selection is owned now: the caller need not wait any longer
            os._exit(0)
        keeper.run()


if __name__ == "__main__":
    main()
