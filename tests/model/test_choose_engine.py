"""What drives a run: the named endpoint, a running server, the graphics card, or the literal engine."""

from collections.abc import Callable
from typing import Any

import pytest

import serverctl.endpoint as door
from agent.literal.client import literal_engine
from agent.model.endpoint import EngineChoice
from agent.model.engines import choose_engine
from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from serverctl.endpoint import ReadyServer


def server(**changes: Any) -> ReadyServer:
    values: dict[str, Any] = {
        "name": "default", "base_url": "http://127.0.0.1:1234/v1", "api_key": "k", "model": "MAI-UI-8B",
        "family": "mai-ui", "images": 6, "context": 16_384, "max_pixels": 2_097_152, "started": True,
    }  # fmt: skip
    return ReadyServer(**{**values, **changes})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[Any, ...]]]:
    """Replaces what serverctl says about the machine; gives the calls that started or found a server."""
    calls: list[tuple[Any, ...]] = []

    def set_up(
        running: str | None = None, reason: str = "", answer: ReadyServer | Exception | None = None
    ) -> list[Any]:
        def ready(model: Any, preset: Any, *rest: Any) -> ReadyServer:
            calls.append((model, preset))
            if isinstance(answer, Exception):
                raise answer
            return answer or server()

        monkeypatch.setattr(door, "running_server", lambda model=None: running)
        monkeypatch.setattr(door, "why_no_accelerator", lambda: reason)
        monkeypatch.setattr(door, "ready_server", ready)
        return calls

    return set_up


def test_a_named_endpoint_comes_first(machine: Callable[..., list[Any]]) -> None:
    calls = machine(running="default")
    engine = choose_engine(EngineChoice("auto", "127.0.0.1:8000", "M"), literal_engine)
    assert engine.name == "endpoint"
    assert engine.endpoint.base_url == "http://127.0.0.1:8000/v1"
    assert calls == []


def test_a_running_server_is_used_also_without_a_graphics_card(machine: Callable[..., list[Any]]) -> None:
    machine(running="default", reason="This machine has no graphics card.", answer=server(started=False))
    engine = choose_engine(EngineChoice(), literal_engine)
    assert engine.name == "vllm"
    assert engine.remark == ""


def test_a_graphics_card_gets_a_server_with_the_limits_of_its_plan(machine: Callable[..., list[Any]]) -> None:
    calls = machine()
    engine = choose_engine(EngineChoice(model="MAI-UI-8B", preset="balanced"), literal_engine)
    assert calls == [("MAI-UI-8B", "balanced")]
    limits = engine.endpoint.limits
    assert (limits.images, limits.context, limits.max_pixels) == (6, 16_384, 2_097_152)
    assert engine.endpoint.api_key == "k"
    assert engine.endpoint.kind == "vllm"
    assert engine.family == "mai-ui"
    assert "mai-server down" in engine.remark


def test_without_a_card_the_literal_engine_says_why_it_is_used(machine: Callable[..., list[Any]]) -> None:
    machine(reason="The driver is broken.")
    engine = choose_engine(EngineChoice(), literal_engine)
    assert engine.name == "literal"
    assert engine.remark.startswith("The driver is broken.")
    assert "literal engine" in engine.remark


def test_vllm_that_was_asked_for_is_started_without_a_card_too(machine: Callable[..., list[Any]]) -> None:
    calls = machine(reason="This machine has no graphics card.")
    assert choose_engine(EngineChoice("vllm", model="/models/tiny"), literal_engine).name == "vllm"
    assert calls == [("/models/tiny", None)]


def test_a_start_that_fails_is_an_error_in_the_controllers_own_words(machine: Callable[..., list[Any]]) -> None:
    machine(answer=MaiError("The model does not fit.", "Use a smaller one."))
    with pytest.raises(EnvironmentLacksError, match=r"The model does not fit\. Use a smaller one\."):
        choose_engine(EngineChoice(), literal_engine)


def test_contradictions_are_usage_errors() -> None:
    with pytest.raises(UsageError):
        choose_engine(EngineChoice("endpoint"), literal_engine)
    with pytest.raises(UsageError):
        choose_engine(EngineChoice("magic"), literal_engine)


def test_a_model_that_nothing_here_serves_is_no_run_without_it(machine: Callable[..., list[Any]]) -> None:
    machine(reason="The driver is broken.")
    with pytest.raises(EnvironmentLacksError, match=r"'MAI-UI-8B': The driver is broken\. .*--endpoint"):
        choose_engine(EngineChoice(model="MAI-UI-8B"), literal_engine)


@pytest.mark.parametrize(
    ("choice", "option"),
    [
        (EngineChoice("literal", model="M"), "--model"),
        (EngineChoice("literal", preset="balanced"), "--preset"),
        (EngineChoice("endpoint", "127.0.0.1:8000", "M", preset="balanced"), "--preset"),
        (EngineChoice("auto", "127.0.0.1:8000", preset="balanced"), "--preset"),
    ],
    ids=str,
)
def test_what_an_engine_has_no_use_for_is_said(choice: EngineChoice, option: str) -> None:
    with pytest.raises(UsageError, match=option):
        choose_engine(choice, literal_engine)


@pytest.mark.parametrize(("url", "remark"), [("127.0.0.1:8000", ""), ("models.example", "is sent to models.example")])
def test_the_literal_engine_may_have_an_endpoint_read_for_it(url: str, remark: str) -> None:
    engine = choose_engine(EngineChoice("literal", url, "M"), literal_engine)
    assert (engine.name, engine.endpoint.is_local) == ("literal", True)
    assert remark in engine.remark
    assert bool(engine.remark) == bool(remark)
