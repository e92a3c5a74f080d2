"""Where the pointer is on a Wayland desktop: where we put it, as nobody tells."""

from dataclasses import dataclass


@dataclass(slots=True)
class Pointer:
    """Where our pointer was put last, in desktop units; shared by all connections of a run."""

    at: tuple[int, int]
