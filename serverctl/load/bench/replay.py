"""Recorded runs of an agent as a workload: their screenshots, histories, lengths of answers and pauses.

A run bundle is read by its documented files (docs/records.md: `run.json`, `steps.jsonl`, `screens/`).
The prompts are ours, in the shape of an agent's: system text, task, history of screenshots and answers, newest
screenshot. Every server gets the same work, whatever its model would have answered.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from foundation.errors import UsageError
from foundation.files import read_json_object
from serverctl.load.bench.workload import Load, Setting, filler
from serverctl.load.images import data_url, png

if TYPE_CHECKING:
    from PIL.Image import Image

#: Length of an answer in tokens if the step does not record it.
_USUAL_ANSWER = 64
#: Numbers of a bundle above this are no tokens or seconds.
_LARGEST = 1e15
_SYSTEM = "You control a computer by its screenshots. Answer with a thought and one action as a tool call."


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a run."""

    screenshots: tuple[Path, ...]  # what the model saw
    answer: str  # what it said
    answer_tokens: int
    pause_s: float  # between its answer and the next request, in seconds


@dataclass(frozen=True, slots=True)
class Run:
    """The part of a run that can be sent again."""

    name: str
    instruction: str
    steps: tuple[Step, ...]


def read_run(folder: Path) -> Run:
    """Read a run from its bundle. Raises UsageError if no step has a screenshot."""
    document = read_json_object(folder / "run.json")
    try:
        lines = (folder / "steps.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(
            f"{folder} is no recorded run ({error.strerror}).", "`mai-agent runs` lists them with their folders."
        ) from None
    entries: list[dict[str, Any]] = []
    for line in lines:
        with suppress(ValueError):  # cut off by a crash
            entry = json.loads(line)
            entries += [entry] if isinstance(entry, dict) else []
    pairs = zip(entries, [*entries[1:], None], strict=True)
    steps = [step for entry, following in pairs if (step := _step(folder, entry, following)) is not None]
    if not steps:
        raise UsageError(f"No step of {folder} has a screenshot.", "Name a run that was made with screenshots.")
    return Run(folder.name, str(document.get("instruction") or "Go on."), tuple(steps))


def _step(folder: Path, entry: dict[str, Any], following: dict[str, Any] | None) -> Step | None:
    """Read an entry as a step; the following entry gives the time of the next request."""
    images = entry.get("images") or [entry.get("image")]
    names = [image.get("file") for image in images if isinstance(image, dict)] if isinstance(images, list) else []
    # A bundle is untrusted: use only files inside its own folder.
    files: list[Path] = []
    for name in filter(None, names):
        with suppress(OSError, ValueError, RuntimeError, TypeError):  # no text, a NUL in it, a loop of links
            file = (folder / name).resolve()
            files += [file] if file.is_relative_to(folder.resolve()) and file.is_file() else []
    if not files:
        return None
    answers = entry.get("answers")
    last = answers[-1] if isinstance(answers, list) and answers and isinstance(answers[-1], dict) else {}
    tokens = _number(entry.get("tokens"), "completion")
    pause = 0.0
    if following is not None:
        took = _number(entry.get("milliseconds"), "model") / 1000
        pause = max(0.0, _number(following, "at") - _number(entry, "at") - took)
    return Step(tuple(files), str(last.get("raw") or entry.get("thought") or ""), round(tokens) or _USUAL_ANSWER, pause)


def _number(holder: Any, name: str) -> float:
    """A number of an entry; 0 if it is missing, not a number, or far too large."""
    value = holder.get(name) if isinstance(holder, dict) else None
    return float(value) if isinstance(value, int | float) and abs(value) < _LARGEST else 0.0


@dataclass(frozen=True)
class Replay(Load):
    """Runs that are sent again, each by one client that waits for its answers. Raises UsageError for none.

    Like a new run, each repetition is new to the server, in text and pictures. Within a run, the history is as warm as
    in the recorded run.
    """

    runs: tuple[Run, ...]
    requests: int  # measured requests, rounded up to whole runs
    concurrency: tuple[int, ...] = (1,)  # runs under way at once
    images: int = 3  # the most screenshots in a request; half of them stay when the oldest are dropped
    text_tokens: int = 1500  # of the system text, roughly
    pause_s: float = 5.0  # the longest pause between two steps of a run, in seconds
    seed: int = 0

    def __post_init__(self) -> None:
        if self.images < 1 or min(self.concurrency, default=0) < 1:
            raise UsageError("There is nothing to replay.", "Name a recorded run, --images 1 or more, --concurrency 1.")

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The numbers of the requests of each run, in order; runs are repeated until there are enough."""
        found: list[tuple[int, ...]] = []
        begin = 0
        while begin < self.requests or len(found) < max(self.concurrency):
            length = len(self.runs[len(found) % len(self.runs)].steps)
            found.append(tuple(range(begin, begin + length)))
            begin += length
        return found

    @property
    @override
    def max_tokens(self) -> int:  # type: ignore[override]
        return max(step.answer_tokens for run in self.runs for step in run.steps)

    @override
    def settings(self) -> Iterator[Setting]:
        width, height = _opened(self.runs[0].steps[0].screenshots[0]).size
        for concurrency in self.concurrency:
            yield Setting(width, height, self.images, concurrency, "replayed")

    @override
    def answer_tokens(self, number: int) -> int:
        run, place, _ = self._place(number)
        return max(2, run.steps[place].answer_tokens)

    @override
    def pause_after(self, number: int) -> float:
        run, place, _ = self._place(number)
        return min(self.pause_s, run.steps[place].pause_s) if place + 1 < len(run.steps) else 0.0

    def _place(self, number: int) -> tuple[Run, int, int]:
        """Return a request's run, its index in the run, and its repetition; -1 for the request that is not measured."""
        if number < 0:
            return self.runs[0], 0, -1
        count, group = next((count, group) for count, group in enumerate(self.groups) if number in group)
        return self.runs[count % len(self.runs)], group.index(number), count

    @override
    def messages(self, setting: Setting, request: int, run: str) -> list[dict[str, Any]]:
        recorded, place, repetition = self._place(request)
        key = f"{run}/{self.seed}/{setting}/{repetition}"
        first = self._first_shown(place)
        chat: list[dict[str, Any]] = [
            {"role": "system", "content": f"{filler(key, self.text_tokens)} {_SYSTEM}"},
            {"role": "user", "content": recorded.instruction},
        ]
        for number, step in enumerate(recorded.steps[: place + 1]):
            if number >= first:
                shown = [{"type": "image_url", "image_url": {"url": _picture(file, key)}} for file in step.screenshots]
                chat.append({"role": "user", "content": shown})
            if number < place:
                chat.append({"role": "assistant", "content": step.answer or "(nothing)"})
        return chat

    def _first_shown(self, place: int) -> int:
        """The first step whose screenshot is shown: half of them are dropped at once, as by --history block."""
        first = 0
        for step in range(place + 1):
            if step - first + 1 > self.images:
                first = step - (self.images + 1) // 2 + 1
        return first

    @override
    def to_json(self) -> dict[str, Any]:
        own = ("concurrency", "images", "text_tokens", "pause_s", "seed")
        runs = [{"name": run.name, "instruction": run.instruction, "steps": len(run.steps)} for run in self.runs]
        return {"runs": runs, "requests": self.groups[-1][-1] + 1, **{name: getattr(self, name) for name in own}}


def _opened(file: Path) -> "Image":
    """A screenshot, RGB. Raises UsageError if it is no picture: a bundle may come from elsewhere."""
    from PIL import Image

    try:
        with Image.open(file) as opened:
            return opened.convert("RGB")
    except OSError as error:
        raise UsageError(f"{file} is no picture ({error}).", "Name another run.") from error


@lru_cache(maxsize=256)
def _picture(file: Path, key: str) -> str:
    """A screenshot with one pixel changed, so that no image cache knows it from another repetition."""
    import hashlib

    image = _opened(file)
    red, green, blue = hashlib.blake2b(key.encode(), digest_size=3).digest()
    image.putpixel((0, 0), (red, green, blue))
    return data_url(png(image))
