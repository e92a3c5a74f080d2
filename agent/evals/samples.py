"""Reads grounding benchmarks in the layouts of their publishers, which `configs/evals.toml` describes."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent.core.geometry import Size
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError, UsageError

Shape: TypeAlias = Literal["box", "polygon", "refusal"]


@dataclass(frozen=True, slots=True)
class Sample:
    """An instruction about a picture, with the target that a right answer hits."""

    id: str
    image: Path
    instruction: str
    shape: Shape
    #: pixels: left, top, right, bottom of a box; x and y of each corner of a polygon; empty for a refusal
    target: tuple[float, ...]
    size: Size | None  # the picture's size as the benchmark states it
    groups: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Return a hash of what is asked: the instruction, and the size of the picture's file; "" without a picture.

        The picture is not read: thousands of samples are judged in a second.
        """
        try:
            asked = f"{self.instruction}\0{self.image.stat().st_size}"
        except OSError:
            return ""
        return sha256(asked.encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def leaves_picture(self) -> bool:
        """Return whether a part of the target lies outside of the picture, by more than rounding explains."""
        if self.size is None:
            return False
        sides = [self.size.width, self.size.height] * (len(self.target) // 2)
        return any(not -2 <= number <= side + 2 for number, side in zip(self.target, sides, strict=True))


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A layout, and the samples found in a folder."""

    name: str
    layout: Mapping[str, Any]
    samples: tuple[Sample, ...]

    @property
    def title(self) -> str:
        """The name as its publisher writes it."""
        return str(self.layout["title"])


def benchmark_names() -> list[str]:
    """Return the benchmarks that can be read."""
    return [name for name, entry in load_config("evals.toml").items() if isinstance(entry, dict) and "files" in entry]


def read_benchmark(name: str, folder: Path) -> Benchmark:
    """Read a benchmark's samples, in the order of its files. Pictures are not opened.

    Raises EnvironmentLacksError: the folder has no such files. UsageError: a row cannot be used.
    """
    layout = load_config("evals.toml")[name]
    files = next((found for glob in layout["files"] if (found := sorted(folder.glob(glob)))), [])
    if not files:
        raise EnvironmentLacksError(
            f"{folder} holds no {layout['title']}: there is no {' or '.join(layout['files'])}.",
            "Name the folder into which the benchmark was downloaded.",
        )
    samples = [_sample(layout, folder, file, number, row) for file in files for number, row in enumerate(_rows(file))]
    ids = set[str]()
    for sample in samples:
        if sample.id in ids:
            raise UsageError(f"Two samples of {folder} have the id {sample.id!r}.", "Remove one of their files.")
        ids.add(sample.id)
    return Benchmark(name, layout, tuple(samples))


def _rows(file: Path) -> Sequence[Any]:
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} cannot be read ({error}).", "Download it again.") from error
    if not isinstance(rows, list):
        raise UsageError(f"{file} is not a list of samples.", "Is it a file of this benchmark?")
    return rows


def _sample(layout: Mapping[str, Any], folder: Path, file: Path, number: int, row: Any) -> Sample:
    location = f"Row {number} of {file}"
    try:
        size = Size(*map(int, row[layout["size"]])) if "size" in layout else None
        shape, target = _target(layout["box"], row, layout["target"], size)
        known = {**row, "file": re.sub(layout.get("file_strip", "$^"), "", file.stem)}
        return Sample(
            id=str(row[layout["id"]]) if "id" in layout else f"{file.stem}_{number}",
            image=_picture(folder, layout["images"], row, _text(row[layout["image"]])),
            instruction=_text(row[layout["instruction"]]),
            shape=shape,
            target=target,
            size=size,
            groups={group: str(known.get(key, "")) for group, key in layout["groups"].items()},
        )
    except KeyError as error:
        raise UsageError(f"{location} has no {error}.", "Is it a file of this benchmark?") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{location} cannot be used: {error}.", "Is it a file of this benchmark?") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _picture(folder: Path, places: Sequence[str], row: Mapping[str, Any], name: str) -> Path:
    """Return the path of a picture; if none exists, the first place where it may be. It stays below the folder."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"the picture {name!r} is not below the benchmark's folder")
    platform = str(row.get("platform", "")).replace("/", "_").replace("..", "_")
    paths = [folder / place.replace("{platform}", platform) / name for place in places]
    return next((path for path in paths if path.is_file()), paths[0])


def _target(form: str, row: Mapping[str, Any], key: str, size: Size | None) -> tuple[Shape, tuple[float, ...]]:
    """Return the target in pixels. Raises ValueError if the entry is no target."""
    numbers = tuple(map(float, row[key]))
    if not all(map(math.isfinite, numbers)):
        raise ValueError("the target's numbers must be finite")
    if form == "typed":
        form = {"bbox": "xywh", "polygon": "polygon", "refusal": "refusal"}[row["box_type"]]
    if form == "refusal":
        return "refusal", ()
    if form == "polygon":
        if len(numbers) < 6 or len(numbers) % 2:
            raise ValueError(f"a polygon needs an even number of coordinates, at least 6, not {len(numbers)}")
        return "polygon", numbers
    left, top, right, bottom = numbers
    if form != "fractions" and 0 < max(numbers) <= 1:
        raise ValueError("the box is in fractions of the picture, as some copies have it; this layout has pixels")
    if form == "xywh":
        right, bottom = left + right, top + bottom
    elif form == "fractions":
        assert size is not None, "a layout with fractions names the size"
        if max(numbers) > 2:  # rounding may leave a box a little outside the picture
            raise ValueError("a box of fractions lies within 0 and 1; this is one in pixels")
        left, top, right, bottom = left * size.width, top * size.height, right * size.width, bottom * size.height
    if left > right or top > bottom:
        raise ValueError("the box is turned around; is it another form (x, y, width, height)?")
    return "box", (left, top, right, bottom)
