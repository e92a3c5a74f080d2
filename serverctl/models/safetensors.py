"""Checks safetensors files by their headers and samples of their numbers.

The format (huggingface/safetensors, README): 8 bytes with the header's length, little-endian, a JSON header, then the
tensors without gaps.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from serverctl.hardware.facts import size_in_words

#: The format's limit for the header, bytes.
_MOST_HEADER = 100_000_000
#: Sanity limit for the size of a file, bytes: an exbibyte.
_MOST_BYTES = 2**60
#: First bytes of a Git LFS pointer (git-lfs/docs/spec.md), and of a web page saved under the file's name.
_POINTER, _PAGES = b"version https://git-lfs", (b"<!DOCTYPE", b"<!doctype", b"<html", b"<?xml")
#: Bits of one number by dtype.
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class BrokenFileError(Exception):
    """A file is damaged. The message continues a sentence after the file's name: "is empty".

    `pointer` is True for a Git LFS pointer whose file was never fetched.
    """

    def __init__(self, what: str, pointer: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.pointer = pointer


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a file. `begin` and `end` are byte offsets in the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def check_beginning(begin: bytes, size: int) -> None:
    """Raise BrokenFileError for empty files, Git LFS pointers and web pages. `begin` is the first few hundred bytes."""
    if size == 0:
        raise BrokenFileError("is empty")
    if begin.startswith(_POINTER):
        digits = next((line[5:] for line in begin.splitlines() if line.startswith(b"size ")), b"")
        full_size = f" of {size_in_words(int(digits))}" if digits.isdigit() and len(digits) < 19 else ""
        raise BrokenFileError(f"is a Git LFS pointer: the file itself{full_size} was never fetched", pointer=True)
    if begin.lstrip().startswith(_PAGES):
        raise BrokenFileError("is a web page that was saved under the file's name")


def read_tensors(path: Path) -> Mapping[str, Tensor]:
    """Return a file's tensors by name, reading only its header. Raises BrokenFileError, OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        begin = file.read(512)
        check_beginning(begin, size)
        if size < 8:
            raise BrokenFileError(f"is cut off: it has {size} bytes")
        length = int.from_bytes(begin[:8], "little")
        if not 2 <= length <= _MOST_HEADER:
            raise BrokenFileError("is no safetensors file: it does not begin with the length of a header")
        if 8 + length > size:
            raise BrokenFileError(f"is cut off within its header: it has {size_in_words(size)}")
        file.seek(8)
        raw = file.read(length)
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BrokenFileError("has a header that is no JSON: it is no safetensors file, or damaged") from error
    if not isinstance(header, dict):
        raise BrokenFileError("has a header that is no JSON object: it is damaged")
    return _tensors(header, 8 + length, size - 8 - length)


def _tensors(header: dict[str, Any], first: int, room: int) -> dict[str, Tensor]:
    """Parse a header. Its tensors must fill the rest of the file exactly. Raises BrokenFileError."""
    found: dict[str, Tensor] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape = str(entry["dtype"]), tuple(int(side) for side in entry["shape"])
            begin, end = (int(offset) for offset in entry["data_offsets"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BrokenFileError(f"has a header that does not describe {name}: it is damaged") from error
        bits = _BITS.get(dtype)
        if bits is not None and end - begin != (prod(shape) * bits + 7) // 8:
            raise BrokenFileError(f"has a header whose sizes of {name} do not agree: it is damaged")
        found[name] = Tensor(dtype, shape, first + begin, first + end)
    end = first
    for tensor in sorted(found.values(), key=lambda tensor: (tensor.begin, tensor.end)):
        if tensor.begin != end or tensor.end < end:
            raise BrokenFileError("has a header whose tensors overlap or leave gaps: it is damaged")
        end = tensor.end
    reached = end - first
    if reached > _MOST_BYTES:
        raise BrokenFileError("has a header with sizes that no disk holds: it is damaged")
    if reached > room:
        raise BrokenFileError(f"is cut off: {size_in_words(reached - room)} of {size_in_words(reached)} are missing")
    if reached < room:
        raise BrokenFileError(f"is {size_in_words(room - reached)} longer than its header says: it is damaged")
    return found


#: Bytes to read per sample, and the samples of a tensor that must all be zeros before it is reported.
_PIECE, _PLACES = 2048, 16


def strange_tensor(path: Path, tensors: Mapping[str, Tensor], most: int) -> str | None:
    """Return what is wrong with the numbers of a file, as a clause, or None. Samples about `most` matrices at most.

    Vectors are skipped, because biases and norms may be zeros. Raises OSError.
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
    """Yield a sample from the middle of a tensor, then samples spread over all of it."""
    size = tensor.end - tensor.begin
    for part in (_PLACES // 2, *range(_PLACES)):
        place = min(size * part // _PLACES, size - _PIECE) // 8 * 8
        yield os.pread(file, _PIECE, tensor.begin + place)


def _has_no_number(piece: bytes, dtype: str) -> bool:
    """Return whether any number is infinite or NaN (IEEE 754: all exponent bits are set)."""
    match dtype:
        case "BF16" | "F32":
            width = 2 if dtype == "BF16" else 4
            highest, next_to = piece[width - 1 :: width], piece[width - 2 :: width]
            return any(high & 0x7F == 0x7F and low & 0x80 for high, low in zip(highest, next_to, strict=False))
        case "F16":
            return any(high & 0x7C == 0x7C for high in piece[1::2])
    return False
