"""Writes a run bundle: a folder that holds everything about one run, complete at every moment.

Each step's line is written at once, so a crash, a kill or a full disk loses at most the step under way. `run.json` is
padded when it is made and later rewritten in place, because a full disk has no room for new data.
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
from typing import Any, TypeAlias

import agent
from agent.core.actions import Action, points_of
from agent.core.geometry import GridPoint
from agent.events import run_events as events
from agent.events.as_json import fields_of
from agent.events.fates import Fate
from agent.record.read import mask_file
from agent.record.redactor import Redactor
from agent.record.run_record import ReceiptRecord, RunRecord
from agent.record.step_record import ActionRecord, ApprovalRecord, StepRecord, with_firsts
from agent.screen.drawing import target_crop
from foundation.errors import EnvironmentLacksError
from foundation.files import is_full, write_atomically
from foundation.foreign_text import json_text

Json: TypeAlias = dict[str, Any]

#: Bytes kept for run.json from the start; its end (outcome, message, totals) fits in them.
_RESERVED = 8192
_NO_ROOM = "The disk was too full to record changes."
_UNTOUCHED = "The run ended before it touched anything."
_BROKEN_OFF = "The run broke off, so it is not known what it changed."
#: Kinds of actions that only say something.
_SAID = ("finish", "answer", "absent", "remember", "ask_user")
#: The longest message and the longest warning kept in run.json.
_MESSAGE_CHARS = 1000
_WARNING_CHARS = 300


def run_id(instruction: str, now: datetime) -> str:
    """Return a folder name that sorts by time and is recognizable: 20261121-153000-open-settings-3f2a."""
    slug = re.sub(r"[^a-z0-9]+", "-", instruction.lower()).strip("-")[:32].strip("-") or "run"
    return f"{now:%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}"


class Recorder:
    """Writes the events of one run. Give it every event. It raises EnvironmentLacksError if the disk cannot be written.

    The redactor masks secrets in every text before it is written; with the shipped rules unless given.
    """

    def __init__(self, runs: Path, instruction: str, redactor: Redactor | None = None) -> None:
        self._clock = time.monotonic()
        #: Holds the secrets that were found so far.
        self.redactor = Redactor() if redactor is None else redactor
        instruction = self.redactor.instruction(instruction)  # masked first, because the folder is named after it
        now = datetime.now().astimezone()
        self.path = runs / run_id(instruction, now)
        self._run: Json = RunRecord().model_dump() | {
            "format": events.SCHEMA, "id": self.path.name, "instruction": instruction, "version": agent.__version__,
            "outcome": "running", "started": now.isoformat(timespec="milliseconds"), "pid": os.getpid(),
        }  # fmt: skip
        self._step: Json | None = None
        self._flushed: Json = {}  # the step written last
        self._before: list[Json] = []  # what the person did before the next step
        self._seen: events.Observed | None = None
        self._recorded = 0
        self._touched = False  # whether any action was carried out
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
        fields = fields_of(event)
        match event:
            case events.RunStarted():
                self._run |= fields | {"instruction": self._run["instruction"]}
                self._write_run()
            case events.Observed():
                self._flush_step()
                self._observed(event, fields)
            case events.Consulted():
                self._current["consulted"].append(_without(fields, "step"))
                self._count(fields["usage"])
            case events.Decided():
                self._decided(event, fields)
            case events.ApprovalAsked():
                question = {name: fields[name] for name in ("reason", "scope", "aim")}
                self._action(event.index).update(
                    approval=ApprovalRecord().model_dump() | question, aim=fields["aim"], fate="unanswered"
                )
            case events.ApprovalGiven():
                self._approved(event, fields)
            case events.Dropped():
                self._action(event.index)["fate"] = event.why
            case (
                events.Paused() | events.Resumed() | events.UserActed() | events.PersonSaid() | events.HandedOver()
                | events.HandedBack() | events.ReliefAsked()
            ):  # fmt: skip
                happened = {"event": type(event).__name__} | _without(fields, "image") | {"at": self._elapsed()}
                self._before.append(happened)
                if isinstance(event, events.ReliefAsked) and event.image is not None:
                    self._write_file(event.file, event.image.data)  # the screenshot that the person is asked about
            case events.Acted():
                self._acted(event, fields)
            case events.StepFinished():
                step = self._current
                step |= {name: fields[name] for name in ("changed", "note", "reply")}
                step["milliseconds"] |= {name: round(value, 2) for name, value in event.milliseconds.items()}
                self._flush_step()
            case events.Warned(message):
                message = self.redactor.text(message)[:_WARNING_CHARS]
                self._run["warnings"] = [*self._run["warnings"], message][-20:]
                self._write_run()
            case events.Receipt():
                self._keep_receipt(event, fields)
            case events.RunFinished():
                self._flush_step()
                self._mask_earlier()
                self._finish(event, fields)

    def _keep_receipt(self, event: events.Receipt, fields: Json) -> None:
        self._run["receipt"] = fields | {"changes": [{"undo": None} | change.to_json() for change in event.changes]}
        try:
            self._write_run()
        except OSError:  # keep the remaining space for the end of the run
            self._run["receipt"] = _no_receipt(_NO_ROOM)

    @property
    def _current(self) -> Json:
        """The current step. It is created if the event that begins it is missing."""
        if self._step is None:
            self._step = StepRecord().model_dump()
        return self._step

    def _action(self, index: int) -> Json:
        actions: list[Json] = self._current["actions"]
        actions += [ActionRecord().model_dump() for _ in range(len(actions), index + 1)]
        return actions[index]

    def _elapsed(self) -> float:
        return round(time.monotonic() - self._clock, 3)

    def _observed(self, event: events.Observed, fields: Json) -> None:
        self._step = None
        step = self._current
        step |= {name: fields[name] for name in ("step", "viewport", "milliseconds", "boxes")}
        step |= {"at": self._elapsed(), "before": self._before, "screen": event.digest}
        step["tokens"] = {"prompt": 0, "completion": 0, "cached": 0}
        self._before = []
        self._seen = event
        for number, image in enumerate(event.images):
            suffix = "jpg" if image.format == "jpeg" else image.format
            file = f"screens/{_numbered(event.step, number)}.{suffix}"
            self._write_file(file, image.data)
            size = {"width": image.size.width, "height": image.size.height}
            step["images"].append({"file": file, **size, "tokens": event.tokens})

    def _approved(self, event: events.ApprovalGiven, fields: Json) -> None:
        action = self._action(event.index)
        action["approval"] = (action["approval"] or ApprovalRecord().model_dump()) | _without(fields, "step", "index")
        action["approval"]["at"] = self._elapsed()
        if event.instead is not None:
            action["aim"] = fields["instead_aim"]
        decided: dict[str, Fate] = {"refused": "refused", "skipped": "skipped", "told": "told"}
        action["fate"] = decided.get(event.answer, "broken off")

    def _acted(self, event: events.Acted, fields: Json) -> None:
        action = self._action(event.index)
        action |= {
            name: fields[name] for name in ("executed", "dry_run", "detail", "error", "aim", "elements", "described")
        }
        action["fate"] = _fate_of(event, action["fate"])
        self._touched |= event.executed and not event.dry_run
        if (action["approval"] or {}).get("instead") is None:
            _place_at_pointer(action["target"], fields["target"])
        seen = self._seen
        if event.dry_run and seen is not None and seen.images:  # keep the surroundings of the target, marked
            crop = target_crop(seen.images[0], seen.viewport, event.target)
            if crop is not None:
                action["target_image"] = target_file(event.step, event.index)
                self._write_file(action["target_image"], crop)

    def _count(self, usage: Json) -> None:
        """Add the usage of one request to the step's tokens."""
        tokens = self._current["tokens"]
        for name, count in usage.items():
            tokens[name] = None if count is None else (tokens[name] or 0) + count

    def _decided(self, event: events.Decided, fields: Json) -> None:
        step = self._current
        parts, failure = fields["answer"], fields["failure"]
        step["answers"].append({"raw": event.raw, "model": event.model or None, "failure": failure, "parts": parts})
        step |= {name: fields[name] for name in ("thought", "doubt", "by")}
        step["error"] = None if event.failure is None else event.failure.message
        calls = fields["calls"][: len(event.actions)]
        step["actions"] = [
            ActionRecord(grid=None if action is None else _grid(action)).model_dump()
            | {"call": call, "action": written, "target": target, "fate": _undone_fate(target)}
            for action, call, written, target in zip_longest(event.actions, calls, fields["actions"], fields["targets"])
        ]
        self._count(fields["usage"])
        for name, value in event.milliseconds.items():  # several tries add up
            step["milliseconds"][name] = round(step["milliseconds"].get(name, 0) + value, 2)

    @property
    def under_way(self) -> Json | None:
        """The step that is not finished yet, masked; None between steps. Only for the thread that records."""
        return None if self._step is None else with_firsts(self.redactor.data(self._step))

    @property
    def latest(self) -> Json:
        """The step under way, or else the one before, masked. Only for the thread that records."""
        return self.under_way or self._flushed

    def _flush_step(self) -> None:
        if self._step is None:
            return
        step, self._step = self._step, None
        self._flushed = masked = with_firsts(self.redactor.data(step))
        if self._known_first is None:
            self._known_first = self.redactor.found
        _write_all(self._steps_file, _line(masked))
        self._recorded += 1

    def _mask_earlier(self) -> None:
        """Mask secrets in lines that were written before the secrets were found. Ignores errors of the disk."""
        if self._known_first is None or self.redactor.found == self._known_first:
            return
        path = self.path / "steps.jsonl"
        with suppress(OSError):
            mask_file(path, self.redactor)
            os.close(self._steps_file)
            self._steps_file = _open(path, os.O_APPEND)

    def _finish(self, event: events.RunFinished, fields: Json) -> None:
        self._run |= {name: fields[name] for name in ("outcome", "status", "evidence", "verified", "steps", "seconds")}
        self._run |= {
            "message": self.redactor.text(event.message)[:_MESSAGE_CHARS], "recorded": self._recorded,
            "tokens": fields["usage"], "masked": self.redactor.found,
            "finished": datetime.now().astimezone().isoformat(timespec="milliseconds"),
        }  # fmt: skip
        self._write_run()

    def abandon(self, event: events.RunFinished) -> None:
        """Record the end as far as the disk allows; never raises."""
        with suppress(OSError):
            self._flush_step()
            self._mask_earlier()
        if self._run["receipt"] is None and (self._touched or event.steps == 0):
            self._run["receipt"] = _no_receipt(_BROKEN_OFF if self._touched else _UNTOUCHED)
        try:
            self._finish(event, fields_of(event))
        except OSError:
            self._run["warnings"] = []  # probably a full disk: drop warnings and evidence, so that the end fits
            if self._run["receipt"] is not None:
                self._run["receipt"] = _no_receipt(_NO_ROOM)
            with suppress(OSError):
                self._finish(event, fields_of(event) | {"evidence": []})

    def _write_run(self) -> None:
        run = self.redactor.data(self._run)  # secrets found later may be in it since the beginning
        data = json_text(run, indent=1).encode()
        if len(data) > self._run_bytes:  # append spaces first: a full disk must not leave half an object
            os.lseek(self._run_file, 0, os.SEEK_END)
            _write_all(self._run_file, b" " * (len(data) - self._run_bytes))
            self._run_bytes = len(data)
        os.lseek(self._run_file, 0, os.SEEK_SET)
        _write_all(self._run_file, data.ljust(self._run_bytes))  # spaces after the object are still JSON

    def _write_file(self, name: str, data: bytes) -> None:
        path = self.path / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(path, data)  # half a file is useless, and its space may hold the step's line

    def close(self) -> None:
        """Close the files; safe to call twice."""
        for handle in (self._run_file, self._steps_file):
            with suppress(OSError):
                os.close(handle)


def _without(fields: Json, *names: str) -> Json:
    return {key: value for key, value in fields.items() if key not in names}


def _no_receipt(remark: str) -> Json:
    return ReceiptRecord(remarks=[remark]).model_dump()


def _place_at_pointer(target: Json | None, done: Json) -> None:
    """Add the pointer's position to a recorded action without a point, because it was carried out there."""
    if target is not None and target["type"] == done["type"]:
        target.update({name: done[name] for name in ("point", "start") if target.get(name, "") is None})


def _undone_fate(target: Json | None) -> Fate:
    return "said" if (target or {}).get("type") in _SAID else "broken off"


def _fate_of(event: events.Acted, before: Fate | None) -> Fate:
    if event.error is not None:
        return "failed"
    return "done" if event.executed else "dry run" if event.dry_run else (before or "broken off")


def _grid(action: Action[GridPoint]) -> list[float] | None:
    """Return the grid of an action's points: width and height, then left and top unless both are 0.

    None for actions without points.
    """
    points = points_of(action)
    if not points:
        return None
    grid = points[0].grid
    return [grid.width, grid.height, *((grid.left, grid.top) if grid.left or grid.top else ())]


def target_file(step: int, index: int = 0) -> str:
    """Return the path in the bundle of the picture that marks the target of a dry run's action."""
    return f"targets/{_numbered(step, index)}.png"


def _numbered(step: int, index: int) -> str:
    return f"{step:04d}" if index == 0 else f"{step:04d}-{index + 1}"


def _line(value: Any) -> bytes:
    return (json_text(value) + "\n").encode()


def _open(path: Path, flags: int = 0) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Turns an OSError, such as a full disk, into an error with advice."""
    try:
        yield
    except OSError as error:
        advice = "Free some space there, or name another folder" if is_full(error) else "Name another folder"
        raise EnvironmentLacksError(
            f"The run cannot be recorded in {path} ({error.strerror or error}).", f"{advice} with --runs."
        ) from error
