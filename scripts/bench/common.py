"""What the benches share: the project's modules, a command line, a desktop to measure on, and times taken in turns."""

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def arguments(doc: str | None, **defaults: int | str) -> argparse.ArgumentParser:
    """A command line with the bench's text as its help, and an option for every default."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser


def desktop_arguments(doc: str | None) -> argparse.ArgumentParser:
    """The command line of a bench that takes so many rounds on a sandbox of some size."""
    from agent.core.geometry import Size

    parser = arguments(doc, rounds=40)
    parser.add_argument("--size", type=Size.parse, default=Size(1920, 1080))
    return parser


@contextmanager
def desktop(*programs: list[str], **spec: Any) -> Iterator[dict[str, str]]:
    """A sandbox with some programs, whose display this process sees; gives the environment of processes in it."""
    from agent.sandbox.desktop import SandboxSpec, start_sandbox

    sandbox = start_sandbox(SandboxSpec(**spec))
    try:
        sandbox.applied()
        for program in programs:
            sandbox.start(*program)
            time.sleep(2)
        yield sandbox.environ | {"PYTHONPATH": str(ROOT)}
    finally:
        sandbox.close()


class Times:
    """Milliseconds that things took, by their names."""

    def __init__(self) -> None:
        self.taken: defaultdict[str, list[float]] = defaultdict(list)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Time what is done inside; what fails is not counted."""
        began = time.perf_counter()
        yield
        self.since(began, name)

    def since(self, began: float, name: str) -> None:
        """Note what has taken since a moment of `time.perf_counter`."""
        self.taken[name].append((time.perf_counter() - began) * 1000)

    def repeat(self, name: str, rounds: int, call: Callable[[int], object]) -> None:
        """Time some numbered calls, after one that is not counted."""
        call(0)
        for number in range(rounds):
            with self.of(name):
                call(number)

    def median(self, name: str) -> float:
        return statistics.median(self.taken[name])

    def worst(self, name: str) -> float:
        return max(self.taken[name])

    def ratio(self, name: str, to: str) -> float:
        """How many times the median of another thing a thing's median is."""
        return self.median(name) / self.median(to)
