"""A load like that of a server's clients, made from the request shapes that the door noted.

Texts and pictures are made up; their sizes, and which of them are alike, are the clients' own.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from typing_extensions import override

from serverctl.load.bench.screens import screenshot
from serverctl.load.bench.workload import Load, Setting, filler
from serverctl.load.images import data_url, png
from serverctl.models.model import Model

#: Characters of a token of made-up text, roughly.
_CHARACTERS = 4.5

#: A request: its messages, each with its role and its pieces ([hash, characters] or [hash, width, height]).
Shape = Sequence[tuple[str, Sequence[Sequence[Any]]]]


@contextmanager
def noting(look: Path, seen: Path) -> Iterator[list[Shape]]:
    """Let the door note the shapes of requests during a block; the list is complete afterwards."""
    found: list[Shape] = []
    with suppress(OSError):
        seen.unlink(missing_ok=True)
        look.touch(mode=0o600)
    try:
        yield found
    finally:
        with suppress(OSError):
            look.unlink(missing_ok=True)
        with suppress(OSError, ValueError):
            found += [json.loads(line) for line in seen.read_text(encoding="ascii").splitlines()]
            seen.unlink()


def picture_tokens(shapes: Sequence[Shape], model: Model, longest_edge: int | None) -> float | None:
    """Return the mean tokens of a picture; None without pictures."""
    tokens = [model.image_tokens(*size, longest_edge) for size in _pictures(shapes)]
    return fmean(tokens) if tokens else None


def _pictures(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Return the sizes of all pictures."""
    return [(piece[1], piece[2]) for shape in shapes for _, pieces in shape for piece in pieces if len(piece) == 3]


@dataclass(frozen=True)
class SeenLoad(Load):
    """The requests that were seen, again and again until there are enough."""

    shapes: Sequence[Shape]
    requests: int
    concurrency: tuple[int, ...]
    max_tokens: int = 64

    @override
    def settings(self) -> Iterator[Setting]:
        pictures = _pictures(self.shapes)
        width, height = max(pictures, key=lambda size: size[0] * size[1], default=(0, 0))
        each = round(len(pictures) / len(self.shapes))
        yield Setting(width, height, each, self.concurrency[0], "replayed")

    @override
    def messages(self, setting: Setting, request: int, run: str) -> list[dict[str, Any]]:
        repetition, place = divmod(request, len(self.shapes))
        key = f"{run}/{repetition}"  # a repetition of the whole is new to the server
        chat = []
        for role, pieces in self.shapes[place]:
            content = [_part(piece, key) for piece in pieces]
            alone = role != "user" and all(part["type"] == "text" for part in content)
            text = " ".join(str(part.get("text")) for part in content)
            chat.append({"role": role, "content": text if alone else content})
        return chat

    @override
    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "shapes": len(self.shapes)}


def _part(piece: Sequence[Any], key: str) -> dict[str, Any]:
    if len(piece) == 3:
        picture = png(screenshot(f"{key}/{piece[0]}", piece[1], piece[2]))
        return {"type": "image_url", "image_url": {"url": data_url(picture)}}
    return {"type": "text", "text": filler(f"{key}/{piece[0]}", round(piece[1] / _CHARACTERS))}
