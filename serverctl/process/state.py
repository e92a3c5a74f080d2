"""What a server is doing, as its supervisor writes it and everybody else reads it: one small JSON file."""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

from foundation.errors import UsageError
from foundation.files import write_atomically
from foundation.processes import ProcessIdentity, identity_of, is_alive, read_identity
from serverctl.paths import server_folder, state_root

Phase: TypeAlias = Literal[
    "stopped", "planning", "waiting", "starting", "probing", "ready", "degraded", "restarting", "stopping", "failed"
]
PHASES: tuple[str, ...] = get_args(Phase)
#: Phases in which a server is on its way or there.
LIVE = ("planning", "waiting", "starting", "probing", "ready", "degraded", "restarting", "stopping")

#: Lines of what happened that are kept in the state.
_KEPT_EVENTS = 40


@dataclass
class State:
    """A server's state. Times are seconds since the epoch, sizes bytes.

    Args:
        phase: where it is in its life.
        name: the server's name.
        message: one sentence about now.
        stage: the stage of a start, in words.
        percent: progress within the stage.
        stage_at: when each stage was reached, by name.
        supervisor, guardian: processes, by number and start time.
        server_pid: vLLM's own process.
        run: the mark that all its processes carry.
        port: on loopback.
        model: what clients call it.
        source: what vLLM was given.
        family: the agent's family.
        vllm: vLLM's version.
        limits: images, max_pixels, context, history_images.
        started: when this start began; ready_at: when it answered.
        attempt: number of the start.
        deaths: when it died while serving.
        events: what happened, oldest first: [time, sentence].
        failure: what went wrong last, for a person: kind, title, cause, remedy, evidence.
        report: what vLLM printed about itself.
        download: bytes there, bytes in all.
        plan: the plan's essentials.
        log: the log file.
    """

    phase: Phase = "stopped"
    name: str = "default"
    message: str = ""
    stage: str = ""
    percent: int | None = None
    stage_at: dict[str, float] = field(default_factory=dict)
    supervisor: dict[str, Any] | None = None
    guardian: dict[str, Any] | None = None
    server_pid: int | None = None
    run: str = ""
    port: int | None = None
    model: str = ""
    source: str = ""
    family: str | None = None
    vllm: str = ""
    limits: dict[str, Any] = field(default_factory=dict)
    started: float | None = None
    ready_at: float | None = None
    attempt: int = 0
    deaths: list[float] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    report: dict[str, Any] = field(default_factory=dict)
    download: dict[str, int] | None = None
    plan: dict[str, Any] = field(default_factory=dict)
    log: str = ""

    @property
    def url(self) -> str | None:
        """The API's address; None before a port was chosen."""
        return None if self.port is None else f"http://127.0.0.1:{self.port}/v1"

    @property
    def owner(self) -> ProcessIdentity | None:
        """The supervisor's identity."""
        return read_identity(self.supervisor)

    @property
    def ready_after(self) -> float | None:
        """Seconds from the launch of the start that answered to its answer; None before."""
        launched = self.stage_at.get("LAUNCHED")
        return None if self.ready_at is None or launched is None else self.ready_at - launched

    def note(self, now: float, sentence: str) -> None:
        """Remembers that something happened, and makes it the message."""
        self.message = sentence
        if self.events and self.events[-1][1] == sentence:
            return  # said a moment ago, with another phase
        self.events.append((now, sentence))
        del self.events[:-_KEPT_EVENTS]


class Folder:
    """One server's folder: state, key, request and log, readable by their owner only."""

    def __init__(self, name: str) -> None:
        check_name(name)
        self.name = name
        self.path = server_folder(name)

    @property
    def state_file(self) -> Path:
        """The state."""
        return self.path / "state.json"

    @property
    def key_file(self) -> Path:
        """The key of the API."""
        return self.path / "key"

    @property
    def request_file(self) -> Path:
        """What was asked for."""
        return self.path / "request.json"

    @property
    def lock_file(self) -> Path:
        """Held by the supervisor as long as it lives; says who it is."""
        return self.path / "lock"

    @property
    def launch_file(self) -> Path:
        """Held for a moment by whoever starts a supervisor, or cleans up after one."""
        return self.path / "launch.lock"

    @property
    def log_file(self) -> Path:
        """vLLM's output."""
        return self.path / "server.log"

    @property
    def supervisor_log(self) -> Path:
        """The supervisor's own troubles."""
        return self.path / "supervisor.log"

    def make(self) -> None:
        """Makes the folder, for its owner only."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)

    def read(self) -> State | None:
        """The state as it was last written; None where there is none or it cannot be read."""
        state = read_state(self.state_file)
        if state is not None:
            state.name = self.name
        return state

    def owner(self) -> ProcessIdentity | None:
        """The supervisor that lives, by its own word in the lock's file or in the state; None where none does.

        A state that cannot be read must not hide the one who is there.
        """
        try:
            said = read_identity(json.loads(self.lock_file.read_text(encoding="ascii")))
        except (OSError, ValueError):
            said = None
        if is_alive(said):
            return said
        state = self.read()
        return state.owner if state is not None and is_alive(state.owner) else None

    def take(self) -> IO[str] | None:
        """Takes the lock for this process's life, and says in it who we are; None where somebody has it."""
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
        """One at a time starts a supervisor or cleans up after one: what it reads must hold until it has written."""
        try:
            file = self.launch_file.open("a", encoding="ascii")
        except OSError:  # a folder that cannot be written: nobody can start one there, but what runs must end
            yield
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def write(self, state: State) -> None:
        """Replaces the state at once: a reader sees the old one or the new one."""
        write_atomically(self.state_file, json.dumps(asdict(state)))

    def key(self) -> str:
        """The key of the API; "" where there is none."""
        try:
            return self.key_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""

    def new_key(self) -> str:
        """Makes a key for a new server."""
        key = secrets.token_urlsafe(24)
        write_atomically(self.key_file, key)
        return key


def read_state(path: Path) -> State | None:
    """A state from its file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, Mapping) or document.get("phase") not in PHASES:
        return None
    known = {name: document[name] for name, fits in _FITS.items() if name in document and fits(document[name])}
    return State(**known)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _is_report(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_text(entry) if name in ("version", "attention") else _is_number(entry) for name, entry in value.items()
    )


def _or_none(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or fits(value)


def _is_events(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(event, list) and len(event) == 2 and _is_number(event[0]) and _is_text(event[1]) for event in value
    )


#: What each entry of a state's file must be to be believed: somebody may have edited it, or half of it was lost.
_FITS: Mapping[str, Callable[[object], bool]] = {
    "phase": lambda value: value in PHASES,
    **dict.fromkeys(("name", "message", "stage", "run", "model", "source", "vllm", "log"), _is_text),
    **dict.fromkeys(("limits", "plan"), _is_table),
    "report": _is_report,
    **dict.fromkeys(("supervisor", "guardian", "failure"), _or_none(_is_table)),
    **dict.fromkeys(("percent", "server_pid", "port"), _or_none(_is_whole)),
    **dict.fromkeys(("started", "ready_at"), _or_none(_is_number)),
    "family": _or_none(_is_text),
    "attempt": _is_whole,
    "stage_at": lambda value: isinstance(value, dict) and all(_is_number(when) for when in value.values()),
    "deaths": lambda value: isinstance(value, list) and all(_is_number(when) for when in value),
    "events": _is_events,
    "download": _or_none(
        lambda value: isinstance(value, dict) and _is_whole(value.get("bytes")) and _is_whole(value.get("total"))
    ),
}
assert set(_FITS) == set(State.__dataclass_fields__), "every entry of a state is checked when it is read"


def current_state(folder: Folder) -> State:
    """The state as it is now: what a dead supervisor left behind is told from what is true."""
    state = folder.read()
    if state is None:
        owner = folder.owner()
        if owner is None:
            return State(name=folder.name)
        # Its supervisor lives and writes it anew in a moment.
        message = "The state cannot be read; it is written anew."
        return State("planning", folder.name, message, supervisor=owner.to_json())
    if state.phase in LIVE and not is_alive(state.owner):
        state.phase = "failed"
        state.message = "The program that watched this server was killed; the next start cleans up after it."
        state.failure = state.failure or {
            "kind": "SUPERVISOR_DIED",
            "title": "The program that watched this server was killed",
            "cause": "Somebody, or the system because memory ran out, ended it.",
            "remedy": "`mai-server up` starts a new one.",
            "evidence": "",
        }
    return state


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Changes when a file is replaced or written; None where it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def check_name(name: str) -> None:
    """Raises UsageError for a name that is no plain word: it becomes a folder's name."""
    if (
        not name
        or not all(char.isalnum() or char in "-_." for char in name)
        or name.startswith((".", "-"))
        or len(name) > 64
    ):
        raise UsageError(f"{name!r} is no name for a server.", "Use letters, digits and dashes.")


def server_names() -> list[str]:
    """The servers that have a folder, sorted."""
    root = state_root() / "servers"
    return sorted(folder.name for folder in root.glob("*") if (folder / "state.json").is_file())
