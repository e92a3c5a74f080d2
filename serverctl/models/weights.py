"""Looks at a model's weights before a start: are all files there and whole, and do they fit config.json.

Only headers are read: of a hundred files in a few hundredths of a second.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from foundation.configs import load_config
from serverctl.models.defects import Defect, Place, read_object
from serverctl.models.safetensors import BrokenFileError, Tensor, check_beginning, read_tensors
from serverctl.models.shape import Shape, VisionShape

INDEX = "model.safetensors.index.json"
_NUMBERED = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.safetensors$")
#: Files that stand beside a model's weights and hold them once more (Mistral's), or others.
_BESIDE = ("consolidated", "adapter_", "optimizer")
#: A layer of the language model, and a block of the vision tower, in all of transformers' ways to name them.
_LAYER = re.compile(r"^(?!.*(?:visual|vision|mtp|draft))(?:.*\.)?layers\.(\d+)\.")
_BLOCK = re.compile(r"^(?:model\.)?visual\.blocks\.(\d+)\.")
#: How many files or tensors are named in one sentence.
_MOST_NAMED = 3


def check_weights(place: Place, config: Mapping[str, Any], shape: Shape) -> Iterator[Defect]:
    """What is wrong with the weights; nothing where all is well. Raises nothing."""
    try:
        index = _index(place)
    except (BrokenFileError, OSError) as error:
        yield place.broken(INDEX, error)
        return
    names = sorted(set(index.values())) if index else _files(place.folder)
    if not names:
        yield from _other_weights(place)
        return
    gone = [name for name in names if not (place.folder / name).is_file()]
    for name in gone[:_MOST_NAMED]:
        yield place.missing(name)
    if len(gone) > _MOST_NAMED:
        yield place.missing(f"{gone[_MOST_NAMED]} (and {len(gone) - _MOST_NAMED - 1} more files)")
    held: dict[str, Tensor] = {}
    where: dict[str, str] = {}
    whole = not gone
    for name in names:
        if name in gone:
            continue
        try:
            tensors = read_tensors(place.folder / name)
        except (BrokenFileError, OSError) as error:
            whole = False
            yield place.broken(name, error)
            continue
        held |= tensors
        where |= dict.fromkeys(tensors, name)
    if whole:
        yield from _against_index(place, index, where)
        unfit = (*_quantization(place, held, shape), *misfits(held, config, shape))
        yield from map(place.unfit, unfit[:_MOST_NAMED])


def _index(place: Place) -> Mapping[str, str]:
    """The file of each tensor, by the index; empty where there is none. Raises BrokenFileError, OSError."""
    path = place.folder / INDEX
    if not path.is_file() and not path.is_symlink():
        return {}
    found = read_object(place, INDEX).get("weight_map")
    if not isinstance(found, dict) or not found or not all(isinstance(file, str) for file in found.values()):
        raise BrokenFileError("names no files of weights: it is damaged")
    if any("/" in file or "\\" in file for file in found.values()):
        raise BrokenFileError("names files outside the model's folder: it is damaged")
    return found


def _files(folder: Path) -> Sequence[str]:
    """The files of weights without an index: those that are there, and the missing ones of a numbered set."""
    there = {path.name for path in folder.glob("*.safetensors") if not path.name.startswith(_BESIDE)}
    for name in tuple(there):
        if found := _NUMBERED.match(name):
            there |= {f"{found[1]}-{number:05}-of-{found[3]}.safetensors" for number in range(1, int(found[3]) + 1)}
    return sorted(there)


def _other_weights(place: Place) -> Iterator[Defect]:
    """Weights in other formats are looked at from outside only."""
    patterns = load_config("files.toml")["other_weights"]
    others = sorted(path for pattern in patterns for path in place.folder.glob(pattern))
    for path in others:
        try:
            with path.open("rb") as file:
                check_beginning(file.read(512), path.stat().st_size)
        except (BrokenFileError, OSError) as error:
            yield place.broken(path.name, error)
    if not others:
        yield place.missing("model.safetensors")


def _against_index(place: Place, index: Mapping[str, str], where: Mapping[str, str]) -> Iterator[Defect]:
    lost = [name for name, file in index.items() if where.get(name) != file]
    if lost:
        more = f" and {len(lost) - 1} more tensors" if len(lost) > 1 else ""
        yield place.unfit(f"{INDEX} says that {index[lost[0]]} holds {lost[0]}{more}, which it does not,")


def misfits(tensors: Mapping[str, Tensor], config: Mapping[str, Any], shape: Shape) -> Iterator[str]:
    """Where weights and config.json do not fit each other, as clauses.

    Demanded is only what every checkpoint that vLLM can load has; shapes only where a model's layers are known.
    """
    text = shape.text
    layers = {int(found[1]) for name in tensors if (found := _LAYER.match(name))}
    if layers and (short := sorted(set(range(text.layers)) - layers)):
        yield f"config.json says {text.layers} layers, and the weights have no layer {short[0]}"
    if str(config.get("model_type")) not in load_config("files.toml")["known"]:
        return
    if (more := max(layers, default=0) + 1) > text.layers:
        yield f"config.json says {text.layers} layers, and the weights have {more}"
    queries, keys = text.heads * text.head_dim, text.kv_heads * text.head_dim
    yield from _sized(tensors, "embed_tokens.weight", (text.vocabulary, text.hidden))
    yield from _sized(tensors, "lm_head.weight", (text.vocabulary, text.hidden))
    yield from _sized(tensors, "layers.0.self_attn.q_proj.weight", (queries, text.hidden))
    yield from _sized(tensors, "layers.0.self_attn.k_proj.weight", (keys, text.hidden))
    if not text.experts:
        yield from _sized(tensors, "layers.0.mlp.gate_proj.weight", (text.intermediate, text.hidden))
    if shape.quantization is None and _says_untied(config) and not _of(tensors, "lm_head.weight"):
        yield "config.json says that the output head is no copy of the embeddings, and the weights have no lm_head"
    yield from _tower(tensors, shape.vision)


def _says_untied(config: Mapping[str, Any]) -> bool:
    nested = config.get("text_config")
    said = [each.get("tie_word_embeddings") for each in (config, nested) if isinstance(each, Mapping)]
    return any(each is False for each in said) and not any(each is True for each in said)


def _tower(tensors: Mapping[str, Tensor], vision: VisionShape | None) -> Iterator[str]:
    if vision is None:
        return
    blocks = {int(found[1]) for name in tensors if (found := _BLOCK.match(name))}
    if not blocks:
        yield "config.json says that it sees pictures, and the weights have no vision tower"
    elif short := sorted(set(range(vision.depth)) - blocks):
        yield f"config.json says {vision.depth} blocks of the vision tower, and the weights have no block {short[0]}"
    patch = (vision.hidden, vision.channels, vision.temporal_patch, vision.patch, vision.patch)
    yield from _sized(tensors, "visual.patch_embed.proj.weight", patch)


def _quantization(place: Place, tensors: Mapping[str, Tensor], shape: Shape) -> Iterator[str]:
    """Whether weights are quantised as is said of them."""
    data = load_config("files.toml")
    endings, numbers = tuple(data["packed_names"]), data["packed_numbers"]
    packed = next((name for name in tensors if name.endswith(endings) or _is_packed(name, tensors, numbers)), None)
    said = shape.quantization is not None or any((place.folder / file).is_file() for file in data["quantization_files"])
    if not said and packed is not None:
        yield f"{packed} is quantised ({tensors[packed].dtype}), and config.json does not say so,"
    if shape.quantization in data["quantized"] and packed is None and tensors:
        yield f"config.json says that the weights are quantised ({shape.quantization}), and none of them is,"


def _is_packed(name: str, tensors: Mapping[str, Tensor], numbers: Sequence[str]) -> bool:
    return name.endswith(".weight") and tensors[name].dtype in numbers


def _of(tensors: Mapping[str, Tensor], ending: str) -> str | None:
    """The name of the tensor of the language model, or vision tower, that ends so."""
    found = [name for name in tensors if name == ending or name.endswith(f".{ending}")]
    return min(found, key=len, default=None)


def _sized(tensors: Mapping[str, Tensor], ending: str, wanted: tuple[int, ...]) -> Iterator[str]:
    """A tensor must have the shape that config.json gives it; what is packed has another."""
    name = _of(tensors, ending)
    if name is None or tensors[name].shape == wanted or _is_packed(name, tensors, ["I8", "U8", "F4"]):
        return
    said, has = (" x ".join(map(str, sides)) for sides in (wanted, tensors[name].shape))
    yield f"{name} has {has} numbers, and config.json says {said},"
