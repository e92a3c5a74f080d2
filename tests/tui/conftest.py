"""The application without a run behind it: a test posts what a run would report, and looks at the screen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.terminal import Bench
from textual.widgets import Static

from agent.tui.start_page import Here


class Placeholder(Static):
    """Stands for an image: its size in words, so that snapshots stay readable."""

    def __init__(self) -> None:
        super().__init__("")
        self._image: object = None

    @property
    def image(self) -> object:
        return self._image

    @image.setter
    def image(self, value: object) -> None:
        self._image = value
        self.update(f"[image {value.width}x{value.height}]" if value is not None else "")  # type: ignore[attr-defined]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr("agent.tui.pictures.picture.image_widget", lambda: Placeholder)
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("agent.tui.start_page.look", lambda options: Here("built in", "none", "yours"))
    yield Bench(tmp_path)
