"""Who tells what really changed on a desktop while a run lasted, by its own state and not by pictures of it."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from agent.core.changes import Change


class Witness(Protocol):
    """Watches a desktop from when it was opened: settings, files of the home, windows, applications, clipboard."""

    @property
    def remarks(self) -> list[str]:
        """What it cannot watch here, as sentences for the person."""

    def changes(self) -> list[Change]:
        """What differs now from how it was when the watch began; what went back to where it was is no change.

        Blocks for some milliseconds; call it on a worker.
        """

    def settle(self, within: float) -> None:
        """Wait until what was just done is written down as settings: some 0.3 s without news, at most so many seconds.

        Blocks; call it on a worker.
        """

    def close(self) -> None:
        """End the watch; never raises."""


#: Begins a watch, which takes some milliseconds; None where nothing can be watched.
OpenWitness: TypeAlias = Callable[[], Witness | None]
