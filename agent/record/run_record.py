"""A run as a whole: `run.json`."""

from typing import Any

from agent.core.changes import Change
from agent.events.run_events import Receipt
from agent.record.records import Record, TokensRecord, ViewportRecord


class ModelRecord(Record):
    """A model that a run used: engine, name at the endpoint, family, endpoint, and the source of its prompt words."""

    engine: str | None = None
    model: str | None = None
    family: str | None = None
    endpoint: str | None = None
    words: str | None = None


class ChangeRecord(Record):
    """One change of the computer since the run began."""

    kind: str = ""  # setting, file, window, app or clipboard
    what: str = ""  # a name by which the changed thing can be found again
    before: str | None = None  # null if it did not exist, or was not set
    after: str | None = None  # null if it does not exist any more
    undo: dict[str, Any] | None = None  # what is needed to undo it; null if it cannot be undone

    @property
    def change(self) -> Change:
        """The record as a `Change`."""
        return Change(self.kind, self.what, self.before, self.after, self.undo)  # type: ignore[arg-type]  # or of a later version


class ReceiptRecord(Record):
    """The changes that the run left on the computer."""

    changes: list[ChangeRecord] = []
    remarks: list[str] = []  # what could not be watched
    watched: bool = False  # whether it is known what changed

    @property
    def receipt(self) -> Receipt:
        """The record as a `Receipt`."""
        return Receipt(tuple(change.change for change in self.changes), tuple(self.remarks), self.watched)


class UndoneRecord(Record):
    """What became of one change when the run was undone."""

    kind: str = ""  # of the change; `kind` and `what` identify it
    what: str = ""
    at: str = ""  # when, in ISO 8601
    done: bool = False  # whether it was put back
    words: str = ""  # what was done, or why it could not be


class RunRecord(ModelRecord):
    """The run as a whole. Its own model fields are those of the model that acted."""

    format: int = 1  # the version of these records
    id: str = ""
    instruction: str = ""
    version: str = ""
    started: str = ""
    outcome: str = "unknown"  # how it ended; `running` until then
    status: int | None = None  # the exit status; null until the end
    message: str = ""
    pid: int | None = None  # the process that ran it
    warnings: list[str] = []
    models: dict[str, ModelRecord] = {}  # every model by its role; "actor" is the one that looks and acts
    style: str | None = None
    dry_run: bool = False
    approve: str | None = None
    sandbox: bool = False
    sandbox_name: str = ""  # the throw-away desktop it was on; empty for a person's own
    viewport: ViewportRecord | None = None
    bundle: str | None = None  # the folder where it was recorded
    receipt: ReceiptRecord | None = None  # what changed; null in runs that broke off
    evidence: list[str] = []  # what shows that the task is done, or speaks against it
    undone: list[UndoneRecord] = []  # what `mai-agent undo` did later
    verified: bool | None = None  # whether `evidence` shows that the task is done; null if unknown
    steps: int | None = None  # how many steps were begun
    recorded: int | None = None  # how many steps are in the bundle; null until the end
    seconds: float | None = None
    tokens: TokensRecord | None = None
    masked: int | None = None  # how many secrets were masked
    finished: str | None = None
