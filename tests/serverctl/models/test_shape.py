"""A model's size is computed from its own config.json, and is what the model really has."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.errors import MaiError, UsageError
from foundation.families import detect_family, family_data
from serverctl.models.find import find_model, known_models
from serverctl.models.model import Model, Precision
from serverctl.models.shape import Shape, read_shape

ROOT = Path(__file__).resolve().parents[3]
SHAPES = ROOT / "configs" / "models" / "shapes"
GIB = 1024**3

# Counted on the models themselves: built by transformers 5.19 on the meta device from these dimensions, every parameter
# once. The first number is the whole model's, the second its vision tower's.
COUNTED = {
    "qwen3-vl-2b": (2_127_532_032, 406_957_056),
    "qwen3-vl-4b": (4_437_815_808, 415_347_712),
    "qwen3-vl-8b": (8_767_123_696, 576_388_336),
    "qwen3-vl-32b": (33_357_390_064, 595_266_800),
    "qwen3-vl-30b-a3b": (31_070_754_032, 538_631_408),
    "qwen2.5-vl-3b": (3_754_622_976, 668_684_288),
    "qwen2.5-vl-7b": (8_292_166_656, 676_550_144),
    "qwen2.5-vl-32b": (33_452_718_336, 688_841_984),
    "qwen2.5-vl-72b": (73_410_777_344, 704_573_696),
    "qwen3.5-0.8b": (852_985_920, 100_592_896),
    "qwen3.5-2b": (2_213_241_664, 331_416_576),
    "qwen3.5-4b": (4_539_265_536, 333_514_240),
    "qwen3.5-9b": (9_409_813_744, 456_010_480),
    "qwen3.5-27b": (27_356_728_560, 460_730_096),
    "qwen3.5-35b-a3b": (35_107_181_936, 446_571_248),
    "glm-4.1v-9b": (10_292_777_472, 892_498_432),
}
# Qwen2-VL as its own config.json has it: the text's entries at the top, the tower's width under another name.
QWEN2_VL: dict[str, dict[str, Any]] = {
    "2b": {"hidden_size": 1536, "num_attention_heads": 12, "num_key_value_heads": 2, "intermediate_size": 8960,
           "vocab_size": 151_936, "tie_word_embeddings": True},
    "7b": {"hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18_944,
           "vocab_size": 152_064, "tie_word_embeddings": False},
}  # fmt: skip
QWEN2_VL_COUNTED = {"2b": (2_208_985_600, 665_271_296), "7b": (8_291_375_616, 675_759_104)}


def shape_of(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SHAPES / f"{name}.json").read_text(encoding="utf-8"))
    return document


def qwen2_vl(size: str) -> dict[str, Any]:
    text = QWEN2_VL[size]
    vision = {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "patch_size": 14,
              "spatial_merge_size": 2, "temporal_patch_size": 2, "hidden_size": text["hidden_size"]}  # fmt: skip
    return {
        **text,
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "model_type": "qwen2_vl",
        "num_hidden_layers": 28,
        "max_position_embeddings": 32_768,
        "torch_dtype": "bfloat16",
        "vision_config": vision,
    }


def counted(shape: Shape) -> tuple[int, int]:
    assert shape.vision is not None
    return shape.parameters, shape.vision.parameters


@pytest.mark.parametrize("name", [*COUNTED, *QWEN2_VL])
def test_the_count_of_parameters_is_the_models_own_also_for_the_older_way_of_writing_a_config(name: str) -> None:
    config = qwen2_vl(name) if name in QWEN2_VL else shape_of(name)
    assert counted(read_shape(config, name)) == {**COUNTED, **QWEN2_VL_COUNTED}[name]


# Sizes in GiB at 16 bits, of the vision tower, at 8 and at 4 bits, and KiB of KV cache a token (facts of vLLM 0.33).
SIZES = {
    "MAI-UI-2B": (3.96, 0.76, 2.65, 2.04, 112),
    "Qwen3-VL-4B-Instruct": (8.27, 0.77, 4.88, 3.30, 144),
    "MAI-UI-8B": (16.33, 1.07, 9.86, 6.83, 144),
    "MAI-UI-32B": (62.13, 1.11, 33.07, 19.45, 256),
}


@pytest.mark.parametrize("name", SIZES)
def test_weights_take_what_the_table_says_at_every_precision(name: str) -> None:
    model = find_model(name)
    whole, vision, eight, four, token = SIZES[name]
    precisions: tuple[Precision, ...] = ("16-bit", "fp8", "w4")
    for precision, gib in zip(precisions, (whole, eight, four), strict=True):
        assert model.weight_bytes(precision) / GIB == pytest.approx(gib, rel=0.01)
    assert model.vision_bytes / GIB == pytest.approx(vision, rel=0.01)
    assert model.shape.text.kv_bytes_per_token() == token * 1024


# Tokens of an image at several pixel budgets; the last column is Qwen2.5-VL's without one (facts of vLLM 0.33, the
# first row of numbers seen from a live server as well).
TOKENS = {
    (1280, 720): (880, 464, 880, 880, 880, 1196),
    (1920, 1080): (2040, 464, 943, 2040, 2040, 2691),
    (2560, 1440): (3600, 464, 943, 1980, 3600, 4641),
    (3840, 2160): (8160, 464, 943, 1980, 6360, 10_549),
}


@pytest.mark.parametrize("screen", TOKENS)
def test_an_image_costs_the_tokens_that_the_processor_makes_of_it(screen: tuple[int, int]) -> None:
    *threes, two = TOKENS[screen]
    model = find_model("MAI-UI-8B")
    budgets = (None, 512_000, 1_003_520, 2_097_152, 6_553_600)
    assert [model.image_tokens(*screen, budget) for budget in budgets] == threes
    assert find_model("Qwen2.5-VL-7B-Instruct").image_tokens(*screen) == two


@given(
    width=st.integers(1, 8000),
    height=st.integers(1, 8000),
    budget=st.integers(262_144, 20_000_000),
    name=st.sampled_from(["MAI-UI-2B", "Qwen2.5-VL-3B-Instruct"]),
)
def test_no_image_costs_more_than_the_most_its_budget_lets_through(
    width: int, height: int, budget: int, name: str
) -> None:
    model = find_model(name)
    if max(width, height) > 50 * min(width, height):
        return  # strips may stay above the budget, as in the original
    assert 1 <= model.image_tokens(width, height, budget) <= min(budget, model.max_pixels) // model.factor**2


def config(**changes: Any) -> dict[str, Any]:
    return {**shape_of("qwen3-vl-2b"), **changes}


def packed(bits: int) -> dict[str, Any]:
    groups = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": bits, "type": "int"}}}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups}


# How published checkpoints say that they are quantised.
QUANTISED = [
    ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}, "awq", 4, "w4"),
    ({"quant_method": "gptq", "bits": 4, "desc_act": False}, "gptq", 4, "w4"),
    ({"quant_method": "gptq", "bits": 8}, "gptq", 8, "fp8"),
    ({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}, "fp8", 8, "fp8"),
    ({"quant_method": "fbgemm_fp8"}, "fbgemm_fp8", 8, "fp8"),
    (packed(4), "compressed-tensors", 4, "w4"),
    (packed(8), "compressed-tensors", 8, "fp8"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt", 4, "w4"),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "modelopt", 8, "fp8"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes", 4, "w4"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bitsandbytes", 8, "fp8"),
    ({"quant_method": "of-the-future"}, "of-the-future", None, "fp8"),
    ({"bits": 16}, "unknown", 16, "16-bit"),
    ({}, None, None, "16-bit"),
]


@pytest.mark.parametrize(("entry", "method", "bits", "precision"), QUANTISED)
def test_a_quantised_checkpoint_is_recognised_by_its_config(
    entry: dict[str, Any], method: str | None, bits: int | None, precision: str
) -> None:
    shape = read_shape(config(quantization_config=entry), "config.json")
    assert (shape.quantization, shape.quantization_bits) == (method, bits)
    assert plain(shape).own_precision == precision


def plain(shape: Shape, size: int | None = None) -> Model:
    return Model("m", "org/m", shape, 65_536, 16_777_216, checkpoint_bytes=size)


@pytest.mark.parametrize(("gib", "precision"), [(4.0, "16-bit"), (2.7, "fp8"), (2.0, "w4")])
def test_a_method_that_does_not_say_its_bits_is_told_by_its_weights(gib: float, precision: Precision) -> None:
    shape = read_shape(config(quantization_config={"quant_method": "of-the-future"}), "config.json")
    model = plain(shape, round(gib * GIB))
    assert model.own_precision == precision
    assert model.weight_bytes(precision) == round(gib * GIB), "what is published is believed over arithmetic"


def test_a_checkpoint_in_32_bits_is_loaded_as_16() -> None:
    shape = read_shape(config(), "config.json")
    assert plain(shape, shape.parameters * 4).weight_bytes("16-bit") == shape.parameters * 2


def test_a_token_of_kv_cache_is_split_over_cards_but_never_below_one_head() -> None:
    text = find_model("MAI-UI-8B").shape.text
    assert [text.kv_bytes_per_token(size) // 1024 for size in (1, 2, 4, 8, 16)] == [144, 72, 36, 18, 18]


def test_a_model_without_eyes_has_a_size_too() -> None:
    shape = read_shape(config(vision_config=None), "config.json")
    whole, tower = COUNTED["qwen3-vl-2b"]
    assert (shape.vision, shape.parameters) == (None, whole - tower)


def test_a_mixture_of_experts_counts_all_its_experts() -> None:
    text = read_shape(shape_of("qwen3-vl-30b-a3b"), "config.json").text
    assert (text.experts, text.experts_used, text.expert_intermediate) == (128, 8, 768)
    assert text.kv_bytes_per_token() == 96 * 1024


@pytest.mark.parametrize(
    ("part", "entry"),
    [
        *(("text_config", name) for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")),
        *(("text_config", name) for name in ("intermediate_size", "vocab_size")),
        *(("vision_config", name) for name in ("depth", "hidden_size")),
    ],
)
def test_a_missing_entry_is_named(part: str, entry: str) -> None:
    document = config()
    del document[part][entry]
    with pytest.raises(UsageError, match=entry) as refusal:
        read_shape(document, "/models/x/config.json")
    assert "/models/x/config.json" in refusal.value.what


@pytest.mark.parametrize("value", [0, -1, "many", None, [], True, 10**12, float("inf"), float("nan")])
def test_a_size_that_is_none_is_refused(value: Any) -> None:
    document = config()
    document["text_config"]["num_hidden_layers"] = value
    with pytest.raises(UsageError):
        read_shape(document, "config.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = [
    (part, name)
    for part in ("", "text_config", "vision_config")
    for name in (*(config()[part] if part else config()), "quantization_config")
]


@given(place=st.sampled_from(PLACES), value=JSON)
def test_any_value_anywhere_gives_a_size_or_a_refusal_for_a_person(place: tuple[str, str], value: Any) -> None:
    document = config()
    (document[place[0]] if place[0] else document)[place[1]] = value
    try:
        shape = read_shape(document, "config.json")
    except MaiError as refusal:
        assert "config.json" in refusal.what
    else:
        assert shape.parameters > 0
        assert shape.text.kv_bytes_per_token() > 0
        assert plain(shape).weight_bytes(plain(shape).own_precision) > 0


@pytest.mark.parametrize(
    "entry", [entry for entry in known_models() if detect_family(entry.name)], ids=lambda entry: entry.name
)
def test_a_known_model_is_served_for_the_family_that_its_name_tells_and_for_its_history(entry: Model) -> None:
    assert entry.family is not None
    assert entry.family == detect_family(entry.name)
    assert entry.history_images >= family_data(entry.family)["history"]["images"]


def test_every_known_model_has_a_shape_and_sane_numbers() -> None:
    entries = known_models()
    assert {path.stem for path in SHAPES.glob("*.json")} == set(COUNTED)
    assert len({entry.name for entry in entries}) == len(entries)
    assert len({entry.source for entry in entries}) == len(entries)
    for entry in entries:
        assert Path(entry.origin).stem in COUNTED
        assert 1 <= entry.history_images <= 20  # Qwen3.5, whose requests keep the most
        assert all(checkpoint.bits in (4, 8) for checkpoint in entry.quantized)
