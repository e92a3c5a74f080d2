"""The first program of a sandbox, which starts all others at the agent's request.

It runs from text (`python -I -S -c`) with the standard library alone, because this checkout is not visible inside. Its
arguments are two file descriptors (the listening socket, which has no path inside, and a pipe whose other end the owner
holds, or -1) and the network of isolated programs: "none", "host", or "" without isolation. It ends with its owner; if
the programs are isolated, it kills all of them first.

Protocol: the client sends a JSON object (written by `agent.desktop.programs`) with the program's three standard files.
It receives a line {"pid": N} or {"error": ERRNO}, and a line {"status": N} when the program has ended. Signal
numbers from the client, one a line, are sent to the program's process group.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

_LARGEST = 1_000_000


class Launcher:
    """Starts programs, and reports how they ended."""

    def __init__(self, door: int, owner: int, *, isolated: bool) -> None:
        self._isolated = isolated
        for number in (door, owner):
            if number >= 0:
                os.set_inheritable(number, False)
        self._listening = socket.socket(fileno=door)
        self._asking: dict[int, socket.socket] = {}  # PID to the client that waits for its end
        self._waker, self._woken = socket.socketpair()
        for end in (self._waker, self._woken):
            end.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        self._selector.register(self._waker, selectors.EVENT_READ, self._reap)
        if owner >= 0:
            self._selector.register(owner, selectors.EVENT_READ, self._end)

    def serve(self) -> None:
        """Serve until the owner has ended."""
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _end(self) -> None:
        if self._isolated:
            with suppress(OSError):
                os.kill(-1, signal.SIGKILL)  # all processes of the namespace but its first, which ends next
        sys.exit()

    def _accept(self) -> None:
        asking, _ = self._listening.accept()
        asking.settimeout(5)
        files: list[int] = []
        try:
            request, files = _received(asking)
            pid = self._start(request, files)
            asking.sendall(b'{"pid": %d}\n' % pid)
        except OSError as error:
            with suppress(OSError):
                asking.sendall(b'{"error": %d}\n' % (error.errno or 0))
            asking.close()
            return
        except (ValueError, KeyError, TypeError):
            asking.close()
            return
        finally:
            for file in files:
                os.close(file)
        asking.setblocking(False)
        self._asking[pid] = asking
        self._selector.register(asking, selectors.EVENT_READ, lambda: self._heard(pid))

    @staticmethod
    def _start(request: Any, files: list[int]) -> int:
        stdin, stdout, stderr = files
        program = subprocess.Popen(
            request["command"], env=request["environ"], cwd=request["folder"], start_new_session=True,
            stdin=stdin, stdout=stdout, stderr=stderr,
        )  # fmt: skip
        program.returncode = 0  # `_reap` waits for all children
        return program.pid

    def _heard(self, pid: int) -> None:
        asking = self._asking[pid]
        try:
            numbers = asking.recv(100).split()
        except OSError:
            numbers = []
        if not numbers:
            self._selector.unregister(asking)
            self._asking.pop(pid).close()
        for number in numbers:
            with suppress(OSError, ValueError):
                os.killpg(pid, int(number))

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            self._waker.recv(1000)
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                asking = self._asking.pop(pid, None)
                if asking is not None:
                    self._selector.unregister(asking)
                    with suppress(OSError):
                        asking.sendall(b'{"status": %d}\n' % os.waitstatus_to_exitcode(status))
                    asking.close()


def _received(asking: socket.socket) -> tuple[Any, list[int]]:
    """Read a request and the three standard files. Raises OSError; ValueError for an incomplete request."""
    text, files, _, _ = socket.recv_fds(asking, 65536, 3)
    while not text.endswith(b"\n"):
        more = asking.recv(65536)
        if not more or len(text) > _LARGEST:
            raise ValueError
        text += more
    return json.loads(text), files


def leave_abstract_sockets() -> None:
    """Block connections to abstract sockets outside, if Linux supports that (6.12).

    On the host network, they belong to the person's desktop: the X server and older session buses.
    """
    import ctypes

    class Ruleset(ctypes.Structure):
        _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))

    create, restrict, abstract_unix_sockets = 444, 446, 1
    call = ctypes.CDLL(None).syscall
    rules = Ruleset(0, 0, abstract_unix_sockets)
    number = call(create, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    if number >= 0:
        call(restrict, number, 0)
        os.close(number)


def main() -> None:
    """Serve on the file descriptors in the arguments."""
    door, owner, network = sys.argv[1:]
    with suppress(OSError):
        Path("/proc/self/comm").write_text("mai-launcher")
    if network == "host":
        leave_abstract_sockets()
    Launcher(int(door), int(owner), isolated=bool(network)).serve()


if __name__ == "__main__":
    main()
