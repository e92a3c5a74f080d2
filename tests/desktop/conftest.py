"""A display for tests that need nothing else of a desktop, and the desktop of a bench."""

import os
from collections.abc import Iterator

import pytest
from stubs.benches import Bench
from stubs.display import PlainDisplay

from agent.desktop.protocol.desktop import Desktop
from agent.safety.stop import StopSwitch


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlainDisplay]:
    with PlainDisplay() as found:
        monkeypatch.setenv("DISPLAY", found.name)
        monkeypatch.setenv("XAUTHORITY", os.devnull)
        yield found


@pytest.fixture
def stop() -> StopSwitch:
    """Ends what the hand does."""
    return StopSwitch()


@pytest.fixture
def desktop(bench: Bench, stop: StopSwitch) -> Iterator[Desktop]:
    """The desktop, opened for one test of a module that has a bench."""
    found = bench.open(stop)
    bench.since_now()
    yield found
    found.hand.close()
    found.screen.close()
    found.close()
