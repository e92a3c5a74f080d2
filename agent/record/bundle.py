"""Writes a run bundle: a folder that holds everything about one run, complete at every moment.

Each step's line is written at once, so a crash, a kill or a full disk loses at most the step under way. `run.json` is
padded when it is made and later rewritten in place, because on a full disk there is room for nothing new.
"""

import json
import os
import re
import secrets
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import agent
from agent.actions import to_json as action_json
from agent.record.redact import Redactor
from agent.run.events import (
    Acted,
    ApprovalAsked,
    ApprovalGiven,
    Decided,
    Event,
    ModelDelta,
    Observed,
    Paused,
    PersonSaid,
    Resumed,
    RunFinished,
    RunStarted,
    StepFinished,
    UserActed,
    Warned,
    to_json,
)
from foundation.errors import EnvironmentLacksError
from foundation.files import write_atomically

#: Bytes kept for run.json from the start; its end (outcome, message, totals) fits in them.
_RESERVED = 8192
#: The longest message and the longest warning kept in run.json.
_MESSAGE_CHARS = 1000
_WARNING_CHARS = 300


def run_id(instruction: str, now: datetime) -> str:
    """A folder name that sorts by time and can be recognised: 20261121-153000-open-settings-3f2a."""
    slug = re.sub(r"[^a-z0-9]+", "-", instruction.lower()).strip("-")[:32].strip("-") or "run"
    return f"{now:%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}"


class Recorder:
    """Writes the events of one run. Feed it every event; it raises when the disk takes no more.

    Args:
        runs: the folder of all runs.
        instruction: what this one was asked to do.
        redactor: masks secrets in every text before it is written; the shipped rules unless given.

    Raises:
        EnvironmentLacksError: the folder cannot be made or written.
    """

    def __init__(self, runs: Path, instruction: str, redactor: Redactor | None = None) -> None:
        self._clock = time.monotonic()
        self._redactor = Redactor() if redactor is None else redactor
        instruction = self._redactor.instruction(instruction)  # first of all: the folder is named after it
        now = datetime.now().astimezone()
        self.path = runs / run_id(instruction, now)
        self._meta: dict[str, Any] = {
            "format": 1, "id": self.path.name, "instruction": instruction, "version": agent.__version__,
            "started": now.isoformat(timespec="milliseconds"), "outcome": "running", "status": None, "message": "",
            "pid": os.getpid(), "warnings": [],
        }  # fmt: skip
        self._step: dict[str, Any] = {}
        self._before: list[dict[str, Any]] = []  # what the person did before the next step
        self._seen: Observed | None = None
        self._known_first: int | None = None  # how many secrets were known when the first line was written
        self._run_bytes = _RESERVED + len(json.dumps(instruction, ensure_ascii=False).encode("utf-8", "replace"))
        try:
            runs.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.mkdir(mode=0o700)
            (self.path / "screens").mkdir(mode=0o700)
            self._run_file = _open(self.path / "run.json")
            self._steps_file = _open(self.path / "steps.jsonl", os.O_APPEND)
            _write_all(self._run_file, b" " * self._run_bytes)
            self._write_meta()
        except OSError as error:
            raise _disk_error(self.path, error) from error

    @property
    def redactor(self) -> Redactor:
        """What masks secrets in this run's record: it knows those that were found."""
        return self._redactor

    def handle(self, event: Event) -> None:
        """Record one event.

        Raises:
            EnvironmentLacksError: the disk is full or gone; what was recorded before is safe.
        """
        try:
            self._handle(event)
        except OSError as error:
            raise _disk_error(self.path, error) from error

    def _handle(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._meta |= _fields(event, "instruction")
                self._write_meta()
            case Observed():
                self._flush_step()
                self._observed(event)
            case Decided():
                self._decided(event)
            case ApprovalAsked(_, _, reason, scope):
                self._step["approval"] = {"reason": reason, "scope": scope, "allowed": None, "by": None}
            case ApprovalGiven():
                given = _fields(event, "step", "index")
                self._step["approval"] = self._step["approval"] | given | {"at": self._elapsed()}
            case Paused() | Resumed() | UserActed() | PersonSaid():
                said = {"event": type(event).__name__, **_fields(event), "at": self._elapsed()}
                self._before.append(said)
            case Acted():
                acted = to_json(event)
                self._step |= {key: acted[key] for key in ("executed", "dry_run", "detail", "error")}
                if event.dry_run and self._seen is not None:
                    self._crop_target(self._seen, event)
            case StepFinished():
                self._step |= {"changed": event.changed, "note": event.note, "reply": event.reply}
                self._step["milliseconds"] |= {key: round(value, 2) for key, value in event.milliseconds.items()}
                self._flush_step()
            case Warned(message):
                message = self._redactor.text(message)[:_WARNING_CHARS]
                self._meta["warnings"] = [*self._meta["warnings"], message][-20:]
                self._write_meta()
            case RunFinished():
                self._flush_step()
                self._mask_earlier()
                self._finish(event)
            case ModelDelta():
                pass

    def _elapsed(self) -> float:
        """Seconds since the run began."""
        return round(time.monotonic() - self._clock, 3)

    def _observed(self, event: Observed) -> None:
        image = event.image
        assert image is not None
        name = f"screens/{event.step:04d}.{'jpg' if image.format == 'jpeg' else image.format}"
        self._step = {
            "step": event.step, "at": self._elapsed(), "before": self._before, "screen": event.digest,
            "image": {"file": name, "width": image.size.width, "height": image.size.height,
                      "tokens": event.tokens},
            "viewport": to_json(event)["viewport"], "answers": [], "thought": "", "call": None, "action": None,
            "grid": None, "target": None, "approval": None, "executed": False, "dry_run": False, "detail": None,
            "error": None, "changed": None, "note": None, "reply": None,
            "tokens": {"prompt": 0, "completion": 0, "cached": 0},
            "milliseconds": {key: round(value, 2) for key, value in event.milliseconds.items()},
        }  # fmt: skip
        self._before = []
        self._seen = event
        try:
            _write_file(self.path / name, image.data)
        except OSError:
            self._step["image"] = None
            raise

    def _crop_target(self, seen: Observed, event: Acted) -> None:
        """Keep the surroundings of what a dry run would have touched, marked."""
        from agent.record.crop import target_crop

        crop = target_crop(seen.images[0], seen.viewport, event.target)
        if crop is not None:
            (self.path / "targets").mkdir(mode=0o700, exist_ok=True)
            _write_file(self.path / target_file(event.step), crop)
            self._step["target_image"] = target_file(event.step)

    def _decided(self, event: Decided) -> None:
        step = self._step
        failure = None if event.failure is None else {"kind": event.failure.kind, "message": event.failure.message}
        step["answers"].append({"raw": event.raw, "failure": failure})
        step["thought"] = event.thought
        step["error"] = None if event.failure is None else event.failure.message
        if event.call is not None and event.action is not None and event.target is not None:
            from agent.actions import points_of

            step["call"] = {"name": event.call.name, "arguments": dict(event.call.arguments)}
            step["action"] = action_json(event.action)
            step["target"] = action_json(event.target)
            points = points_of(event.action)
            step["grid"] = [points[0].grid.width, points[0].grid.height] if points else None
        for name, count in to_json(event)["usage"].items():
            step["tokens"][name] = None if count is None else (step["tokens"][name] or 0) + count
        for name, value in event.milliseconds.items():  # several tries add up
            step["milliseconds"][name] = round(step["milliseconds"].get(name, 0) + value, 2)

    def _flush_step(self) -> None:
        if not self._step:
            return
        step, self._step = self._step, {}
        masked = self._redactor.data(step)
        if self._known_first is None:
            self._known_first = self._redactor.found
        _write_all(self._steps_file, _line(masked))

    def _mask_earlier(self) -> None:
        """Mask what was found to be a secret only after lines with it were written; what cannot be is left."""
        if self._known_first is None or self._redactor.found == self._known_first:
            return
        path = self.path / "steps.jsonl"
        with suppress(OSError):
            lines = path.read_text(encoding="utf-8").split("\n")
            kept = b"".join(_line(self._redactor.data(json.loads(line))) for line in lines if line)
            write_atomically(path, kept)
            os.close(self._steps_file)
            self._steps_file = _open(path, os.O_APPEND)

    def _finish(self, event: RunFinished) -> None:
        message = self._redactor.text(event.message)[:_MESSAGE_CHARS]
        self._meta |= {
            "outcome": event.outcome, "status": int(event.status), "message": message,
            "steps": event.steps, "seconds": round(event.seconds, 3), "tokens": to_json(event)["usage"],
            "masked": self._redactor.found,
            "finished": datetime.now().astimezone().isoformat(timespec="milliseconds"),
        }  # fmt: skip
        self._write_meta()

    def abandon(self, event: RunFinished) -> None:
        """Record the end as far as the disk allows; never raises."""
        with suppress(OSError):
            self._flush_step()
            self._mask_earlier()
        try:
            self._finish(event)
        except OSError:
            self._meta["warnings"] = []  # the end of the run needs their room more
            with suppress(OSError):
                self._finish(event)

    def _write_meta(self) -> None:
        meta = self._redactor.data(self._meta)  # what was found later may be in it since the beginning
        data = json.dumps(meta, ensure_ascii=False, indent=1).encode("utf-8", "replace")
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


def _fields(event: Event, *without: str) -> dict[str, Any]:
    """An event as JSON, without what every event has, and without these fields."""
    return {key: value for key, value in to_json(event).items() if key not in ("event", "schema", "at", *without)}


def target_file(step: int) -> str:
    """Where a bundle keeps the marked target of a dry run's step."""
    return f"targets/{step:04d}.png"


def _line(step: dict[str, Any]) -> bytes:
    return (json.dumps(step, ensure_ascii=False) + "\n").encode("utf-8", "replace")


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


def _disk_error(path: Path, error: OSError) -> EnvironmentLacksError:
    return EnvironmentLacksError(
        f"The run cannot be recorded in {path} ({error.strerror or error}).",
        "Free some space there, or choose another folder with --runs.",
    )
