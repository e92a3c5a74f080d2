"""It is found out where a model clicks that really sees, also behind a server that makes images smaller."""

import json
from typing import Any

import pytest
from stubs.resizing_proxy import ResizingProxy

from agent.cli import main
from agent.core.geometry import Size

pytestmark = [pytest.mark.slow, pytest.mark.real_vllm, pytest.mark.timeout(300)]


@pytest.fixture
def calibrated(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path))

    def found(url: str, *more: str, size: str = "900x700") -> dict[str, Any]:
        status = main(["calibrate", "--json", "--endpoint", url, "--size", size, *more])
        told = json.loads(capsys.readouterr().out)
        assert status == (0 if told["ok"] else 3), told
        return dict(told)

    return found


def test_a_model_that_sees_clicks_as_its_family_says(tiny_vlm, calibrated):
    told = calibrated(tiny_vlm.url)
    assert told["verdict"] == "as said", told
    assert sum(mark["off"] < 25 for mark in told["marks"]) >= len(told["marks"]) - 1


def test_asked_as_another_family_it_is_found_to_count_on_thousand(tiny_vlm, calibrated, monkeypatch):
    """UI-TARS 1.5 counts on pixels; this model answers as MAI-UI, whose numbers that family reads too."""
    monkeypatch.setattr("agent.families.ui_tars.family.UiTars.grounding_request", _as_mai_ui)
    told = calibrated(tiny_vlm.url, "--family", "ui-tars-1.5")
    assert told["verdict"] == "corrected", told
    assert told["grid"][:2] == pytest.approx([1000, 1000], rel=0.03)


def _as_mai_ui(_, instruction, image):
    from agent.families.registry import get_family

    return get_family("mai-ui").grounding_request(instruction, image)


def test_behind_a_server_that_resizes_its_points_are_right_and_the_loss_is_told(tiny_vlm, calibrated):
    with ResizingProxy(tiny_vlm.url, 250_000) as proxy:
        told = calibrated(proxy.url, size="840x660")  # an image that the server behind it does not know yet
    assert told["verdict"] == "as said", told
    assert "The server shrinks images" in told["words"]
    assert {before for before, _ in proxy.resized} == {Size(832, 672)}
