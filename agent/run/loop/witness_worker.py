"""Runs the witness on its own thread: opened while the model thinks, and asked within time limits.

If the witness hangs, fails or is missing, only the run's receipt suffers.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from agent.core.changes import Change
from agent.desktop.protocol.witness import OpenWitness, Witness
from agent.events.run_events import Receipt
from agent.run.control import Worker

#: Seconds that the first action waits for the witness, which misses all changes before it watches.
_OPENING = 2.0
#: Limits of a receipt: changes, remarks, and characters of each text. All of them come from other programs.
_MOST_CHANGES, _MOST_REMARKS, _MOST_CHARS = 5000, 20, 300

NOBODY = "Changes on the computer cannot be watched here."
_TOO_LATE = "It could not be found out in time what changed."
_BEGAN_LATE = "What changed at the very beginning may be missing: the watch began late."


class Watch:
    """Watches what changes during a run. Used on the run's event loop."""

    def __init__(self, open_witness: OpenWitness | None) -> None:
        self._open = open_witness
        self._witness: Witness | None = None
        self._trouble = NOBODY  # why there is no witness
        self._worker: Worker | None = None
        self._opening: asyncio.Future[None] | None = None
        self._asking: asyncio.Future[Receipt] | None = None
        self._known = Receipt()  # the newest result
        self._late = False

    def begin(self) -> None:
        """Open the witness. Does not wait."""
        if self._open is not None:
            self._worker = Worker("witness")
            self._opening = asyncio.ensure_future(self._worker.call(self._open_it, self._open))

    async def ready(self) -> None:
        """Wait up to `_OPENING` seconds, before the first action, until the witness watches."""
        if self._opening is not None and not self._opening.done():
            await asyncio.wait({self._opening}, timeout=_OPENING)
            self._late = not self._opening.done()

    async def look(self, within: float, settle: float = 0.0) -> Receipt:
        """Return what changed so far, or the last known result after `within` seconds. Never raises.

        Up to `settle` seconds of these are spent waiting for programs to write their settings.
        """
        if self._worker is None:
            return Receipt(remarks=(self._trouble,), watched=False)
        until = time.monotonic() + within
        fresh = False
        while not fresh:
            if self._asking is None or self._asking.done():
                fresh, self._asking = True, asyncio.ensure_future(self._worker.call(partial(self._ask, settle)))
            await asyncio.wait({self._asking}, timeout=max(0.0, until - time.monotonic()))
            if not self._asking.done():
                return self._as_known(_TOO_LATE)
        assert self._asking is not None
        try:
            self._known = self._asking.result()
        except Exception as error:  # no failure of the witness may affect the run
            return self._as_known(_failed(error))
        return self._as_known(_BEGAN_LATE) if self._late else self._known

    def end(self) -> None:
        """Close the witness. Does not wait."""
        for task in (self._opening, self._asking):
            if task is not None and not task.cancel() and not task.cancelled():
                task.exception()  # reported already, or not needed any more
        if self._worker is not None:
            self._worker.end(self._close)

    def _as_known(self, remark: str) -> Receipt:
        return Receipt(self._known.changes, (*self._known.remarks, remark), watched=False)

    # On the thread

    def _open_it(self, open_witness: OpenWitness) -> None:
        try:
            self._witness = open_witness()
        except Exception as error:
            self._trouble = _failed(error)

    def _ask(self, settle: float) -> Receipt:
        if self._witness is None:
            return Receipt(remarks=(self._trouble,), watched=False)
        if settle:
            self._witness.settle(settle)
        return _receipt(self._witness.changes(), self._witness.remarks)

    def _close(self) -> None:
        if self._witness is not None:
            with suppress(Exception):
                self._witness.close()


def _failed(error: Exception) -> str:
    return f"What changed could not be watched ({type(error).__name__}: {error})."[:_MOST_CHARS]


def _receipt(changes: Sequence[Change], remarks: Sequence[str]) -> Receipt:
    """Build the receipt, with everything in it cut to the limits."""
    kept = tuple(
        replace(change, what=_cut(change.what), before=_cut_value(change.before), after=_cut_value(change.after))
        for change in changes[:_MOST_CHANGES]
    )
    more = len(changes) - len(kept)
    left_out = (f"{more} more changes are left out, and cannot be undone.",) if more else ()
    return Receipt(kept, (*map(_cut, remarks[:_MOST_REMARKS]), *left_out))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


def _cut_value(text: str | None) -> str | None:
    return None if text is None else _cut(text)
