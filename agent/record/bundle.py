"""Writes a run bundle: a folder that holds everything about one run, complete at every moment.

Each step's line is written at once, so a crash, a kill or a full disk loses at most the step under way. `run.json` is
padded when it is made and later rewritten in place, because on a full disk there is room for nothing new.
"""

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import agent
from agent.core.actions import Action, points_of
from agent.core.geometry import GridPoint
from agent.events import run_events as events
from agent.events.as_json import to_json
from agent.events.handover import HandedBack, HandedOver, ReliefAsked
from agent.record.action_record import ActionRecord, AimRecord, ApprovalRecord, ElementRecord
from agent.record.mask import mask_file
from agent.record.records import TokensRecord, ViewportRecord
from agent.record.redact import Redactor
from agent.record.run_record import ChangeRecord, ReceiptRecord, RunRecord
from agent.record.step_record import (
    AnswerRecord,
    BetweenRecord,
    ConsultedRecord,
    ImageRecord,
    StepRecord,
    with_firsts,
)
from foundation.chat_stream import Usage
from foundation.errors import EnvironmentLacksError
from foundation.foreign_text import json_text

#: Bytes kept for run.json from the start; its end (outcome, message, totals) fits in them.
_RESERVED = 8192
_NO_ROOM = "The disk had no room for what changed."
#: The longest message and the longest warning kept in run.json.
_MESSAGE_CHARS = 1000
_WARNING_CHARS = 300


def run_id(instruction: str, now: datetime) -> str:
    """A folder name that sorts by time and can be recognised: 20261121-153000-open-settings-3f2a."""
    slug = re.sub(r"[^a-z0-9]+", "-", instruction.lower()).strip("-")[:32].strip("-") or "run"
    return f"{now:%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}"


class Recorder:
    """Writes the events of one run. Feed it every event; it raises EnvironmentLacksError when the disk takes no more.

    Args:
        runs: the folder of all runs.
        redactor: masks secrets in every text before it is written; with the shipped rules unless given.
    """

    def __init__(self, runs: Path, instruction: str, redactor: Redactor | None = None) -> None:
        self._clock = time.monotonic()
        #: It knows the secrets that were found.
        self.redactor = Redactor() if redactor is None else redactor
        instruction = self.redactor.instruction(instruction)  # first of all: the folder is named after it
        now = datetime.now().astimezone()
        self.path = runs / run_id(instruction, now)
        self._run = RunRecord(
            format=events.SCHEMA, id=self.path.name, instruction=instruction, version=agent.__version__,
            outcome="running", started=now.isoformat(timespec="milliseconds"), pid=os.getpid(),
        )  # fmt: skip
        self._step: StepRecord | None = None
        self._before: list[BetweenRecord] = []  # what the person did before the next step
        self._seen: events.Observed | None = None
        self._recorded = 0
        self._known_first: int | None = None  # how many secrets were known when the first line was written
        self._run_bytes = _RESERVED + len(json_text(instruction).encode())
        with _disk_errors(self.path):
            runs.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.mkdir(mode=0o700)
            (self.path / "screens").mkdir(mode=0o700)
            self._run_file = _open(self.path / "run.json")
            self._steps_file = _open(self.path / "steps.jsonl", os.O_APPEND)
            _write_all(self._run_file, b" " * self._run_bytes)
            self._write_run()

    def handle(self, event: events.Event) -> None:
        """Record one event. Raises EnvironmentLacksError; what was recorded before is safe."""
        with _disk_errors(self.path):
            self._handle(event)

    def _handle(self, event: events.Event) -> None:
        match event:
            case events.RunStarted():
                self._run = RunRecord(**self._run.model_dump() | _fields(event, "instruction"))
                self._write_run()
            case events.Observed():
                self._flush_step()
                self._observed(event)
            case events.Consulted():
                self._consulted(event)
            case events.Decided():
                self._decided(event)
            case events.ApprovalAsked(_, _, reason, scope):
                action = self._action(event.index)
                action.approval, action.aim = ApprovalRecord(reason=reason, scope=scope, aim=_aim(event)), _aim(event)
            case events.ApprovalGiven():
                action = self._action(event.index)
                answer = _fields(event, "step", "index") | {"at": self._elapsed()}
                action.approval = ApprovalRecord(**(action.approval or ApprovalRecord()).model_dump() | answer)
                if event.instead is not None:
                    action.aim = action.approval.instead_aim
            case events.Dropped():
                self._action(event.index).fate = event.why
            case (
                events.Paused() | events.Resumed() | events.UserActed() | events.PersonSaid() | HandedOver()
                | HandedBack()
            ):  # fmt: skip
                self._between(event)
            case ReliefAsked():
                self._between(event, "image")
                self._keep_preview(event)
            case events.Acted():
                self._acted(event)
            case events.StepFinished():
                step = self._current
                step.changed, step.note, step.reply = event.changed, event.note, event.reply
                step.milliseconds |= {name: round(value, 2) for name, value in event.milliseconds.items()}
                self._flush_step()
            case events.Warned(message):
                message = self.redactor.text(message)[:_WARNING_CHARS]
                self._run.warnings = [*self._run.warnings, message][-20:]
                self._write_run()
            case events.Receipt():
                self._keep_receipt(event)
            case events.RunFinished():
                self._flush_step()
                self._mask_earlier()
                self._finish(event)

    def _keep_preview(self, event: ReliefAsked) -> None:
        """Keep what a person is asked about; it may never have been sent."""
        if event.image is not None:
            (self.path / event.file).parent.mkdir(mode=0o700, exist_ok=True)
            _write_file(self.path / event.file, event.image.data)

    def _keep_receipt(self, event: events.Receipt) -> None:
        told = [ChangeRecord(**change.to_json()) for change in event.changes]
        self._run.receipt = ReceiptRecord(**_fields(event) | {"changes": told})
        try:
            self._write_run()
        except OSError:  # the end of the run needs the room that there is
            self._run.receipt = ReceiptRecord(remarks=[_NO_ROOM])

    def _between(self, event: events.Event, *without: str) -> None:
        told = _fields(event, *without)
        self._before.append(BetweenRecord(event=type(event).__name__, **told, at=self._elapsed()))

    @property
    def _current(self) -> StepRecord:
        """The step under way; events of a step without its beginning make one."""
        self._step = self._step or StepRecord()
        return self._step

    def _action(self, index: int) -> ActionRecord:
        actions = self._current.actions
        actions += [ActionRecord() for _ in range(len(actions), index + 1)]
        return actions[index]

    def _elapsed(self) -> float:
        """Seconds since the run began."""
        return round(time.monotonic() - self._clock, 3)

    def _observed(self, event: events.Observed) -> None:
        told = to_json(event)
        self._step = step = StepRecord(
            step=event.step, at=self._elapsed(), before=self._before, screen=event.digest,
            viewport=ViewportRecord(**told["viewport"]), milliseconds=told["milliseconds"],
            tokens=TokensRecord(prompt=0, completion=0, cached=0), boxes=dict(event.boxes),
        )  # fmt: skip
        self._before = []
        self._seen = event
        for number, image in enumerate(event.images):
            suffix = "jpg" if image.format == "jpeg" else image.format
            file = f"screens/{_numbered(event.step, number)}.{suffix}"
            _write_file(self.path / file, image.data)
            size = image.size
            step.images.append(ImageRecord(file=file, width=size.width, height=size.height, tokens=event.tokens))

    def _crop_target(self, event: events.Acted, action: ActionRecord) -> None:
        """Keep the surroundings of what a dry run would have touched, marked."""
        from agent.record.crop import target_crop

        seen = self._seen
        crop = target_crop(seen.images[0], seen.viewport, event.target) if seen and seen.images else None
        if crop is not None:
            (self.path / "targets").mkdir(mode=0o700, exist_ok=True)
            action.target_image = target_file(event.step, event.index)
            _write_file(self.path / action.target_image, crop)

    def _acted(self, event: events.Acted) -> None:
        action = self._action(event.index)
        action.executed, action.dry_run, action.detail = event.executed, event.dry_run, event.detail
        action.error, action.aim = event.error, _aim(event)
        action.elements = [ElementRecord(**told) for told in to_json(event)["elements"]]
        if event.dry_run:
            self._crop_target(event, action)

    def _consulted(self, event: events.Consulted) -> None:
        self._current.consulted.append(ConsultedRecord(**_fields(event, "step")))
        self._count(event.usage)

    def _count(self, usage: Usage) -> None:
        """The tokens of a step: those of all that was asked in it."""
        tokens = self._current.tokens
        for name in TokensRecord.model_fields:
            had, count = getattr(tokens, name), getattr(usage, name)
            setattr(tokens, name, None if count is None else (had or 0) + count)

    def _decided(self, event: events.Decided) -> None:
        step, told = self._current, to_json(event)
        step.answers.append(AnswerRecord(raw=event.raw, failure=told["failure"], parts=told["answer"]))
        step.thought, step.doubt, step.by = event.thought, event.doubt, event.by
        step.error = None if event.failure is None else event.failure.message
        step.actions = [
            ActionRecord(call=call, action=written, grid=_grid(action), target=target)
            for action, call, written, target in zip_longest(
                event.actions, told["calls"][: len(event.actions)], told["actions"], told["targets"]
            )
        ]
        self._count(event.usage)
        for name, value in event.milliseconds.items():  # several tries add up
            step.milliseconds[name] = round(step.milliseconds.get(name, 0) + value, 2)

    def _flush_step(self) -> None:
        if self._step is None:
            return
        step, self._step = self._step, None
        for action in step.actions:
            action.fate = action.became
        masked = with_firsts(self.redactor.data(step.model_dump()))
        if self._known_first is None:
            self._known_first = self.redactor.found
        _write_all(self._steps_file, _line(masked))
        self._recorded += 1

    def _mask_earlier(self) -> None:
        """Mask what was found to be a secret only after lines with it were written; what cannot be is left."""
        if self._known_first is None or self.redactor.found == self._known_first:
            return
        path = self.path / "steps.jsonl"
        with suppress(OSError):
            mask_file(path, self.redactor)
            os.close(self._steps_file)
            self._steps_file = _open(path, os.O_APPEND)

    def _finish(self, event: events.RunFinished) -> None:
        run = self._run
        run.outcome, run.status = event.outcome, int(event.status)
        run.message = self.redactor.text(event.message)[:_MESSAGE_CHARS]
        run.evidence, run.verified = list(event.evidence), event.verified
        run.steps, run.recorded, run.seconds = event.steps, self._recorded, round(event.seconds, 3)
        run.tokens, run.masked = TokensRecord(**to_json(event)["usage"]), self.redactor.found
        run.finished = datetime.now().astimezone().isoformat(timespec="milliseconds")
        self._write_run()

    def abandon(self, event: events.RunFinished) -> None:
        """Record the end as far as the disk allows; never raises."""
        with suppress(OSError):
            self._flush_step()
            self._mask_earlier()
        if self._run.receipt is None and event.steps == 0:
            self._run.receipt = ReceiptRecord(remarks=["The run ended before it touched anything."])
        try:
            self._finish(event)
        except OSError:
            self._run.warnings, self._run.evidence = [], []  # the end of the run needs their room more
            if self._run.receipt is not None:
                self._run.receipt = ReceiptRecord(remarks=[_NO_ROOM])
            with suppress(OSError):
                self._finish(event)

    def _write_run(self) -> None:
        run = self.redactor.data(self._run.model_dump())  # what was found later may be in it since the beginning
        data = json_text(run, indent=1).encode()
        if len(data) > self._run_bytes:  # make room first: a disk that is full must not leave half of an object
            os.lseek(self._run_file, 0, os.SEEK_END)
            _write_all(self._run_file, b" " * (len(data) - self._run_bytes))
            self._run_bytes = len(data)
        os.lseek(self._run_file, 0, os.SEEK_SET)
        _write_all(self._run_file, data.ljust(self._run_bytes))  # spaces after the object are still JSON

    def close(self) -> None:
        """Close the files; safe to call twice."""
        for handle in (self._run_file, self._steps_file):
            with suppress(OSError):
                os.close(handle)


def _fields(event: events.Event, *without: str) -> dict[str, Any]:
    """An event as JSON, without what every event has, and without these fields."""
    return {key: value for key, value in to_json(event).items() if key not in ("event", "schema", "at", *without)}


def _aim(event: events.ApprovalAsked | events.Acted) -> AimRecord:
    return AimRecord(**to_json(event)["aim"])


def _grid(action: Action[GridPoint]) -> list[float] | None:
    """Width and height of the coordinates of an action's points, and where they begin unless that is at 0.

    None for actions without any.
    """
    points = points_of(action)
    if not points:
        return None
    grid = points[0].grid
    return [grid.width, grid.height, *((grid.left, grid.top) if grid.left or grid.top else ())]


def target_file(step: int, index: int = 0) -> str:
    """Where a bundle keeps the marked target of a dry run's action."""
    return f"targets/{_numbered(step, index)}.png"


def _numbered(step: int, index: int) -> str:
    """The name of a step's first file, second file, ...: 0003, 0003-2."""
    return f"{step:04d}" if index == 0 else f"{step:04d}-{index + 1}"


def _line(value: Any) -> bytes:
    return (json_text(value) + "\n").encode()


def _write_file(path: Path, data: bytes) -> None:
    try:
        handle = _open(path)
        try:
            _write_all(handle, data)
        finally:
            os.close(handle)
    except OSError:
        with suppress(OSError):  # half a file helps nobody, and its room may hold the step's line
            path.unlink()
        raise


def _open(path: Path, flags: int = 0) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Turns what the system says of a disk that takes no more into an error for a person."""
    try:
        yield
    except OSError as error:
        raise EnvironmentLacksError(
            f"The run cannot be recorded in {path} ({error.strerror or error}).",
            "Free some space there, or choose another folder with --runs.",
        ) from error
