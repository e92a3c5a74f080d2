"""Checks that LoRA adapters fit the model. If one fits no layer, vLLM silently serves the base model."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from serverctl.models.defects import BrokenFileError, Place, Tensor, read_tensors

_BEGINS = ("base_model.model.", "model.language_model.", "language_model.model.", "language_model.", "model.")
_REMEDY = "Name the adapter that was trained for this model, or leave out --lora-modules."


def check_adapters(place: Place, flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with each adapter that the flags name, as a clause, and a remedy."""
    named = list(_named(flags))
    base = _weights(place) if named else {}
    for name, folder in named:
        file = folder / "adapter_model.safetensors"
        if not folder.is_dir() or not base:
            continue  # a repository, or weights that are not on this machine
        if not file.is_file():
            if not list(folder.glob("adapter_model.*")):
                yield f"The adapter {name} has no adapter_model.safetensors in {folder}", _REMEDY
            continue
        try:
            tensors = read_tensors(file)
        except (BrokenFileError, OSError) as error:
            yield f"The adapter {name} cannot be read: {file} {getattr(error, 'what', error)}", _REMEDY
            continue
        if misfit := _misfit(tensors, base):
            yield f"The adapter {name} does not fit the model: {misfit}", _REMEDY


def _misfit(tensors: Mapping[str, Tensor], base: Mapping[str, tuple[int, ...]]) -> str:
    """Return why an adapter does not fit; "" if it does."""
    pairs = [name for name in tensors if name.endswith(".lora_A.weight")]
    fits = 0
    for first in pairs:
        layer = first.removesuffix(".lora_A.weight")
        second = tensors.get(f"{layer}.lora_B.weight")
        shape = base.get(_plain(layer))
        if second is None:
            return f"{layer} has no lora_B"
        ranks = tensors[first].shape[0], second.shape[-1]
        if ranks[0] != ranks[1]:
            return f"{layer} has ranks {ranks[0]} and {ranks[1]}"
        made = (second.shape[0], tensors[first].shape[-1])
        if shape is not None and made != shape:
            return f"{layer} is for a matrix of {made[0]} x {made[1]}, and the model's has {shape[0]} x {shape[1]}"
        fits += shape is not None
    return "" if fits else "it names no layer that the model has"


def _plain(name: str) -> str:
    """Return a layer's name without the prefixes that adapters and checkpoints write differently."""
    shorter = name.removesuffix(".weight")
    while found := next((begin for begin in _BEGINS if shorter.startswith(begin)), None):
        shorter = shorter.removeprefix(found)
    return shorter


def _weights(place: Place) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes of the model's matrices by plain name; empty if a file cannot be read."""
    found: dict[str, tuple[int, ...]] = {}
    with suppress(BrokenFileError, OSError):
        for path in sorted(place.folder.glob("*.safetensors")):
            tensors = {} if path.name.startswith("adapter_") else read_tensors(path)
            found |= {_plain(name): one.shape for name, one in tensors.items() if len(one.shape) == 2}
        return found
    return {}


def _named(flags: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the name and folder of each adapter: `name=folder`, or JSON with "name" and "path"."""
    for text in flag_values(flags, "--lora-modules"):
        with suppress(ValueError, KeyError, TypeError):
            named = dict(zip(("name", "path"), text.split("=", 1), strict=False))
            adapter = json.loads(text) if text.startswith("{") else named
            yield str(adapter["name"]), Path(str(adapter["path"])).expanduser()


def flag_values(words: Sequence[str], flag: str) -> Iterator[str]:
    """Yield the values of a flag in a command line, as `--flag value ...` or `--flag=value`."""
    inside = False
    for word in words:
        name, sign, value = word.partition("=") if word.startswith("--") else ("", "", word)
        inside = name == flag if name else inside
        if inside and (sign or not name):
            yield value
