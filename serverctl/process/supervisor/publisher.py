"""Fills in a server's state while its supervisor runs, and keeps its file up to date."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from serverctl.diagnose.stages import Stage, StartReport
from serverctl.models.find import downloaded_bytes
from serverctl.plan.goal import Plan
from serverctl.plan.render import Command
from serverctl.plan.show import limits_json, summary_json
from serverctl.process.logs import LogWriter
from serverctl.process.request import Prepared
from serverctl.process.state import Download, Folder, Phase, State
from serverctl.process.supervisor.child import Child

#: Interval between two checks that the folder still exists, seconds.
_LOOK_EVERY = 1.0


class Publisher:
    """Writes the state after each change. `changed` is called with each new state."""

    def __init__(self, folder: Folder, state: State, log: LogWriter, changed: Callable[[State], None]) -> None:
        self._folder, self._state, self._log, self._changed = folder, state, log, changed
        self._told = self._written = ""
        self._lock = _inode(folder.lock_file)
        self._next_look = 0.0
        self._trouble = ""

    def set(self, phase: Phase, message: str) -> None:
        """Set the phase and the message, and write the state."""
        if phase != self._state.phase or self._state.since is None:
            self._state.since = time.time()
        self._state.phase = phase
        self._state.note(time.time(), message)
        self.flush()

    def flush(self) -> None:
        """Write the state if it changed. Ignores OSError: a full disk must not stop a working server."""
        text = self._state.model_dump_json()
        if text != self._told:
            self._told = text
            self._changed(self._state)
        if text != self._written:  # after a failure, the next call tries again
            with contextlib.suppress(OSError):
                self._folder.write(self._state)
                self._written = text

    def refresh(self) -> bool:
        """Write the state if needed. Return False if the folder is gone, since clients could not find the server."""
        now, exists = time.monotonic(), True
        if now >= self._next_look:
            self._next_look = now + _LOOK_EVERY
            if _inode(self._folder.lock_file) != self._lock:
                self._state.note(time.time(), "Its folder was removed, so the server is stopped.")
                exists = False
            if self._state.is_ready:
                self._folder.open_gate()  # in case the process that closed it was killed
            if self._log.trouble and self._log.trouble != self._trouble:
                self._trouble = self._log.trouble
                self._state.note(time.time(), self._trouble)
        self.flush()
        return exists

    def show_start(self, prepared: Prepared, command: Command) -> None:
        """Write that another start begins, and what it starts."""
        plan, state = prepared.plan, self._state
        state.attempt, state.ready_at = state.attempt + 1, None
        state.source, state.family, state.vllm = plan.model.source, plan.model.family, prepared.capabilities.version
        state.limits, state.plan = limits_json(plan), summary_json(plan, command)
        state.stage_at, state.report, state.download, state.stage, state.percent = {}, {}, None, "", None
        state.heartbeat = None
        self.set("starting", f"Starting {state.model} (start {state.attempt}).")

    def show_stage(self, report: StartReport) -> None:
        """Note the stage of a start. It is written at the next `refresh`."""
        self._state.stage_at.setdefault(report.stage.name, time.time())
        self._state.stage, self._state.percent = report.words, report.percent

    def show_process(self, child: Child | None) -> None:
        """Write which process serves; None for none."""
        self._state.guardian = child.guardian if child else None
        self._state.server_pid = child.server_pid if child else None
        if child is not None:
            self._state.stage_at.setdefault("LAUNCHED", time.time())
        self.flush()

    def progress(self, child: Child, plan: Plan) -> tuple[object, ...]:
        """Return values that change while a start makes progress: output lines, downloaded bytes."""
        got = 0
        if plan.model.local is None and child.report.stage < Stage.LOADED and "/" in plan.model.source:
            got = downloaded_bytes(plan.model.source)
            total = plan.model.checkpoint_bytes or plan.model.weight_bytes(plan.model.own_precision)
            if got:
                self._state.download = Download(bytes=got, total=max(total, got))
        return child.lines, got


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
