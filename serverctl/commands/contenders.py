"""What `mai-server bench --compare` names: a server that runs, or one that is started for it."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from foundation.endpoints import normalize_url
from foundation.errors import UsageError
from foundation.printing import remark
from serverctl.load.client import Endpoint
from serverctl.plan.settings import parse_assignments
from serverctl.planning import load_presets

#: Names the server of ours that runs.
RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a comparison."""

    name: str  # as it was written
    url: str | None = None  # of a server that runs
    preset: str | None = None  # of one that is started; None for the usual one
    overrides: dict[str, Any] = field(default_factory=dict)  # its settings beside the preset's

    @property
    def runs(self) -> bool:
        """Whether it is there already."""
        return self.url is not None or self.name == RUNNING


def parse_contenders(words: Sequence[str]) -> list[Contender]:
    """The sides of a comparison, each of them checked: nothing is started for a typing mistake in the last one.

    Raises UsageError for what is none, and for fewer than two different ones.
    """
    if len(words) == 1 and "=" not in words[0] and "://" not in words[0]:
        words = words[0].split(",")
    names = [word.strip() for word in words if word.strip()]
    found = [_contender(name) for name in names]
    if len(found) < 2 or len(set(names)) < len(names):
        raise UsageError("A comparison needs two different sides.", "For example --compare latency balanced.")
    return found


def _contender(name: str) -> Contender:
    if name == RUNNING:
        return Contender(name)
    if "://" in name or re.fullmatch(r"[\w.\-\[\]:]+:\d+(/\S*)?", name):
        return Contender(name, url=normalize_url(name))
    preset, *settings = name.split("+")
    if "=" in preset:
        return Contender(name, overrides=parse_assignments([preset, *settings]))
    load_presets().get(preset)
    return Contender(name, preset=preset, overrides=parse_assignments(settings))


@contextmanager
def started(contender: Contender, model: str | None) -> Iterator[Endpoint]:
    """A server of a contender for the time of a block."""
    from serverctl.endpoint import served

    def say(sentence: str) -> None:
        remark(f"mai-server: {sentence}")

    with served(contender.preset, model, say, contender.overrides) as target:
        yield Endpoint(target.base_url, target.api_key, target.model)
