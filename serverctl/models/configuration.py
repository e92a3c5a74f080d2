"""What a config.json says that no model can be: values of the wrong kind, and such that contradict each other."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from foundation.configs import load_config
from serverctl.models.shape import Shape


def strange_values(config: Mapping[str, Any], shape: Shape) -> Iterator[str]:
    """Clauses about config.json, each of which keeps vLLM from starting."""
    rules = load_config("files.toml")["configuration"]
    parts = [config, *(part for part in config.values() if isinstance(part, Mapping))]
    for name in ("dtype", "torch_dtype"):
        for said in (part[name] for part in parts if part.get(name) is not None):
            if str(said).removeprefix("torch.") not in rules["dtypes"]:
                yield f"config.json says {name} {str(said)[:40]}, which is no format of weights that vLLM takes,"
    for name in rules["numbers"]:
        for said in (part[name] for part in parts if part.get(name) is not None):
            if isinstance(said, bool) or not isinstance(said, int | float) or not math.isfinite(said) or said <= 0:
                yield f"config.json says {name} {str(said)[:40]}, which is no number above 0,"
    if (quantized := config.get("quantization_config")) is not None and not isinstance(quantized, Mapping):
        yield f"config.json says quantization_config {str(quantized)[:40]}, which is no object,"
    named, kind = config.get("architectures"), config.get("model_type")
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        yield f"config.json says architectures {str(named)[:60]}, which is no list of names,"
        return
    known = load_config("files.toml")["known"]
    wanted = next((one for one, architecture in known.items() if architecture in (named or ())), None)
    if wanted is not None and kind != wanted:
        yield f"config.json says architecture {known[wanted]} and model_type {str(kind)[:40]}"
    if kind in known:
        yield from _contradictions(config, shape)


def _contradictions(config: Mapping[str, Any], shape: Shape) -> Iterator[str]:
    """Where the sizes of a known model cannot be together."""
    text, tower = shape.text, shape.vision
    if text.heads % text.kv_heads:
        yield f"config.json says {text.heads} heads and {text.kv_heads} KV heads, which do not divide them,"
    if tower is not None and tower.hidden % tower.heads:
        yield f"config.json says a vision tower {tower.hidden} wide with {tower.heads} heads, which do not divide it,"
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, Mapping) else {}):
        for name in ("rope_scaling", "rope_parameters"):
            rope = part.get(name)
            sections = rope.get("mrope_section") if isinstance(rope, Mapping) else None
            if isinstance(sections, list) and sum(filter(_is_whole, sections)) != text.head_dim // 2:
                yield f"config.json says mrope_section {str(sections)[:40]}, and heads of {text.head_dim} numbers,"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
