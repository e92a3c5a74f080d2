"""One throw-away desktop: Xvfb and a kind of session, with a home, a session bus and an X cookie of their own."""

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from agent.desktop.factory import open_windows
from agent.geometry import Size
from agent.sandbox.sessions import Session
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

Environ: TypeAlias = dict[str, str]

_START_TIMEOUT = 30.0
#: The variables that name a display.
_DISPLAY = ("DISPLAY", "XAUTHORITY")
#: Those of the person's own that programs in it have too.
_KEPT = ("PATH", "LANG", "LANGUAGE", "TZ", "USER")


def start(folder: Path, size: Size, session: Session, own: Environ, check: Callable[[], None]) -> Environ:
    """Start the desktop in a folder, wait until it is ready, and return the environment of its applications.

    This process sees the display too (see `apply`). The variables of `own` are for its processes alone: what tells them
    from others, and their language. `check` is called while waiting, and whatever it raises ends the start.

    Raises:
        EnvironmentLacksError: it does not come up. What was started goes on then.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    named = {name: value.format(folder=folder) for name, value in session.environment.items()}
    environ = {"LANG": "C.UTF-8"} | kept | named | own
    _make_home(folder, session, environ)
    environ |= _start_display(folder, size, environ, check)
    environ |= _start_bus(environ, check)
    before = dict(os.environ)
    apply(environ)
    try:
        _paint_root(session.wallpaper)
        for command in session.start:
            _spawn([*command], environ)
        _wait_until_ready(session, check)
    except BaseException:
        os.environ.clear()
        os.environ.update(before)
        raise
    return environ


def apply(environ: Mapping[str, str]) -> None:
    """Make this process see the display of an environment."""
    os.environ.update({name: environ[name] for name in _DISPLAY})
    os.environ.pop("WAYLAND_DISPLAY", None)


def settings(environ: Environ) -> dict[str, str]:
    """A few settings as the system's own tools tell them."""
    answers: dict[str, str] = {}
    for label, command in load_config("sandbox.toml")["settings"].items():
        with suppress(subprocess.SubprocessError, OSError):
            done = subprocess.run(
                command, env=environ, capture_output=True, text=True, timeout=5, check=True, cwd=environ["HOME"]
            )
            answers[label] = done.stdout.strip()
    return answers


def _make_home(folder: Path, session: Session, environ: Environ) -> None:
    home, services = folder / "home", folder / "run/dbus-1/services"
    for path in (".cache", ".local/share", ".config/dconf"):
        (home / path).mkdir(parents=True)
    (folder / "run").mkdir(mode=0o700)
    services.mkdir(parents=True)
    for name, command in session.services.items():
        (services / f"{name}.service").write_text(f"[D-BUS Service]\nName={name}\nExec={command}\n")
    for path, text in session.files.items():
        _parent(home / path).write_text(text)
    for path, original in session.copies.items():
        if Path(original).is_file():
            shutil.copy(original, _parent(home / path))
    (folder / "keyfiles").mkdir()
    (folder / "keyfiles/settings").write_text(_keyfile(session.dconf))
    # Compiled, not set one by one, so that it is there before the first program looks.
    _finish(["dconf", "compile", str(home / ".config/dconf/user"), str(folder / "keyfiles")], environ)
    if shutil.which("xdg-user-dirs-update"):  # makes the folders of a home, called as the language calls them
        _finish(["xdg-user-dirs-update"], environ)
    else:
        for name in session.folders:
            (home / name).mkdir()


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _keyfile(groups: Mapping[str, Mapping[str, str]]) -> str:
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name}={value}\n" for name, value in values.items())
        for group, values in groups.items()
    )


def _spawn(command: list[str], environ: Environ, **options: Any) -> "subprocess.Popen[Any]":
    """Start a program that outlives this one, silent unless `options` say otherwise."""
    options = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL) | options
    return subprocess.Popen(command, env=environ, start_new_session=True, cwd=environ["HOME"], **options)


def _finish(command: list[str], environ: Environ) -> None:
    subprocess.run(
        command, env=environ, check=True, timeout=10, cwd=environ["HOME"], stdin=subprocess.DEVNULL, capture_output=True
    )


def _start_display(folder: Path, size: Size, environ: Environ, check: Callable[[], None]) -> Environ:
    """Xvfb on a free display number that it chooses itself, with a cookie."""
    cookie = folder / "cookie"
    cookie.touch(0o600)
    reading, writing = os.pipe()
    with (folder / "xvfb.log").open("wb") as log, os.fdopen(writing, "wb"):
        command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{size}x24", "-dpi", "96",
                   "-auth", str(cookie), "-nolisten", "tcp", "-noreset"]  # fmt: skip
        xvfb = _spawn(command, environ, pass_fds=(writing,), stderr=log)
    number = _first_line(os.fdopen(reading, "rb"), xvfb, check)
    if not number.isdigit():
        raise EnvironmentLacksError(
            "Xvfb, the sandbox's display, did not start.", "Try `Xvfb -displayfd 1` by hand: it says why."
        )
    # The cookie is filed under the display's number, which is only known now; Xvfb reads the file on the first
    # connection after a change.
    display = f":{number}"
    added = environ | {"DISPLAY": display, "XAUTHORITY": str(cookie)}
    command = ["xauth", "-q", "-f", str(cookie), "add", display, "MIT-MAGIC-COOKIE-1", secrets.token_hex(16)]
    _finish(command, added)
    return {name: added[name] for name in _DISPLAY}


def _start_bus(environ: Environ, check: Callable[[], None]) -> Environ:
    command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"]
    bus = _spawn(command, environ, stdout=subprocess.PIPE)
    assert bus.stdout is not None
    address = _first_line(bus.stdout, bus, check)
    if not address:
        raise EnvironmentLacksError("The sandbox's session bus did not start.", "Is dbus-daemon installed whole?")
    # The system bus is the session's too: nothing in here reaches the machine's own services.
    return {"DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": address}


def _first_line(output: IO[bytes], program: "subprocess.Popen[bytes]", check: Callable[[], None]) -> str:
    """The first line that a program writes there; "" when it ends or is silent for too long."""
    with output:
        os.set_blocking(output.fileno(), False)
        deadline = time.monotonic() + _START_TIMEOUT
        text = b""
        while time.monotonic() < deadline and not text.endswith(b"\n") and program.poll() is None:
            check()
            time.sleep(0.01)
            text += output.read() or b""
        return text.decode().strip() if text.endswith(b"\n") else ""


def _paint_root(colour: str) -> None:
    """Give the display's background a colour, written as #rrggbb."""
    from Xlib.display import Display

    display: Any = Display()
    try:
        root = display.screen().root
        root.change_attributes(background_pixel=int(colour.removeprefix("#"), 16))
        root.clear_area()
        display.sync()
    finally:
        display.close()


def _has_manager(display: Any) -> bool:
    """Whether a window manager has said that it is there (EWMH)."""
    return bool(display.screen().root.get_full_property(display.intern_atom("_NET_SUPPORTING_WM_CHECK"), 0))


def _wait_until_ready(session: Session, check: Callable[[], None]) -> None:
    """Wait for the window manager and the windows that make the desktop."""
    from Xlib.display import Display

    windows = open_windows()
    if windows is None:
        raise EnvironmentLacksError("The sandbox's display takes no connection.", "Is the machine very busy?")
    display: Any = Display()
    with closing(windows), closing(display):
        deadline = time.monotonic() + _START_TIMEOUT
        while not (_has_manager(display) and session.windows <= {window.app.lower() for window in windows.windows()}):
            if time.monotonic() >= deadline:
                raise EnvironmentLacksError(
                    f"The sandbox's desktop ({session.title}) did not come up in time.", "Is the machine very busy?"
                )
            check()
            time.sleep(0.05)
