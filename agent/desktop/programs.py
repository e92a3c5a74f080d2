"""Starts programs, directly or inside a sandbox; and helper processes of our own.

The environment of a sandbox names the socket of the sandbox's launcher, which starts programs on request. In any other
environment, a program is a normal subprocess.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from foundation.processes import marked_processes, pid_here

if TYPE_CHECKING:
    import psutil

#: The variable that names the sandbox that a process belongs to.
MARK = "MAI_AGENT_SANDBOX"
#: The variable that names the launcher's socket. Programs inside the sandbox do not get it, and could not use it.
LAUNCHER_SOCKET = "MAI_AGENT_SANDBOX_DOOR"
#: Seconds for the launcher to start a program. It takes a few milliseconds, unless the machine is overloaded.
_TIMEOUT = 20.0


#: The only variables that a helper process of ours gets. It may outlive us, so it must get no API key and no mark of a
#: sandbox.
_BARE = (
    *("HOME", "PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"),
    *("DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"),
)


def bare_environ(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of an environment that a helper process needs."""
    return {name: environ[name] for name in _BARE if name in environ}


def host_pid(pid: int, environ: Mapping[str, str]) -> int:
    """Translate a PID from the PID namespace of an environment's sandbox into ours."""
    return pid_here(pid, MARK, environ.get(MARK))


def marked(name: str) -> "list[psutil.Process]":
    """Return the running processes of a sandbox, except this one.

    Desktop programs detach, fork and start each other over D-Bus; all of them inherit the environment.
    """
    return marked_processes(MARK, name)


#: A program that was started.
Started: TypeAlias = "subprocess.Popen[bytes] | Inside"


def start_program(command: Sequence[str], environ: Mapping[str, str], folder: str | None = None) -> Started:
    """Start a detached program without input or output, in the sandbox that its environment names. Raises OSError."""
    if LAUNCHER_SOCKET in environ:
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
    """Start a program in the sandbox that its environment names. Raises OSError: it cannot, or the sandbox has ended.

    The program is looked up in the sandbox's PATH. Its working directory is `folder`, or its home for None. `stdin`,
    `stdout` and `stderr` are file descriptors or DEVNULL.
    """
    variables = {name: value for name, value in environ.items() if name != LAUNCHER_SOCKET}
    request = {"command": list(command), "environ": variables, "folder": folder or environ.get("HOME", "/")}
    with ExitStack() as failed:
        channel = failed.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        channel.settimeout(_TIMEOUT)
        channel.connect(environ[LAUNCHER_SOCKET])
        text = json.dumps(request).encode() + b"\n"
        with Path(os.devnull).open("r+b", buffering=0) as nothing:
            files = [nothing.fileno() if one == subprocess.DEVNULL else one for one in (stdin, stdout, stderr)]
            sent = socket.send_fds(channel, [text], files)
        if sent < len(text):  # sendmsg may take only a part
            channel.sendall(text[sent:])
        answer = _line(channel)
        if "pid" not in answer:
            if number := answer.get("error"):
                raise OSError(number, os.strerror(number), command[0])
            raise OSError("the desktop that it belongs to has ended")
        failed.pop_all()
        return Inside(list(command), answer["pid"], channel)


def _line(channel: socket.socket) -> dict[str, Any]:
    """Read the launcher's next answer; empty if the launcher has ended. Raises OSError."""
    text = b""
    while not text.endswith(b"\n"):
        piece = channel.recv(1)  # byte by byte: the next line may be in the socket already
        if not piece:
            return {}
        text += piece
    answer: dict[str, Any] = json.loads(text)
    return answer


class Inside:
    """A program in a sandbox; `pid` is its PID there."""

    def __init__(self, command: list[str], pid: int, channel: socket.socket) -> None:
        self.args = command
        self.pid = pid
        self.returncode: int | None = None
        self._channel = channel

    def poll(self) -> int | None:
        """Return the exit status; None while the program runs, -9 if the sandbox has ended."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program ends and return its exit status. Raises subprocess.TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return status

    def signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(OSError):
                self._channel.sendall(b"%d\n" % number)

    def _status(self, patience: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        try:
            self._channel.settimeout(patience)
            answer = _line(self._channel)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError:
            answer = {}
        self._channel.close()
        self.returncode = int(answer.get("status", -9))
        return self.returncode


def run_inside(
    command: Sequence[str], environ: Mapping[str, str], timeout: float
) -> "subprocess.CompletedProcess[str]":
    """Run a program in the sandbox that its environment names, to its end.

    Raises OSError: it cannot be started. TimeoutExpired: it was killed after `timeout` seconds.
    """
    # Files, not pipes: a background process that the program leaves behind may keep a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        program = start_inside(command, environ, stdout=out.fileno(), stderr=err.fileno())
        try:
            status = program.wait(timeout)
        except BaseException:
            program.signal(signal.SIGKILL)
            raise
        outputs = []
        for file in (out, err):
            file.seek(0)
            outputs.append(file.read().decode("utf-8", "replace"))
    return subprocess.CompletedProcess(list(command), status, *outputs)


_END_TIMEOUT = 2.0


class HelperProcess:
    """Runs a program of ours that reads lines from standard input, until it is closed or this process ends.

    Never raises: without the helper, the hand still releases by itself.
    """

    def __init__(self, program: Path, *arguments: str, files: Sequence[int] = ()) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen(
                # -P: no module is imported from the program's own folder
                [sys.executable, "-P", str(program), *arguments], env=bare_environ(), pass_fds=files, bufsize=0,
                start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)  # a helper that hangs must not hang the hand

    def tell(self, line: str) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError, ValueError):  # the process ended
                os.write(process.stdin.fileno(), f"{line}\n".encode())

    def close(self) -> None:
        """End the process, which first releases what is still down. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=_END_TIMEOUT)  # closes its standard input
        except subprocess.TimeoutExpired:  # the display does not answer the process either
            process.kill()
            process.wait()
