"""A model's files are looked at before a start: what is missing, cut off, or of another model, and what to do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stubs.controlled import tiny_model, tiny_shapes, write_weights

from foundation.errors import EnvironmentLacksError
from serverctl.models.defects import Place
from serverctl.models.files import NoStartError, check_files, refuse_bad_files, refuse_unreachable
from serverctl.models.find import find_model
from serverctl.models.weights import INDEX

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 4957560304\n"


def split(folder: Path) -> Path:
    """The tiny model's weights in two files with an index."""
    shapes = tiny_shapes()
    one = {name: shape for name, shape in shapes.items() if "embed_tokens" in name}
    two = {name: shape for name, shape in shapes.items() if name not in one}
    (folder / "model.safetensors").unlink()
    for shard, shapes in zip(SHARDS, (one, two), strict=True):
        write_weights(folder / shard, shapes)
    where = {name: shard for shard, shapes in zip(SHARDS, (one, two), strict=True) for name in shapes}
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return split(tiny_model(tmp_path / "tiny"))


def edit(path: Path, **values: Any) -> None:
    """Sets entries of a JSON file; those of a nested object are named with two underscores."""
    document = json.loads(path.read_text())
    for name, value in values.items():
        *outer, last = name.split("__")
        target = document
        for key in outer:
            target = target[key]
        target[last] = value
    path.write_text(json.dumps(document))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def header(path: Path, tensors: dict[str, Any]) -> None:
    text = json.dumps(tensors).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\0\0")


def extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0" * 5)


def rename_in_index(folder: Path) -> None:
    edit(folder / INDEX, **{"weight_map__model.nothing.weight": SHARDS[0]})


def dangle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "gone")


def circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def fill(path: Path, number: bytes) -> None:
    """All of a file's numbers become the same."""
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    path.write_bytes(raw[:begin] + number * ((len(raw) - begin) // len(number)))


def blank(path: Path) -> None:
    """The second half was never written."""
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2))


def edit_shapes(folder: Path, change: Callable[[str, tuple[int, ...]], tuple[str, tuple[int, ...]]]) -> None:
    shapes = dict(change(name, shape) for name, shape in tiny_shapes().items())
    for shard in (*SHARDS, INDEX):
        (folder / shard).unlink()
    write_weights(folder / "model.safetensors", shapes)


def rename_tensor(folder: Path, part: str) -> None:
    edit_shapes(folder, lambda name, shape: (name.replace(part, "something_else"), shape))


def turn_tensor(folder: Path, part: str) -> None:
    edit_shapes(folder, lambda name, shape: (name, shape[::-1] if part in name else shape))


def shuffle(path: Path) -> None:
    merges = [["a", "b"], ["b", "c"], ["c", "d"]]
    edit(path, model__merges=merges, model__vocab={"a": 0, "b": 1, "c": 2, "d": 3, "ab": 5, "bc": 4, "cd": 6})


def odd_merges(path: Path) -> None:
    odd: list[Any] = [[], None, 7, [["a"], ["b"]], {"a": 1}, ["a"], "ab", [1, 2]]
    vocabulary = {"a": 0, "b": 1, "c": 2, "ab": 4, "ba": "x", "bc": 3}
    edit(path, model__merges=[*odd, ["a", "b"], ["b", "a"], ["b", "c"]], model__vocab=vocabulary)


#: What is done to the folder, and words of the only finding.
BROKEN: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "lfs pointer": (lambda f: (f / SHARDS[0]).write_text(POINTER), (SHARDS[0], "LFS pointer", "4.6 GiB", "lfs pull")),
    "empty": (lambda f: (f / SHARDS[0]).write_bytes(b""), (SHARDS[0], "is empty")),
    "cut off": (lambda f: cut(f / SHARDS[0]), (SHARDS[0], "cut off", "KiB of 125.0 KiB are missing")),
    "too long": (lambda f: extend(f / SHARDS[1]), (SHARDS[1], "5 bytes longer")),
    "seven bytes": (lambda f: (f / SHARDS[1]).write_bytes(b"1234567"), (SHARDS[1], "cut off", "7 bytes")),
    "huge header": (lambda f: (f / SHARDS[1]).write_bytes(b"\xff" * 4096), (SHARDS[1], "no safetensors file")),
    "long header": (lambda f: (f / SHARDS[1]).write_bytes(b"\0\1" + b"\0" * 90), (SHARDS[1], "within its header")),
    "no json": (lambda f: (f / SHARDS[1]).write_bytes(b"\4" + b"\0" * 7 + b"nope"), (SHARDS[1], "no JSON")),
    "web page": (lambda f: (f / SHARDS[1]).write_text("<!DOCTYPE html><html>"), (SHARDS[1], "web page")),
    "shard missing": (lambda f: (f / SHARDS[1]).unlink(), (f"{SHARDS[1]} is missing", "again")),
    "shard's link broken": (lambda f: dangle(f / SHARDS[1]), (SHARDS[1], "a link that leads nowhere")),
    "index broken": (lambda f: cut(f / INDEX), (INDEX, "no JSON")),
    "index of another": (rename_in_index, ("model.nothing.weight", "does not")),
    "index outside": (lambda f: edit(f / INDEX, weight_map={"a": "../x"}), (INDEX, "outside")),
    "vocabulary": (lambda f: edit(f / "config.json", text_config__vocab_size=2000), ("1000 x 64", "2000 x 64")),
    "width": (lambda f: edit(f / "config.json", text_config__num_key_value_heads=4), ("k_proj", "32 x 64", "64 x 64")),
    "more layers": (lambda f: edit(f / "config.json", text_config__num_hidden_layers=3), ("3 layers", "no layer 2")),
    "fewer layers": (lambda f: edit(f / "config.json", text_config__num_hidden_layers=1), ("1 layers", "have 2")),
    "deeper tower": (lambda f: edit(f / "config.json", vision_config__depth=9), ("9 blocks", "have 2")),
    "no lm_head": (lambda f: edit(f / "config.json", tie_word_embeddings=False), ("lm_head",)),
    "awq": (
        lambda f: edit(f / "config.json", quantization_config={"quant_method": "awq", "bits": 4}),
        ("quantised (awq)", "none of them is"),
    ),
    "tokenizer missing": (lambda f: (f / "tokenizer.json").unlink(), ("tokenizer.json is missing",)),
    "tokenizer cut off": (lambda f: cut(f / "tokenizer.json"), ("tokenizer.json", "no JSON")),
    "tokenizer empty": (lambda f: edit(f / "tokenizer.json", model__vocab={}), ("tokenizer.json", "no vocabulary")),
    "tokenizer of another": (
        lambda f: edit(f / "tokenizer.json", added_tokens=[{"id": 1200, "content": "<x>"}]),
        ("up to number 1,200", "1,000 tokens"),
    ),
    "other image token": (lambda f: edit(f / "config.json", image_token_id=5), ("image_token_id is 5", "no such")),
    "no merges": (
        lambda f: edit(f / "tokenizer.json", model__vocab={f"w{n}": n % 900 for n in range(1100)}),
        ("no merges",),
    ),
    "processor missing": (lambda f: (f / "preprocessor_config.json").unlink(), ("processor_config.json is missing",)),
    "other patches": (lambda f: edit(f / "preprocessor_config.json", patch_size=14), ("patch_size 14", "16")),
    "no template": (lambda f: (f / "chat_template.jinja").unlink(), ("chat_template.jinja is missing",)),
    "empty template": (lambda f: (f / "chat_template.jinja").write_text(""), ("chat_template.jinja", "is empty")),
    "generation broken": (lambda f: (f / "generation_config.json").write_text("{"), ("generation_config", "no JSON")),
    "a list": (lambda f: (f / "generation_config.json").write_text("[]"), ("generation_config.json", "no JSON object")),
    "config broken": (lambda f: cut(f / "config.json"), ("config.json", "no JSON")),
    "endless numbers": (
        lambda f: header(f / SHARDS[0], {"a": {"dtype": "F16", "shape": [float("inf")], "data_offsets": [0, 2]}}),
        (SHARDS[0], "does not describe a"),
    ),
    "numbers larger than disks": (
        lambda f: header(f / SHARDS[0], {"a": {"dtype": "I8", "shape": [10**400], "data_offsets": [0, 10**400]}}),
        (SHARDS[0], "no disk holds"),
    ),
    "zeros at the end": (lambda f: blank(f / SHARDS[1]), (SHARDS[1], "nothing but zeros", "broken off")),
    "no numbers": (lambda f: fill(f / SHARDS[0], b"\xff\x7f"), (SHARDS[0], "holds no numbers in", "damaged")),
    "one tensor missing": (lambda f: rename_tensor(f, "layers.1.mlp.up_proj"), ("1 of 2 tensors", "up_proj")),
    "one kind missing": (lambda f: rename_tensor(f, "q_norm"), ("0 of 2 tensors", "q_norm")),
    "one tensor turned": (lambda f: turn_tensor(f, "layers.1.mlp.up_proj"), ("64 x 128", "128 x 64")),
    "other width of the tower": (
        lambda f: edit(f / "config.json", vision_config__out_hidden_size=99), ("64 x 256", "99 x 256"),
    ),
    "no tower wanted": (lambda f: edit(f / "config.json", vision_config=None), ("no vision_config", "have a vision")),
    "layers that are none": (
        lambda f: edit(f / "config.json", vision_config__deepstack_visual_indexes=[7]), ("[7]", "of 2 layers"),
    ),
    "a size in quotes": (lambda f: edit(f / "config.json", text_config__hidden_size="64"), ("hidden_size is '64'",)),
    "a format that is none": (lambda f: edit(f / "config.json", dtype="int4"), ("dtype int4", "no format")),
    "no number": (lambda f: edit(f / "config.json", text_config__rope_theta="five"), ("rope_theta five",)),
    "odd heads": (lambda f: edit(f / "config.json", vision_config__num_heads=3), ("64 wide with 3 heads",)),
    "another model_type": (lambda f: edit(f / "config.json", model_type="llama"), ("Qwen3VL", "model_type llama")),
    "architectures no list": (lambda f: edit(f / "config.json", architectures="Q"), ("architectures Q", "no list")),
    "words in another order": (lambda f: shuffle(f / "tokenizer.json"), ("tokenizer.json", "order", "merged")),
    "processor without patches": (
        lambda f: (f / "preprocessor_config.json").write_text("{}"), ("patch_size 14", "16"),
    ),
    "processor of another": (
        lambda f: edit(f / "preprocessor_config.json", image_processor_type="SiglipImageProcessor"), ("names Siglip",),
    ),
    "no colours": (lambda f: edit(f / "preprocessor_config.json", image_std=[0, 1, 1]), ("image_std [0, 1, 1]",)),
    "template of another": (
        lambda f: (f / "tokenizer_config.json").write_text('{"eos_token": {"content": "<|im_end|>"}}'),
        ("chat_template.jinja", "none of", "<|im_end|>"),
    ),
    "endless answers": (lambda f: (f / "generation_config.json").write_text('{"max_new_tokens": -4}'), ("-4",)),
    "links in a circle": (lambda f: circle(f / SHARDS[0]), (SHARDS[0], "a link that leads nowhere")),
    "merges that are none": (lambda f: odd_merges(f / "tokenizer.json"), ("tokenizer.json", "order", "merged")),
    "config without sizes": (lambda f: (f / "config.json").write_text("{}"), ("config.json", "cannot be computed")),
}  # fmt: skip


def test_a_whole_model_has_no_defect(folder: Path, tmp_path: Path) -> None:
    assert check_files(Place(folder)) == []
    assert check_files(Place(tiny_model(tmp_path / "single"))) == []
    edit(folder / "config.json", tie_word_embeddings=[])
    check_files(Place(folder))  # no truth value, and no traceback


def test_of_large_files_only_headers_and_a_few_pieces_are_read(folder: Path) -> None:
    shapes = {f"model.language_model.layers.{number}.mlp.up_proj.weight": (30_000, 30_000) for number in range(2)}
    write_weights(folder / SHARDS[1], shapes)  # 3.6 GB that a read would show: a hole on the disk
    (folder / INDEX).unlink()
    (found,) = check_files(Place(folder))
    assert "holds nothing but zeros in model.language_model.layers." in str(found)


def test_a_numbered_set_without_an_index_is_counted(folder: Path) -> None:
    (folder / INDEX).unlink()
    (folder / SHARDS[0]).unlink()
    (found,) = check_files(Place(folder))
    assert f"{SHARDS[0]} is missing" in str(found)


@pytest.mark.parametrize("name", BROKEN)
def test_each_defect_is_one_sentence_with_what_and_what_to_do(folder: Path, name: str) -> None:
    breaks, words = BROKEN[name]
    breaks(folder)
    (found,) = check_files(Place(folder))
    for word in words:
        assert word in str(found)
    assert found.remedy
    assert found.stops is not ("generation_config" in str(found) and "JSON" in str(found))
    assert str(found).count("; ") == 1
    assert str(found).endswith(".")


def test_a_start_is_refused_with_the_first_defect_and_the_number_of_others(folder: Path) -> None:
    (folder / SHARDS[0]).write_text(POINTER)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(NoStartError, match="Git LFS pointer") as refused:
        refuse_bad_files(find_model(str(folder)), ())
    assert refused.value.kind == "CORRUPT"
    assert isinstance(refused.value, EnvironmentLacksError)
    assert "lists 1 more" in refused.value.remedy


def test_a_pointer_in_place_of_weights_in_another_format_is_told(folder: Path) -> None:
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    weights = folder / "pytorch_model.bin"
    weights.write_bytes(b"PK\x03\x04 weights")
    assert check_files(Place(folder)) == []
    weights.write_text(POINTER)
    [found] = check_files(Place(folder))
    assert "pytorch_model.bin" in str(found) and "Git LFS pointer" in str(found)


@pytest.mark.parametrize(
    ("flags", "gone"),
    [
        (("--load-format", "dummy"), SHARDS[0]),
        (("--tokenizer=/elsewhere",), "tokenizer.json"),
        (("--chat-template", "mine.jinja"), "chat_template.jinja"),
    ],
)
def test_what_a_flag_brings_need_not_be_in_the_folder(folder: Path, flags: tuple[str, ...], gone: str) -> None:
    (folder / gone).unlink()
    assert check_files(Place(folder))
    assert check_files(Place(folder), flags) == []


def test_what_a_snapshot_of_the_hub_misses_is_fetched_and_what_it_has_broken_is_not(folder: Path) -> None:
    (folder / SHARDS[0]).write_bytes(b"")
    (folder / SHARDS[1]).unlink()
    missing, broken = check_files(Place(folder, "org/tiny"))
    assert not missing.stops
    assert "org/tiny" in str(missing)
    assert broken.stops
    assert f"delete {folder / SHARDS[0]}" in str(broken)


def test_a_file_that_may_not_be_read_is_told_as_that(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.name == SHARDS[0]:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", refuse)  # the tests may run as root, who may read everything
    (found,) = check_files(Place(folder))
    assert "may not be read" in str(found)
    assert "chmod" in str(found)


def test_fp8_weights_need_a_word_in_the_configuration(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "tiny")
    shapes = {
        "model.embed_tokens.weight": (1000, 64),
        **{f"model.layers.{number}.mlp.up_proj.weight": (128, 64) for number in range(2)},
        **{f"model.visual.blocks.{number}.norm1.weight": (64,) for number in range(2)},
    }
    write_weights(folder / "model.safetensors", shapes, "F8_E4M3")
    (found,) = check_files(Place(folder))
    assert "is quantised (F8_E4M3), and config.json does not say so" in str(found)
    edit(folder / "config.json", quantization_config={"quant_method": "fp8"})
    assert check_files(Place(folder)) == []


def test_a_model_of_an_unknown_kind_is_only_asked_for_what_all_have(folder: Path) -> None:
    edit(folder / "config.json", model_type="something_new", architectures=["SomethingNew"])
    edit(folder / "config.json", text_config__vocab_size=2000, vision_config__depth=9)
    edit(folder / "preprocessor_config.json", patch_size=14, processor_class="NewProcessor")
    assert check_files(Place(folder)) == []


def test_without_a_network_no_start_is_tried_for_a_model_that_is_not_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    model = find_model("MAI-UI-2B")
    with pytest.raises(NoStartError, match="hub cannot be reached") as refused:
        refuse_unreachable(model, ())
    assert refused.value.kind == "NETWORK"
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.example:3128")
    with pytest.raises(NoStartError) as refused:
        refuse_unreachable(model, ())
    assert "Does the proxy proxy.example (HTTPS_PROXY) answer?" in refused.value.remedy
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(NoStartError, match="HF_HUB_OFFLINE") as refused:
        refuse_unreachable(model, ())
    assert refused.value.kind == "OFFLINE"
    refuse_unreachable(model, ("--load-format=dummy",))
    refuse_unreachable(find_model(str(tiny_model(tmp_path / "tiny"))), ())
