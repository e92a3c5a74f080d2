"""A display for tests that need nothing else of a desktop."""

import os
from collections.abc import Iterator

import pytest
from stubs.display import PlainDisplay


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlainDisplay]:
    with PlainDisplay() as found:
        monkeypatch.setenv("DISPLAY", found.name)
        monkeypatch.setenv("XAUTHORITY", os.devnull)
        yield found
