"""A server's folder and its state: a small JSON file that the supervisor writes and other processes read.

All processes of a server carry a mark in their environment, by which leftovers are found and killed.
"""

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Strict

from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import is_full, read_json_object, write_atomically
from foundation.processes import (
    ProcessIdentity,
    end_marked,
    identity_of,
    is_alive,
    marked_processes,
    read_identity,
    wait_gone,
)
from serverctl.paths import servers_root

#: Environment variable of every process of a server; its value is random and unique to one start.
MARK = "MAI_SERVER_RUN"
#: Wait this long for a guardian whose supervisor died: it kills everything, even processes that lost the mark.
_GUARDIAN_SECONDS = 5.0


def kill_marked(mark: str) -> list[int]:
    """Kill all processes with the mark, and return their PIDs."""
    return end_marked(MARK, mark) if mark else []


def end_left_behind(guardian: ProcessIdentity | None, mark: str) -> list[int]:
    """Kill the leftovers of a dead supervisor's server, and return their PIDs.

    The guardian gets some time to do it; then all processes with the mark are killed.
    """
    seen = [process.pid for process in marked_processes(MARK, mark)] if mark else []
    if guardian is not None:
        wait_gone(guardian, _GUARDIAN_SECONDS)
    return sorted({*seen, *kill_marked(mark)})


Phase: TypeAlias = Literal[
    "stopped", "planning", "waiting", "starting", "probing", "ready", "degraded", "restarting", "asleep", "stopping",
    "failed",
]  # fmt: skip
PHASES: tuple[str, ...] = get_args(Phase)
#: Phases of a server that has a supervisor: it starts, runs, stops, or sleeps until a client asks something.
LIVE = tuple(phase for phase in PHASES if phase not in ("stopped", "failed"))

#: Number of events that the state keeps.
_KEPT_EVENTS = 40
_GIB = 1024**3


class Download(BaseModel):
    """Progress of a download in bytes."""

    bytes: int
    total: int


class Heartbeat(BaseModel):
    """The engine's last heartbeat."""

    at: float | None = None  # its time, seconds since the epoch
    seconds: float | None = None  # duration of one token; None if the engine was busy, so that no token was requested
    missed: int = 0  # heartbeats missed in a row
    asked: int = 0  # our requests since the start; the server's counters include them


class State(BaseModel):
    """A server's state. Times are seconds since the epoch, sizes bytes."""

    model_config = ConfigDict(strict=True)

    phase: Phase = "stopped"
    name: str = "default"  # the server's name
    message: str = ""  # one sentence about the current situation
    since: float | None = None  # when the phase began
    stage: str = ""  # the stage of a start, for display
    percent: int | None = None  # progress within the stage
    stage_at: dict[str, float] = {}  # when each stage was reached, by name
    supervisor: ProcessIdentity | None = None
    guardian: ProcessIdentity | None = None
    server_pid: int | None = None  # vLLM's main process
    run: str = ""  # the mark in the environment of all its processes
    port: int | None = None  # on loopback
    address: str = ""  # the base URL of a server that somebody else runs; "" for ours
    model: str = ""  # the model's name for clients
    models: list[str] = []  # all models that it swaps, by their names for clients; empty for a single model
    source: str = ""  # the repository or folder that vLLM loads
    family: str | None = None  # the model family that the agent uses
    vllm: str = ""  # vLLM's version
    limits: dict[str, Any] = {}  # images, max_pixels, context, history_images
    started: float | None = None  # when the supervisor started
    ready_at: float | None = None  # when the server became ready
    attempt: int = 0  # number of starts so far
    deaths: list[float] = []  # when it crashed while serving
    events: list[Annotated[tuple[float, str], Strict(False)]] = []  # oldest first: [time, sentence]
    failure: dict[str, Any] | None = None  # the last failure: kind, title, cause, remedy, evidence
    refused: dict[str, Any] | None = None  # why the last change failed, if the server went back from it
    report: dict[str, int | float | str] = {}  # values that vLLM printed about itself
    download: Download | None = None  # of the model
    plan: dict[str, Any] = {}  # the plan's summary
    log: str = ""  # the log file
    heartbeat: Heartbeat | None = None  # of a server that is ready

    @property
    def is_ready(self) -> bool:
        """True if it serves, even with problems."""
        return self.phase in ("ready", "degraded")

    @property
    def url(self) -> str | None:
        """The base URL of the API; None before a port is chosen."""
        return self.address or (None if self.port is None else f"http://127.0.0.1:{self.port}/v1")

    @property
    def ready_after(self) -> float | None:
        """Seconds from the launch until the server was ready; None before."""
        launched = self.stage_at.get("LAUNCHED")
        return None if self.ready_at is None or launched is None else self.ready_at - launched

    @property
    def downloading(self) -> str:
        """The progress of a download as text; "" without a download."""
        if self.download is None or self.download.bytes >= self.download.total:
            return ""
        return f"{self.download.bytes / _GIB:.1f} of {self.download.total / _GIB:.1f} GiB"

    def note(self, now: float, sentence: str) -> None:
        """Add an event, and make it the message."""
        self.message = sentence
        if self.events and self.events[-1][1] == sentence:
            return  # already recorded, with another phase
        self.events.append((now, sentence))
        del self.events[:-_KEPT_EVENTS]


def failure_json(kind: str, title: str, cause: str = "", remedy: str = "", evidence: str = "") -> dict[str, Any]:
    """Return a failure outside vLLM as JSON values."""
    return {"kind": kind, "title": title, "cause": cause, "remedy": remedy, "evidence": evidence}


#: With less free space than this a disk counts as full, bytes: a start writes its log and its state.
_ROOM = 2 * 1024**2


def cannot_write(path: Path, error: OSError) -> EnvironmentLacksError:
    """Return the error for a server's file that cannot be written."""
    if is_full(error):
        return full_disk(path)
    what = f"{error.filename or path} cannot be written: {error.strerror or error}."
    return EnvironmentLacksError(what, "Check its permissions and disk. MAI_SERVER_STATE names another.")


def full_disk(path: Path) -> EnvironmentLacksError:
    """Return the error for a full disk."""
    return EnvironmentLacksError(
        f"The disk with {path} is full.", "Free some space on it, or name another folder with MAI_SERVER_STATE."
    )


def has_room(path: Path) -> bool:
    """Return whether the disk of a folder has room for a start; True if that is unknown."""
    try:
        return shutil.disk_usage(path).free >= _ROOM
    except OSError:
        return True


class Folder:
    """One server's folder: state, key, request and log, readable by their owner only.

    Raises UsageError for an invalid name.
    """

    def __init__(self, name: str) -> None:
        if not re.fullmatch(r"\w[\w.-]{0,63}", name):
            raise UsageError(f"{name!r} is no name for a server.", "Use letters, digits and dashes.")
        self.name = name
        self.path = servers_root() / name
        self.state_file = self.path / "state.json"
        #: The key of the API.
        self.key_file = self.path / "key"
        #: The request of the last start, and one that the supervisor should change to.
        self.request_file, self.change_file = self.path / "request.json", self.path / "change.json"
        #: Locked by the supervisor for its lifetime; contains its identity.
        self.lock_file = self.path / "lock"
        #: Locked briefly while a supervisor is launched or cleaned up.
        self.launch_file = self.path / "launch.lock"
        #: Identity of the process that restarts the server; the new start keeps the key.
        self.restart_file = self.path / "restart.json"
        #: While it exists, the door holds clients' requests (`supervisor/door.py`).
        self.gate_file = self.path / "gate"
        #: vLLM's output.
        self.log_file = self.path / "server.log"
        #: The supervisor's own output and errors.
        self.supervisor_log = self.path / "supervisor.log"

    def make(self) -> None:
        """Create the folder with access for its owner only."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)

    def read(self) -> State | None:
        """Return the state as it was last written; None if it is missing or cannot be read."""
        try:
            state = State.model_validate_json(self.state_file.read_bytes())
        except (OSError, ValueError):
            return None
        state.name = self.name
        return state

    def owner(self) -> ProcessIdentity | None:
        """Return the running supervisor from the lock file or the state; None if none runs.

        The lock file comes first, so that an unreadable state does not hide a running supervisor.
        """
        identity = read_identity(read_json_object(self.lock_file))
        if is_alive(identity):
            return identity
        state = self.read()
        return state.supervisor if state is not None and is_alive(state.supervisor) else None

    def take(self) -> IO[str] | None:
        """Lock the folder for the life of this process and write our identity. Return None if it is already locked."""
        lock = self.lock_file.open("a+", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
        me = identity_of(os.getpid())
        with contextlib.suppress(OSError):
            lock.truncate(0)
            lock.write(json.dumps(me.to_json() if me else {}))
            lock.flush()
        for part in self.path.glob(".*.[0-9]*"):  # temporary files of a killed writer
            part.unlink(missing_ok=True)
        return lock

    @contextmanager
    def launching(self) -> Iterator[None]:
        """Serialize starts and clean-ups: no other process may change the state between reading and writing it."""
        try:
            file = self.launch_file.open("a", encoding="ascii")
        except OSError:  # the folder is not writable: no start is possible, but a running server must be stoppable
            yield
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def write(self, state: State) -> None:
        """Replace the state file atomically. Raises OSError."""
        write_atomically(self.state_file, state.model_dump_json())

    def key(self) -> str:
        """Return the key of the API; "" if there is none."""
        try:
            return self.key_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""

    def open_gate(self) -> None:
        """Let the door pass requests again, unless a process is restarting the server."""
        if self.gate_file.exists() and not self.is_restarting:
            self.gate_file.unlink(missing_ok=True)

    @contextmanager
    def restarting(self) -> Iterator[None]:
        """Mark the server as restarting: its door holds clients' requests, and the new start keeps the key.

        Raises EnvironmentLacksError if the mark cannot be written.
        """
        me = identity_of(os.getpid())
        try:
            write_atomically(self.restart_file, json.dumps(me.to_json() if me else {}))
        except OSError as error:
            raise cannot_write(self.path, error) from error
        try:
            with contextlib.suppress(OSError):  # on a full disk the gate stays open
                self.gate_file.touch(mode=0o600)
            yield
        finally:
            self.restart_file.unlink(missing_ok=True)
            self.open_gate()

    @property
    def is_restarting(self) -> bool:
        """True while a running process restarts the server."""
        return is_alive(read_identity(read_json_object(self.restart_file)))

    def new_key(self, chosen: str = "", keep: bool = False) -> str:
        """Store and return the key for a start: the chosen one, or a new one.

        A server that is being restarted keeps its key, as does any with `keep`.
        """
        if (self.is_restarting or (keep and not chosen)) and (kept := self.key()):
            return kept
        key = chosen or made_key()
        write_atomically(self.key_file, key)
        return key


def made_key() -> str:
    """Return a new key. It has no dash, because a key that begins with one reads as an option after `--key`."""
    return secrets.token_hex(24)


def current_state(folder: Folder) -> State:
    """Return the current state. If the supervisor died in a live phase, the phase becomes "failed"."""
    state = folder.read()
    if state is None:
        owner = folder.owner()
        if owner is None:
            return State(name=folder.name)
        # The supervisor is running and will rewrite the state soon.
        message = "The state cannot be read; it is written anew."
        return State(phase="planning", name=folder.name, message=message, supervisor=owner)
    if state.phase in LIVE and not is_alive(state.supervisor):
        state.phase = "failed"
        if not has_room(folder.path):  # the supervisor could not write how it ended
            full = full_disk(folder.path)
            state.message = full.what
            state.failure = failure_json("DISK", full.what, remedy=full.remedy)
            return state
        left = [process.pid for process in marked_processes(MARK, state.run)] if state.run else []
        still = f" Of the server, {len(left)} processes still hold memory: {', '.join(map(str, left))}." if left else ""
        state.message = "The program that watched this server was killed; the next start cleans up after it."
        remedy = "`mai-server down` ends what is left, and `mai-server up` starts a new one."
        state.failure = failure_json(
            "SUPERVISOR_DIED",
            "The program that watched this server was killed",
            f"Somebody, or the system because memory ran out, ended it.{still}",
            remedy if left else "`mai-server up` starts a new one.",
        )
    return state
