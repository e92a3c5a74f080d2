"""Chooses the desktop of this session: by what it offers, Wayland before X11.

On a Wayland session X11's tools see X clients alone, and the rest of the screen black: they are used there only by who
asks for them by name.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

from agent.desktop.base import Desktop
from agent.desktop.windows import Windows
from agent.safety.stop import StopSwitch
from agent.settings import DesktopKind
from foundation.errors import EnvironmentLacksError

_SANDBOX = "Run with --sandbox to use a throw-away desktop"
_NO_PORTAL = "The way through the desktop portal (GNOME, KDE) is not there yet."


def open_desktop(
    stop: StopSwitch,
    monitor: int | None = None,
    environ: Mapping[str, str] | None = None,
    kind: DesktopKind = "auto",
) -> Desktop:
    """Open the desktop that this process's own environment names; see `OpenDesktop`."""
    match _chosen(os.environ, kind):
        case "wlroots":
            from agent.desktop.wlroots.desktop import WlrootsDesktop

            return WlrootsDesktop(stop, monitor, environ)
        case "x11":
            from agent.desktop.x11.desktop import X11Desktop

            return X11Desktop(stop, monitor, environ)
    from agent.desktop.portable.desktop import PortableDesktop

    return PortableDesktop(stop, monitor, environ)


def open_windows() -> Windows | None:
    """A connection to that desktop's windows, for the thread that calls; None where windows are not known."""
    with suppress(EnvironmentLacksError):
        match _chosen(os.environ, "auto"):
            case "x11":
                from agent.desktop.x11.windows import open_windows as windows_of_display

                return windows_of_display()
            case "wlroots":
                from agent.desktop.wlroots.windows import open_windows as windows_of_sway

                return windows_of_sway()
    return None


def check_display(environ: Mapping[str, str], kind: DesktopKind = "auto") -> None:
    """Raise EnvironmentLacksError where it is known without opening it that no desktop can be used."""
    _chosen(environ, kind)


def has_stop_key(environ: Mapping[str, str]) -> bool:
    """Whether a chord of keys stops a run anywhere on the desktop that an environment names."""
    return _has_displays() and (not environ.get("WAYLAND_DISPLAY") or bool(environ.get("SWAYSOCK")))


def needed_programs() -> dict[str, str]:
    """Programs that entering text needs on this system, and the packages that they come in."""
    return {"xclip": "xclip"} if _has_displays() and not os.environ.get("WAYLAND_DISPLAY") else {}


def _chosen(environ: Mapping[str, str], kind: DesktopKind) -> Literal["x11", "wlroots", "portable"]:
    """Which desktop it is. Raises EnvironmentLacksError: none that can be used."""
    if not _has_displays():
        return "portable"
    if kind == "portal":
        raise EnvironmentLacksError(_NO_PORTAL, f"{_SANDBOX}, or log in to an X11 session.")
    wayland = environ.get("WAYLAND_DISPLAY", "")
    if kind == "x11" or (kind == "auto" and not wayland):
        if not environ.get("DISPLAY"):
            raise EnvironmentLacksError("There is no display: DISPLAY is not set.", f"{_SANDBOX}, or set DISPLAY.")
        return "x11"
    if not wayland:
        raise EnvironmentLacksError(
            "There is no Wayland session: WAYLAND_DISPLAY is not set.", f"{_SANDBOX}, or leave out --desktop."
        )
    _check_wayland(environ)
    return "wlroots"


def _check_wayland(environ: Mapping[str, str]) -> None:
    from agent.desktop.wlroots.desktop import missing_on
    from agent.desktop.wlroots.wire import socket_of

    missing = missing_on(socket_of(environ))
    if missing:
        raise EnvironmentLacksError(
            "This is a Wayland session whose compositor lets programs neither see nor touch the screen by wlroots' "
            f"protocols (it lacks {', '.join(missing)}). {_NO_PORTAL} X11's tools are never used on a Wayland session: "
            "they see X clients alone.",
            f"{_SANDBOX}, log in to sway or another compositor made with wlroots, or to an X11 session.",
        )


def _has_displays() -> bool:
    """Whether desktops are named by the environment here; elsewhere there is only one."""
    return sys.platform.startswith("linux")
