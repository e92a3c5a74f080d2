"""What changed on a desktop during a run, found in the desktop's own state and not in screenshots."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from agent.core.changes import Change


class Witness(Protocol):
    """Watches settings, files of the home, windows, applications and the clipboard, from the moment it is opened."""

    @property
    def remarks(self) -> list[str]:
        """What cannot be watched on this desktop, as sentences for the person."""

    def changes(self) -> list[Change]:
        """Return what differs from the beginning. Blocks for some milliseconds; call it in a worker thread."""

    def settle(self, within: float) -> None:
        """Wait in a worker thread until settings have been unchanged for about 0.3 s, at most `within` seconds."""

    def close(self) -> None:
        """End the watch; never raises."""


#: Starts a watch, which takes some milliseconds; None if nothing can be watched.
OpenWitness: TypeAlias = Callable[[], Witness | None]
