"""`mai-server plan --compare`: cards, models and presets side by side, with speeds and costs that can be checked."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from planning import find_model, plan

from foundation.configs import load_config
from foundation.errors import UsageError
from serverctl.commands.plans.plan import main
from serverctl.models.shape import read_shape
from serverctl.plan.speed import bytes_a_token, speed_by_prompt, speed_of
from serverctl.planning import speed_table

SCREEN = (1920, 1080)


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config.toml"
    file.touch()
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(file))
    return file


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    status = main([*words, "--json"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert status == (0 if any(row["fits"] for row in found) else 3)
    return found


def test_every_card_model_and_preset_has_a_row_and_what_does_not_fit_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = rows(
        capsys, "--compare", "T4, 2xL4", "--model", "MAI-UI-2B,MAI-UI-32B", "--preset", "latency,throughput"
    )  # fmt: skip
    names = [(row["cards"], row["model"], row["preset"]) for row in found]
    assert len(set(names)) == len(found) == 8
    assert names[0] == ("T4", "MAI-UI-2B", "latency")
    refused = [row for row in found if not row["fits"]]
    assert {row["cards"] for row in refused} == {"T4"}
    assert all("does not fit on Tesla T4" in row["refusal"] for row in refused)
    both = next(row for row in found if row["cards"] == "2xL4" and row["model"] == "MAI-UI-2B" and row["servers"] == 2)
    assert both["preset"] == "throughput"


def test_a_card_is_given_by_figures_and_planned_as_one_that_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    [row] = rows(capsys, "--compare", "RTX 9999:47.5:8.9:960", "--model", "MAI-UI-8B")
    main(["--gpu", "RTX 9999", "--gpu-memory", "47.5", "--gpu-capability", "8.9", "--model", "MAI-UI-8B", "--json"])
    described = json.loads(capsys.readouterr().out)
    assert row["limits"] == described["limits"]
    assert row["kv_tokens"] == described["expected"]["kv_tokens"]
    assert row["speed"]["one"] is not None
    [hybrid] = rows(capsys, "--compare", "L4", "--model", " Qwen3.5-9B, Qwen3.5-9B")
    main(["--gpu", "L4", "--model", "Qwen3.5-9B", "--json"])
    assert hybrid["kv_tokens"] == json.loads(capsys.readouterr().out)["expected"]["kv_tokens"]


def test_a_token_takes_its_bytes_and_besides_something_for_each_layer() -> None:
    made, table = plan("l4", "MAI-UI-2B"), speed_table()
    speed = speed_of(made, table, SCREEN)
    # 3.96 GiB of 16-bit weights less 0.76 GiB of vision tower; three screenshots of 2,040 tokens, 1,500 of text and 128
    # of answer at 112 KiB a token; 300 GB/s; 28 layers.
    assert speed.request_tokens == 3 * 2040 + 1500 + 128
    read = bytes_a_token(made.model, made.settings, made.budget)
    assert read == pytest.approx((3.96 - 0.76) * 1024**3, rel=0.02)
    seconds = (read + speed.request_tokens * 112 * 1024) / 300e9
    assert speed.one is not None
    assert speed.one.high == pytest.approx(1 / (seconds + 28 * table.least_seconds_a_layer))
    assert speed.one.low == pytest.approx(1 / (seconds + 28 * table.seconds_a_layer))


@pytest.mark.parametrize(
    ("end", "layers", "read", "gb_s", "milliseconds"),
    [
        # arXiv 2605.30571: Qwen2.5-7B, 7.6 billion parameters, 2,048 tokens in the cache, with CUDA graphs: on an L4,
        # and on an H100 at 27 % of its bandwidth.
        ("seconds_a_layer", 28, 7.62e9 * 2 + 2048 * 56 * 1024, 300, 62.32 / 1.028),
        ("seconds_a_layer", 28, 7.62e9 * 2 + 2048 * 56 * 1024, 3350, 15.357e9 / 3350e9 / 0.27 / 1.259 * 1000),
        # Ours: the shape of Qwen3-VL-8B, 8.19 billion parameters without the vision tower, 5,600 tokens in the cache
        # (36 layers, 8 KV heads of 128), one request on an H200, vLLM 0.25.1.
        ("least_seconds_a_layer", 36, 8.19e9 * 2 + 5600 * 144 * 1024, 4800, 5.577),
    ],
)
def test_measurements_lie_on_the_ends_of_the_range(
    end: str, layers: int, read: float, gb_s: float, milliseconds: float
) -> None:
    told = (read / (gb_s * 1e9) + layers * getattr(speed_table(), end)) * 1000
    assert told == pytest.approx(milliseconds, rel=0.02)


@pytest.mark.parametrize(
    ("layers", "read", "gb_s", "milliseconds"),
    [
        # Qwen's speed benchmark: Qwen3-0.6B, 0.44 billion parameters in layers and 0.16 in the head, 1,024 tokens in
        # the cache half-way (28 layers, 8 KV heads of 128), one request on an H20, SGLang.
        (28, 0.596e9 * 2 + 1024 * 112 * 1024, 4000, 1000 / 414.17),
        # ML.ENERGY: Qwen3-14B, 8 requests of about 400 tokens on a B200, vLLM.
        (40, 14.0e9 * 2 + 8 * 400 * 160 * 1024, 8000, 7.156),
    ],
)
def test_published_measurements_lie_within_the_range(
    layers: int, read: float, gb_s: float, milliseconds: float
) -> None:
    table = speed_table()
    ends = [read / (gb_s * 1e9) + layers * each for each in (table.least_seconds_a_layer, table.seconds_a_layer)]
    assert 0.75 * milliseconds < ends[0] * 1000 < milliseconds < ends[1] * 1000


@pytest.mark.parametrize("preset", ["latency", "throughput"])
def test_a_hybrid_models_requests_count_with_their_states(preset: str) -> None:
    """A token reads a request's states and writes them back: 18 layers of 16 heads, 128 x 128 numbers of 4 bytes."""
    made = plan("t4", "Qwen3.5-0.8B", preset)
    speed = speed_of(made, speed_table(), SCREEN)
    assert made.budget.states > 0
    assert speed.at_once <= made.budget.held(speed.request_tokens)
    assert speed.one is not None
    states = 2 * 18 * 16 * 128 * 128 * 4
    read = bytes_a_token(made.model, made.settings, made.budget) + speed.request_tokens * made.budget.token + states
    launch = made.model.shape.text.layers * speed_table().least_seconds_a_layer
    assert speed.one.high == pytest.approx(1 / (read / 320e9 + launch), rel=0.02)


def test_more_requests_give_more_tokens_in_all_and_experts_are_read_only_where_they_are_used() -> None:
    dense, experts = (
        speed_of(plan("h100", model), speed_table(), SCREEN) for model in ("MAI-UI-32B", "Qwen3-VL-30B-A3B-Instruct")
    )
    assert dense.one is not None
    assert experts.one is not None
    assert experts.one.high > 3 * dense.one.high
    for speed in (dense, experts):
        assert speed.one is not None
        assert speed.all_of_them is not None
        assert speed.all_of_them.high >= speed.one.high


def test_what_is_not_known_of_a_card_is_not_made_up(capsys: pytest.CaptureFixture[str]) -> None:
    [row] = rows(capsys, "--compare", "RTX 9999:47.5:8.9", "--model", "MAI-UI-8B", "--price", "RTX 9999=1")
    assert row["speed"]["one"] is row["speed"]["step_s"] is row["cost_per_1000_steps"]["one_agent"] is None
    [row] = rows(capsys, "--compare", "RTX 9999:47.5:8.9:960", "--model", "MAI-UI-8B", "--price", "RTX 9999=1")
    assert row["speed"]["one"] is not None
    assert row["speed"]["step_s"] is None, "its compute is not known"


def test_prices_come_from_the_settings_and_the_command_line_and_idle_cards_are_paid_for(
    capsys: pytest.CaptureFixture[str], settings: Path
) -> None:
    settings.write_text("[server.prices]\nL4 = 0.7\na100 = 2\n")
    words = ("--compare", "L4,2xL4,A100-80,T4", "--model", "MAI-UI-2B", "--price", "L4=0.5")
    one, two, large, unknown = rows(capsys, *words)
    assert (one["price_per_hour"], two["price_per_hour"], large["price_per_hour"]) == (0.5, 1.0, 2.0)
    assert unknown["price_per_hour"] is unknown["cost_per_1000_steps"]["full"] is None
    step = one["speed"]["step_s"]
    assert one["cost_per_1000_steps"]["one_agent"]["low"] == pytest.approx(step["low"] * 1000 / 3600 * 0.5)
    hourly = one["speed"]["steps_per_hour"]
    assert one["cost_per_1000_steps"]["full"]["low"] == pytest.approx(1000 * 0.5 / hourly["high"])
    assert two["cost_per_1000_steps"]["one_agent"]["low"] == pytest.approx(step["low"] * 1000 / 3600)


def test_what_a_bench_measured_is_shown_instead_of_an_estimate_for_its_model_and_card_only(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def measurement(concurrency: int, cache: str, ttft: float, tpot: float, rate: float) -> dict[str, Any]:
        setting = {"concurrency": concurrency, "cache": cache}
        times = {"ttft_ms": {"mean": ttft}, "tpot_ms": {"mean": tpot}}
        return {
            "setting": setting, "answered": 20, **times, "output_tokens_per_s": 128 * rate, "requests_per_s": rate,
        }  # fmt: skip

    settings = [measurement(1, "cold", 500, 20, 0.3), measurement(4, "cold", 900, 25, 1.0)]
    report = {"model": "MAI-UI-2B", "measurements": [*settings, measurement(1, "warm", 50, 20, 0.4)]}
    (tmp_path / "l4.json").write_text(json.dumps(report))
    words = ["--compare", "L4,T4,2xL4", "--model", "MAI-UI-2B,MAI-UI-8B", "--measured", f"l4={tmp_path / 'l4.json'}"]
    found = rows(capsys, *words, "--price", "L4=0.7")
    speed = found[0]["speed"]
    assert speed["one"] == {"low": 50.0, "high": 50.0}
    assert speed["prompt_s"] == {"low": 0.5, "high": 0.5}
    assert speed["step_s"] == {"low": 3.06, "high": 3.06}
    assert speed["all_of_them"] == {"low": 128.0, "high": 128.0}
    assert found[0]["cost_per_1000_steps"]["full"]["high"] == pytest.approx(1000 * 0.7 / 3600)
    assert [row["speed"]["measured"] != "" for row in found] == [True, False, False, False, False, False]
    twice = measurement(1, "warm", 50, 40, 0.4)
    reports = [{**report, "name": "latency"}, {"name": "balanced", "model": "MAI-UI-2B", "measurements": [twice]}]
    (tmp_path / "l4.json").write_text(json.dumps({"reports": reports}))
    words = ["--compare", "L4", "--model", "MAI-UI-2B", "--preset", "latency,balanced,debug"]
    found = rows(capsys, *words, "--measured", f"L4={tmp_path / 'l4.json'}")
    assert [row["speed"]["one"]["low"] for row in found[:2]] == [50, 25]
    assert found[2]["speed"]["measured"] == "", "a bench of presets counts for these presets"
    measurement_of_nothing = measurement(1, "cold", 0, 0, 0)
    (tmp_path / "l4.json").write_text(json.dumps({**report, "measurements": [measurement_of_nothing]}))
    with pytest.raises(UsageError, match="holds no result"):
        main([*words, "--measured", f"L4={tmp_path / 'l4.json'}"])


def test_the_table_says_what_is_measured_and_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--compare", "L4,cpu,T4", "--model", "MAI-UI-2B", "--price", "L4=0.7"]) == 0
    said = capsys.readouterr().out
    assert "1000 steps" in said
    assert "measured (docs/facts.md" in said
    assert main(["--compare", "T4", "--model", "MAI-UI-32B"]) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--compare", "nonsense"], "nonsense"),
        (["--compare", "L4,,T4"], "names no card"),
        (["--compare", "X:0:8.9"], "'0' is no size"),
        (["--compare", "X:24:89"], "names no card"),
        (["--compare", "L4", "--gpus", "2"], "--compare names several"),
        (["--compare", "L4", "--price", "0.7"], "is not CARD=VALUE"),
        (["--compare", "L4", "--price", "L4=cheap"], "is no price"),
        (["--compare", "L4", "--price", "L4=nan"], "is no price"),
        (["--compare", "L4", "--measured", "L4=nowhere.json"], "no file nowhere.json"),
        (["--compare", "L4", "--measured", "L4=/dev/null"], "no file /dev/null"),
        (["--compare", "L4,T4", "--price", "L40=1"], "'L40' is none of the cards"),
        (["--compare", "L4", "--beside", "MAI-UI-8B"], "one model at a time"),
        (["--compare", "L4", "--preset", "latency,"], "empty name"),
        (["--compare", "L4", "--preset", "latency,fast"], "no preset 'fast'"),
    ],
)
def test_what_cannot_be_compared_is_said(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        main([*words, "--model", "MAI-UI-2B"])


def test_weights_in_main_memory_make_a_token_slower_by_what_pcie_carries() -> None:
    """Of 8B at most 12.9 GiB can be offloaded: at 50 GB/s that alone is 0.28 s a token."""
    made = plan("t4", "MAI-UI-8B", overrides={"cpu_offload_gb": 100.0, "quantization": "none"})
    assert made.budget.offloaded == pytest.approx(12.94 * 1024**3, rel=0.01)
    speed = speed_of(made, speed_table(), SCREEN)
    assert speed.one is not None
    assert speed.one.high < 50e9 / made.budget.offloaded < 3.7
    assert any("stay in main memory" in text for text in made.warnings)
    assert not any("tokens/s at the very most" in text for text in made.notes)


@pytest.mark.parametrize("entries", [{"num_local_experts": 128}, {"n_routed_experts": 128}, {"num_experts": 128}])
def test_only_the_experts_that_a_token_uses_are_read(entries: dict[str, int]) -> None:
    """Qwen3-VL-30B-A3B: of 28.99e9 parameters in experts a sixteenth, and everything else but the tower."""
    config = load_config("models/shapes/qwen3-vl-30b-a3b.json")
    text = {name: value for name, value in config["text_config"].items() if name != "num_experts"} | entries
    shape = read_shape({**config, "text_config": text}, "a test")
    model = replace(find_model("Qwen3-VL-30B-A3B-Instruct"), shape=shape)
    made = plan("h200", "Qwen3-VL-30B-A3B-Instruct")
    read = bytes_a_token(model, made.settings, made.budget)
    experts = 28_991_029_248
    dense = shape.parameters - experts - shape.vision.parameters if shape.vision else 0
    assert read == pytest.approx(2 * (dense + experts * 8 / 128), rel=0.01)


def test_the_first_token_takes_longer_with_each_screenshot_and_less_from_the_prefix_cache() -> None:
    """H100, 2B: two operations for each of 1.41e9 parameters and 3,540 tokens, and the tower on 4 x 2,040 patches."""
    made = plan("h100", "MAI-UI-2B")
    found = speed_by_prompt(made, speed_table(), SCREEN)
    assert [(each.images, each.prompt_tokens) for each in found] == [(n, n * 2040 + 1500) for n in range(1, 7)]
    text, vision = made.model.shape.text, made.model.shape.vision
    assert vision is not None
    operations = 2 * text.block_parameters * 3540 + 2 * vision.parameters * 2040 * 4
    rate = (made.gpus[0].tflops or 0) * 1e12
    assert found[0].first_token_s.low == pytest.approx(operations / rate)
    assert found[0].first_token_s.high == pytest.approx(operations / rate / 0.38)
    assert all(a.first_token_s.low < b.first_token_s.low for a, b in pairwise(found))
    assert all(a.tokens_per_s.low > b.tokens_per_s.low for a, b in pairwise(found))
    assert all(each.next_step_s.low < found[1].first_token_s.low for each in found)
    assert speed_by_prompt(plan("cpu", "MAI-UI-2B", vllm="0.32.0-cpu"), speed_table(), SCREEN) == ()


def test_a_plan_tells_the_first_token_by_screenshots(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--gpu", "L4", "--model", "MAI-UI-2B"]
    assert main(words) == 0
    assert "by screenshots" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["by_prompt"]) == 6
    assert main([*words, "--screen", "90x90"]) == 0
    assert "under 100 pixels" in " ".join(capsys.readouterr().out.split())
