"""Looks into weights at a few places: what was never written is zeros, and what is damaged is often no number.

A download that sets its file's size first and breaks off leaves a whole header before zeros; vLLM serves them, and
answers with one word for ever.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from serverctl.models.safetensors import Tensor

#: Bytes that are read at one place, and places in a tensor that must all be zeros before that is said of it.
_PIECE, _PLACES = 2048, 16


def strange_tensor(path: Path, tensors: Mapping[str, Tensor], most: int) -> str | None:
    """What is wrong with the numbers of a file, as a clause; looks into at most so many of its matrices.

    A vector may be zeros: biases and norms begin so. Raises OSError.
    """
    matrices = [(name, one) for name, one in tensors.items() if len(one.shape) > 1 and one.end - one.begin >= _PIECE]
    if not matrices:
        return None
    matrices.sort(key=lambda each: each[1].begin)
    step = -(-len(matrices) // most)
    with path.open("rb", buffering=0) as file:
        for name, tensor in reversed(matrices[::-step]):
            pieces = _pieces(file.fileno(), tensor)
            piece = next(pieces)
            if _has_no_number(piece, tensor.dtype):
                return f"holds no numbers in {name}: it is damaged"
            if not any(piece) and not any(map(any, pieces)):
                return f"holds nothing but zeros in {name}: a download may have broken off"
    return None


def _pieces(file: int, tensor: Tensor) -> Iterator[bytes]:
    """The middle of a tensor, then places all over it."""
    size = tensor.end - tensor.begin
    for part in (_PLACES // 2, *range(_PLACES)):
        place = min(size * part // _PLACES, size - _PIECE) // 8 * 8
        yield os.pread(file, _PIECE, tensor.begin + place)


def _has_no_number(piece: bytes, dtype: str) -> bool:
    """Whether a number is infinite or none (IEEE 754: all bits of the exponent are set)."""
    match dtype:
        case "BF16" | "F32":
            width = 2 if dtype == "BF16" else 4
            highest, next_to = piece[width - 1 :: width], piece[width - 2 :: width]
            return any(high & 0x7F == 0x7F and low & 0x80 for high, low in zip(highest, next_to, strict=False))
        case "F16":
            return any(high & 0x7C == 0x7C for high in piece[1::2])
    return False
