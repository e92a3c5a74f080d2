"""What really changed on a desktop during a run, from its own state and not from pictures."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from agent.core.changes import Change


class Witness(Protocol):
    """Watches settings, files of the home, windows, applications and the clipboard from when it was opened."""

    @property
    def remarks(self) -> list[str]:
        """What it cannot watch here, as sentences for the person."""

    def changes(self) -> list[Change]:
        """Return what differs now from the beginning. Blocks for some milliseconds; call it on a worker."""

    def settle(self, within: float) -> None:
        """Wait until settings are written: about 0.3 s without news, at most `within` seconds. Call it on a worker."""

    def close(self) -> None:
        """End the watch; never raises."""


#: Begins a watch, which takes some milliseconds; None where nothing can be watched.
OpenWitness: TypeAlias = Callable[[], Witness | None]
