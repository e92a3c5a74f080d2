"""Stands between the supervisor and vLLM so that nothing of vLLM outlives either.

Run as a script by any Python 3.11 (it imports nothing of ours, and little else: it starts before every server):
`guardian.py CONTROL STATUS COMMAND...` with the numbers of two inherited pipes, in a session of its own.

- When the control pipe closes, the supervisor is gone: everything in the session is killed.
- `T` on the control pipe asks vLLM's own process to end; `K` kills everything at once.
- When vLLM's own process ends, what it left behind (engine cores and workers outlive a killed API server) is killed.
- The status pipe says `pid N` after the start and `exit N` after the end (negative for a signal).
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


def main() -> int:
    """Start the command, watch both ends, leave nothing."""
    control, status = int(sys.argv[1]), int(sys.argv[2])
    command = sys.argv[3:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    me = os.getpid()
    child = os.fork()
    if child == 0:
        _start(command, control, status, me)
    # The server's output must end when the server's processes end, whatever becomes of us.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
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


def _start(command: list[str], control: int, status: int, guardian: int) -> None:
    """In the child: become vLLM, and die should the guardian itself be killed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guardian:  # it was killed before the line above
        os._exit(137)
    os.close(control)
    os.close(status)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error.strerror}\n".encode())
        os._exit(127)


#: Exit statuses of children that were collected, by number; negative for a signal.
_ended: dict[int, int] = {}


def collect() -> None:
    """Collects ended children and remembers how they ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _ended[pid] = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def kill_others(seconds: float = 10.0) -> None:
    """Kills every other process of this session and every descendant, until there is none."""
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
    """Processes of our session, and descendants that made sessions of their own; zombies do not count."""
    me, session = os.getpid(), os.getsid(0)
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
        if int(fields[3]) == session:
            found.add(int(name))
    while True:
        more = {pid for pid, parent in parents.items() if (parent in found or parent == me) and pid not in found}
        if not more:
            break
        found |= more
    found.discard(me)
    return sorted(found)


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the supervisor's own cleaning up has to do."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _say(status: int, text: str) -> None:
    with contextlib.suppress(OSError):  # the supervisor is gone
        os.write(status, f"{text}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
