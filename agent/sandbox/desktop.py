"""Starts, finds and ends sandboxes: disposable desktops.

A sandbox shares nothing with the person's desktop or with other sandboxes. Its owner holds a lock on its folder, so
the next start recognizes and removes the sandbox of a killed owner.
"""

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.core.geometry import Size
from agent.desktop.programs import MARK, Inside, marked, run_inside, start_inside
from agent.sandbox.isolation import Network, open_sockets, why_not
from agent.sandbox.sessions import install_line, load_session, locale_environ
from agent.sandbox.start import apply, check_size, display_environ, display_of, release, start
from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from foundation.processes import end_marked

_PREFIX = "mai-agent-sandbox-"
#: Seconds between SIGTERM and SIGKILL for the programs of a sandbox that ends.
_GRACE = 0.5


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """The options of a sandbox."""

    #: Size of its only monitor, in pixels.
    size: Size = Size(1920, 1080)  # noqa: RUF009 -- frozen
    keep: bool = False  # leave it running afterwards
    session: str = "xfce"  # one of `session_names`
    locale: str | None = None  # of its programs, such as "de_DE.UTF-8"; None for this process's locale
    network: Network | None = None  # None: "host" if isolation is possible. "none" without isolation is an error


class Sandbox:
    """A running sandbox. Make one with `start_sandbox`; end it with `close`."""

    def __init__(self, folder: Path, spec: SandboxSpec, lock: int) -> None:
        self.folder = folder
        self.spec = spec
        self.name = folder.name.removeprefix(_PREFIX)
        self.environ: dict[str, str] = {}
        self._output = folder / "programs.log"
        self._lock: int | None = lock
        self._outside = display_environ()  # of this process before the start
        self._held = ExitStack()  # resources whose closing ends the desktop

    def applied(self) -> None:
        """Set this process's environment to the sandbox's display."""
        apply(self.environ)

    def start(self, *command: str, **more: str) -> Inside:
        """Start a program in its home, with the additional environment variables `more`. Raises OSError, UsageError."""
        _check_command(command)
        with self._output.open("ab") as log:
            return start_inside(command, self.environ | more, stdout=log.fileno(), stderr=log.fileno())

    @property
    def output(self) -> bytes:
        """The output of the programs that `start` started."""
        return self._output.read_bytes() if self._output.exists() else b""

    def run(self, *command: str, timeout: float = 20.0) -> "subprocess.CompletedProcess[str]":
        """Run a program to its end. Raises OSError, UsageError; subprocess.TimeoutExpired after killing it."""
        _check_command(command)
        return run_inside(command, self.environ, timeout)

    def how_to_look(self) -> str:
        """Explain how to use a kept sandbox."""
        return (
            f"The sandbox stays on display {display_of(self.environ)}. Enter it with `. {self.folder}/environment`, "
            f"start a program inside with `mai-agent sandbox enter {self.name} PROGRAM`, end it with `mai-agent "
            f"sandbox stop {self.name}`."
        )

    def close(self) -> None:
        """End the sandbox and remove its folder; with `keep`, leave it running. Safe to call twice."""
        if self._lock is None:
            return
        if not (self.spec.keep and self.environ):
            _remove(self.folder)
        if display_environ() == display_environ(self.environ):  # of this process, since the start
            apply(self._outside)
        self._held.close()
        os.close(self._lock)
        self._lock = None


def _check_command(command: Sequence[str]) -> None:
    """Raise UsageError for words that no program can be started with."""
    if not command:
        raise UsageError("No program is named.", 'Name it and its words, each by itself: "ls", "-l".')
    for word in command:
        if not isinstance(word, str) or "\0" in word or any("\ud800" <= char <= "\udfff" for char in word):
            raise UsageError(f"{word!r} is no word of a command.", 'Write texts: "sleep", "1".')


def start_sandbox(
    spec: SandboxSpec, progress: Callable[[str], None] = lambda _: None, check: Callable[[], None] = lambda: None
) -> Sandbox:
    """Start a desktop (1 to 3 s) and wait until it is ready.

    `progress` receives messages; `check` is called while waiting, and an exception from it ends the start. Raises
    EnvironmentLacksError if programs are missing, the desktop does not start, or the requested isolation is not
    possible; UsageError for an unknown locale or an invalid size; KeyError for an unknown session.
    """
    check_size(spec.size)
    session = load_session(spec.session)
    session.check_installed()
    network = _network(spec.network, progress, ordinary=session.ordinary)
    language = {} if spec.locale is None else locale_environ(spec.locale)
    for name in reap_sandboxes():
        progress(f"removed the sandbox {name}, whose owner had been killed")
    if absent := session.missing_applications():
        progress(f"not installed here, of the applications of {session.title}: {install_line(absent)}")
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    sandbox = Sandbox(folder, spec, lock)
    progress(f"starting a throw-away desktop ({session.title}) of {spec.size}")
    try:
        own, owner = language | {MARK: sandbox.name}, None if spec.keep else sandbox._held
        environ = start(folder, spec.size, session, own, network, owner, check)
        exports = (f"export {name}={shlex.quote(value)}\n" for name, value in sorted(environ.items()) if name != "PATH")
        (folder / "environment").write_text("".join(exports))
        (folder / "state.json").write_text(json.dumps({"keep": spec.keep, "display": display_of(environ)}))
    except (OSError, subprocess.SubprocessError) as error:
        sandbox.close()
        raise EnvironmentLacksError(
            f"The sandbox could not be started ({error}).", "Is there room in the temporary folder?"
        ) from error
    except BaseException:
        sandbox.close()
        raise
    sandbox.environ = environ
    return sandbox


def _network(wanted: Network | None, progress: Callable[[str], None], *, ordinary: bool = False) -> Network | None:
    """Return the network of isolated programs; None if isolation is impossible, which is reported."""
    network = wanted or "host"
    lack = why_not(network, ordinary=ordinary)
    if lack is None:
        if network == "host" and (remark := open_sockets()):
            progress(remark)
        return network
    why, remedy = lack
    if wanted == "none":
        raise EnvironmentLacksError(f"A sandbox without network is not possible here: {why}", remedy)
    progress(f"The programs in this sandbox can reach your files and your network: {why} {remedy}")
    return None


@dataclass(frozen=True, slots=True)
class Found:
    """A sandbox on this machine."""

    name: str
    folder: Path
    kept: bool  # may outlive its owner
    owned: bool  # its owner is alive
    display: str


def find_sandboxes() -> Iterator[Found]:
    """Yield this user's sandboxes."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            young = time.time() - folder.stat().st_mtime < 60
            owned = _is_locked(folder / "lock", default=young)
        except OSError:
            continue
        state: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            state = json.loads((folder / "state.json").read_text())
        name = folder.name.removeprefix(_PREFIX)
        yield Found(name, folder, state.get("keep", False), owned, state.get("display", "?"))


def environment_of(name: str) -> dict[str, str]:
    """Return the environment variables of a running sandbox's programs. Raises EnvironmentLacksError if it is gone."""
    folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{name}"
    try:
        words = shlex.split((folder / "environment").read_text()) if "/" not in name and marked(name) else []
    except (OSError, ValueError):
        words = []
    found = dict(word.split("=", 1) for word in words if "=" in word)
    if not found:
        raise EnvironmentLacksError(
            f"The sandbox {name} is gone, and all that was in it.", "Keep the next one with --keep."
        )
    return {"PATH": os.environ.get("PATH", os.defpath)} | found


def reap_sandboxes() -> list[str]:
    """Remove the sandboxes whose owner was killed, except kept ones. Return their names."""
    reaped: list[str] = []
    for found in find_sandboxes():
        if not found.owned and not (found.kept and marked(found.name)):
            _remove(found.folder)
            reaped.append(found.name)
    return reaped


def stop_sandbox(name: str) -> None:
    """End a kept sandbox. Raises MaiError if it does not exist or is in use."""
    found = next((one for one in find_sandboxes() if one.name == name), None)
    if found is None:
        raise UsageError(f"There is no sandbox {name}.", "`mai-agent sandbox list` shows them.")
    if found.owned:
        raise MaiError(f"The sandbox {name} is in use.", "Stop the run that uses it.")
    _remove(found.folder)


def _is_locked(path: Path, *, default: bool) -> bool:
    try:
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return default  # the sandbox may be starting right now
    except BlockingIOError:
        return True
    return False


def _remove(folder: Path) -> None:
    end_marked(MARK, folder.name.removeprefix(_PREFIX), grace=_GRACE)
    release(folder)
    for _ in range(3):  # a dying program may still write into its home
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
