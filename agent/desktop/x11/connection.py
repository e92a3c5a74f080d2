"""Connections to an X server, with python3-xlib, which pyautogui brings along.

Every user opens a connection of its own, because Xlib connections must not be shared between threads.
"""

import os
from collections.abc import Callable
from functools import cache, wraps
from inspect import isfunction
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from foundation.errors import EnvironmentLacksError

P = ParamSpec("P")
T = TypeVar("T")


def open_display() -> Any:
    """A connection to the X server of DISPLAY.

    Raises:
        EnvironmentLacksError: there is none, or it refuses this user.
    """
    prepare_xlib()
    try:
        from Xlib.display import Display

        return Display()
    except Exception as error:  # python3-xlib raises its own, OSError, AttributeError or struct.error here
        raise no_display(error) from error


def no_display(error: BaseException) -> EnvironmentLacksError:
    """The sentence for a display that cannot be opened."""
    return EnvironmentLacksError(
        f"The display {os.environ.get('DISPLAY', '')!r} takes no input ({' '.join(str(error).split()) or error!r}).",
        "Is the X server there, and may this user connect to it (XAUTHORITY)? --sandbox brings a display of its own.",
    )


def display_lost(error: BaseException) -> EnvironmentLacksError:
    """The sentence for a display that was there and is not any more; Xlib tells it by any of a dozen exceptions."""
    name = os.environ.get("DISPLAY", "")
    lost = EnvironmentLacksError(f"The display {name!r} went away.", "Is the X server still running?")
    lost.__cause__ = error
    return lost


def tells_loss(kind: type[T]) -> type[T]:
    """Make a class's public methods raise EnvironmentLacksError for whatever Xlib raises on a lost connection."""

    def telling(method: Callable[P, Any]) -> Callable[P, Any]:
        @wraps(method)
        def call(*arguments: P.args, **options: P.kwargs) -> Any:
            try:
                return method(*arguments, **options)
            except Exception as error:
                raise display_lost(error) from error

        return call

    for name, method in list(vars(kind).items()):
        if isfunction(method) and not name.startswith("_"):
            setattr(kind, name, telling(method))
    return kind


def unless_gone(otherwise: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function return `otherwise` where the window that it asks about closed in between."""

    def around(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            from Xlib import error

            try:
                return function(*arguments, **options)
            except error.XError:
                return otherwise  # type: ignore[no-any-return]  # as the caller says

        return call

    return around


@unless_gone(None)
def read_property(display: Any, window: Any, name: str) -> Any:
    """The value of a window's property, by the window's identifier; None where it has none, or closed in between."""
    found = window_of(display, window).get_full_property(display.intern_atom(name), 0)  # 0: of any type
    return None if found is None else found.value


def window_of(display: Any, identifier: Any) -> Any:
    """The window with an identifier."""
    return display.create_resource_object("window", identifier)


def client_of(display: Any, identifier: int) -> int:
    """Which connection made a window: the upper bits of its identifier (X11 protocol, connection setup)."""
    return identifier & ~int(display.display.info.resource_id_mask)


def keys_down(display: Any) -> frozenset[int]:
    """The codes of the keys that are down."""
    pressed = display.query_keymap()
    return frozenset(code for code in range(8, 256) if pressed[code // 8] >> code % 8 & 1)


def prepare_xlib() -> None:
    """Make python3-xlib usable where there is no X cookie, as with a plain Xvfb.

    It fails on a missing ~/.Xauthority even where the server asks for no cookie, and prints a warning on standard
    output, which belongs to our own output, when it finds none.
    """
    path = os.environ.get("XAUTHORITY") or str(Path.home() / ".Xauthority")
    if not Path(path).exists():
        os.environ["XAUTHORITY"] = os.devnull
    from Xlib import xauth

    xauth.print = lambda *_: None
    _mend_lost_connections()


@cache
def _mend_lost_connections() -> None:
    """Make python3-xlib 0.15 say that a connection is lost, instead of waiting on it for good.

    Its handler of a failed send indexes the exception, which Python 3 does not allow; that leaves the connection marked
    as being sent on, and every later call waits for that send to end.
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
