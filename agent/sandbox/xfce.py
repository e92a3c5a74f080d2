"""One throw-away desktop: Xvfb and XFCE with a home, a session bus and an X cookie of their own."""

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from agent.desktop.factory import open_windows
from agent.geometry import Size
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

Session: TypeAlias = Literal["xfce", "gnome"]
Environ: TypeAlias = dict[str, str]

_DEFAULT_PANEL = Path("/etc/xdg/xfce4/panel/default.xml")
_START_TIMEOUT = 30.0
#: The variables that name a display.
_DISPLAY = ("DISPLAY", "XAUTHORITY")
#: What it needs and how it is set up.
_CONFIG = load_config("sandbox.toml")


def missing_packages() -> list[str]:
    """Debian packages of the programs that are not installed."""
    return sorted({package for program, package in _CONFIG["programs"].items() if shutil.which(program) is None})


def check_installed() -> None:
    """Raise EnvironmentLacksError where programs are missing."""
    if missing := missing_packages():
        raise EnvironmentLacksError(
            "The sandbox needs programs that are not installed.",
            f"Install them: apt-get install --no-install-recommends {' '.join([*missing, *_CONFIG['libraries']])}",
        )


def start(folder: Path, size: Size, session: Session, mark: Environ, check: Callable[[], None]) -> Environ:
    """Start the desktop in a folder, wait until it is ready, and return the environment of its applications.

    This process sees the display too (see `apply`). The variables of `mark` tell its processes from others; `check` is
    called while waiting, and whatever it raises ends the start.

    Raises:
        EnvironmentLacksError: it does not come up. What was started goes on then.
    """
    environ = _make_home(folder, session) | mark
    environ |= _start_display(folder, size, environ, check)
    environ |= _start_bus(environ, check)
    for command in (["xfsettingsd", "--disable-wm-check"], ["xfwm4"], ["xfce4-panel"], ["xfdesktop"]):
        _spawn(command, environ)
    _wait_until_ready(environ, check)
    return environ


def apply(environ: Mapping[str, str]) -> None:
    """Make this process see the display of an environment."""
    os.environ.update({name: environ[name] for name in _DISPLAY})
    os.environ.pop("WAYLAND_DISPLAY", None)


def settings(environ: Environ) -> dict[str, str]:
    """A few settings as the system's own tools tell them."""
    answers: dict[str, str] = {}
    for label, command in _CONFIG["settings"].items():
        with suppress(subprocess.SubprocessError, OSError):
            done = subprocess.run(
                command, env=environ, capture_output=True, text=True, timeout=5, check=True, cwd=environ["HOME"]
            )
            answers[label] = done.stdout.strip()
    return answers


def _make_home(folder: Path, session: Session) -> Environ:
    home = folder / "home"
    channels = home / ".config/xfce4/xfconf/xfce-perchannel-xml"
    channels.mkdir(parents=True)
    for name in (".cache", ".local/share", "Desktop", "Documents", "Downloads"):
        (home / name).mkdir(parents=True)
    (folder / "run").mkdir(mode=0o700)
    for name, text in _CONFIG["channels"].items():
        (channels / f"{name}.xml").write_text(text)
    if _DEFAULT_PANEL.is_file():  # without it, the panel's first start asks a question
        shutil.copy(_DEFAULT_PANEL, channels / "xfce4-panel.xml")
    (folder / "keyfiles").mkdir()
    (folder / "keyfiles/settings").write_text(_keyfile(_CONFIG["dconf"]))
    (home / ".config/dconf").mkdir()
    # Compiled, not set one by one, so that it is there before the first program looks.
    command = ["dconf", "compile", str(home / ".config/dconf/user"), str(folder / "keyfiles")]
    subprocess.run(command, check=True, timeout=10, stdin=subprocess.DEVNULL, capture_output=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LANGUAGE", "TZ", "USER") if name in os.environ}
    own = {name: value.format(folder=folder, session=session.upper()) for name, value in _CONFIG["environment"].items()}
    return {"LANG": "C.UTF-8"} | kept | own


def _keyfile(groups: Mapping[str, Mapping[str, str]]) -> str:
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name}={value}\n" for name, value in values.items())
        for group, values in groups.items()
    )


def _spawn(command: list[str], environ: Environ, **options: Any) -> "subprocess.Popen[Any]":
    """Start a program that outlives this one, silent unless `options` say otherwise."""
    options = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL) | options
    return subprocess.Popen(command, env=environ, start_new_session=True, cwd=environ["HOME"], **options)


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
    subprocess.run(command, env=added, check=True, timeout=10, stdin=subprocess.DEVNULL, capture_output=True)
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


def _wait_until_ready(environ: Environ, check: Callable[[], None]) -> None:
    """Wait for the panel's and the desktop's windows."""
    before = dict(os.environ)
    apply(environ)
    try:
        windows = open_windows()
        if windows is None:
            raise EnvironmentLacksError("The sandbox's display takes no connection.", "Is the machine very busy?")
        with closing(windows):
            deadline = time.monotonic() + _START_TIMEOUT
            while not {"xfce4-panel", "xfdesktop"} <= {window.app.lower() for window in windows.windows()}:
                if time.monotonic() >= deadline:
                    raise EnvironmentLacksError(
                        "The sandbox's desktop did not come up in time.", "Is the machine very busy?"
                    )
                check()
                time.sleep(0.05)
    except BaseException:
        os.environ.clear()
        os.environ.update(before)
        raise
