"""Starts, finds, awaits and stops servers from outside their supervisor."""

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foundation.errors import EnvironmentLacksError, MaiError
from foundation.files import write_atomically
from foundation.processes import is_alive, send_signal, wait_gone
from serverctl.load.client import Endpoint
from serverctl.paths import servers_root
from serverctl.process.request import Change, ServerRequest, is_one_of, read_request
from serverctl.process.state import (
    LIVE,
    Folder,
    State,
    cannot_write,
    current_state,
    end_left_behind,
    full_disk,
    has_room,
)

#: Interval at which a waiting client reads the state, seconds.
_POLL = 0.05
#: Seconds between SIGTERM and SIGKILL for a supervisor: vLLM's grace period and some more.
_DOWN_SECONDS = 30.0
#: Timeout for a new supervisor to begin. Its imports take seconds on a slow disk.
_BEGIN_SECONDS = 60.0
#: Exit status of a supervisor when another one holds the lock.
ALREADY_RUNNING = 75
DEFAULT_NAME = "default"
#: Interval at which the progress of an unchanged stage (percent or bytes) is reported again, seconds.
_AGAIN_EVERY = 10.0
#: Maximum characters to quote from an error; `status --json` has the full text.
_MOST_QUOTED = 300
#: Text that pydantic adds before and after the messages of vLLM's own checks.
_PYDANTIC = re.compile(
    r"^[\w.]*ValidationError: \d+ validation errors? for \w+\s+(?:Value error, )?| \[type=\w+, input_value=.*$",
    re.DOTALL,
)
#: Failures caused by the machine's environment, not by a program.
_OF_THE_MACHINE = ("CANNOT_PLAN", "CORRUPT", "DISK", "LOOPBACK", "MISREADS", "NETWORK", "OFFLINE", "PERMISSION")


@dataclass(frozen=True, slots=True)
class ReadyServer:
    """A managed server that is ready."""

    name: str  # its name for `mai-server`
    base_url: str  # of the API, on loopback
    api_key: str = field(repr=False)  # created at its start
    model: str  # the model's name for clients
    family: str | None  # the model family that the agent uses; None if unknown
    images: int | None  # limit of one request, like the next two
    context: int | None
    max_pixels: int | None
    started: bool = False  # whether it was started for this caller


def launch(name: str, request: ServerRequest) -> bool:
    """Start a server's supervisor in the background unless one runs. Return whether it was started.

    Raises MaiError.
    """
    folder = Folder(name)
    try:
        folder.make()
        with folder.launching():
            if current_state(folder).phase in LIVE:
                return False
            ending = folder.owner()  # it has written its final state and is about to exit
            if ending is not None and not wait_gone(ending, _DOWN_SECONDS):
                return False
            write_atomically(folder.request_file, request.to_json())
            _clean_up(folder)
            with folder.supervisor_log.open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-c", _SUPERVISOR, folder.name],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=folder.path,
                )  # fmt: skip
            return _has_begun(folder, process)
    except OSError as error:
        raise cannot_write(folder.path, error) from error


def change(name: str, request: ServerRequest, wait: float = 5.0) -> bool:
    """Replace a server's settings while its clients wait at its door. Then `wait_ready` can wait for the result.

    If no start with the new settings succeeds, the server returns to the previous settings, and `refused` in its state
    gives the reason. If the server does not run, start it. Running requests get `wait` seconds. Return whether it ran.
    """
    folder = Folder(name)
    owner = folder.owner()
    if is_alive(owner) and current_state(folder).phase in LIVE:
        try:
            write_atomically(folder.change_file, Change(request, wait).to_json())
        except OSError as error:
            raise cannot_write(folder.path, error) from error
        end = time.monotonic() + _BEGIN_SECONDS
        while folder.change_file.exists() and is_alive(owner) and time.monotonic() < end:
            time.sleep(_POLL)
        if not folder.change_file.exists():
            return True
        folder.change_file.unlink(missing_ok=True)
        if is_alive(owner):
            raise MaiError(f"The server {name!r} takes no changes.", f"`mai-server down --name {name}` ends it.")
    launch(name, request)
    return False


#: The supervisor may run from a checkout. Do not use PYTHONPATH for that: vLLM would inherit it and import our
#: libraries instead of its own.
_SUPERVISOR = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r}); "
    "from serverctl.process.state import Folder; from serverctl.process.supervisor.main import supervise; "
    "sys.exit(supervise(Folder(sys.argv[1])))"
)


def _has_begun(folder: Folder, process: "subprocess.Popen[bytes]") -> bool:
    """Wait until a new supervisor runs. Return False if another one was faster. Raises MaiError if none runs."""
    program, remedy = "The program that watches the server", f"Its output is in {folder.supervisor_log}."
    end = time.monotonic() + _BEGIN_SECONDS
    while time.monotonic() < end:
        status = process.poll()
        state = folder.read()
        if state is not None and state.supervisor is not None and state.supervisor.pid == process.pid:
            return True
        if status == ALREADY_RUNNING:
            if folder.owner() is not None:
                return False
            raise MaiError(
                f"Another program holds {folder.lock_file}, but no server of ours runs there.",
                "`fuser` on that file says which; end it, or give the server another name: --name NAME.",
            )
        if status is not None and not has_room(folder.path):
            raise full_disk(folder.path)
        if status is not None:
            raise MaiError(f"{program} could not start (exit status {status}).", remedy)
        time.sleep(0.01)
    process.kill()
    process.wait()
    raise MaiError(f"{program} did not start within {_BEGIN_SECONDS:.0f} s.", remedy)


def as_before(name: str) -> ServerRequest:
    """Return the request that starts a server as it last was, with the same key. Raises MaiError."""
    return replace(read_request(Folder(name).request_file), keep_key=True)


def last_started() -> str | None:
    """Return the name of the server that was started last, without those of a bench or batch; None without any."""
    found: list[tuple[float, str]] = []
    for state in _states():
        with contextlib.suppress(MaiError):
            if not read_request(Folder(state.name).request_file).passing:
                found.append((state.started or 0.0, state.name))
    return max(found)[1] if found else None


def sleeping(model: str | None = None) -> list[State]:
    """Return the servers whose engine ended because no requests came, the last started first."""
    asleep = [state for state in _states(model) if state.phase == "asleep"]
    return sorted(asleep, key=lambda state: -(state.started or 0.0))


def wake(name: str) -> None:
    """Start the engine of a server that sleeps, as a client's request does."""
    change(name, read_request(Folder(name).request_file))


def wait_ready(name: str, progress: Callable[[State], None] = lambda _: None) -> State:
    """Wait until a server is ready, asleep, failed or stopped, and return its last state."""
    folder = Folder(name)
    while True:
        state = current_state(folder)
        progress(state)
        if state.phase in ("ready", "degraded", "asleep", "failed", "stopped"):
            return state
        time.sleep(_POLL)


class Announcer:
    """Selects news for the user: each event after `since` (seconds since the epoch) once, and each new stage."""

    def __init__(self, since: float = 0.0) -> None:
        self._since = since
        self._told: dict[str, float] = {}
        self._stages: dict[str, str] = {}
        self._next = 0.0

    def events(self, state: State) -> list[str]:
        """Return the new events, without the failure of a start, which the waiting client reports itself."""
        since = self._told.get(state.name, self._since)
        self._told[state.name] = max([since, *(when for when, _ in state.events)])
        last = state.message if state.phase == "failed" else None
        return [sentence for when, sentence in state.events if when > since and sentence != last]

    def stage(self, state: State) -> str:
        """Return the stage as text, with download progress; "" if it was reported recently."""
        words = state.stage
        if state.downloading:
            words = f"{words or 'downloading'}: {state.downloading} downloaded"
        stage = words.split(",")[0].split(":")[0]
        now = time.monotonic()
        is_new = stage != self._stages.get(state.name)
        counts_on = now >= self._next and ("%" in words or "GiB" in words)
        if not words or not (is_new or counts_on):
            return ""
        self._stages[state.name], self._next = stage, now + _AGAIN_EVERY
        return words


def as_ready(state: State, started: bool = False) -> ReadyServer | None:
    """Return a server's address, key and limits; None if it is not ready."""
    if not state.is_ready or state.url is None:
        return None
    limits = {name: state.limits.get(name) for name in ("images", "context", "max_pixels")}
    key = Folder(state.name).key()
    return ReadyServer(state.name, state.url, key, state.model, state.family, **limits, started=started)


def ready(state: State, started: bool = False) -> ReadyServer:
    """Return a server's address, key and limits. Raises MaiError with the reason if it is not ready."""
    server = as_ready(state, started)
    if server is None:
        raise failure_of(state)
    return server


def model_names(state: State) -> set[str]:
    """Return the names of a server's model in lower case; empty while the server has not chosen one."""
    names = {state.model, state.source}
    with contextlib.suppress(MaiError):
        names.add(read_request(Folder(state.name).request_file).goal.model or "")
    return {name.casefold() for name in names if name}


def serves(state: State, model: str) -> bool:
    """Return whether a server serves a model, given by name, repository or folder."""
    return is_one_of(model, model_names(state))


def live_servers(model: str | None = None) -> list[State]:
    """Return the servers that hold or want memory, the default one first; only those with `model` if given."""
    return [state for state in _states(model) if state.phase in LIVE and state.phase not in ("asleep", "stopping")]


def _states(model: str | None = None) -> list[State]:
    """Return the state of every server, or of those with a model, the default one first."""
    states = [current_state(Folder(name)) for name in ordered_names()]
    return [state for state in states if model is None or serves(state, model)]


def endpoint_of(state: State) -> Endpoint:
    """Return the endpoint of a server that has a port."""
    assert state.url is not None
    return Endpoint(state.url, Folder(state.name).key(), state.model)


def find_ready(model: str | None = None) -> ReadyServer | None:
    """Return the first ready server, with `model` if given; None if there is none."""
    return next(filter(None, map(as_ready, live_servers(model))), None)


def name_of_model(model: str) -> str:
    """Return a server name made from a model's name, valid as a folder name."""
    return re.sub(r"[^a-z0-9._-]+", "-", model.lower()).strip("-._")[:56] or "server"


def ordered_names() -> list[str]:
    """Return the names of all servers with a folder, the default one first."""
    names = [path.parent.name for path in servers_root().glob("*/state.json")]
    return sorted(names, key=lambda name: (name != DEFAULT_NAME, name))


def stop(name: str) -> bool:
    """Stop a server and wait until all its processes are gone. Return whether there was anything to stop."""
    folder = Folder(name)
    owner = folder.owner()
    if owner is not None:
        send_signal(owner, signal.SIGTERM)
        if not wait_gone(owner, _DOWN_SECONDS) and send_signal(owner, signal.SIGKILL):
            wait_gone(owner, 5)
    with folder.launching():
        left = _clean_up(folder)
    return owner is not None or left > 0


def _clean_up(folder: Folder) -> int:
    """Kill the leftovers of a dead supervisor, and record it in the state. Return the number of processes."""
    state = folder.read()
    if state is None or folder.owner() is not None:
        return 0
    left = end_left_behind(state.guardian, state.run) if state.run else []
    if state.phase in LIVE or left:
        state.phase = "stopped"
        state.note(time.time(), "Stopped; what a killed program had left behind was ended." if left else "Stopped.")
        state.guardian = state.server_pid = None
        with contextlib.suppress(OSError):  # a full disk
            folder.write(state)
    return len(left)


def failure_of(state: State) -> MaiError:
    """Return the error for a server that did not become ready."""
    return _error(state.failure or {"title": state.message})


def refusal_of(state: State) -> MaiError | None:
    """Return why a server went back from the last change of its settings; None if it did not."""
    return None if state.refused is None else _error(state.refused)


def _error(found: Mapping[str, Any]) -> MaiError:
    """Return a failure as an error, its evidence shortened and without pydantic's additions."""
    title = str(found.get("title") or "The server did not start").rstrip(".")
    evidence = str(found.get("evidence") or "").strip()
    because = str(found.get("stopped_because") or "").strip()
    remedy = str(found.get("remedy") or "`mai-server logs` shows its output.")
    text = _PYDANTIC.sub("", evidence)
    if len(text) > _MOST_QUOTED:  # cut between words; a parser's list has no spaces
        cut = max(text.rfind(end, 0, _MOST_QUOTED) for end in (" ", ","))
        text = f"{text[: max(cut, _MOST_QUOTED // 2)]} ..."
    quote = f' It said: "{text}".' if evidence else ""
    reason = f" {because}" if because and because != remedy else ""
    error = EnvironmentLacksError if found.get("kind") in _OF_THE_MACHINE else MaiError
    return error(f"{title}.{quote}{reason}", remedy)
