"""Chooses the desktop of this session."""

import os
import sys
from collections.abc import Mapping

from agent.desktop.base import Desktop
from agent.desktop.windows import Windows
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError


def open_desktop(stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> Desktop:
    """Open the desktop that this process's own environment names; see `OpenDesktop`."""
    check_display(os.environ)
    if _has_displays():
        from agent.desktop.x11.desktop import X11Desktop

        return X11Desktop(stop, monitor, environ)
    from agent.desktop.portable.desktop import PortableDesktop

    return PortableDesktop(stop, monitor, environ)


def open_windows() -> Windows | None:
    """A connection to that desktop's windows, for the thread that calls; None where windows are not known."""
    if not _has_displays():
        return None
    from agent.desktop.x11.windows import open_windows as windows_of_display

    return windows_of_display()


def check_display(environ: Mapping[str, str]) -> None:
    """Raise EnvironmentLacksError where the environment alone shows that no desktop can be used."""
    if not _has_displays() or environ.get("DISPLAY"):
        return
    if environ.get("WAYLAND_DISPLAY"):
        raise EnvironmentLacksError(
            "This is a Wayland session without XWayland, where programs may neither capture the screen nor send input.",
            "Log in to an X11 session, start XWayland, or run with --sandbox to use a throw-away desktop.",
        )
    raise EnvironmentLacksError(
        "There is no display: DISPLAY is not set.", "Run with --sandbox to use a throw-away desktop, or set DISPLAY."
    )


def needed_programs() -> dict[str, str]:
    """Programs that entering text needs on this system, and the packages that they come in."""
    return {"xclip": "xclip"} if _has_displays() else {}


def _has_displays() -> bool:
    """Whether desktops are named by the environment here; elsewhere there is only one."""
    return sys.platform.startswith("linux")
