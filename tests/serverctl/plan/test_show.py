"""A plan is shown to people and to programs with the same numbers."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning import GIB, MODELS, NEW, TABLE_CARDS, card, command, machine, plan
from rich.console import Console

from foundation.errors import MaiError
from serverctl.hardware.catalogue import imagine
from serverctl.plan.memory import Budget
from serverctl.plan.show import bar, limits_json, parts, print_plan, shell_line, to_json


@pytest.mark.parametrize("name", TABLE_CARDS)
@pytest.mark.parametrize("model", MODELS)
def test_a_plan_is_json_that_says_everything(name: str, model: str) -> None:
    try:
        made = plan(name, model)
    except MaiError:
        return
    document = json.loads(json.dumps(to_json(made, command(made), imagine(name), NEW, "snapshot")))
    assert document["model"] == model
    assert document["parameters"] == made.model.shape.parameters
    assert document["expected"]["kv_tokens"] == made.budget.kv_tokens
    assert document["expected"]["max_model_len"] == made.context
    assert document["settings"]["max_model_len"] == made.context
    memory = document["memory"]
    named = ("weights", "activations", "graphs", "context", "kv_cache", "left_free")
    assert sum(memory[part] for part in named) == memory["total"] == made.budget.total
    assert all(flag["reason"] and flag["source"] for flag in document["flags"])
    words = [word for flag in document["flags"] for word in (flag["flag"], flag["value"]) if word is not None]
    assert words == document["argv"][3:]
    assert document["limits"] == limits_json(made)
    assert document["limits"]["history_images"] <= document["limits"]["images"]
    assert document["hardware"]["vendor"] == "nvidia"
    assert document["vllm"] == {"version": NEW, "capabilities": "snapshot"}


@given(sizes=st.lists(st.integers(0, 200 * GIB), min_size=6, max_size=6), width=st.integers(20, 120))
def test_the_bar_is_as_wide_as_asked_and_shows_every_part(sizes: list[int], width: int) -> None:
    weights, context, activations, graphs, kv, free = sizes
    total = sum(sizes)
    budget = Budget(total, total - free, weights, context, activations, graphs, kv, 1024, 16)
    assert sum(size for _, size in parts(budget)) == total
    runs = bar(budget, width)
    assert sum(len(text) for text, _, _ in runs) == (width if total else 0)
    assert {name for _, _, name in runs} == {name for name, size in parts(budget) if size > 0}


def test_a_plan_is_printed_with_its_reasons() -> None:
    hardware = machine(card(80, 79.0, name="NVIDIA [bold]H100"))
    made = plan(hardware, "MAI-UI-8B", overrides={"max_num_seqs": 3}, extra=("--revision", "[red]"))
    out = StringIO()
    print_plan(Console(file=out, width=140, highlight=False), made, command(made), hardware)
    text = out.getvalue()
    assert "MAI-UI-8B, 16-bit weights, on NVIDIA [bold]H100 (preset latency)" in text
    assert "yours: your own setting" in text
    assert "[red]" in text, "what a person wrote is shown as it is"
    assert f"{made.budget.kv_tokens:,} tokens" in text
    for line in command(made).lines:
        assert line.flag in text


@pytest.mark.parametrize(
    ("where", "count", "preset", "vllm", "words"),
    [
        ("h100", 4, "throughput", NEW, "4 servers, each on NVIDIA H100 80GB HBM3"),
        ("h100", 2, "latency", NEW, "2 x NVIDIA H100 80GB HBM3"),
        ("cpu", 1, "latency", NEW, "the processor (imagined, 16 cores)"),
        ("l4", 1, "speculative", "0.19.1", "left out --spec-method ngram: vLLM 0.19.1 has no such flag"),
    ],
)
def test_several_servers_the_processor_and_what_is_left_out_are_named(
    where: str, count: int, preset: str, vllm: str, words: str
) -> None:
    made = plan(f"{where}*{count}", "MAI-UI-2B" if where == "cpu" else "MAI-UI-8B", preset, vllm=vllm)
    out = StringIO()
    console = Console(file=out, width=200, highlight=False)
    print_plan(console, made, command(made, vllm), imagine(where, count))
    assert words in out.getvalue()


def test_the_command_can_be_typed() -> None:
    made = plan("h100", "MAI-UI-8B")
    found = command(made)
    line = shell_line(replace(found, model="/models/with space"))
    assert line.startswith("VLLM_MEDIA_URL_ALLOW_REDIRECTS=0 VLLM_NO_USAGE_STATS=1 ")
    assert " vllm serve '/models/with space' " in line
    assert """--limit-mm-per-prompt '{"image":12,"video":0}'""" in line
