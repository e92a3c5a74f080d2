"""Connections to an X server through python3-xlib, a dependency of pyautogui.

Every caller opens its own connection, because Xlib connections must not be shared between threads.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from inspect import isfunction
from pathlib import Path
from typing import Any, TypeVar

from agent.desktop.protocol.windows import Window
from foundation.errors import EnvironmentLacksError

T = TypeVar("T")


def open_display() -> Any:
    """Connect to the X server of DISPLAY. Raises EnvironmentLacksError: there is none, or it rejects this user."""
    _prepare_xlib()
    try:
        from Xlib.display import Display

        return Display()
    except Exception as error:  # python3-xlib raises its own errors, OSError, AttributeError or struct.error here
        why = " ".join(str(error).split()) or repr(error)
        raise EnvironmentLacksError(
            f"The display {os.environ.get('DISPLAY', '')!r} takes no input ({why}).",
            "Is the X server there, and may this user connect to it (XAUTHORITY)? "
            "--sandbox brings a display of its own.",
        ) from error


def display_lost(error: BaseException) -> EnvironmentLacksError:
    """Return the error for a display that was lost; Xlib raises any of a dozen exceptions for that."""
    name = os.environ.get("DISPLAY", "")
    lost = EnvironmentLacksError(f"The display {name!r} went away.", "Is the X server still running?")
    lost.__cause__ = error
    return lost


def tells_loss(kind: type[T]) -> type[T]:
    """Decorate a class: translate whatever its public methods raise for a lost connection to EnvironmentLacksError."""

    @contextmanager
    def translated() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise display_lost(error) from error

    for name, method in list(vars(kind).items()):
        if isfunction(method) and not name.startswith("_"):
            setattr(kind, name, translated()(method))
    return kind


@contextmanager
def unless_gone() -> Iterator[None]:
    """As a decorator, make a function return None if the window that it queries has closed meanwhile."""
    from Xlib import error

    with suppress(error.XError):
        yield


#: Longest property that is read, in units of 4 bytes.
_WHOLE = 1 << 20


@unless_gone()
def read_property(display: Any, window: Any, name: str) -> Any:
    """Return the value of a window's property; None if it is not set or the window has closed meanwhile."""
    # 0 means any type. Read all at once: Xlib cannot join text parts if one of them is not valid UTF-8.
    found = window_of(display, window).get_full_property(display.intern_atom(name), 0, sizehint=_WHOLE)
    return None if found is None else found.value


def text_of(value: Any) -> str:
    """Return a property's value as text. Xlib has decoded valid UTF-8; older programs write Latin-1 (ICCCM, STRING)."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if value is None else str(value)


def window_types(display: Any, window: Any) -> set[str]:
    """Return a window's EWMH types without the common prefix: NORMAL, DIALOG, MENU and so on."""
    kinds = read_property(display, window, "_NET_WM_WINDOW_TYPE") or ()
    return {display.get_atom_name(kind).removeprefix("_NET_WM_WINDOW_TYPE_") for kind in kinds}


def window_of(display: Any, identifier: Any) -> Any:
    """Return the Xlib object for a window's identifier."""
    return display.create_resource_object("window", identifier)


def ancestry(display: Any, identifier: Any) -> Iterator[int]:
    """Yield a window and the windows that contain it, up to the child of the root (its frame). Raises Xlib's errors."""
    handle, root = window_of(display, identifier), display.screen().root.id
    while handle and handle.id != root:
        yield int(handle.id)
        handle = handle.query_tree().parent


@unless_gone()
def outermost(display: Any, identifier: Any) -> int | None:
    """Return the child of the root window that contains a window (its frame) or is it; None if it has closed."""
    return [*ancestry(display, identifier)][-1]


def describe(display: Any, identifier: Any) -> Window | None:
    """Return title, class and process of a window; None if it has neither title nor class."""
    title = read_property(display, identifier, "_NET_WM_NAME")
    if title is None:
        title = read_property(display, identifier, "WM_NAME")
    wm_class, pid = (read_property(display, identifier, name) for name in ("WM_CLASS", "_NET_WM_PID"))
    if title is None and wm_class is None:
        return None
    app = text_of(wm_class).rstrip("\0").split("\0")[-1]
    return Window(identifier, text_of(title), app, int(pid[0]) if pid else None)


def client_of(display: Any, identifier: int) -> int:
    """Return the client that created a window: the upper bits of its identifier (X11 protocol, connection setup)."""
    return identifier & ~int(display.display.info.resource_id_mask)


def with_focus(display: Any) -> Any:
    """Return the window that has the keyboard focus; None if no window has it."""
    focus = display.get_input_focus().focus
    return None if isinstance(focus, int) else focus


def keys_down(display: Any) -> frozenset[int]:
    """Return the keycodes of the keys that are down."""
    pressed = display.query_keymap()
    return frozenset(code for code in range(8, 256) if pressed[code // 8] >> code % 8 & 1)


def _prepare_xlib() -> None:
    """Make python3-xlib work without an X cookie, as with a plain Xvfb.

    It fails if ~/.Xauthority is missing, even if the server requires no cookie. If it finds no cookie, it prints a
    warning on standard output, which must contain only our own output.
    """
    path = os.environ.get("XAUTHORITY") or str(Path.home() / ".Xauthority")
    if not Path(path).exists():
        os.environ["XAUTHORITY"] = os.devnull
    from Xlib import xauth

    xauth.print = lambda *_: None
    _mend_lost_connections()


@cache
def _mend_lost_connections() -> None:
    """Make python3-xlib 0.15 raise an error if a connection is lost, instead of waiting forever.

    Its handler for a failed send indexes the exception, which Python 3 does not allow. The connection then stays marked
    as sending, and every later call waits for that send to end.
    """
    from Xlib import error
    from Xlib.protocol.display import Display

    original = Display.send_and_recv

    def send_and_recv(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return original(self, *arguments, **options)
        except (TypeError, OSError) as problem:
            if self.socket_error is None:
                self.socket_error = error.ConnectionClosedError("server: the connection was lost")
            raise self.socket_error from problem

    Display.send_and_recv = send_and_recv
