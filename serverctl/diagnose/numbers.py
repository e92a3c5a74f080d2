"""The numbers and names that a failure's evidence holds."""

import re
from collections.abc import Callable
from typing import Any

from serverctl.diagnose.failures import Kind


def _gib(text: str) -> float:
    number, unit = text.split()
    return round(float(number) / (1 if unit == "GiB" else 1024), 3)


#: A class's texts: the names of what their groups hold, and how a group is read.
_READ: dict[Kind, tuple[tuple[str, tuple[str, ...], Callable[[str], Any]], ...]] = {
    Kind.KV_SHORT: (
        (r"max seq len \((\d+)\)", ("max_model_len",), int),
        (r"\(?([\d.]+) Gi?B KV cache is needed", ("needed_gib",), float),
        (r"available KV cache memory \(([\d.]+) Gi?B\)", ("available_gib",), float),
        (r"stored in KV cache \((\d+)\)", ("fits",), int),
        (r"estimated maximum model length is (\d+)", ("fits",), int),
    ),
    Kind.QUANT_CC: ((r"capability:\s*(\d+)\.?\s*Current capability:\s*(\d+)", ("needed", "has"), int),),
    Kind.MAX_LEN: (
        (r"max_model_len \((\d+)\)", ("max_model_len",), int),
        (r"(?:max_position_embeddings|model_max_length|max_model_len)=(\d+)", ("most",), int),
    ),
    Kind.TENSOR_PARALLEL: (
        (r"heads \(?(\d+)\)?.{0,60}?parallel size \(?(\d+)", ("heads", "cards"), int),
        (r"AssertionError: (\d+) is not divisible by (\d+)", ("heads", "cards"), int),
    ),
    Kind.TOO_FEW_GPUS: ((r"World size \((\d+)\).*?GPUs \((\d+)\)", ("wanted", "has"), int),),
    Kind.TRITON_SMEM: ((r"Required: (\d+),? Hardware limit: ?(\d+)", ("needed_bytes", "has_bytes"), int),),
    Kind.FLAG_VALUE: ((r"argument (\S+?):", ("flag",), str),),
    Kind.PORT: ((r"bind on address \('[^']*', (\d+)\)", ("port",), int),),
    Kind.IMPORT: ((r"No module named '?([\w.]+)", ("module",), str),),
    Kind.ARCH: ((r"[Mm]odel architectures? \[?'?([\w]+)", ("architecture",), str),),
    Kind.HF_VERSION: (
        (r"model type `([\w-]+)`", ("model_type",), str),
        (r"KeyError: '(\w+)'", ("model_type",), str),
    ),
    Kind.MODEL: (
        (r"specified:\s*'([^']+)'", ("model",), str),
        (r"huggingface\.co/(?:api/models/)?([\w.-]+/[\w.-]+)", ("model",), str),
    ),
}
_MEMORY = (Kind.LOAD_OOM, Kind.PROFILE_OOM, Kind.GRAPH_OOM, Kind.RUNTIME_OOM)
_SHARE = (
    (r"\((-?[\d.]+)/([\d.]+) GiB\)", ("free_gib", "total_gib"), float),
    (r"\(([\d.]+), ([\d.]+) GiB\)", ("utilization", "wanted_gib"), float),
)
_TRIED = (
    (r"sampler with (\d+) dummy requests", ("dummy_requests",), int),
    (r"Tried to allocate ([\d.]+ (?:GiB|MiB))", ("tried_gib",), _gib),
    (r"of which ([\d.]+ (?:GiB|MiB)) is free", ("free_gib",), _gib),
)
_READ |= dict.fromkeys((Kind.FREE_MEM, Kind.NO_KV), _SHARE) | dict.fromkeys(_MEMORY, _TRIED)


def numbers(kind: Kind, text: str) -> dict[str, Any]:
    """What the evidence of a class names."""
    if kind is Kind.FLAG:
        return {"flags": text.split("unrecognized arguments:", 1)[-1].split()}
    found: dict[str, Any] = {}
    for pattern, names, read in _READ.get(kind, ()):
        if match := re.search(pattern, text, re.DOTALL):
            found.update(zip(names, map(read, match.groups()), strict=True))
    return found
