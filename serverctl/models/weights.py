"""Checks before a start that a model's weights are complete and match config.json.

It reads headers and a few samples of the numbers: a few hundredths of a second for a hundred files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from foundation.configs import load_config
from serverctl.models.defects import (
    BrokenFileError,
    Defect,
    Place,
    Tensor,
    check_beginning,
    is_known,
    read_object,
    read_tensors,
    strange_tensor,
)
from serverctl.models.shape import Shape

INDEX = "model.safetensors.index.json"
_NUMBERED = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.safetensors$")
#: Prefixes of other files beside a model's weights: copies of the weights (Mistral's), adapters, optimizer states.
_BESIDE = ("consolidated", "adapter_", "optimizer")
#: Names of a language model layer and of a vision tower block, in all of transformers' naming schemes.
_LAYER = re.compile(r"^(?!.*(?:visual|vision|mtp|draft))(?:.*\.)?layers\.(\d+)\.")
_BLOCK = re.compile(r"^(?:model\.)?visual\.blocks\.(\d+)\.")
#: A layer number within a name, and a head for speculative decoding, which has its own layers.
_NUMBER, _HEAD = re.compile(r"\.\d+(?=\.)"), re.compile(r"\b(?:mtp|draft)\b")
#: Maximum number of matrices to sample, over all files.
_MOST_SEEN = 128
#: Maximum number of files or tensors to report.
_MOST_NAMED = 3


def check_weights(place: Place, config: Mapping[str, Any], shape: Shape) -> Iterator[Defect]:
    """Yield the defects of the weights."""
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
    file_of: dict[str, str] = {}
    complete = not gone
    for name in names:
        if name in gone:
            continue
        try:
            tensors = read_tensors(place.folder / name)
            if strange := strange_tensor(place.folder / name, tensors, max(4, _MOST_SEEN // len(names))):
                raise BrokenFileError(strange)
        except (BrokenFileError, OSError) as error:
            complete = False
            yield place.broken(name, error)
            continue
        held |= tensors
        file_of |= dict.fromkeys(tensors, name)
    if complete:
        if lost := [name for name, file in index.items() if file_of.get(name) != file]:
            more = f" and {len(lost) - 1} more tensors" if len(lost) > 1 else ""
            yield place.unfit(f"{INDEX} says that {index[lost[0]]} holds {lost[0]}{more}, which it does not,")
        unfit = [*_quantization(place, held, shape)] or [*misfits(held, config, shape)]
        yield from map(place.unfit, unfit[:_MOST_NAMED])


def _index(place: Place) -> Mapping[str, str]:
    """Return the file of each tensor by the index; empty without an index. Raises BrokenFileError, OSError."""
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
    """Return the weight files without an index: existing ones, and the missing ones of a numbered set."""
    names = {path.name for path in folder.glob("*.safetensors") if not path.name.startswith(_BESIDE)}
    for name in tuple(names):
        if found := _NUMBERED.match(name):
            names |= {f"{found[1]}-{number:05}-of-{found[3]}.safetensors" for number in range(1, int(found[3]) + 1)}
    return sorted(names)


def _other_weights(place: Place) -> Iterator[Defect]:
    """Look at weights in other formats: whether they are empty, Git LFS pointers or web pages."""
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


def misfits(tensors: Mapping[str, Tensor], config: Mapping[str, Any], shape: Shape) -> Iterator[str]:
    """Yield a clause for each contradiction between weights and config.json.

    Requires only what every checkpoint that vLLM can load has. Checks shapes only for known model types.
    """
    text, kind = shape.text, str(config.get("model_type"))
    layers = {int(found[1]) for name in tensors if (found := _LAYER.match(name))}
    if layers and (short := sorted(set(range(text.layers)) - layers)):
        yield f"config.json says {text.layers} layers, and the weights have no layer {short[0]}"
    if not is_known(config):
        return
    if (more := max(layers, default=0) + 1) > text.layers:
        yield f"config.json says {text.layers} layers, and the weights have {more}"
    blocks = {int(found[1]) for name in tensors if (found := _BLOCK.match(name))}
    if shape.vision is not None and not blocks:
        yield "config.json says that it sees pictures, and the weights have no vision tower"
        return
    if shape.vision is None and blocks:
        yield "config.json has no vision_config, and the weights have a vision tower"
        return
    if shape.vision is not None and (depth := max(blocks) + 1) != shape.vision.depth:
        yield f"config.json says {shape.vision.depth} blocks of the vision tower, and the weights have {depth}"
        return
    if layers == set(range(text.layers)):
        yield from _unlike(tensors, _expected(kind, config, shape), _sides(shape), shape)


def _expected(kind: str, config: Mapping[str, Any], shape: Shape) -> Mapping[str, Sequence[str]]:
    """Return the expected dimensions of a known model's tensors, as keys of `_sides`, by the ending of their names."""
    table = load_config("files.toml")["tensors"]
    parts = ["all", kind.removesuffix("_moe")]
    parts += [] if shape.text.experts else ["dense"]
    parts += ["untied"] if _says_untied(config) else []
    return {
        ending: sides
        for part in parts
        for ending, sides in table.get(part, {}).items()
        if shape.vision is not None or not ending.startswith("visual.")
    }


def _sides(shape: Shape) -> Mapping[str, int]:
    """Return the size of each dimension by config.json."""
    text, tower = shape.text, shape.vision
    sides = {
        "vocabulary": text.vocabulary,
        "hidden": text.hidden,
        "intermediate": text.intermediate,
        "head": text.head_dim,
        "queries": text.heads * text.head_dim,
        "keys": text.kv_heads * text.head_dim,
    }
    if tower is None:
        return sides
    return sides | {
        "tower": tower.hidden,
        "tower_qkv": 3 * tower.hidden,
        "tower_inner": tower.intermediate,
        "tower_out": tower.out_hidden,
        "merged": tower.hidden * tower.merge**2,
        "channels": tower.channels,
        "frames": tower.temporal_patch,
        "patch": tower.patch,
        "positions": tower.positions,
    }


def _unlike(
    tensors: Mapping[str, Tensor], expected: Mapping[str, Sequence[str]], sides: Mapping[str, int], shape: Shape
) -> Iterator[str]:
    """Yield a clause for the first tensor that is missing or has the wrong shape. Usually others are wrong, too."""
    found: dict[str, dict[str, Tensor]] = {ending: {} for ending in expected}
    for name, tensor in tensors.items():
        if _HEAD.search(name):
            continue
        generic = _NUMBER.sub(".*", name)
        for ending in (name, generic):
            place = next((known for known in found if ending == known or ending.endswith(f".{known}")), None)
            if place is not None:
                found[place][name] = tensor
                break
    packed = shape.quantization is not None
    for ending, matches in found.items():
        count = shape.text.layers if ending.startswith("layers.*") else 1
        if shape.vision is not None and ending.startswith("visual."):
            count = shape.vision.depth if ".blocks." in ending else shape.vision.deepstack if ".*" in ending else 1
        if len(matches) < count and not packed:
            yield f"the weights have {len(matches)} of {count} tensors {ending}"
            return
        wanted = tuple(sides[side] for side in expected[ending])
        for name, tensor in matches.items():
            if tensor.shape != wanted and not _is_packed(name, tensors, ["I8", "U8", "F4"]):
                declared, has = (" x ".join(map(str, each)) for each in (wanted, tensor.shape))
                yield f"{name} has {has} numbers, and config.json says {declared},"
                return


def _says_untied(config: Mapping[str, Any]) -> bool:
    nested = config.get("text_config")
    values = [each.get("tie_word_embeddings") for each in (config, nested) if isinstance(each, Mapping)]
    return any(each is False for each in values) and not any(each is True for each in values)


def _quantization(place: Place, tensors: Mapping[str, Tensor], shape: Shape) -> Iterator[str]:
    """Yield a clause if the weights are quantised and config.json does not say so, or the reverse."""
    data = load_config("files.toml")
    endings, numbers = tuple(data["packed_names"]), data["packed_numbers"]
    packed = next((name for name in tensors if name.endswith(endings) or _is_packed(name, tensors, numbers)), None)
    declared = shape.quantization is not None or any(
        (place.folder / file).is_file() for file in data["quantization_files"]
    )
    if not declared and packed is not None:
        yield f"{packed} is quantised ({tensors[packed].dtype}), and config.json does not say so,"
    if shape.quantization in data["quantized"] and packed is None and tensors:
        yield f"config.json says that the weights are quantised ({shape.quantization}), and none of them is,"


def _is_packed(name: str, tensors: Mapping[str, Tensor], numbers: Sequence[str]) -> bool:
    return name.endswith(".weight") and tensors[name].dtype in numbers
