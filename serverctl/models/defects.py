"""Describes defects of a model's files: one sentence each, with a remedy. Checks safetensors files.

The format (huggingface/safetensors, README): 8 bytes with the header's length, little-endian, a JSON header, then the
tensors without gaps.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from foundation.configs import load_config
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


#: Limit for JSON files of a model, bytes (a tokenizer of 262,144 tokens has 33 MB).
_MOST_JSON = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect of a model's files."""

    what: str  # a clause that names the file: "model.safetensors is empty"
    remedy: str  # a clause: "download it again"
    #: whether no start can succeed; False for optional files and for files that a start downloads
    stops: bool = True
    missing: bool = False  # whether a file is missing

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}."


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a model's files.

    The hub's client does not check downloaded files again; at the next start it only downloads missing ones.
    """

    folder: Path
    repo: str | None = None  # the repository of a cached snapshot; None for the user's own folder

    @property
    def name(self) -> str:
        """The repository or folder, for messages."""
        return self.repo or str(self.folder)

    def missing(self, file: str) -> Defect:
        """Return the defect of a missing file, or of a dangling link."""
        dangling = (self.folder / file).is_symlink()
        what = f"{file} is a link that leads nowhere" if dangling else f"{file} is missing"
        return Defect(f"{what} in {self.name}", self._again(file, gone=True), stops=self.repo is None, missing=True)

    def broken(self, file: str, error: BrokenFileError | OSError) -> Defect:
        """Return the defect of a damaged or unreadable file."""
        path = self.folder / file
        if isinstance(error, PermissionError):
            return Defect(f"{file} in {self.name} may not be read", f"make it readable: chmod u+r {path}")
        if isinstance(error, OSError):
            return Defect(f"{file} in {self.name} cannot be read ({error.strerror})", "is its disk still there?")
        if error.pointer and self.repo is None:
            return Defect(f"{file} in {self.name} {error.what}", f"fetch it: git -C {self.folder} lfs pull")
        return Defect(f"{file} in {self.name} {error.what}", self._again(file))

    def unfit(self, what: str) -> Defect:
        """Return the defect of files that do not belong together; `what` is a clause."""
        return Defect(f"{what} in {self.name}", "they are of different models or versions: " + self._again(""))

    def found(self, file: str, misfits: Iterable[str]) -> Iterator[Defect]:
        """Yield a defect for each clause of a look at a file, and the defect of a file that cannot be read."""
        try:
            yield from map(self.unfit, misfits)
        except (BrokenFileError, OSError) as error:
            yield self.broken(file, error)

    def _again(self, file: str, gone: bool = False) -> str:
        if self.repo is None:
            once = f"put {file} of the model into {self.folder} again"
            return once if file else "put all files of one version of the model there"
        if gone:
            return "the next start downloads what is missing"
        path = str((self.folder / file).resolve()) if file else str(self.folder)
        return f"delete {path}, and the next start downloads it again"


def read_object(place: Place, file: str) -> Mapping[str, Any]:
    """Read a JSON object from one of the files. Raises BrokenFileError, OSError."""
    path = place.folder / file
    size = path.stat().st_size
    if size > _MOST_JSON:
        raise BrokenFileError("is too large for what it must be")
    raw = path.read_bytes()
    check_beginning(raw[:512], size)
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BrokenFileError("is no JSON: it is cut off or damaged") from error
    if not isinstance(found, dict):
        raise BrokenFileError("holds no JSON object: it is damaged")
    return found


def is_known(config: Mapping[str, Any]) -> bool:
    """Return whether the layers of a config.json's model type are known, so that its files can be checked in detail."""
    return str(config.get("model_type")) in load_config("files.toml")["known"]
