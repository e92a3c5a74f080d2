"""What a server is doing, as its supervisor writes it and everybody else reads it: one small JSON file."""

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
from foundation.files import is_full, overwrite, read_json_object, write_atomically
from foundation.processes import ProcessIdentity, identity_of, is_alive, read_identity
from serverctl.paths import servers_root

Phase: TypeAlias = Literal[
    "stopped", "planning", "waiting", "starting", "probing", "ready", "degraded", "restarting", "stopping", "failed"
]
PHASES: tuple[str, ...] = get_args(Phase)
#: Phases in which a server is on its way or there.
LIVE = tuple(phase for phase in PHASES if phase not in ("stopped", "failed"))

#: Lines of what happened that are kept in the state.
_KEPT_EVENTS = 40
_GIB = 1024**3


class Download(BaseModel):
    """Bytes that are there, and bytes in all."""

    bytes: int
    total: int


class Heartbeat(BaseModel):
    """The engine's last sign of life."""

    at: float | None = None  # when, seconds since the epoch
    seconds: float | None = None  # how long one token took; None where it was heard computing, and was not asked
    missed: int = 0  # tokens in a row that did not come
    asked: int = 0  # requests for it since the start: they are among the server's own counts


class State(BaseModel):
    """A server's state. Times are seconds since the epoch, sizes bytes."""

    model_config = ConfigDict(strict=True)

    phase: Phase = "stopped"  # where it is in its life
    name: str = "default"  # the server's name
    message: str = ""  # one sentence about now
    stage: str = ""  # the stage of a start, in words
    percent: int | None = None  # progress within the stage
    stage_at: dict[str, float] = {}  # when each stage was reached, by name
    supervisor: ProcessIdentity | None = None
    guardian: ProcessIdentity | None = None
    server_pid: int | None = None  # vLLM's own process
    run: str = ""  # the mark that all its processes carry
    port: int | None = None  # on loopback
    model: str = ""  # what clients call it
    source: str = ""  # what vLLM was given
    family: str | None = None  # the agent's family
    vllm: str = ""  # vLLM's version
    limits: dict[str, Any] = {}  # images, max_pixels, context, history_images
    started: float | None = None  # when this start began
    ready_at: float | None = None  # when it answered
    attempt: int = 0  # number of the start
    deaths: list[float] = []  # when it died while serving
    events: list[Annotated[tuple[float, str], Strict(False)]] = []  # what happened, oldest first: [time, sentence]
    failure: dict[str, Any] | None = None  # what went wrong last, for a person: kind, title, cause, remedy, evidence
    report: dict[str, int | float | str] = {}  # what vLLM printed about itself
    download: Download | None = None  # of the model
    plan: dict[str, Any] = {}  # the plan's essentials
    log: str = ""  # the log file
    heartbeat: Heartbeat | None = None  # of a server that is ready

    @property
    def is_ready(self) -> bool:
        """Whether it serves, if perhaps not well at the moment."""
        return self.phase in ("ready", "degraded")

    @property
    def url(self) -> str | None:
        """The API's address; None before a port was chosen."""
        return None if self.port is None else f"http://127.0.0.1:{self.port}/v1"

    @property
    def ready_after(self) -> float | None:
        """Seconds from the launch of the start that answered to its answer; None before."""
        launched = self.stage_at.get("LAUNCHED")
        return None if self.ready_at is None or launched is None else self.ready_at - launched

    @property
    def downloading(self) -> str:
        """The progress of a download in words; "" without a download."""
        if self.download is None or self.download.bytes >= self.download.total:
            return ""
        return f"{self.download.bytes / _GIB:.1f} of {self.download.total / _GIB:.1f} GiB"

    def note(self, now: float, sentence: str) -> None:
        """Remembers that something happened, and makes it the message."""
        self.message = sentence
        if self.events and self.events[-1][1] == sentence:
            return  # said a moment ago, with another phase
        self.events.append((now, sentence))
        del self.events[:-_KEPT_EVENTS]


def failure_json(kind: str, title: str, cause: str = "", remedy: str = "", evidence: str = "") -> dict[str, Any]:
    """Return a failure that is not vLLM's own as JSON values."""
    return {"kind": kind, "title": title, "cause": cause, "remedy": remedy, "evidence": evidence}


#: Entries that a state leaves out on a full disk.
_LEFT_OUT: dict[str, Any] = {"plan": {}, "report": {}, "stage_at": {}, "limits": {}}
#: Below this a disk is as good as full, bytes: a start writes its log and its state.
_ROOM = 2 * 1024**2


def cannot_write(path: Path, error: OSError) -> EnvironmentLacksError:
    """The error for a file of ours that cannot be written."""
    if is_full(error):
        return full_disk(path)
    what = f"{error.filename or path} cannot be written: {error.strerror or error}."
    return EnvironmentLacksError(what, "Is the folder yours, and its disk there? MAI_SERVER_STATE names another.")


def full_disk(path: Path) -> EnvironmentLacksError:
    """The error for a disk without room."""
    return EnvironmentLacksError(
        f"The disk with {path} is full.", "Free some space on it, or name another folder with MAI_SERVER_STATE."
    )


def has_room(path: Path) -> bool:
    """Whether the disk of a folder of ours has room for a start; True where that cannot be told."""
    try:
        return shutil.disk_usage(path).free >= _ROOM
    except OSError:
        return True


#: What clients that are turned away are told to wait, seconds: shorter than a start, so that none waits for long.
_AGAIN_S = 10


class Folder:
    """One server's folder: state, key, request and log, readable by their owner only.

    Raises UsageError for a name that is no plain word.
    """

    def __init__(self, name: str) -> None:
        if not re.fullmatch(r"\w[\w.-]{0,63}", name):
            raise UsageError(f"{name!r} is no name for a server.", "Use letters, digits and dashes.")
        self.name = name
        self.path = servers_root() / name
        self.state_file = self.path / "state.json"
        #: The key of the API.
        self.key_file = self.path / "key"
        #: What was asked for.
        self.request_file = self.path / "request.json"
        #: Held by the supervisor as long as it lives; says who it is.
        self.lock_file = self.path / "lock"
        #: Held for a moment while a supervisor is started, or cleaned up after.
        self.launch_file = self.path / "launch.lock"
        #: Names the process that restarts the server; the new start keeps the key.
        self.restart_file = self.path / "restart.json"
        #: While it is there, clients' requests are asked to come again (`gate.py`).
        self.gate_file = self.path / "gate"
        #: vLLM's output.
        self.log_file = self.path / "server.log"
        #: The supervisor's own troubles.
        self.supervisor_log = self.path / "supervisor.log"

    def make(self) -> None:
        """Makes the folder, for its owner only."""
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
        """Return the living supervisor, by the lock's file or by the state; None if none lives.

        A state that cannot be read must not hide a living supervisor.
        """
        said = read_identity(read_json_object(self.lock_file))
        if is_alive(said):
            return said
        state = self.read()
        return state.supervisor if state is not None and is_alive(state.supervisor) else None

    def take(self) -> IO[str] | None:
        """Take the lock for this process's life and write our identity into it; None if another process has it."""
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
        for part in self.path.glob(".*.[0-9]*"):  # what a killed writer left
            part.unlink(missing_ok=True)
        return lock

    @contextmanager
    def launching(self) -> Iterator[None]:
        """Serialize starts and clean-ups: the state that was read must hold until the new one is written."""
        try:
            file = self.launch_file.open("a", encoding="ascii")
        except OSError:  # a folder that cannot be written: nobody can start one there, but what runs must end
            yield
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def write(self, state: State) -> None:
        """Replaces the state at once: a reader sees the old one or the new one. Raises OSError.

        On a full disk the old one is written over, with what fits into its place: whoever waits must hear how it ends.
        """
        try:
            write_atomically(self.state_file, state.model_dump_json())
        except OSError as error:
            if not is_full(error):
                raise
            short = state.model_copy(update={**_LEFT_OUT, "events": state.events[-2:]})
            overwrite(self.state_file, short.model_dump_json().encode())

    def key(self) -> str:
        """Return the key of the API; "" if there is none."""
        try:
            return self.key_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""

    def shut_gate(self) -> None:
        """Clients' new requests get status 503 from now on. Never raises: on a full disk the gate stays open."""
        with contextlib.suppress(OSError):
            write_atomically(self.gate_file, str(_AGAIN_S))

    def open_gate(self) -> None:
        """Let requests in again, unless a living process is restarting the server."""
        if self.gate_file.exists() and not self.is_restarting:
            self.gate_file.unlink(missing_ok=True)

    @contextmanager
    def restarting(self) -> Iterator[None]:
        """While this lasts, the server is away only to come back: its gate is shut; clients wait, and keep their key.

        Raises EnvironmentLacksError where that cannot be written down.
        """
        me = identity_of(os.getpid())
        try:
            write_atomically(self.restart_file, json.dumps(me.to_json() if me else {}))
        except OSError as error:
            raise cannot_write(self.path, error) from error
        try:
            self.shut_gate()
            yield
        finally:
            self.restart_file.unlink(missing_ok=True)
            self.open_gate()

    @property
    def is_restarting(self) -> bool:
        """Whether a living process is restarting the server."""
        return is_alive(read_identity(read_json_object(self.restart_file)))

    def new_key(self) -> str:
        """Make a key for a new server; a restarted server keeps its key."""
        if self.is_restarting and (kept := self.key()):
            return kept
        key = secrets.token_urlsafe(24)
        write_atomically(self.key_file, key)
        return key


def current_state(folder: Folder) -> State:
    """Return the state as it is now; a live phase of a dead supervisor becomes a failure."""
    state = folder.read()
    if state is None:
        owner = folder.owner()
        if owner is None:
            return State(name=folder.name)
        # Its supervisor lives and writes it anew in a moment.
        message = "The state cannot be read; it is written anew."
        return State(phase="planning", name=folder.name, message=message, supervisor=owner)
    if state.phase in LIVE and not is_alive(state.supervisor):
        state.phase = "failed"
        if not has_room(folder.path):  # what became of it could not be written down
            full = full_disk(folder.path)
            state.message = full.what
            state.failure = failure_json("DISK", full.what, remedy=full.remedy)
            return state
        state.message = "The program that watched this server was killed; the next start cleans up after it."
        state.failure = state.failure or failure_json(
            "SUPERVISOR_DIED",
            "The program that watched this server was killed",
            "Somebody, or the system because memory ran out, ended it.",
            "`mai-server up` starts a new one.",
        )
    return state


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Return a value that changes with the file; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
