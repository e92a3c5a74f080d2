"""A throw-away desktop: Xvfb and XFCE with a home, a session bus and an X cookie of their own.

Nothing of the person's own desktop is reachable from inside, several sandboxes do not meet, and nothing is left behind:
the folder is locked while its owner lives, so the next start recognises and removes what a killed owner left.
"""

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent.geometry import Size
from agent.sandbox.processes import MARK, end_marked, marked
from foundation.errors import EnvironmentLacksError, MaiError

Session: TypeAlias = Literal["xfce", "gnome"]

_PREFIX = "mai-agent-sandbox-"
#: Programs that make the desktop, and the Debian packages they come in (facts/desktop.md, "A real desktop").
PROGRAMS = {
    "Xvfb": "xvfb", "xauth": "xauth", "dbus-daemon": "dbus-daemon", "xfsettingsd": "xfce4-settings",
    "xfconf-query": "xfconf", "xfwm4": "xfwm4", "xfce4-panel": "xfce4-panel", "xfdesktop": "xfdesktop4",
    "xclip": "xclip",
}  # fmt: skip
#: Packages without a program of their own that the desktop needs. Without the last two, XFCE's Appearance crashes when
#: the theme becomes dark (seen on a minimal Debian 12).
LIBRARIES = (
    *("adwaita-icon-theme", "gnome-themes-extra", "fonts-dejavu-core", "dbus-x11"),
    *("librsvg2-common", "gsettings-desktop-schemas"),
)
_DEFAULT_PANEL = Path("/etc/xdg/xfce4/panel/default.xml")
_START_TIMEOUT = 30.0

_XSETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="xsettings" version="1.0">
  <property name="Net" type="empty">
    <property name="ThemeName" type="string" value="Adwaita"/>
    <property name="IconThemeName" type="string" value="Adwaita"/>
  </property>
</channel>
"""
_XFWM = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfwm4" version="1.0">
  <property name="general" type="empty">
    <property name="use_compositing" type="bool" value="false"/>
  </property>
</channel>
"""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What kind of desktop.

    Args:
        size: of its one monitor, in pixels.
        keep: leave it running afterwards.
        session: what applications believe to run in; `gnome` lets GNOME's applications appear.
    """

    size: Size = Size(1920, 1080)  # noqa: RUF009 -- frozen
    keep: bool = False
    session: Session = "xfce"


class Sandbox:
    """A running sandbox. Make one with `start_sandbox`; end it with `close`."""

    def __init__(self, folder: Path, spec: SandboxSpec, lock: int) -> None:
        self.folder = folder
        self.spec = spec
        self.name = folder.name.removeprefix(_PREFIX)
        self.environ: dict[str, str] = {}
        self._lock = lock
        self._closed = False

    def applied(self) -> None:
        """Make this process see the sandbox's display (capture and input read the environment)."""
        for name in ("DISPLAY", "XAUTHORITY"):
            os.environ[name] = self.environ[name]
        os.environ.pop("WAYLAND_DISPLAY", None)

    def state(self) -> dict[str, str]:
        """A few settings as the system's own tools tell them, for showing what a run changed."""
        questions = {
            "xfconf xsettings /Net/ThemeName": ["xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName"],
            "gsettings color-scheme": ["gsettings", "get", "org.gnome.desktop.interface", "color-scheme"],
        }
        answers: dict[str, str] = {}
        for label, command in questions.items():
            if shutil.which(command[0]) is None:
                continue
            with suppress(subprocess.SubprocessError, OSError):
                done = subprocess.run(
                    command, env=self.environ, capture_output=True, text=True, timeout=5, check=True, cwd=self.folder
                )
                answers[label] = done.stdout.strip()
        return answers

    def how_to_look(self) -> str:
        """The line that tells how to work with a kept sandbox."""
        return (
            f"The sandbox stays on display {self.environ['DISPLAY']}. Enter it with `. {self.folder}/environment`, "
            f"end it with `mai-agent sandbox stop {self.name}`."
        )

    def close(self) -> None:
        """End it and remove its folder; or, with `keep`, let it go. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        if not self.spec.keep:
            _remove(self.folder)
        os.close(self._lock)


def missing_packages() -> list[str]:
    """Debian packages of the programs that are not installed."""
    return sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})


def start_sandbox(
    spec: SandboxSpec, progress: Callable[[str], None] = lambda _: None, check: Callable[[], None] = lambda: None
) -> Sandbox:
    """Start a desktop (1 to 3 s) and wait until it is ready.

    Args:
        spec: what kind of desktop.
        progress: is told what is being done.
        check: called while waiting; whatever it raises ends the start.

    Raises:
        EnvironmentLacksError: programs are missing, or the desktop does not come up; nothing is left behind then.
    """
    if missing := missing_packages():
        raise EnvironmentLacksError(
            "The sandbox needs programs that are not installed.",
            f"Install them: apt-get install --no-install-recommends {' '.join([*missing, *LIBRARIES])}",
        )
    for name in reap_sandboxes():
        progress(f"removed the sandbox {name}, whose owner had been killed")
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    sandbox = Sandbox(folder, spec, lock)
    progress(f"starting a throw-away desktop of {spec.size}")
    try:
        _write_home(sandbox)
        _start_display(sandbox, check)
        _start_session(sandbox, check)
        _write_state(sandbox)
    except BaseException as error:
        _remove(folder)
        os.close(lock)
        if isinstance(error, OSError | subprocess.SubprocessError):
            raise EnvironmentLacksError(
                f"The sandbox could not be started ({error}).", "Is there room in the temporary folder?"
            ) from error
        raise
    return sandbox


def _write_home(sandbox: Sandbox) -> None:
    folder = sandbox.folder
    home = folder / "home"
    channels = home / ".config/xfce4/xfconf/xfce-perchannel-xml"
    channels.mkdir(parents=True)
    for name in (".cache", ".local/share", "Desktop", "Documents", "Downloads"):
        (home / name).mkdir(parents=True)
    (folder / "run").mkdir(mode=0o700)
    (channels / "xsettings.xml").write_text(_XSETTINGS)
    (channels / "xfwm4.xml").write_text(_XFWM)
    if _DEFAULT_PANEL.is_file():  # without it, the panel's first start asks a question
        shutil.copy(_DEFAULT_PANEL, channels / "xfce4-panel.xml")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LANGUAGE", "TZ", "USER")}
    sandbox.environ = kept | {
        MARK: sandbox.name,
        "HOME": str(home),
        "LANG": kept.get("LANG", "C.UTF-8"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "XDG_CURRENT_DESKTOP": sandbox.spec.session.upper(),
        "XDG_SESSION_TYPE": "x11",
        "GDK_BACKEND": "x11",
        "NO_AT_BRIDGE": "1",
        "LIBGL_ALWAYS_SOFTWARE": "1",
    }


def _start_display(sandbox: Sandbox, check: Callable[[], None]) -> None:
    """Xvfb on a free display number that it chooses itself, with a cookie."""
    cookie = sandbox.folder / "cookie"
    key = secrets.token_hex(16)
    cookie.touch(0o600)
    reading, writing = os.pipe()
    try:
        xvfb = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{sandbox.spec.size}x24", "-dpi", "96",
             "-auth", str(cookie), "-nolisten", "tcp", "-noreset"],
            env=sandbox.environ, start_new_session=True, pass_fds=(writing,), cwd=sandbox.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(sandbox.folder / "xvfb.log").open("wb"),
        )  # fmt: skip
        os.close(writing)
        writing = -1
        # The cookie is filed under the display's number, which is only known now; Xvfb reads the file on the first
        # connection after a change.
        number = _read_number(reading, xvfb, check)
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
    sandbox.environ |= {"DISPLAY": f":{number}", "XAUTHORITY": str(cookie)}
    subprocess.run(
        ["xauth", "-q", "-f", str(cookie), "add", f":{number}", "MIT-MAGIC-COOKIE-1", key],
        env=sandbox.environ, check=True, timeout=10, stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip


def _read_number(reading: int, xvfb: "subprocess.Popen[bytes]", check: Callable[[], None]) -> int:
    os.set_blocking(reading, False)
    deadline = time.monotonic() + _START_TIMEOUT
    text = b""
    while time.monotonic() < deadline and not text.endswith(b"\n"):
        with suppress(BlockingIOError):
            text += os.read(reading, 16)
        if xvfb.poll() is not None:
            break
        check()
        time.sleep(0.02)
    if not text.strip().isdigit():
        raise EnvironmentLacksError(
            "Xvfb, the sandbox's display, did not start.", "Try `Xvfb -displayfd 1` by hand: it says why."
        )
    return int(text)


def _start_session(sandbox: Sandbox, check: Callable[[], None]) -> None:
    bus = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"],
        env=sandbox.environ, start_new_session=True, cwd=sandbox.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert bus.stdout is not None
    address = bus.stdout.readline().decode().strip()
    if not address:
        raise EnvironmentLacksError("The sandbox's session bus did not start.", "Is dbus-daemon installed whole?")
    # The system bus is the session's too: nothing in here reaches the machine's own services.
    sandbox.environ |= {"DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": address}
    for command in (["xfsettingsd", "--disable-wm-check"], ["xfwm4"], ["xfce4-panel"], ["xfdesktop"]):
        subprocess.Popen(
            command, env=sandbox.environ, start_new_session=True, cwd=sandbox.environ["HOME"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    _wait_until_ready(sandbox, check)


def _wait_until_ready(sandbox: Sandbox, check: Callable[[], None]) -> None:
    """Wait for the panel's and the desktop's windows."""
    before = {name: os.environ.get(name) for name in ("DISPLAY", "XAUTHORITY")}
    sandbox.applied()
    try:
        from agent.desktop.x11.windows import X11Windows

        deadline = time.monotonic() + _START_TIMEOUT
        windows = X11Windows()
        try:
            while time.monotonic() < deadline:
                apps = {window.app.lower() for window in windows.windows()}
                if {"xfce4-panel", "xfdesktop"} <= apps:
                    return
                check()
                time.sleep(0.05)
        finally:
            windows.close()
    except BaseException:
        _restore(before)
        raise
    raise EnvironmentLacksError("The sandbox's desktop did not come up in time.", "Is the machine very busy?")


def _restore(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _write_state(sandbox: Sandbox) -> None:
    import shlex

    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(sandbox.environ.items()) if name != "PATH"]
    (sandbox.folder / "environment").write_text("\n".join([*lines, ""]))
    state = {"keep": sandbox.spec.keep, "display": sandbox.environ["DISPLAY"], "owner": os.getpid()}
    (sandbox.folder / "state.json").write_text(json.dumps(state))


@dataclass(frozen=True, slots=True)
class Found:
    """A sandbox on this machine: `kept` ones may outlive their owner, `owned` ones have one."""

    name: str
    folder: Path
    kept: bool
    owned: bool
    display: str


def find_sandboxes() -> Iterator[Found]:
    """This user's sandboxes."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            young = time.time() - folder.stat().st_mtime < 60
            owned = _is_locked(folder / "lock", default=young)
        except OSError:
            continue
        state: dict[str, object] = {}
        with suppress(OSError, ValueError):
            state = json.loads((folder / "state.json").read_text())
        yield Found(
            folder.name.removeprefix(_PREFIX), folder, bool(state.get("keep")), owned, str(state.get("display", "?"))
        )


def reap_sandboxes() -> list[str]:
    """Remove the sandboxes whose owner was killed; the names of those removed. Kept ones are left alone."""
    reaped: list[str] = []
    for found in find_sandboxes():
        if not found.owned and not (found.kept and marked(found.name)):
            _remove(found.folder)
            reaped.append(found.name)
    return reaped


def stop_sandbox(name: str) -> None:
    """End a kept sandbox. Raises MaiError when there is none of that name, or it is in use."""
    for found in find_sandboxes():
        if found.name == name:
            if found.owned:
                raise MaiError(f"The sandbox {name} is in use.", "Stop the run that uses it.")
            _remove(found.folder)
            return
    raise MaiError(f"There is no sandbox {name}.", "`mai-agent sandbox list` shows them.")


def _is_locked(path: Path, *, default: bool) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return default  # perhaps being made right now
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _remove(folder: Path) -> None:
    end_marked(folder.name.removeprefix(_PREFIX))
    for _ in range(3):  # a dying program may still write into its home
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
