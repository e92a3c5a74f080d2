"""Starts a sandbox desktop: its home, session bus and X display with a cookie, or a compositor that is set up here."""

import os
import random
import secrets
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, TypeAlias

from jeepney import DBusAddress

from agent.core.geometry import Size
from agent.desktop.factory import check_display, open_x11_windows
from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.programs import LAUNCHER_SOCKET, run_inside, start_inside
from agent.sandbox.isolation import Network, isolated, python_inside
from agent.sandbox.sessions import Session
from foundation.configs import configs_dir
from foundation.errors import EnvironmentLacksError, UsageError

#: Folder of the X servers' sockets.
SOCKETS = Path("/tmp/.X11-unix")  # noqa: S108 -- all programs expect it here
#: Lower numbers belong to servers that take the first free number, and to displays forwarded over SSH.
_NUMBERS = range(100, 10_000)
_TRIES = 50
#: FamilyLocal in an Xauthority file (libXau).
_LOCAL = 256


def reserve(folder: Path, *, elsewhere: bool) -> int:
    """Reserve a display number that no other X server uses.

    With `elsewhere`, the server's socket is in the sandbox's own /tmp, and a symbolic link to it reserves the number.
    Raises EnvironmentLacksError if there is no folder for sockets.
    """
    problem: OSError | None = None
    for number in random.sample(_NUMBERS, _TRIES):
        place = SOCKETS / f"X{number}"
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as one:
            answers = one.connect_ex(f"\0{SOCKETS}/X{number}") == 0
        if answers or (SOCKETS.parent / f".X{number}-lock").exists():
            continue
        try:
            SOCKETS.mkdir(mode=0o1777, exist_ok=True)
            if elsewhere:
                place.symlink_to(inside(folder) / place.name)
            elif os.path.lexists(place):
                continue
            return number
        except OSError as error:
            problem = error
    raise EnvironmentLacksError(
        f"The sandbox's display gets no socket in {SOCKETS} ({problem or 'all numbers are taken'}).",
        "May you write there? It is made when the machine starts.",
    )


def release(folder: Path) -> None:
    """Remove the link to a sandbox's socket, and links to sandboxes that are gone."""
    target = inside(folder)
    with suppress(OSError):
        for place in SOCKETS.iterdir():
            with suppress(OSError):
                destination = place.readlink() if place.is_symlink() else place
                lost = destination.parent.match("mai-agent-sandbox-*/tmp/.X11-unix") and not destination.parent.exists()
                if destination.parent == target or lost:
                    place.unlink()


def inside(folder: Path) -> Path:
    """Return the path of the sandbox's socket folder as seen from outside."""
    return folder / "tmp" / SOCKETS.name


def keep_name(number: int) -> socket.socket | None:
    """Bind the display's abstract socket name, which programs try first; None if it is taken.

    Another user could bind it otherwise, and be sent the cookie and the keys.
    """
    name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        name.bind(f"\0{SOCKETS}/X{number}")  # nobody listens, so programs fall back to the socket file
    except OSError:
        name.close()
        return None
    return name


def write_cookie(path: Path, number: int) -> None:
    """Write a new X cookie for a display of this machine."""
    fields = (os.uname().nodename.encode(), str(number).encode(), b"MIT-MAGIC-COOKIE-1", secrets.token_bytes(16))
    record = struct.pack(">H", _LOCAL) + b"".join(struct.pack(">H", len(field)) + field for field in fields)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(record)


#: On a smaller screen, dialogs of the common desktops do not fit.
SMALLEST = Size(640, 480)
#: 8K in both orientations: 236 MB for the display, and another 236 MB for each screenshot in memory.
LONGEST = 7680


def check_size(size: Size) -> None:
    """Raise UsageError for a size at which a desktop is not usable."""
    if size.width < SMALLEST.width or size.height < SMALLEST.height:
        raise UsageError(f"A sandbox of {size} is too small: its windows would not fit.", f"Take at least {SMALLEST}.")
    if max(size.width, size.height) > LONGEST:
        raise UsageError(f"A sandbox of {size} is too large.", f"Take at most {LONGEST} on a side.")


Environ: TypeAlias = dict[str, str]

_START_TIMEOUT = 60.0
_POLL = 0.05
#: Timeout in seconds for one command to a compositor.
_TIMEOUT = 5.0
_SHELL = DBusAddress("/org/gnome/Shell", "org.gnome.Shell", "org.gnome.Shell")
#: Environment variables of a display.
_DISPLAY = ("DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "SWAYSOCK")
#: Environment variables that the sandbox inherits.
_KEPT = ("PATH", "LANG", "LANGUAGE", "TZ", "USER")


def start(
    folder: Path,
    size: Size,
    session: Session,
    own: Environ,
    network: Network | None,
    owner: ExitStack | None,
    check: Callable[[], None],
) -> Environ:
    """Start the desktop in an empty folder, wait until it is ready, and return its environment variables.

    Also sets this process's display (see `apply`). `own` are additional variables for the desktop, `network` is None
    without isolation, `owner` holds resources that must live as long as the desktop (None if it outlives this process).
    Raises EnvironmentLacksError, and what `check` raises; programs that were started keep running then.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    named = {name: value.format(folder=folder) for name, value in session.environment.items()}
    if network is not None and os.geteuid() == 0 and not session.ordinary:
        named |= session.environment_as_root
    environ = {"LANG": "C.UTF-8"} | kept | named | own
    _make_home(folder, session, environ)
    if session.display == "x11":
        environ |= _name_display(folder, network, owner)
    else:
        (folder / "cookie").touch(mode=0o600)
        # Sway uses the given SWAYSOCK, and the first free name for its display.
        sway = {"WAYLAND_DISPLAY": f"{folder}/run/wayland-1", "SWAYSOCK": f"{folder}/run/sway.sock"}
        environ |= sway if session.display == "sway" else {"WAYLAND_DISPLAY": f"{folder}/run/wayland-0"}
    environ |= _open_door(folder, environ, network, owner, ordinary=session.ordinary)
    if session.display == "x11":
        _start_display(size, environ, check)
    environ |= _start_bus(folder, environ, check)
    outside = display_environ()
    apply(environ)
    try:
        for command in session.start:
            start_inside([word.format(size=size) for word in command], environ)
        if session.display == "x11":
            _wait_until_ready(session, check)
        else:
            _wait_for_compositor(session, environ, size, check)
    except BaseException:
        apply(outside)
        raise
    return environ


def apply(environ: Mapping[str, str]) -> None:
    """Set this process's environment to a display."""
    for name in _DISPLAY:
        os.environ.pop(name, None)
    os.environ.update(display_environ(environ))


def display_environ(environ: Mapping[str, str] = os.environ) -> Environ:
    """Return the variables that name the display."""
    return {name: environ[name] for name in _DISPLAY if name in environ}


def display_of(environ: Mapping[str, str]) -> str:
    """Return the display's name."""
    return environ.get("WAYLAND_DISPLAY") or environ["DISPLAY"]


def _make_home(folder: Path, session: Session, environ: Environ) -> None:
    home, services = folder / "home", folder / "run/dbus-1/services"
    for path in (".cache", ".local/share", ".config/dconf"):
        (home / path).mkdir(parents=True)
    (folder / "run").mkdir(mode=0o700)
    (folder / "tmp/.X11-unix").mkdir(parents=True)
    services.mkdir(parents=True)
    for name, command in session.services.items():
        (services / f"{name}.service").write_text(f"[D-BUS Service]\nName={name}\nExec={command}\n")
    for path, text in session.files.items():
        _parent(home / path).write_text(text)
    for path, original in session.copies.items():
        source = configs_dir() / original
        if source.is_file():
            shutil.copy(source, _parent(home / path))
    groups = ((f"[{name}]", *(f"{key}={value}" for key, value in keys.items())) for name, keys in session.dconf.items())
    _parent(folder / "keyfiles/settings").write_text("\n".join(line for group in groups for line in (*group, "")))
    # Compile the database instead of setting keys one by one, so that it exists before the first program starts.
    _finish(["dconf", "compile", str(home / ".config/dconf/user"), str(folder / "keyfiles")], environ)
    if shutil.which("xdg-user-dirs-update"):  # creates the home's folders with localized names
        _finish(["xdg-user-dirs-update"], environ)
    else:
        for name in session.folders:
            (home / name).mkdir()


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _finish(command: list[str], environ: Environ) -> None:
    subprocess.run(
        command, env=environ, check=True, timeout=10, cwd=environ["HOME"], stdin=subprocess.DEVNULL, capture_output=True
    )


def _name_display(folder: Path, network: Network | None, owner: ExitStack | None) -> Environ:
    """Reserve an X display number and write its cookie. Return the variables that name both."""
    number = reserve(folder, elsewhere=network is not None)
    write_cookie(folder / "cookie", number)
    if network == "none" and owner is not None and (name := keep_name(number)):
        owner.enter_context(name)
    return {"DISPLAY": f":{number}", "XAUTHORITY": f"{folder}/cookie"}


def _open_door(
    folder: Path, environ: Environ, network: Network | None, owner: ExitStack | None, *, ordinary: bool
) -> Environ:
    """Start the launcher, which starts everything else. Return the variable that names its socket."""
    address = folder / "door"
    ours, theirs = os.pipe() if owner is not None else (-1, -1)
    program, needed = python_inside()
    code = Path(__file__).with_name("launcher.py").read_text(encoding="utf-8")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door, (folder / "door.log").open("wb") as log:
        door.bind(os.fspath(address))
        door.listen(64)
        numbers = [door.fileno(), ours]
        locales = [environ["LOCPATH"]] if "LOCPATH" in environ else []
        also = (*needed, *locales)
        before = isolated(folder, network, also, ordinary=ordinary) if network is not None else []
        subprocess.Popen(
            [*before, *program, "-c", code, *map(str, numbers), network or ""],
            env=environ, cwd="/", start_new_session=True, pass_fds=[number for number in numbers if number >= 0],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    if owner is not None:
        os.close(ours)
        owner.callback(os.close, theirs)
    return {LAUNCHER_SOCKET: str(address)}


def _start_display(size: Size, environ: Environ, check: Callable[[], None]) -> None:
    command = ["Xvfb", environ["DISPLAY"], "-displayfd", "1", "-screen", "0", f"{size}x24", "-dpi", "96",
               "-auth", environ["XAUTHORITY"], "-nolisten", "tcp", "-noreset"]  # fmt: skip
    if not _first_line(command, environ, "Xvfb, the sandbox's display,", check).isdigit():
        raise EnvironmentLacksError(
            "Xvfb, the sandbox's display, did not start.", "Try `Xvfb -displayfd 1` by hand: it says why."
        )


def _start_bus(folder: Path, environ: Environ, check: Callable[[], None]) -> Environ:
    command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1",
               f"--address=unix:path={folder}/run/bus"]  # fmt: skip
    address = _first_line(command, environ, "The sandbox's session bus", check)
    if not address:
        raise EnvironmentLacksError("The sandbox's session bus did not start.", "Is dbus-daemon installed whole?")
    # The session bus also serves as system bus, so that programs inside cannot reach the machine's services.
    return {"DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": address}


def _first_line(command: list[str], environ: Environ, what: str, check: Callable[[], None]) -> str:
    """Start a part of the desktop and return its first line of output; "" if it ends or the timeout expires first.

    Raises EnvironmentLacksError: it cannot be started.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as output:
        try:
            program = start_inside(command, environ, stdout=writing)
        except OSError as error:
            log = Path(environ[LAUNCHER_SOCKET]).with_name("door.log")
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            why = lines[-1][:200] if lines else error
            raise EnvironmentLacksError(
                f"{what} could not be started ({why}).", "`mai-agent doctor` may say why."
            ) from error
        finally:
            os.close(writing)
        os.set_blocking(reading, False)
        deadline = time.monotonic() + _START_TIMEOUT
        text = b""
        while time.monotonic() < deadline and not text.endswith(b"\n") and program.poll() is None:
            check()
            time.sleep(0.01)
            text += output.read() or b""
        return text.decode().strip() if text.endswith(b"\n") else ""


def _wait_until_ready(session: Session, check: Callable[[], None]) -> None:
    """Paint the root window, and wait for the desktop."""
    from Xlib.display import Display

    windows = open_x11_windows()
    if windows is None:
        raise EnvironmentLacksError("The sandbox's display takes no connection.", "Is the machine very busy?")
    display: Any = Display()
    with closing(windows), closing(display):
        manager, root = display.intern_atom("_NET_SUPPORTING_WM_CHECK"), display.screen().root
        root.change_attributes(background_pixel=int(session.wallpaper.removeprefix("#"), 16))
        root.clear_area()
        display.sync()

        def is_ready() -> bool:
            shown = {window.app.lower() for window in windows.windows()}
            return bool(root.get_full_property(manager, 0)) and session.windows <= shown

        _wait_until(is_ready, f"The sandbox's desktop ({session.title})", check)


def _wait_for_compositor(session: Session, environ: Environ, size: Size, check: Callable[[], None]) -> None:
    """Wait until the compositor listens, and set up its only monitor."""
    overview = Overview(environ)

    def is_ready() -> bool:
        if not Path(environ["WAYLAND_DISPLAY"]).exists():
            return False
        return overview.closed() if session.display == "mutter" else _told(environ, size, session.wallpaper)

    _wait_until(is_ready, "The sandbox's compositor", check)
    check_display(environ)


def _wait_until(is_ready: Callable[[], bool], what: str, check: Callable[[], None]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT
    while not is_ready():
        if time.monotonic() >= deadline:
            raise EnvironmentLacksError(f"{what} did not come up in time.", "Is the machine very busy?")
        check()
        time.sleep(_POLL)


def _told(environ: Environ, size: Size, colour: str) -> bool:
    """Configure sway's monitor, with this background (#rrggbb). Return whether sway accepted it."""
    output = f"output HEADLESS-1 resolution {size} position 0 0 scale 1 background {colour} solid_color"
    try:
        return run_inside(("swaymsg", output), environ, _TIMEOUT).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


class Overview:
    """The overview that GNOME Shell opens when it has started."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._was_open = False

    def closed(self) -> bool:
        """Close it if it is open. Return whether it was open once and is closed now.

        A busy shell may close the overview but answer too late, so the call remembers what earlier calls saw.
        """
        with suppress(BusError), Bus(self._environ, _TIMEOUT) as bus:
            if not bus.property(_SHELL, "OverviewActive"):
                return self._was_open
            self._was_open = True
            properties = _SHELL.with_interface("org.freedesktop.DBus.Properties")
            bus.call(properties, "Set", "ssv", _SHELL.interface, "OverviewActive", ("b", False))
        return False
