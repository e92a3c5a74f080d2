"""Undoes a recorded run on the desktop that it was on, and writes into its bundle what was undone."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from agent.core.actions import TypeText, shorten
from agent.core.changes import CannotPutBackError, Change, Standing
from agent.evidence.undo import Item, Result, plan, relocated
from agent.record.read import Bundle
from agent.record.redactor import Redactor, is_masked
from agent.record.run_record import UndoneRecord
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import write_atomically
from foundation.foreign_text import json_text

#: Most characters of a typed text that are shown.
_LONGEST = 60
#: Seconds that an open program takes to copy a setting to another store (XFCE's Appearance: the theme to dconf).
_COPIED_WITHIN = 0.5


class RunUndo:
    """The changes that can be undone now. Construction inspects the desktop: some milliseconds per change.

    Raises UsageError: the run is still active, or nothing was recorded that could be undone. EnvironmentLacksError: the
    desktop that it was on is gone.
    """

    def __init__(self, bundle: Bundle) -> None:
        run, name = bundle.run, bundle.path.name
        if bundle.outcome == "running":
            raise UsageError(f"The run {name} is still going on.", "Undo it when it has ended.")
        if run.receipt is None:
            raise UsageError(f"It is not recorded what {name} changed.", "Only runs that ended can be undone.")
        self._bundle = bundle
        changes = () if run.dry_run else run.receipt.receipt.changes
        self._environ = _environ_of(run.sandbox_name, thrown_away=run.sandbox) if changes else {}
        self.is_known = run.dry_run or run.receipt.receipt.watched  # whether the receipt has all changes
        #: Every change with what undoing it means; those that can be undone come first, in their order.
        self.items: list[Item] = plan([*changes, *_typed(bundle)], self._standing)
        told = Counter[tuple[str, str]]((one.kind, one.what) for one in changes)
        undone = defaultdict[tuple[str, str], list[str]](list)
        for one in run.undone:
            if one.done:
                undone[one.kind, one.what].append(one.at)
        for index, item in enumerate(self.items):
            key = item.change.kind, item.change.what
            # A change is not undone twice: if it is there again, somebody made it again. A replaced file has two
            # changes with its name in the receipt.
            if key in undone and len(undone[key]) >= told[key]:
                self.items[index] = Item(item.change, "nothing_to_do", f"was undone already, {undone[key][-1]}")

    @property
    def able(self) -> list[Item]:
        """What will be undone."""
        return [item for item in self.items if item.verdict == "undo"]

    @property
    def leaves_something(self) -> bool:
        """Whether something stays changed that a person would want back; windows and applications do not count."""
        return any(item.leaves_something for item in self.items)

    def carry_out(self) -> list[Result]:
        """Undo everything that can be undone. A failure does not stop the rest.

        Raises EnvironmentLacksError: the changes were undone, but that could not be recorded.
        """
        results: list[Result] = []
        waiting = self.able
        while waiting:
            item, *waiting = waiting
            result = self._put_back(item, [one.item for one in results if not one.done])
            results.append(result)
            if result.done:
                waiting = relocated(waiting, item)
        self._put_copies_back(results)
        if results:
            self._record(results)
        return results

    def _put_back(self, item: Item, failed: Sequence[Item] = ()) -> Result:
        from agent.desktop.changes.put_back import put_back

        if any(item.holds(other) for other in failed):
            return Result(item, False, "something in it could not be put back")
        try:
            return Result(item, True, put_back(self._environ, item.undo))
        except CannotPutBackError as error:
            return Result(item, False, str(error))

    def _put_copies_back(self, results: list[Result]) -> None:
        """Put back settings again that an open program changed when others were put back.

        The program may do so at once, so even a setting that was just put back can be wrong.
        """
        settings = [one for one in results if one.item.change.kind == "setting"]
        if len(settings) < 2:
            return
        time.sleep(_COPIED_WITHIN)
        for one in settings:
            with suppress(CannotPutBackError):
                if not one.done or self._standing(one.item.undo) != "as_before":
                    results[results.index(one)] = self._put_back(one.item)

    def _standing(self, undo: Mapping[str, Any]) -> Standing:
        from agent.desktop.changes.put_back import standing

        if is_masked(undo):
            raise CannotPutBackError("a secret in its record is masked")
        return standing(self._environ, undo)

    def _record(self, results: Sequence[Result]) -> None:
        run = self._bundle.run
        at = datetime.now().astimezone().isoformat(timespec="seconds")
        for one in results:
            change = one.item.change
            run.undone.append(UndoneRecord(kind=change.kind, what=change.what, at=at, done=one.done, words=one.words))
        data = Redactor().data(run.model_dump())
        try:
            write_atomically(self._bundle.path / "run.json", json_text(data, indent=1).encode())
        except OSError as error:
            raise EnvironmentLacksError(
                f"It was undone, but {self._bundle.path} cannot be written ({error.strerror or error}).",
                "Make room there, or make it writable.",
            ) from error


def _typed(bundle: Bundle) -> Iterator[Change]:
    texts: dict[str, list[str]] = {}
    for action in (action for step in bundle.steps for action in step.actions if action.executed):
        if isinstance(done := action.final_action, TypeText):
            texts.setdefault(action.aim.window or action.aim.app or "the window in front", []).append(done.text)
    for window, typed in texts.items():
        yield Change("text", window, None, shorten(" ".join(typed), _LONGEST))


def _environ_of(sandbox: str, *, thrown_away: bool) -> dict[str, str]:
    """The environment of the run's applications. Raises EnvironmentLacksError: its desktop is gone."""
    from agent.sandbox.desktop import environment_of

    if sandbox or thrown_away:
        return environment_of(sandbox or "of this run")
    return dict(os.environ)
