"""What the command line and the settings together say."""

import argparse
from typing import Any

import pytest

from agent.commands.run import _parser
from agent.model.endpoint import EngineChoice
from agent.options import RunOptions
from agent.settings import Settings


def options(*words: str, **settings: Any) -> RunOptions:
    given: argparse.Namespace = _parser().parse_args([*words, "do it"])
    return RunOptions.of(given, Settings(settings, api_keys={"planner": "p", "grounder": "g"}))


def test_nobody_named_means_one_model() -> None:
    assert options().planner is None
    assert options().grounder is None


@pytest.mark.parametrize(("role", "key"), [("planner", "p"), ("grounder", "g")])
def test_another_model_is_an_endpoint_with_a_key_of_its_own(role: str, key: str) -> None:
    told = options(f"--{role}", "127.0.0.1:8001", f"--{role}-model", "big", f"--{role}-family", "qwen3.5")
    assert getattr(told, role) == EngineChoice("endpoint", "127.0.0.1:8001", "big", key)
    assert getattr(told, f"{role}_family") == "qwen3.5"


def test_local_is_a_server_of_ours_beside_the_other() -> None:
    assert options("--planner", "local", "--planner-model", "big").planner == EngineChoice("vllm", model="big")


def test_settings_name_it_where_the_command_line_does_not() -> None:
    told = options(planner="127.0.0.1:8001", planner_model="big", zoom="off")
    assert told.planner == EngineChoice("endpoint", "127.0.0.1:8001", "big", "p")
    assert told.zoom == "off"
    assert options("--planner", "127.0.0.1:8002", planner="127.0.0.1:8001").planner == EngineChoice(
        "endpoint", "127.0.0.1:8002", None, "p"
    )


def test_a_models_setting_is_for_runs_that_have_a_model() -> None:
    assert options(model="big").engine.model == "big"
    assert options("--engine", "literal", model="big").engine.model is None
    assert options("--engine", "literal", "--model", "big").engine.model == "big"


@pytest.mark.parametrize(
    ("words", "settings", "approve"),
    [
        (("--sandbox",), {}, "never"),
        (("--sandbox",), {"approve": "ask"}, "never"),
        (("--sandbox", "--approve", "ask"), {}, "ask"),
        (("--sandbox", "--tools", "servers.json"), {}, None),
        (("--sandbox",), {"tools": "servers.json"}, None),
        (("--sandbox", "--tools", "servers.json", "--approve", "never"), {}, "never"),
        ((), {}, None),
    ],
)
def test_a_sandbox_asks_nothing_unless_tools_act_outside_of_it(
    words: tuple[str, ...], settings: dict[str, Any], approve: str | None
) -> None:
    assert options(*words, **settings).approve == approve
