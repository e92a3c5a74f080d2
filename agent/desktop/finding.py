"""One thing that was looked at, and what came out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at.

    Args:
        name: what.
        ok: whether it is as it should be; None where that was not tried.
        detail: what was found, as a sentence.
        remedy: what to do, as a sentence; "" where nothing is to be done.
        needed: nothing works without it.
    """

    name: str
    ok: bool | None
    detail: str
    remedy: str = ""
    needed: bool = False
