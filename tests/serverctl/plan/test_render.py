"""The command line holds what the plan decided and this vLLM has; what is left out is named; nothing is unsafe."""

from dataclasses import replace

import pytest
from planning import CPU, MODELS, NEW, OLD, PRESETS, TABLE_CARDS, command, env, flags, plan

from foundation.errors import MaiError
from serverctl.hardware.catalogue import imagine
from serverctl.models.find import find_model
from serverctl.plan.decide import make_plan
from serverctl.plan.goal import Goal
from serverctl.plan.render import render
from serverctl.plan.settings import KNOBS, Settings
from serverctl.planning import load_tables
from serverctl.vllm.capabilities import snapshot

#: What no plan of ours may hold, whatever is asked for.
NEVER = {
    "--trust-remote-code",
    "--swap-space",
    "--disable-cuda-graph",
    "--speculative-model",
    "--num-speculative-tokens",
    "--enable-chunked-prefill",
    "--block-size",
    "--api-key",
    "--allowed-origins",
    "--enable-sleep-mode",
    "--uds",
}


def all_plans() -> list[tuple[str, str, str]]:
    return [(name, model, preset) for name in TABLE_CARDS for model in MODELS for preset in PRESETS]


@pytest.mark.parametrize(("name", "model", "preset"), all_plans())
def test_no_plan_holds_a_flag_that_is_unsafe_gone_or_unknown(name: str, model: str, preset: str) -> None:
    try:
        made = plan(name, model, preset)
    except MaiError as refusal:
        assert refusal.remedy
        assert (name, model) != ("h100", "MAI-UI-8B")
        return
    assert made.context >= (made.settings.images or 0) * 2040
    assert made.budget.kv_tokens > 0
    assert made.budget.used + made.budget.kv <= made.budget.total, "no memory is promised twice"
    for vllm in (NEW, OLD, CPU):
        known = snapshot(vllm)
        found = command(made, vllm)
        names = [line.flag for line in found.lines]
        assert not NEVER & set(names)
        assert "--disable-fastapi-docs" in names, "its pages would answer without the key"
        assert all(known.has(flag) for flag in names)
        assert len(names) == len(set(names))
        assert all(line.reason.text for line in found.lines)
        assert all(known.reads(variable) for variable in found.env)
    words = command(made).argv()
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert words[:3] == ["vllm", "serve", made.model.source]
    assert "VLLM_SERVER_DEV_MODE" not in env(made)
    assert not command(made).dropped, "the newest has them all"


def test_what_every_plan_has() -> None:
    found = flags(plan("h100", "MAI-UI-8B"))
    assert found["--served-model-name"] == "MAI-UI-8B"
    assert found["--generation-config"] == "vllm"
    assert found["--api-server-count"] == "1"
    assert found["--disable-access-log-for-endpoints"] == "/health,/metrics"
    assert found["--shutdown-timeout"] == "5"
    assert found["--mm-processor-cache-gb"] == "1"
    assert found["--limit-mm-per-prompt"] == {"image": 12, "video": 0}
    assert found["--mm-processor-kwargs"] == {"size": {"shortest_edge": 65_536, "longest_edge": 8_388_608}}
    assert found["--port"] == "8000"
    variables = env(plan("h100", "MAI-UI-8B"))
    assert variables["VLLM_NO_USAGE_STATS"] == "1"
    assert variables["VLLM_ENABLE_STARTUP_PLAN"] == "1"
    assert variables["VLLM_HTTP_MAX_REQUEST_BODY_SIZE"] == str(256 * 1024**2)
    assert "VLLM_ATTENTION_BACKEND" not in variables
    for edge, larger in ((6_000_000, False), (6_553_600, True)):  # 32.4 and 35.4 MB at 2.7 bytes a pixel
        few = plan("h100", "MAI-UI-8B", overrides={"images": 2, "longest_edge": edge})
        assert ("VLLM_HTTP_MAX_REQUEST_BODY_SIZE" in env(few)) is larger


def test_an_older_vllm_gets_what_it_has_and_the_rest_is_named() -> None:
    made = plan("l4", "MAI-UI-8B", "speculative", vllm=OLD)
    found = command(made, OLD)
    names = [line.flag for line in found.lines]
    assert "--spec-method" not in names
    assert "--quantization-config" not in names
    assert "VLLM_ENABLE_STARTUP_PLAN" not in found.env
    for what in ("--spec-method ngram", "--spec-tokens 4", "--quantization-config", "VLLM_ENABLE_STARTUP_PLAN"):
        assert any(text.startswith(what) and "0.19.1" in text for text in found.dropped), what
    assert flags(made, OLD)["--quantization"] == "fp8", "the name of the online method before 0.28"
    assert len(found.dropped) == len(set(found.dropped))


def test_a_vllm_whose_command_does_not_work_is_run_as_a_module() -> None:
    made = plan("h100", "MAI-UI-2B")
    found = command(made, CPU)
    assert found.module
    assert found.argv("/env/bin/python")[:5] == [
        "/env/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "Tongyi-MAI/MAI-UI-2B"
    ]  # fmt: skip
    assert command(made).argv("/env/bin/python")[0] == "/env/bin/vllm"


def test_a_served_name_and_a_port_are_the_callers_and_values_are_no_flags() -> None:
    found = render(plan("h100", "MAI-UI-2B"), snapshot(NEW), 4321, "gui").argv()
    assert found[found.index("--served-model-name") + 1] == "gui"
    assert found[found.index("--port") + 1] == "4321"
    dashed = render(plan("l4", "MAI-UI-8B"), snapshot(NEW), 8000, "-mine").flags
    assert "--served-model-name=-mine" in dashed
    assert "-mine" not in dashed


def test_numbers_are_written_out_and_json_is_short() -> None:
    made = plan("h100", "MAI-UI-8B", overrides={"max_model_len": 131_072, "cpu_offload_gb": 1.5})
    found = flags(made)
    assert found["--max-model-len"] == "131072", "vLLM reads 128k as 128000"
    assert found["--cpu-offload-gb"] == "1.5"
    values = [line.value for line in command(made).lines if line.value and line.value.startswith("{")]
    assert values
    assert not any(" " in value for value in values)


@pytest.mark.parametrize("name", [name for name, knob in KNOBS.items() if knob.kind == "switch"])
@pytest.mark.parametrize("vllm", [NEW, OLD])
def test_a_switch_is_said_either_way(name: str, vllm: str) -> None:
    made = plan("h100", "MAI-UI-2B")
    flag = KNOBS[name].flag
    for value, wanted in ((True, flag), (False, f"--no-{flag.removeprefix('--')}")):
        changed = replace(made, settings=replace(made.settings, **{name: value}))
        words = command(changed, vllm).flags
        assert [word for word in words if word in (flag, f"--no-{flag[2:]}")] == [wanted]


@pytest.mark.parametrize("name", KNOBS)
def test_every_setting_has_a_flag_of_the_newest_vllm(name: str) -> None:
    assert snapshot(NEW).has(KNOBS[name].flag)
    assert name in Settings.__dataclass_fields__
    assert KNOBS[name].about


@pytest.mark.parametrize("name", ["h100", "h100*2", "t4", "rtx-3090", "l4", "gaudi-3", "cpu"])
@pytest.mark.parametrize("own", [{}, {"max_model_len": 1024}])
def test_a_plan_for_text_alone_does_not_speak_of_screenshots(name: str, own: dict[str, int]) -> None:
    model = find_model("MAI-UI-8B")
    blind = replace(model, shape=replace(model.shape, vision=None), name="text-only")
    card, _, count = name.partition("*")
    goal = Goal(model="x", overrides=own, force=True)
    made = make_plan(imagine(card, int(count or 1)), goal, NEW, blind, load_tables(()))
    said = [*made.warnings, *made.notes, *(reason.text for _, reason in made.env.values())]
    said += [line.reason.text for line in command(made).lines if line.flag != "--api-server-count"]
    assert "text-only sees no pictures: it can serve text, but no desktop agent." in said
    assert not [text for text in said if any(word in text for word in ("screenshot", "vision tower", "None"))]
    assert made.context > 0
    assert not made.settings.images
    assert not {flag for flag in flags(made) if flag.startswith(("--limit-mm", "--mm-"))}
    assert "VLLM_MULTIMODAL_RESOLUTIONS" not in made.env
