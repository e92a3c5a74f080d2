"""A quantisation is checked against the checkpoint, the card and the version of vLLM before it is planned with."""

from dataclasses import replace

import pytest
from planning import CPU, GIB, NEW, OLD, find_model, flags, plan

from foundation.configs import load_config
from foundation.errors import MaiError, UsageError
from serverctl.hardware.catalogue import imagine
from serverctl.hardware.facts import CannotPlanError
from serverctl.models.model import Model
from serverctl.plan.decide import make_plan
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.settings import check_value
from serverctl.planning import load_tables

METHODS = sorted(
    {name for version in (NEW, OLD, CPU) for name in load_config(f"vllm/{version}.json")["quantization_methods"]}
)
#: Checkpoints by the quantisation in their config.json: `quant_method` and bits.
CHECKPOINTS = [
    (None, None), ("awq", 4), ("gptq", 4), ("gptq", 8), ("fp8", 8), ("compressed-tensors", 4), ("modelopt", 4),
    ("modelopt", 8), ("mxfp4", 4), ("fp_quant", 4), ("fbgemm_fp8", 8), ("auto-round", 4), ("quark", 8),
    ("bitsandbytes", 4), ("torchao", 8), ("exl2", 4),
]  # fmt: skip
DENSE, MIXTURE = "MAI-UI-8B", "Qwen3-VL-30B-A3B-Instruct"


def checkpoint(method: str | None, bits: int | None, name: str = DENSE) -> Model:
    model = find_model(name)
    return replace(model, shape=replace(model.shape, quantization=method, quantization_bits=bits))


def planned(model: Model, card: str, wish: str | None, vllm: str = NEW, extra: tuple[str, ...] = ()) -> Plan:
    own = {} if wish is None else {"quantization": check_value("quantization", wish, "--set")}
    return make_plan(imagine(card), Goal(model="x", overrides=own, extra=extra), vllm, model, load_tables(()))


def test_the_table_has_every_method_of_every_vllm_that_we_know() -> None:
    assert set(METHODS) <= {*load_tables(()).quantization.methods, "online"}


@pytest.mark.parametrize("wish", [None, "none", *METHODS])
@pytest.mark.parametrize("card", ["t4", "a100-80", "h100", "b200", "gaudi3", "mi300x", "cpu"])
def test_every_method_on_every_checkpoint_is_planned_with_its_own_weights_or_refused(
    wish: str | None, card: str
) -> None:
    for method, bits in CHECKPOINTS:
        for name in (DENSE, MIXTURE):
            model = checkpoint(method, bits, name)
            try:
                made = planned(model, card, wish)
            except MaiError as refusal:
                assert refusal.remedy
                continue
            assert made.settings.quantization == (None if wish == "none" else wish) or wish is None
            if method is None and wish in ("none", "awq", "gptq", "compressed-tensors", "modelopt_fp4"):
                assert (wish, made.precision) == ("none", "16-bit")
            assert made.budget.weights == model.weight_bytes(made.precision) or made.model.only_experts or made.gpus[1:]


@pytest.mark.parametrize("wish", ["none", "None", "NONE"])
def test_none_means_16_bits_and_no_flag(wish: str) -> None:
    made = planned(find_model(DENSE), "h100", wish)
    assert (made.precision, made.settings.quantization) == ("16-bit", None)
    assert "--quantization" not in flags(made)
    with pytest.raises(CannotPlanError, match="even with 16-bit weights"):
        planned(find_model(DENSE), "t4", wish)
    assert plan("h100", DENSE, extra=("--quantization", wish)).precision == "16-bit"


@pytest.mark.parametrize(
    ("method", "bits", "wish", "card", "said"),
    [
        ("unknown", None, None, "h100", r"does not say how \(quant_method\)"),
        (None, None, "awq", "h100", "prepared for it, and MAI-UI-8B's weights have 16 bits"),
        (None, None, "compressed-tensors", "h100", "prepared for it"),
        (None, None, "modelopt_fp4", "b200", "prepared for it"),
        (None, None, "fp8", "b200", "prepared for it"),
        (None, None, "online", "h100", "says nothing without --quantization-config"),
        (None, None, "squeezellm", "h100", "has no quantisation 'squeezellm'"),
        (None, None, "bitsandbytes", "h100", "has no quantisation 'bitsandbytes'"),
        (None, None, "nvfp4_per_token", "t4", r"cards of compute capability 10\.x; this card has 7\.5"),
        (None, None, "nvfp4_per_token", "b200", "only the experts"),
        (None, None, "fp8_per_channel", "t4", r"needs compute capability 8\.9; this card has 7\.5"),
        (None, None, "fp8_per_channel", "a100-80", r"needs compute capability 8\.9"),
        (None, None, "fbgemm_fp8", "h100", "deprecated"),
        ("awq", 4, "none", "h100", "so it has no 16-bit weights"),
        ("awq", 4, "gptq", "h100", "quantised already"),
        ("fp8", 8, "fp8_per_tensor", "h100", "quantised already"),
        ("mxfp4", 4, None, "t4", r"needs compute capability 8\.0"),
        ("fp_quant", 4, None, "h100", r"needs compute capability 10\.0"),
        ("bitsandbytes", 4, None, "h100", "serves no checkpoint quantised with bitsandbytes"),
        ("exl2", 4, None, "h100", "serves no checkpoint quantised with exl2"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(method: str | None, bits: int, wish: str | None, card: str, said: str) -> None:
    with pytest.raises(MaiError, match=said) as refusal:
        planned(checkpoint(method, bits), card, wish)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    ("model", "wish", "repo"),
    [("Qwen2.5-VL-7B-Instruct", "awq", "Qwen/Qwen2.5-VL-7B-Instruct-AWQ"),
     ("Qwen3.5-27B", "gptq", "Qwen/Qwen3.5-27B-GPTQ-Int4")],
)  # fmt: skip
def test_a_prepared_checkpoint_is_named_where_one_is_known(model: str, wish: str, repo: str) -> None:
    with pytest.raises(UsageError) as refusal:
        plan("h100", model, overrides={"quantization": wish})
    assert f"--model {repo}." in refusal.value.remedy


def test_a_deprecated_method_is_planned_where_the_person_allows_it() -> None:
    made = planned(checkpoint("fbgemm_fp8", 8), "h100", "fbgemm_fp8", extra=("--allow-deprecated-quantization",))
    assert made.settings.quantization == "fbgemm_fp8"
    older = planned(checkpoint("fbgemm_fp8", 8), "h100", "fbgemm_fp8", vllm="0.32.0")
    assert older.settings.quantization == "fbgemm_fp8", "0.33 is the first that refuses it"


def test_fp8_alone_quantises_while_loading_before_0_28_only() -> None:
    assert planned(find_model(DENSE), "h100", "fp8", vllm="0.27.0").precision == "fp8"
    with pytest.raises(UsageError, match="prepared for it") as refusal:
        planned(find_model(DENSE), "l4", "fp8", vllm="0.28.0")
    assert "quantization=fp8_per_channel" in refusal.value.remedy


@pytest.mark.parametrize(("wish", "bytes_of_weight"), [("mxfp8", 1.0), ("mxfp4", 0.53125), ("fp8_per_block", 1.0)])
def test_methods_that_quantise_while_loading_keep_the_tower(wish: str, bytes_of_weight: float) -> None:
    made = planned(find_model(DENSE), "h100", wish)
    shape = made.model.shape
    block = shape.text.block_parameters
    assert made.budget.weights == 2 * (shape.parameters - block) + round(block * bytes_of_weight)
    assert flags(made)["--quantization-config"] == {"ignore": ["visual.*"]}


def test_a_method_for_experts_leaves_the_rest_in_16_bits() -> None:
    """Qwen3-VL-30B-A3B: 48 layers x 128 experts x 3 x 2,048 x 768 = 28.99e9 parameters in experts."""
    model = find_model(MIXTURE)
    experts = 48 * 128 * 3 * 2048 * 768
    assert model.shape.text.expert_parameters == experts == 28_991_029_248
    made = planned(model, "h100", "experts_int8")
    assert made.budget.weights == 2 * (model.shape.parameters - experts) + experts
    assert made.budget.weights == pytest.approx(30.8 * GIB, rel=0.01)
    assert "--quantization-config" not in flags(made)
