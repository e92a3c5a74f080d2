"""Whatever the hardware, the model, the preset and the wishes: a plan that fits together, or a refusal for a person."""

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from planning import GIB, NEW, OLD, PRESETS, card

from foundation.errors import MaiError
from serverctl.hardware.facts import Cpu, Gpu, Hardware
from serverctl.models.find import find_model, known_models
from serverctl.plan.decide import make_plan
from serverctl.plan.draft import LEAST_TEXT_TOKENS
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.kinds.gaudi import PLUGIN_ENV
from serverctl.plan.render import render
from serverctl.plan.settings import KNOBS
from serverctl.plan.show import to_json
from serverctl.planning import AUTOMATIC_MODELS, load_tables
from serverctl.vllm.capabilities import snapshot

NAMES = [entry.name for entry in known_models()]
MODELS = {name: find_model(name, allow_network=False) for name in NAMES}
TABLES = load_tables(tuple(MODELS[name] for name in AUTOMATIC_MODELS))
VENDORS = {"nvidia": [75, 80, 86, 89, 90, 100, 120, 70, None], "amd": [None], "gaudi": [None], "apple": [None]}


@st.composite
def cards(draw: st.DrawFn) -> tuple[Gpu, ...]:
    vendor = draw(st.sampled_from(["nvidia", "nvidia", "nvidia", "amd", "gaudi", "apple"]))
    kinds = []
    for number in range(draw(st.integers(1, 2))):
        gib = draw(st.sampled_from([3.8, 7.6, 11.6, 14.6, 22.0, 23.5, 31.4, 44.4, 79.2, 139.8, 191.5]))
        name = f"Gaudi {number + 2}" if vendor == "gaudi" else f"kind {number}"
        kinds.append((gib, draw(st.sampled_from(VENDORS[vendor])), name, draw(st.booleans())))
    found = []
    for index in range(draw(st.integers(1, 8))):
        gib, sm, name, display = draw(st.sampled_from(kinds))
        free = draw(st.sampled_from([None, gib, gib * 0.97, gib * 0.5, 0.1, 0.0]))
        mig = vendor == "nvidia" and draw(st.integers(0, 9)) == 0
        found.append(card(gib, free, sm, index, name, vendor=vendor, display=display, mig=mig))
    return tuple(found)


@st.composite
def machines(draw: st.DrawFn) -> Hardware:
    found = draw(st.one_of(st.just(()), cards()))
    kind = draw(st.sampled_from(["nvlink", "pcie", None]))
    links = tuple((a.index, b.index, kind) for a in found for b in found if a.index < b.index and kind)
    free = draw(st.sampled_from([2, 8, 40, 500]))
    return Hardware(found, Cpu("cpu", 8, "x86_64", ("avx2",), 512 * GIB, free * GIB), None, links)


def values(name: str) -> st.SearchStrategy[Any]:
    """Values that a setting takes, near its bounds and in between."""
    knob = KNOBS[name]
    if knob.choices:
        return st.sampled_from(knob.choices)
    if knob.kind == "switch":
        return st.booleans()
    if knob.kind == "text":
        return st.sampled_from(["fp8", "auto", "fp8_per_tensor", "awq", "qwen3", "ngram", "FLASH_ATTN"])
    least, most = knob.least or 1, knob.most or 2**40
    if knob.kind == "float":
        return st.floats(least, min(most, 600))
    spread = st.sampled_from([1, 2, 4, 1024, 4096, 8192, 16_384, 131_072, 2_097_152, 6_553_600, 10**9])
    whole = st.one_of(spread, st.integers(int(least), int(min(most, 10**7))))
    numbers = whole.filter(lambda number: least <= number <= most)
    return st.one_of(numbers, st.just("auto")) if name == "max_model_len" else numbers


OVERRIDES = st.lists(
    st.sampled_from(list(KNOBS)).flatmap(lambda name: st.tuples(st.just(name), values(name))), max_size=4
).map(dict)
EXTRA = st.sampled_from([(), ("--seed", "0"), ("-tp", "2"), ("--max-model-len", "12k"), ("--trust-remote-code",)])
SCREENS = st.sampled_from(
    [(1920, 1080), (1280, 720), (3840, 2160), (1080, 2400), (64, 64), (16_384, 16_384), (10, 9000)]
)


def consistent(plan: Plan, overrides: dict[str, Any], screen: tuple[int, int]) -> None:
    settings, budget = plan.settings, plan.budget
    for name, value in overrides.items():
        assert settings.get(name) == value
        assert not plan.reasons[name].automatic
    assert set(settings.given()) <= set(plan.reasons)
    assert plan.context > 0
    assert plan.context <= plan.model.shape.text.max_positions
    assert plan.context <= budget.kv_tokens
    if isinstance(settings.max_model_len, int):
        assert plan.context == settings.max_model_len
    if plan.model.shape.vision is not None:
        assert settings.images is not None
        tokens = plan.model.image_tokens(*screen, settings.longest_edge)
        assert settings.images * tokens + LEAST_TEXT_TOKENS <= plan.context
    share = settings.gpu_memory_utilization
    assert share is None or 0.05 <= share <= 0.99
    if plan.gpus and "gpu_memory_utilization" not in overrides and plan.vendor != "gaudi" and share is not None:
        assert share <= (0.88 if any(gpu.display for gpu in plan.gpus) else 0.95)
        frees = [gpu.free_bytes / gpu.total_bytes for gpu in plan.gpus if gpu.free_bytes is not None]
        assert not frees or share <= max(0.05, min(frees))
    assert budget.used + max(0, budget.kv) <= max(budget.total, budget.requested)
    sizes = [getattr(settings, f"{kind}_parallel_size") or 1 for kind in ("tensor", "pipeline", "data")]
    if plan.vendor != "cpu":
        assert len(plan.gpus) == sizes[0] * sizes[1] * sizes[2]
        assert len({gpu.name for cards in plan.replicas for gpu in cards}) == 1, "cards are alike"
        pinned = [gpu.index for cards in plan.replicas for gpu in cards]
        assert len(pinned) == len(set(pinned)), "no card serves twice"


@given(
    hardware=machines(),
    model=st.one_of(st.none(), st.sampled_from(NAMES)),
    preset=st.sampled_from(PRESETS),
    overrides=OVERRIDES,
    extra=EXTRA,
    screen=SCREENS,
    vllm=st.sampled_from([NEW, OLD]),
)
def test_a_plan_fits_together_or_is_refused_in_words(
    hardware: Hardware,
    model: str | None,
    preset: str,
    overrides: dict[str, Any],
    extra: tuple[str, ...],
    screen: tuple[int, int],
    vllm: str,
) -> None:
    goal = Goal(model, preset, overrides, extra, screen)
    known = snapshot(vllm)
    try:
        plan = make_plan(hardware, goal, vllm, goal.model and MODELS[goal.model], TABLES)
        found = render(plan, known, 8000)
    except MaiError as refusal:
        assert refusal.what.endswith(".")
        assert len(refusal.what) < 600
        return
    if extra[:1] == ("-tp",):
        overrides = {**overrides, "tensor_parallel_size": 2}
    if extra[:1] == ("--max-model-len",):  # a flag of vLLM's wins over a setting
        overrides = {**overrides, "max_model_len": 12_000}
    consistent(plan, overrides, screen)
    assert all(known.has(line.flag) for line in found.lines)
    assert all(known.reads(name) or name in PLUGIN_ENV for name in found.env)
    document = to_json(plan, found, hardware, vllm, "test")
    assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))


@given(
    gib=st.floats(6, 200),
    less=st.floats(0.3, 1),
    model=st.sampled_from(["MAI-UI-2B", "MAI-UI-8B", "Qwen2.5-VL-7B-Instruct"]),
    preset=st.sampled_from(["latency", "balanced"]),
)
def test_a_card_with_more_memory_is_never_planned_with_worse_weights(
    gib: float, less: float, model: str, preset: str
) -> None:
    order = ("w4", "fp8", "16-bit")
    plans = []
    for size in (gib * less, gib):
        try:
            plans.append(make_plan(Hardware((card(size),)), Goal(model, preset), NEW, MODELS[model], TABLES))
        except MaiError:
            plans.append(None)
    small, large = plans
    assume(small is not None)
    assert small is not None
    assert large is not None, "what fits on a small card fits on a larger one"
    if order.index(large.precision) < order.index(small.precision):
        assert large.context > small.context, "8 bits only for the sake of a longer context"
