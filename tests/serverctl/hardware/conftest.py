"""The tests' own machine must not show through: its choice of cards is not the recorded machines'."""

import pytest


@pytest.fixture(autouse=True)
def _every_card_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
