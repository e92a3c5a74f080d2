"""Runs between the supervisor and vLLM, so that no vLLM process survives either of them.

Run as a script by any Python 3.11: `guardian.py CONTROL STATUS COMMAND...`, with two inherited pipe descriptors, in
its own session. It imports only the standard library, and little of it, because it runs before every server.

- When the control pipe closes, the supervisor is gone: kill everything in the session.
- `T` on the control pipe sends SIGTERM to vLLM's main process; `K` kills everything at once.
- When vLLM's main process ends, kill the rest: engine cores and workers survive a killed API server.
- When the guardian itself is killed, a second process that waits for that does the same, also without a supervisor.
- The status pipe reports `pid N` after the start and `exit N` after the end (negative for a signal).
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PDEATHSIG = 1
#: The mark of `state.py`, which processes in other sessions keep.
_MARK = "MAI_SERVER_RUN"


def main() -> int:
    """Start the command, wait for its end or for orders, and kill all remaining processes."""
    control, status = int(sys.argv[1]), int(sys.argv[2])
    command = sys.argv[3:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    me = os.getpid()
    _stand_by(control, status)
    child = os.fork()
    if child == 0:
        _start(command, control, status, me)
    _release_output()
    _say(status, f"pid {child}")
    wake, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    exit_status: int | None = None
    while exit_status is None:
        ready, _, _ = select.select([control, wake], [], [], 1.0)
        if control in ready:
            order = os.read(control, 1)
            if order == b"T":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGTERM)
            else:  # K, or the supervisor is gone
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                kill_others()
        if wake in ready:
            os.read(wake, 512)
        collect()
        exit_status = _ended.get(child)
    kill_others()
    _say(status, f"exit {exit_status}")
    return 0


def _stand_by(control: int, status: int) -> None:
    """Fork a process that kills the server when this one is gone, however it ended."""
    gone, here = os.pipe()
    if os.fork() != 0:
        os.close(gone)
        return
    for descriptor in (here, control, status):  # `here` is then open in the guardian only: exec closes vLLM's
        os.close(descriptor)
    _release_output()
    os.read(gone, 1)
    kill_others()
    os._exit(0)


def _release_output() -> None:
    """Release the output pipe: the supervisor must see end-of-file when the server's processes end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def _start(command: list[str], control: int, status: int, guardian: int) -> None:
    """Execute vLLM in the forked child. The kernel kills the child if the guardian dies."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guardian:  # the guardian was killed before the prctl call
        os._exit(137)
    os.close(control)
    os.close(status)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error.strerror}\n".encode())
        os._exit(127)


#: Exit statuses of reaped children by PID; negative for a signal.
_ended: dict[int, int] = {}


def collect() -> None:
    """Reap ended children and record their exit statuses."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _ended[pid] = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def kill_others(seconds: float = 10.0) -> None:
    """Kill every other process of this server until none is left or the time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        others = _others()
        if not others:
            return
        for pid in others:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
        collect()


def _others() -> list[int]:
    """Return the processes of our session or with our mark, and all descendants, without zombies."""
    me, session = os.getpid(), os.getsid(0)
    mark = f"{_MARK}={os.environ[_MARK]}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                fields = file.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if fields[0] in ("Z", "X"):
            continue
        parents[int(name)] = int(fields[1])
        if int(fields[3]) == session or mark in _environment(name):
            found.add(int(name))
    while True:
        more = {pid for pid, parent in parents.items() if (parent in found or parent == me) and pid not in found}
        if not more:
            break
        found |= more
    found.discard(me)
    return sorted(found)


def _environment(pid: str) -> list[bytes]:
    """Return the environment of a process; empty if we may not read it."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return file.read().split(b"\0")
    except OSError:
        return []


def _prctl(option: int, value: int) -> None:
    """Call prctl on Linux. On other systems only the supervisor cleans up."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _say(status: int, text: str) -> None:
    with contextlib.suppress(OSError):  # the supervisor is gone
        os.write(status, f"{text}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
