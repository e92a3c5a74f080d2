"""Describes defects of a model's files: one sentence each, with a remedy."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundation.configs import load_config
from serverctl.models.safetensors import BrokenFileError, check_beginning

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
