"""A run as a whole: `run.json`."""

from typing import Any

from agent.core.changes import Change
from agent.events.run_events import Receipt
from agent.record.records import Record, Text, TokensRecord, ViewportRecord


class ModelRecord(Record):
    """A model that a run used: what served it, its name there, whose format and words it was asked in, and where."""

    engine: Text | None = None
    model: Text | None = None
    family: Text | None = None
    endpoint: Text | None = None
    words: Text | None = None


class ChangeRecord(Record):
    """One thing that is not as it was when the run began.

    Args:
        kind: setting, file, window, app or clipboard.
        what: names it so that it can be found again.
        before: null where it was not there, or not set.
        after: null where it is not there any more.
        undo: what it takes to undo it; null where it cannot be.
    """

    kind: Text = ""
    what: Text = ""
    before: Text | None = None
    after: Text | None = None
    undo: dict[Text, Any] | None = None

    @property
    def change(self) -> Change:
        """The same as the value that everything else works with."""
        return Change(self.kind, self.what, self.before, self.after, self.undo)  # type: ignore[arg-type]  # or of a later version


class ReceiptRecord(Record):
    """What the run left behind it.

    Args:
        remarks: what could not be watched.
        watched: whether it is known what changed.
    """

    changes: list[ChangeRecord] = []
    remarks: list[Text] = []
    watched: bool = False

    @property
    def receipt(self) -> Receipt:
        """The same as the event that it was."""
        return Receipt(tuple(change.change for change in self.changes), tuple(self.remarks), self.watched)


class UndoneRecord(Record):
    """What became of one change when the run was undone.

    Args:
        kind: of the change, which is told by this and by `what`.
        at: when, in ISO 8601.
        done: whether it was put back.
        words: what was done, or why it could not be.
    """

    kind: Text = ""
    what: Text = ""
    at: Text = ""
    done: bool = False
    words: Text = ""


class RunRecord(ModelRecord):
    """The run as a whole. Its own model fields are those of the model that acted.

    Args:
        format: the version of these records.
        outcome: how it ended; `running` until then.
        status: the exit status; null until the end.
        pid: the process that ran it.
        models: every model by its role; "actor" is the one that looks and acts.
        bundle: the folder where it was recorded.
        receipt: what changed; null in runs that broke off.
        evidence: what shows that the task is done, or speaks against it.
        undone: what `mai-agent undo` did later.
        sandbox_name: the throw-away desktop it was on; empty for a person's own.
        verified: whether that shows that it is done; null where it cannot be told.
        steps: how many steps were begun.
        recorded: how many steps are in the bundle; null until the end.
        masked: how many secrets were masked.
    """

    format: int = 1
    id: Text = ""
    instruction: Text = ""
    version: Text = ""
    started: Text = ""
    outcome: Text = "unknown"
    status: int | None = None
    message: Text = ""
    pid: int | None = None
    warnings: list[Text] = []
    models: dict[Text, ModelRecord] = {}
    style: Text | None = None
    dry_run: bool = False
    approve: Text | None = None
    sandbox: bool = False
    sandbox_name: Text = ""
    viewport: ViewportRecord | None = None
    bundle: Text | None = None
    receipt: ReceiptRecord | None = None
    evidence: list[Text] = []
    undone: list[UndoneRecord] = []
    verified: bool | None = None
    steps: int | None = None
    recorded: int | None = None
    seconds: float | None = None
    tokens: TokensRecord | None = None
    masked: int | None = None
    finished: Text | None = None
