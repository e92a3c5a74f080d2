"""Undoes a recorded run on the desktop that it was on, and writes into its bundle what was undone."""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from typing_extensions import override

from agent.core.actions import TypeText, shorten
from agent.core.changes import Change
from agent.evidence.undo import Result, Undo
from agent.record.read import Bundle
from agent.record.redactor import Redactor, is_masked
from agent.record.run_record import UndoneRecord
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import write_atomically
from foundation.foreign_text import json_text

#: Most characters of a typed text that are shown.
_LONGEST = 60


class RunUndo(Undo):
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
        environ = _environ_of(run.sandbox_name, thrown_away=run.sandbox) if changes else {}
        undone: dict[tuple[str, str], list[str]] = {}
        for one in run.undone:
            if one.done:
                undone.setdefault((one.kind, one.what), []).append(one.at)
        self.is_known = run.dry_run or run.receipt.receipt.watched  # whether the receipt has all changes
        super().__init__((*changes, *_typed(bundle)), environ, undone, is_masked)

    @override
    def carry_out(self, tell: Callable[[Result], None] = lambda _: None) -> list[Result]:
        results = super().carry_out(tell)
        if results:
            self._record(results)
        return results

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
