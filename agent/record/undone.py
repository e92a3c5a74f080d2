"""Writes into a run's record what was undone of it."""

from collections.abc import Sequence

from agent.core.changes import Change
from agent.record.read import Bundle
from agent.record.redact import Redactor
from agent.record.run_record import UndoneRecord
from foundation.errors import EnvironmentLacksError
from foundation.files import write_atomically
from foundation.foreign_text import json_text


def record_undone(bundle: Bundle, results: Sequence[tuple[Change, bool, str]], at: str) -> None:
    """Add what became of each change: whether it was put back, and words for it; at an ISO 8601 time.

    Raises:
        EnvironmentLacksError: the record cannot be written; it is as it was.
    """
    told = [
        UndoneRecord(kind=change.kind, what=change.what, at=at, done=done, words=words)
        for change, done, words in results
    ]
    bundle.run.undone = [*bundle.run.undone, *told]
    data = Redactor().data(bundle.run.model_dump())
    try:
        write_atomically(bundle.path / "run.json", json_text(data, indent=1).encode())
    except OSError as error:
        raise EnvironmentLacksError(
            f"It was undone, but {bundle.path} cannot be written ({error.strerror or error}).",
            "Make room there, or make it writable.",
        ) from error
