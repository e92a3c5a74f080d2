"""A run finds out where its model clicks before it clicks: once, and what was found out counts in the run."""

from pathlib import Path
from typing import Any

import pytest
from stubs.desk import SETTLE, FakePerson
from stubs.endpoint import DONE, FakeEndpoint, act, say
from stubs.made_up_desktop import MadeUpDesktop
from stubs.pointing import Pointing, in_mai_ui

from agent.core.geometry import Grid, Size
from agent.events.run_events import Event, RunStarted, Warned
from agent.model.endpoint import Endpoint
from agent.model.engines import Engine
from agent.run.calibration.remembered import Wish
from agent.run.models.settings import RunSettings
from agent.run.session import Request, run
from agent.safety.policy import Policy
from agent.safety.stop import StopSwitch
from foundation.endpoints import normalize_url
from foundation.errors import EnvironmentLacksError

CLICK = say(act("click", coordinate=[0.7, 0.5]))


@pytest.fixture(autouse=True)
def _own_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path / "state"))


def fractions(_: Size) -> Grid:
    return Grid.relative(1)


def thousand(_: Size) -> Grid:
    return Grid.relative(1000)


class Ran:
    """What a run said and did."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.told: list[str] = []
        self.desktops: list[MadeUpDesktop] = []

    @property
    def warned(self) -> str:
        return "\n".join(event.message for event in self.events if isinstance(event, Warned))

    @property
    def moves(self) -> list[str]:
        return [event for event in self.desktops[0].input.events if event.startswith("move")]


async def ran(
    endpoint: FakeEndpoint, wish: Wish, engine: str = "endpoint", grounder: FakeEndpoint | None = None, **more: Any
) -> Ran:
    found = Ran()

    def opened(*arguments: Any) -> MadeUpDesktop:
        desktop = MadeUpDesktop(*arguments)
        desktop.shows = lambda _: False  # type: ignore[method-assign] -- nothing on it is ours
        found.desktops.append(desktop)
        return desktop

    engines = {"actor": Engine(engine, Endpoint(normalize_url(endpoint.url)))}
    if grounder is not None:
        engines["grounder"] = Engine("endpoint", Endpoint(normalize_url(grounder.url)))
    request = Request(
        RunSettings("do the task", settle=SETTLE), engines, Policy.load("never"), open_desktop=opened, calibrate=wish,
        tell=found.told.append, sandbox=True, **more,
    )  # fmt: skip
    try:
        await run(request, FakePerson(), StopSwitch(), found.events.append)
    finally:
        endpoint.close()
    return found


async def test_a_run_clicks_where_a_model_means_that_counts_otherwise_than_its_family() -> None:
    with Pointing("MAI-UI-8B", fractions, after=(CLICK, say(DONE))) as endpoint:
        found = await ran(endpoint, "auto")
    assert found.moves == ["move 179,128"]
    assert "MAI-UI-8B counts on fractions of the image, in place of 0 to 1000" in found.warned
    assert found.told[-1] == "Looking where MAI-UI-8B clicks, at marks in known places on 256x256 ..."
    assert "--calibrate off" in found.told[0]
    assert isinstance(found.events[0], RunStarted)
    assert len(endpoint.sizes) == 5


async def test_without_it_such_a_model_is_told_that_its_points_are_of_no_use() -> None:
    with Pointing("MAI-UI-8B", fractions, after=(CLICK, say(DONE))) as endpoint:
        found = await ran(endpoint, "off")
    assert found.moves == []
    assert not endpoint.sizes and not found.told


async def test_it_is_found_out_once_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (CLICK, say(DONE))
    with Pointing("MAI-UI-8B", fractions, after=(*script, *script, *script)) as endpoint:
        closing, endpoint.close = endpoint.close, lambda: None  # type: ignore[method-assign]
        try:
            first, second = await ran(endpoint, "auto"), await ran(endpoint, "auto")
            asked = len(endpoint.sizes)
            third = await ran(endpoint, "always")
        finally:
            closing()
    assert asked == 5 and len(endpoint.sizes) == 10
    assert [one.moves for one in (first, second, third)] == [["move 179,128"]] * 3
    assert second.told == [] and "in place of" in second.warned


async def test_a_model_that_clicks_elsewhere_gets_no_run() -> None:
    elsewhere = Pointing("MAI-UI-8B", thousand, lambda mark, _: in_mai_ui(500, 500))
    with elsewhere as endpoint, pytest.raises(EnvironmentLacksError, match="far from the marks") as refused:
        await ran(endpoint, "auto")
    picture = str(refused.value).partition("mark: ")[2].partition(". ")[0]
    assert Path(picture).is_file()
    assert "--calibrate off" in refused.value.remedy


async def test_a_server_of_ours_is_trusted_unless_it_is_wanted() -> None:
    with Pointing("MAI-UI-8B", thousand, after=(say(DONE),)) as endpoint:
        await ran(endpoint, "auto", "vllm")
        assert not endpoint.sizes
    with Pointing("MAI-UI-8B", thousand, after=(say(DONE),)) as endpoint:
        await ran(endpoint, "always", "vllm")
        assert len(endpoint.sizes) == 3


async def test_a_model_that_names_elements_by_number_is_not_asked() -> None:
    with Pointing("MAI-UI-8B", thousand, after=(say('{"thought": "", "action": "finish"}'),) * 9) as endpoint:
        await ran(endpoint, "auto", family="generic")
    assert not endpoint.sizes


async def test_of_two_models_the_one_that_finds_places_is_asked() -> None:
    plan = [say('{"thought": "It is done.", "action": "terminate", "status": "success"}')] * 9
    with FakeEndpoint(plan) as planner, Pointing("Qwen2.5-VL-7B-Instruct", thousand) as grounder:
        found = await ran(planner, "auto", grounder=grounder, family="planner")
    assert len(grounder.sizes) == 5
    assert "Qwen2.5-VL-7B-Instruct counts on 0 to 1000" in found.warned
