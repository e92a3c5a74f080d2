"""A load like the one that a server's clients sent: the shapes of their requests, which the gate noted.

Texts and pictures are made up; their sizes, and which of them are alike, are the clients' own.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Let the gate note the shapes of requests during a block; the list is complete afterwards."""
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
    tokens = [
        model.image_tokens(piece[1], piece[2], longest_edge)
        for shape in shapes
        for _, pieces in shape
        for piece in pieces
        if len(piece) == 3
    ]
    return sum(tokens) / len(tokens) if tokens else None


@dataclass(frozen=True)
class SeenLoad(Load):
    """The requests that were seen, again and again until there are enough."""

    shapes: Sequence[Shape]
    requests: int
    concurrency: tuple[int, ...]
    max_tokens: int = 64

    def settings(self) -> Iterator[Setting]:
        """One setting; its size is that of the largest picture."""
        pictures = [piece[1:] for shape in self.shapes for _, pieces in shape for piece in pieces if len(piece) == 3]
        width, height = max(pictures, key=lambda size: size[0] * size[1], default=(0, 0))
        each = round(len(pictures) / len(self.shapes))
        yield Setting(width, height, each, self.concurrency[0], "replayed")

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """A group for each request, in the order in which they came."""
        return [(number,) for number in range(self.requests)]

    def messages(self, setting: Setting, request: int, run: str) -> list[dict[str, Any]]:  # noqa: ARG002
        """The chat of one request by its number. A repetition of the whole is new to the server."""
        repetition, place = divmod(request, len(self.shapes))
        key = f"{run}/{repetition}"
        chat = []
        for role, pieces in self.shapes[place]:
            content = [_part(piece, key) for piece in pieces]
            alone = role != "user" and all(part["type"] == "text" for part in content)
            text = " ".join(str(part.get("text")) for part in content)
            chat.append({"role": role, "content": text if alone else content})
        return chat

    def to_json(self) -> dict[str, Any]:
        """The load as JSON values."""
        return {
            "shapes": len(self.shapes), "requests": self.requests, "concurrency": self.concurrency,
            "max_tokens": self.max_tokens,
        }  # fmt: skip


def _part(piece: Sequence[Any], key: str) -> dict[str, Any]:
    if len(piece) == 3:
        picture = png(screenshot(f"{key}/{piece[0]}", piece[1], piece[2]))
        return {"type": "image_url", "image_url": {"url": data_url(picture)}}
    return {"type": "text", "text": filler(f"{key}/{piece[0]}", round(piece[1] / _CHARACTERS))}
