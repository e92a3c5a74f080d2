"""A run as a whole: `run.json`."""

from typing import Any

from agent.core.changes import Change
from agent.events.run_events import Receipt
from agent.record.records import Record, Text, TokensRecord, ViewportRecord


class ModelRecord(Record):
    """A model that a run used: engine, name at the endpoint, family, endpoint, and the source of its prompt words."""

    engine: Text | None = None
    model: Text | None = None
    family: Text | None = None
    endpoint: Text | None = None
    words: Text | None = None


class ChangeRecord(Record):
    """One change of the computer since the run began."""

    kind: Text = ""  # setting, file, window, app or clipboard
    what: Text = ""  # a name by which the changed thing can be found again
    before: Text | None = None  # null if it did not exist, or was not set
    after: Text | None = None  # null if it does not exist any more
    undo: dict[Text, Any] | None = None  # what is needed to undo it; null if it cannot be undone

    @property
    def change(self) -> Change:
        """The record as a `Change`."""
        return Change(self.kind, self.what, self.before, self.after, self.undo)  # type: ignore[arg-type]  # or of a later version


class ReceiptRecord(Record):
    """The changes that the run left on the computer."""

    changes: list[ChangeRecord] = []
    remarks: list[Text] = []  # what could not be watched
    watched: bool = False  # whether it is known what changed

    @property
    def receipt(self) -> Receipt:
        """The record as a `Receipt`."""
        return Receipt(tuple(change.change for change in self.changes), tuple(self.remarks), self.watched)


class UndoneRecord(Record):
    """What became of one change when the run was undone."""

    kind: Text = ""  # of the change; `kind` and `what` identify it
    what: Text = ""
    at: Text = ""  # when, in ISO 8601
    done: bool = False  # whether it was put back
    words: Text = ""  # what was done, or why it could not be


class RunRecord(ModelRecord):
    """The run as a whole. Its own model fields are those of the model that acted."""

    format: int = 1  # the version of these records
    id: Text = ""
    instruction: Text = ""
    version: Text = ""
    started: Text = ""
    outcome: Text = "unknown"  # how it ended; `running` until then
    status: int | None = None  # the exit status; null until the end
    message: Text = ""
    pid: int | None = None  # the process that ran it
    warnings: list[Text] = []
    models: dict[Text, ModelRecord] = {}  # every model by its role; "actor" is the one that looks and acts
    style: Text | None = None
    dry_run: bool = False
    approve: Text | None = None
    sandbox: bool = False
    sandbox_name: Text = ""  # the throw-away desktop it was on; empty for a person's own
    viewport: ViewportRecord | None = None
    bundle: Text | None = None  # the folder where it was recorded
    receipt: ReceiptRecord | None = None  # what changed; null in runs that broke off
    evidence: list[Text] = []  # what shows that the task is done, or speaks against it
    undone: list[UndoneRecord] = []  # what `mai-agent undo` did later
    verified: bool | None = None  # whether `evidence` shows that the task is done; null if unknown
    steps: int | None = None  # how many steps were begun
    recorded: int | None = None  # how many steps are in the bundle; null until the end
    seconds: float | None = None
    tokens: TokensRecord | None = None
    masked: int | None = None  # how many secrets were masked
    finished: Text | None = None
