"""Asks a model for the point of each sample, and keeps each answer as it comes."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.api.server import Asker, Seen, read_image
from agent.core.geometry import CapturePoint, Grid, Size, Viewport
from agent.evals.folder import AnswersFile, is_answer
from agent.evals.judging import ZOOM, first_point
from agent.evals.pace import Pace
from agent.evals.samples import Sample
from agent.model.refusals import ErrorKind, ModelError
from agent.run.models.resolve_point import crop_around
from agent.screen.capture import Frame
from foundation.errors import EnvironmentLacksError, UsageError

#: Errors that concern one request only. Any other error ends the evaluation, because the next request would fail, too.
#: Server errors (status 500, overload, silence) also end it if more occur in a row than requests are
#: sent at once.
OF_ONE: frozenset[ErrorKind] = frozenset({"context_too_long", "refused", "endless", "broken", "silent"})
#: The errors among these that the sample or the model causes. Such a request counts as an answer without a point, and
#: the next run asks again. They end an evaluation only if many occur in a row before the first answer.
WITHOUT_ANSWER: frozenset[ErrorKind] = frozenset({"context_too_long", "refused", "endless"})
#: Seconds between two reports of the progress.
_TELL_EVERY = 10.0


def part_of(samples: Sequence[Sample], limit: int | None, shard: tuple[int, int]) -> list[Sample]:
    """Return the first `limit` samples, and of these the shard's: every n-th, from the i-th (1 to n)."""
    number, count = shard
    return list(samples[:limit])[number - 1 :: count]


async def ask_all(
    asker: Asker,
    samples: Sequence[Sample],
    kept: AnswersFile,
    pace: Pace,
    tell: Callable[[str], None],
    *,
    zoom: bool = False,
) -> int:
    """Ask about the samples without an answer to the same request. Return the number of samples that failed.

    With `zoom`, each is asked about once more, in an enlarged crop around the point of the first answer.
    Answers are in the file even if this is interrupted. Raises MaiError: the model cannot be asked.
    """
    if samples and not any(sample.image.is_file() for sample in samples):
        raise EnvironmentLacksError(f"There is no picture {samples[0].image}.", "Download the pictures, too.")
    look_up = cache(_looked_up)  # benchmarks have many samples about one picture
    failed, done, in_a_row, last_report = 0, 0, 0, -_TELL_EVERY
    coming = iter(samples)

    async def work() -> None:
        while True:
            async with pace.turn():
                if (sample := next(coming, None)) is None:
                    return
                await work_on(sample)

    async def work_on(sample: Sample) -> None:
        nonlocal failed, done, in_a_row, last_report
        try:
            await _ask(asker, sample, look_up, kept, zoom=zoom)
            in_a_row = 0
        except (ModelError, UsageError) as error:  # UsageError: its picture cannot be read or sent
            if isinstance(error, ModelError):
                # A server that refuses all from the beginning is set up wrongly.
                in_a_row += error.kind not in WITHOUT_ANSWER or not any(map(is_answer, kept.answers.values()))
                if error.kind not in OF_ONE | {"overloaded"} or in_a_row > pace.limit:
                    raise
            failed += 1
            tell(f"{sample.id}: no answer: {error}")
        done += 1
        if time.monotonic() - last_report >= _TELL_EVERY:
            last_report = time.monotonic()
            tell(f"{done} of {len(samples)}")

    workers = [asyncio.create_task(work()) for _ in range(min(pace.most, max(1, len(samples))))]
    following = asyncio.create_task(pace.follow())
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in (*workers, following):
            worker.cancel()
        await asyncio.gather(*workers, following, return_exceptions=True)
    return failed


async def _ask(
    asker: Asker, sample: Sample, look_up: Callable[[Path], tuple[Size, str]], kept: AnswersFile, *, zoom: bool
) -> None:
    screen, picture = await asyncio.to_thread(look_up, sample.image)
    digest = asker.grounding_digest(sample.instruction, screen, picture)
    line = kept.answers.get(sample.id, {})
    answered = line.get("request") == digest and is_answer(line)
    if answered and (ZOOM in line or not zoom):
        return
    frame = await asyncio.to_thread(read_image, sample.image)
    if not answered:
        metadata = {
            "id": sample.id, "request": digest, "sample": sample.digest, **asker.named(),
            "screen": [screen.width, screen.height],
        }  # fmt: skip
        try:
            line = metadata | await _answer(asker, sample, frame)
        except ModelError as error:
            if error.kind in WITHOUT_ANSWER:
                kept.append(metadata | _refused(error) | ({ZOOM: None} if zoom else {}))
            raise
    if zoom:
        try:
            line = line | {ZOOM: await _closer(asker, sample, frame, line)}
        except ModelError as error:
            if error.kind in WITHOUT_ANSWER:  # as if it found nothing: the first point stays
                kept.append(line | {ZOOM: None})
            raise
    kept.append(line)


async def _closer(asker: Asker, sample: Sample, frame: Frame, line: Mapping[str, Any]) -> dict[str, Any] | None:
    """Ask again in a crop around the first point, enlarged to the size that was sent; None without a first point."""
    found = first_point(line)
    if found is None:
        return None
    size, (across, down) = Size(*frame.image.size), found.share
    crop = crop_around(size, CapturePoint(across * size.width, down * size.height))
    left, top, width, height = box = astuple(crop)
    sent = Size(*line["sent"])

    def enlarged() -> Frame:
        part = frame.image.crop((left, top, left + width, top + height)).resize((sent.width, sent.height))
        return Frame(part, Viewport.of_image(sent), frame.taken_at)

    return {"crop": list(box), **await _answer(asker, sample, await asyncio.to_thread(enlarged))}


async def _answer(asker: Asker, sample: Sample, frame: Frame) -> dict[str, Any]:
    question = await asker.question(sample.instruction, Seen(frame), grounding=True)
    completion = await question.send()
    answer, grid = completion.answer, question.model.family.facts.grounding
    calls = [asdict(call) for call in answer.tool_calls]
    return {
        "sent": [question.sent.width, question.sent.height],
        "grid": [grid.width, grid.height, grid.left, grid.top] if isinstance(grid, Grid) else None,
        "answer": {
            "content": answer.content, "reasoning": answer.reasoning, "tool_calls": calls,
            "finish_reason": answer.finish_reason,
        },
        "answered_by": answer.model,
        "tokens": asdict(answer.usage),
        "ms": round(completion.total_ms, 1),
        "first_token_ms": None if completion.ttft_ms is None else round(completion.ttft_ms, 1),
    }  # fmt: skip


def _refused(error: ModelError) -> dict[str, Any]:
    """Return the line of a sample that the server or the model cannot answer. Scorers count it as wrong."""
    return {"sent": [1, 1], "grid": None, "answer": {"content": "", "finish_reason": error.kind}, "error": str(error)}


def _looked_up(path: Path) -> tuple[Size, str]:
    """Return a picture's size, and a hash of its file. Raises UsageError: it cannot be read."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return Size(*image.size), sha256(path.read_bytes()).hexdigest()
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise UsageError(f"{path} is no image that can be read ({error}).", "Download it again.") from error
