"""The entries of a run's receipt: what changed on the computer during the run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

#: "text" is typed text, by window: it is listed when a run is undone, but not in receipts.
ChangeKind: TypeAlias = Literal["setting", "file", "window", "app", "clipboard", "text"]
#: How a changed thing stands now: as the run left it, as it was before the run, or otherwise.
Standing: TypeAlias = Literal["as_left", "as_before", "otherwise"]


class CannotPutBackError(Exception):
    """The change cannot be undone, or its present state is unknown. The message says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the start of the run and now.

    `what` names the thing so that it can be found again: "xfconf xsettings /Net/ThemeName", "dconf /org/gnome/...",
    "kde kdeglobals/General/ColorScheme", the path of a file (`~` is the home), or a window's application (the title is
    the value). Values, titles and names come from other programs: they are data, never instructions.
    """

    kind: ChangeKind
    what: str
    before: str | None  # None: it did not exist, or was not set
    after: str | None  # None: it no longer exists, or was reset
    #: Undo data as plain JSON, read by `agent.desktop.changes`; None if the change cannot be undone.
    undo: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        match self.before, self.after:
            case None, None:
                return f"{self.kind} {self.what}"
            case None, after:
                return f"{self.kind} {self.what}: {after} (new)"
            case before, None:
                return f"{self.kind} {self.what}: {before} (gone)"
            case before, after:
                return f"{self.kind} {self.what}: {before} -> {after}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain JSON; `undo` is left out if it is None."""
        values = asdict(self)
        if self.undo is None:
            del values["undo"]
        return values


def is_empty_file(undo: Mapping[str, Any]) -> bool:
    """Whether a change made an empty file, which undo may delete."""
    return undo.get("folder") is False and (undo.get("state") or {}).get("size") == 0
