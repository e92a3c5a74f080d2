"""Servers for several models side by side, as the agent asks for them."""

import json
import signal
from pathlib import Path

import pytest
from stubs.controlled import MIB, Machine, tiny_model

from foundation.errors import MaiError, UsageError
from serverctl import endpoint
from serverctl.plan.goal import Goal
from serverctl.process import control

pytestmark = pytest.mark.slow


@pytest.fixture
def models(machine: Machine) -> tuple[str, str]:
    """Two models; every server starts with little KV cache, so that the stub is quick."""
    (machine.folder / "config.toml").write_text("[server]\nkv_cache_memory_bytes = 67108864\n")
    return str(tiny_model(machine.folder / "first-model")), str(tiny_model(machine.folder / "Second_Model!"))


def test_another_model_is_served_beside_under_its_own_name(machine: Machine, models: tuple[str, str]) -> None:
    machine.cards("RTX 4090")
    told: list[str] = []
    first = endpoint.ready_server(models[0], tell=told.append)
    second = endpoint.ready_server(models[1], tell=told.append)
    assert (first.name, second.name) == ("default", "second_model")
    assert first.started
    assert second.started
    assert first.base_url != second.base_url
    again = endpoint.ready_server(models[1])
    assert (again.name, again.base_url, again.started) == ("second_model", second.base_url, False)
    assert endpoint.ready_server(models[1], "latency").name == "second_model"
    with pytest.raises(UsageError, match="runs with the preset latency, not with throughput"):
        endpoint.ready_server(models[1], "throughput")
    assert endpoint.running_server(models[0]) == "default"
    assert control.stop("default")
    assert endpoint.running_server(models[0]) is None
    assert endpoint.ready_server(models[0]).name == "default"


def test_the_first_is_waited_for_before_anybody_knows_what_memory_it_leaves(
    machine: Machine, models: tuple[str, str]
) -> None:
    machine.cards("RTX 4090")
    machine.launch()
    told: list[str] = []
    endpoint.ready_server(models[1], tell=told.append)
    assert any("Waiting for the server 'default'" in text for text in told)
    assert machine.state().phase == "ready"


def test_up_says_that_the_other_model_is_missing_where_the_first_runs_alone(
    machine: Machine, models: tuple[str, str]
) -> None:
    machine.cards("RTX 4090")
    endpoint.ready_server(models[0])
    both = ("up", "--model", models[0], "--beside", models[1])
    alone = machine.run(*both)
    assert alone.returncode == 1
    assert "The server 'default' already runs, and none with" in alone.stderr
    endpoint.ready_server(models[1])
    assert [server["name"] for server in machine.told(*both)] == ["default", "second_model"]
    assert len(machine.starts) == 2


def test_where_the_memory_does_not_hold_two_the_second_is_refused_with_the_reason(
    machine: Machine, models: tuple[str, str]
) -> None:
    machine.cards("RTX 4090")
    endpoint.ready_server(models[0])
    machine.cards("RTX 4090", free_gib=2)
    with pytest.raises(MaiError) as refused:
        endpoint.ready_server("MAI-UI-8B")
    assert refused.value.what.startswith("A server with first-model runs already, and MAI-UI-8B does not fit")
    assert "does not fit beside it" in refused.value.what
    assert "`mai-server down" in refused.value.remedy
    assert control.ordered_names() == ["default"]


def test_a_server_beside_takes_the_card_that_none_of_ours_uses(machine: Machine, models: tuple[str, str]) -> None:
    machine.cards("RTX 4090", "RTX 4090")
    endpoint.ready_server(models[0])
    used = machine.starts[0]["environ"].get("CUDA_VISIBLE_DEVICES")
    endpoint.ready_server(models[1])
    assert used != machine.starts[1]["environ"].get("CUDA_VISIBLE_DEVICES")


def test_a_port_of_ones_own_is_the_first_servers_only(machine: Machine, models: tuple[str, str]) -> None:
    from serverctl.process.probe import free_port

    port = free_port()
    with Path(machine.folder / "config.toml").open("a") as settings:
        settings.write(f"port = {port}\n")
    machine.cards("RTX 4090")
    assert endpoint.ready_server(models[0]).base_url == f"http://127.0.0.1:{port}/v1"
    assert endpoint.ready_server(models[1]).base_url != f"http://127.0.0.1:{port}/v1"


def test_who_asks_for_the_model_that_another_has_just_begun_to_start_gets_that_server(
    machine: Machine, models: tuple[str, str]
) -> None:
    machine.launch(goal=Goal(model=models[0], overrides={"kv_cache_memory_bytes": 64 * MIB}))
    server = endpoint.ready_server(models[0])
    assert (server.name, server.started) == ("default", False)
    assert control.ordered_names() == ["default"]


@pytest.mark.parametrize("by", ["up", "the agent"])
def test_two_models_divide_one_card_and_start_one_after_the_other(machine: Machine, by: str) -> None:
    (machine.folder / "config.toml").write_text("")
    models = [str(tiny_model(machine.folder / name)) for name in ("grounder", "planner")]
    machine.cards("RTX 4090")
    if by == "up":
        servers = machine.told("up", "--model", models[0], "--beside", models[1])
        assert [server["name"] for server in servers] == ["default", "planner"]
    else:
        endpoint.ready_server(models[0], beside=[models[1]])
        endpoint.ready_server(models[1])
    shares = [float(machine.flags(number)["--gpu-memory-utilization"]) for number in (0, 1)]
    assert shares[0] < 0.6
    assert sum(shares) <= (0.92 if by == "up" else 1.5)  # the stub's card has all of its memory free all the time
    assert [machine.state(name).phase for name in ("default", "planner")] == ["ready", "ready"]
    assert machine.state("planner").started > (machine.state("default").ready_at or 0)


@pytest.mark.parametrize("starting", ["default", "second_model"])
def test_ctrl_c_of_up_stops_both_whichever_starts(machine: Machine, models: tuple[str, str], starting: str) -> None:
    machine.cards("RTX 4090")
    hangs = {"before": {"LOADING": [["hang"]]}}
    machine.scenario(*([hangs] if starting == "default" else [{}, hangs]))
    client = machine.begin("up", "--model", models[0], "--beside", models[1])
    machine.wait_stage("ENGINE", starting)
    client.send_signal(signal.SIGINT)
    _, said = client.communicate(timeout=40)
    assert client.returncode == 130
    assert "Traceback" not in said
    machine.assert_nothing_left()
    assert json.loads(machine.run("down", "--all", "--json").stdout) == {"stopped": []}


def test_the_same_model_beside_twice_is_refused_before_any_start(machine: Machine, models: tuple[str, str]) -> None:
    machine.cards("RTX 4090")
    done = machine.run("up", "--model", models[0], "--beside", models[1], "--beside", models[1])
    assert done.returncode == 2
    assert "The same model is named twice." in done.stderr
    assert not machine.starts
