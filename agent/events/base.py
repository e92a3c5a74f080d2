"""What every event of a run has."""

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Happened:
    """Anything that happens in a run."""

    #: when, in seconds since 1970; two events that differ in nothing else are equal
    at: float = field(default_factory=time.time, kw_only=True, compare=False)
