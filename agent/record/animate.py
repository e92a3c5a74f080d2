"""A run as an animated WebP: every step's screenshot with its marked target, and the action in words below."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.record.read import Bundle
from agent.record.redactor import Redactor
from agent.record.report.pictures import load
from agent.record.report.view import screenshot, view_run, view_step
from agent.screen.drawing import mark
from foundation.errors import UsageError
from foundation.files import write_file

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

#: Most pixels of a side, and milliseconds that a step and the last step are shown.
_SIDE, _STEP_MS, _LAST_MS = 1024, 1000, 3000
#: Most frames. Of a longer run, only every second, third, ... step is shown.
_MOST_FRAMES = 150
_CAPTION_LINES = 2


@dataclass(frozen=True, slots=True)
class Animation:
    """An animation that was written."""

    path: Path
    bytes: int
    frames: int


def write_animation(run: Bundle, path: Path, redactor: Redactor | None = None) -> Animation:
    """Write a run as an animated WebP to the path; the redactor masks texts in its captions.

    Raises UsageError: the run has no screenshot. EnvironmentLacksError: the file cannot be written.
    """
    run = run.masked(redactor)
    steps = enumerate(run.steps, 1)
    shown = [(file, view_step(step, number)) for number, step in steps if (file := screenshot(run, step))]
    every = max(1, -(-len(shown) // _MOST_FRAMES))
    kept = shown[:-1:every] + shown[-1:]
    frames = list(_frames(kept, str(view_run(run)["instruction"])))
    if not frames:
        raise UsageError(f"{run.path} has no screenshot that can be shown.", "`mai-agent report` shows its steps.")
    data = _encoded(frames)
    write_file(path, data)
    return Animation(path, len(data), len(frames))


def _frames(shown: list[tuple[Path, dict[str, Any]]], instruction: str) -> Iterator["Image"]:
    from PIL import Image, ImageOps

    size: tuple[int, int] | None = None
    for file, step in shown:
        image = load(file)
        if image is None:
            continue
        image.thumbnail((_SIDE, _SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0)
        size = size or image.size  # all frames of an animation have one size, that of the first
        if image.size != size:
            image = ImageOps.pad(image, size, Image.Resampling.BILINEAR)
        _mark(image, step["marks"])
        yield _captioned(image, f"{step['number']}  {step['title']}", step["thought"] or instruction)


def _mark(image: "Image", marks: dict[str, Any] | None) -> None:
    points = [] if marks is None else [(x * image.width, y * image.height) for x, y in marks["points"]]
    if points and marks is not None and marks["kind"] == "scroll":
        (x, y), (dx, dy) = points[0], marks["way"]
        points = [(x - 30 * dx, y - 30 * dy), (x + 30 * dx, y + 30 * dy)]
    mark(image, points, radius=14, width=3)


def _captioned(image: "Image", title: str, thought: str) -> "Image":
    from PIL import Image, ImageDraw

    size = max(10, image.width // 54)
    line = round(size * 1.5)
    framed = Image.new("RGB", (image.width, image.height + line * _CAPTION_LINES + size), (21, 23, 26))
    framed.paste(image, (0, 0))
    pen = ImageDraw.Draw(framed)
    font = _font(size)
    for number, (text, colour) in enumerate(((title, (232, 232, 228)), (thought, (162, 168, 177)))):
        place = (size, image.height + size // 2 + number * line)
        shown = "".join(char if char.isprintable() else " " for char in text[:400])
        pen.text(place, " ".join(shown.split()), fill=colour, font=font)
    return framed


def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    for name in ("NotoSansCJK-Regular.ttc", "NotoSans-Regular.ttf", "DejaVuSans.ttf", "arial.ttf"):
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def _encoded(frames: list["Image"]) -> bytes:
    buffer = io.BytesIO()
    times = [_STEP_MS] * (len(frames) - 1) + [_LAST_MS]
    frames[0].save(
        buffer, "WEBP", save_all=True, append_images=frames[1:], duration=times, loop=0, quality=60, method=0
    )
    return buffer.getvalue()
