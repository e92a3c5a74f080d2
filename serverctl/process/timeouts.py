"""How long the controller waits for what: one place, each value replaceable by an environment variable."""

import math
import os
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Waits in seconds. MAI_SERVER_STALL_SECONDS replaces `stall`, and so on for each."""

    # Without any progress for this long a start is stuck. A first compilation is silent for minutes.
    stall: float = 300.0
    silent: float = 2700.0  # with nothing but a busy processor for this long, too: a loop without end keeps it busy
    answer: float = 120.0  # for one token about a picture at the end of a start: compiles what the warm-up left out
    # A serving engine that answers no health check for this long is dead, whatever its process does.
    deaf: float = 120.0
    # An engine in which nothing moves is asked for one token this often, and must give it within `beat_answer`;
    # where it misses two in a row, it hangs.
    beat: float = 10.0
    beat_answer: float = 8.0
    memory: float = 30.0  # for a card's memory to come back after a process ended
    # After a question that was not answered: an engine that died of it takes its API server with it within three
    # seconds, and what it said then is the explanation.
    last_words: float = 5.0


def timeouts() -> Timeouts:
    """The waits, with those that the environment replaces; what is no positive number there is ignored."""
    found: dict[str, float] = {}
    for field in fields(Timeouts):
        try:
            value = float(os.environ[f"MAI_SERVER_{field.name.upper()}_SECONDS"])
        except (KeyError, ValueError):
            continue
        if math.isfinite(value) and value > 0:
            found[field.name] = value
    return Timeouts(**found)
