"""Undoes the changes in a receipt, on the desktop that the run was on."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent.core.changes import Change
from agent.evidence.undo_plan import Item, NotKnownError, Standing, leaves_something, plan, relocated

#: Seconds that an open program takes to copy a setting to another store (XFCE's Appearance: the theme to dconf).
_COPIED_WITHIN = 0.5


@dataclass(frozen=True, slots=True)
class Result:
    """The result of undoing one item."""

    item: Item
    done: bool
    words: str


def _name(change: Change) -> tuple[str, str]:
    return change.kind, change.what


class Undo:
    """What can be undone of a receipt now. Making one looks at the desktop: some milliseconds for every change.

    Args:
        changes: the receipt.
        environ: of the desktop that the run was on.
        undone: when changes were undone earlier, by kind and name of the change.
        is_masked: whether a secret is masked in a change's undo data.
    """

    def __init__(
        self,
        changes: Sequence[Change],
        environ: Mapping[str, str],
        undone: Mapping[tuple[str, str], Sequence[str]],
        is_masked: Callable[[Any], bool],
    ) -> None:
        self._environ, self._is_masked = environ, is_masked
        #: Every change with what undoing it means, those that can be undone first, in their order.
        self.items: list[Item] = plan(changes, self._standing)
        for index, item in enumerate(self.items):
            # A change is not undone twice: if it is there again, somebody made it again.
            at = undone.get(_name(item.change), ())
            # A replaced file has two changes with that name in the receipt.
            if at and len(at) >= sum(_name(one) == _name(item.change) for one in changes):
                self.items[index] = Item(item.change, "nothing_to_do", f"was undone already, {at[-1]}")

    @property
    def able(self) -> list[Item]:
        """What will be undone."""
        return [item for item in self.items if item.verdict == "undo"]

    @property
    def leaves_something(self) -> bool:
        """Whether something stays changed that a person would want back; windows and applications do not count."""
        return any(map(leaves_something, self.items))

    def carry_out(self, tell: Callable[[Result], None] = lambda _: None) -> list[Result]:
        """Undo everything that can be undone, and pass each result to `tell`. A failure does not stop the rest.

        Raises:
            EnvironmentLacksError: the changes were undone, but that could not be recorded.
        """
        results: list[Result] = []
        waiting = self.able
        while waiting:
            item, *waiting = waiting
            result = self._put_back(item, [one.item for one in results if not one.done])
            results.append(result)
            tell(result)
            if result.done:
                waiting = relocated(waiting, item)
        self._put_copies_back(results)
        return results

    def _put_back(self, item: Item, failed: list[Item]) -> Result:
        from agent.desktop.changes.put_back import CannotPutBackError, put_back

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
            with suppress(NotKnownError):
                if not one.done or self._standing(one.item.undo) != "as_before":
                    results[results.index(one)] = self._put_back(one.item, [])

    def _standing(self, undo: Mapping[str, Any]) -> Standing:
        from agent.desktop.changes.put_back import CannotPutBackError, standing

        if self._is_masked(undo):
            raise NotKnownError("a secret in its record is masked")
        try:
            return standing(self._environ, undo)
        except CannotPutBackError as error:
            raise NotKnownError(str(error)) from error
