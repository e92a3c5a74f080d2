"""The way into an isolated desktop: programs are started inside by its launcher, as if they were started here.

Who has a sandbox's environment has its door too; everywhere else, a program is simply started.
"""

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Protocol

from foundation.processes import number_here

#: The variable that names the sandbox that a process belongs to.
MARK = "MAI_AGENT_SANDBOX"
#: The variable that names the socket at which the launcher listens. Nothing inside has it, or could use it.
DOOR = "MAI_AGENT_SANDBOX_DOOR"
#: Seconds for the launcher to start a program: some milliseconds, unless the machine has no time for it.
_PATIENCE = 20.0
_FILES = ("stdin", "stdout", "stderr")


def number_outside(pid: int, environ: Mapping[str, str]) -> int:
    """The number that a process of an environment has here; programs in there tell another one."""
    return number_here(pid, MARK, environ.get(MARK))


class Started(Protocol):
    """A program that was started."""

    pid: int

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""


def start_program(command: Sequence[str], environ: Mapping[str, str], folder: str | None = None) -> Started:
    """Start a program that outlives this one, silent, in a session of its own; behind the door of its environment.

    Raises:
        OSError: it cannot be started.
    """
    if DOOR in environ:
        return start_inside(command, environ, folder)
    return subprocess.Popen(
        command, env=dict(environ), cwd=folder, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def start_inside(
    command: Sequence[str],
    environ: Mapping[str, str],
    folder: str | None = None,
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
) -> "Inside":
    """Start a program behind the door that its environment names.

    Args:
        command: the program, searched in its PATH inside, and its arguments.
        environ: its environment.
        folder: where it works; None for its home.
        stdin: a file's number, DEVNULL, or PIPE; likewise the other two.
        stdout: where it writes.
        stderr: where it tells errors.

    Raises:
        OSError: it cannot be started, or the door is closed.
    """
    theirs: list[int] = []
    ours: dict[str, IO[bytes]] = {}
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        for name, wanted in zip(_FILES, (stdin, stdout, stderr), strict=True):
            theirs.append(_file(name, wanted, ours))
        given = {name: value for name, value in environ.items() if name != DOOR}
        request = {"command": list(command), "environ": given, "folder": folder or environ.get("HOME", "/")}
        door.settimeout(_PATIENCE)
        door.connect(environ[DOOR])
        text = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(door, [text], theirs)
        if sent < len(text):  # a program that is over already had its door shut: nothing more can be said there
            door.sendall(text[sent:])
        answer = _line(door)
        if "pid" not in answer:
            number = answer.get("error") or 0
            raise OSError(number, os.strerror(number) if number else "the desktop that it belongs to has ended")
        return Inside(list(command), answer["pid"], door, ours)
    except BaseException:
        door.close()
        for file in ours.values():
            file.close()
        raise
    finally:
        for number in theirs:
            os.close(number)


def _file(name: str, wanted: int, ours: dict[str, IO[bytes]]) -> int:
    """A file for the other side, of which `ours` gets the other end of a pipe."""
    if wanted == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR)
    if wanted != subprocess.PIPE:
        return os.dup(wanted)
    reading, writing = os.pipe()
    if name == "stdin":
        ours[name] = os.fdopen(writing, "wb")
        return reading
    ours[name] = os.fdopen(reading, "rb")
    return writing


def _line(door: socket.socket) -> dict[str, Any]:
    """What the launcher says next; nothing where it has ended. Raises OSError."""
    text = b""
    while not text.endswith(b"\n"):
        piece = door.recv(1)  # not more: the next line may be there already
        if not piece:
            return {}
        text += piece
    said: dict[str, Any] = json.loads(text)
    return said


class Inside:
    """A program behind a door; see `Started`. `pid` is its number in there."""

    def __init__(self, command: list[str], pid: int, door: socket.socket, files: Mapping[str, IO[bytes]]) -> None:
        self.args = command
        self.pid = pid
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = (files.get(name) for name in _FILES)
        self._door = door

    def poll(self) -> int | None:
        """See `Started.poll`; as if killed where the desktop has ended."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its status, once it has ended. Raises subprocess.TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return status

    def signal(self, number: int) -> None:
        """Send a signal to it and to its group."""
        if self.returncode is None:
            with suppress(OSError):
                self._door.sendall(b"%d\n" % number)

    def _status(self, patience: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        try:
            self._door.settimeout(patience)
            told = _line(self._door)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError:
            told = {}
        self._door.close()
        self.returncode = int(told.get("status", -9))
        return self.returncode


def run_inside(
    command: Sequence[str], environ: Mapping[str, str], timeout: float, folder: str | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program behind the door of its environment to its end.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it was killed after so many seconds.
    """
    # Files, not pipes: what it leaves in the background may hold them open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        program = start_inside(command, environ, folder, stdout=out.fileno(), stderr=err.fileno())
        try:
            status = program.wait(timeout)
        except BaseException:
            program.signal(signal.SIGKILL)
            raise
        told = []
        for file in (out, err):
            file.seek(0)
            told.append(file.read().decode("utf-8", "replace"))
    return subprocess.CompletedProcess(list(command), status, *told)
