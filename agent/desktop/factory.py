"""Chooses the desktop of this session by what the session offers, Wayland before X11.

On a Wayland session, X11's tools see only X clients, and the rest of the screen black. They are used there only if the
person asks for X11 explicitly.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

from agent.desktop.programs import MARK
from agent.desktop.protocol.desktop import Desktop
from agent.desktop.protocol.windows import Windows
from agent.safety.stop import StopSwitch
from agent.settings import DesktopKind
from foundation.errors import EnvironmentLacksError

_SANDBOX = "Use a throw-away desktop (a run with --sandbox)"
_LOOK = (
    "Look at your screen: the desktop asks there whether mai-agent may see and use it. Choose a monitor, "
    'switch on "Allow Remote Interaction" where there is such a switch, and press Share.'
)


def open_desktop(
    stop: StopSwitch,
    monitor: int | None = None,
    environ: Mapping[str, str] | None = None,
    kind: DesktopKind = "auto",
    remote: str | None = None,
) -> Desktop:
    """Open the desktop that this process's own environment names, or that of a machine at the address `remote`.

    `OpenDesktop` describes the other arguments.
    """
    if remote is not None:
        from agent.desktop.remote import RemoteDesktop

        return RemoteDesktop(remote, stop, monitor)
    match _chosen(os.environ, kind, os.environ if environ is None else environ):
        case "wlroots":
            from agent.desktop.wlroots.desktop import WlrootsDesktop

            return WlrootsDesktop(stop, monitor, environ)
        case "portal":
            from agent.desktop.portal.desktop import PortalDesktop

            return PortalDesktop(stop, monitor, environ)
        case "x11":
            from agent.desktop.x11.desktop import X11Desktop

            return X11Desktop(stop, monitor, environ)
    from agent.desktop.portable import PortableDesktop

    return PortableDesktop(stop, monitor, environ)


def open_x11_windows() -> Windows | None:
    """Open a connection to the windows of the X display that DISPLAY names; None if that fails."""
    from agent.desktop.x11.windows import open_windows

    return open_windows()


def asks_consent(environ: Mapping[str, str], kind: DesktopKind = "auto") -> bool:
    """Whether the desktop portal asks the person before the desktop can be seen and used.

    Never raises: `open_desktop` raises if the desktop cannot be used.
    """
    if MARK in environ or not environ.get("WAYLAND_DISPLAY"):
        return False
    with suppress(EnvironmentLacksError):
        return _chosen(environ, kind) == "portal"
    return False


def wants_portal(environ: Mapping[str, str], kind: DesktopKind = "auto") -> bool:
    """Whether this desktop needs the portal, even if no portal is running. Never raises."""
    if MARK in environ or not _has_displays() or not environ.get("WAYLAND_DISPLAY"):
        return False
    if kind != "auto":
        return kind == "portal"
    from agent.desktop.wlroots.desktop import missing_on

    with suppress(EnvironmentLacksError):
        return bool(missing_on(environ))
    return False


def check_display(environ: Mapping[str, str], kind: DesktopKind = "auto", monitor: int | None = None) -> None:
    """Raise EnvironmentLacksError if no desktop can be used, and UsageError if it has no such monitor.

    The portal's monitors are known only after the person has agreed.
    """
    chosen = _chosen(environ, kind)
    if monitor is None or chosen == "portal":
        return
    if chosen == "wlroots":
        from agent.desktop.wayland.wire import socket_of
        from agent.desktop.wlroots.desktop import WlrootsScreen

        WlrootsScreen(socket_of(environ), monitor).close()
    else:
        from agent.desktop.portable import MssScreen

        MssScreen(monitor).close()


def asks_first(environ: Mapping[str, str], kind: DesktopKind = "auto") -> str:
    """Return what a person must do on the screen before the desktop opens; "" if nothing is known to be needed."""
    if not asks_consent(environ, kind):
        return ""
    from agent.desktop.portal.consent import RestoreToken

    return "" if RestoreToken().read() else _LOOK


def has_stop_key(environ: Mapping[str, str]) -> bool:
    """Whether the desktop that an environment names has a global hotkey that stops a run."""
    return _has_displays() and (not environ.get("WAYLAND_DISPLAY") or bool(environ.get("SWAYSOCK")))


def needed_programs() -> dict[str, str]:
    """Return the programs that text entry needs on this system, with the names of their packages."""
    return {"xclip": "xclip"} if _has_displays() and not os.environ.get("WAYLAND_DISPLAY") else {}


def _chosen(
    environ: Mapping[str, str], kind: DesktopKind = "auto", session: Mapping[str, str] | None = None
) -> Literal["x11", "wlroots", "portal", "portable"]:
    """Return which kind of desktop to open. Raises EnvironmentLacksError: none can be used.

    `environ` names the display, `session` the session bus (None: `environ` does); `kind` is what the person asked for.
    """
    if not _has_displays():
        return "portable"
    wayland = environ.get("WAYLAND_DISPLAY", "")
    if kind == "x11" or (kind == "auto" and not wayland):
        if not environ.get("DISPLAY"):
            raise EnvironmentLacksError("There is no display: DISPLAY is not set.", f"{_SANDBOX}, or set DISPLAY.")
        return "x11"
    if not wayland:
        raise EnvironmentLacksError(
            "There is no Wayland session: WAYLAND_DISPLAY is not set.", f"{_SANDBOX}, or leave out --desktop."
        )
    from agent.desktop.wlroots.desktop import missing_on

    missing = missing_on(environ)
    if not missing and kind != "portal":
        return "wlroots"
    lack = "" if kind == "wlroots" else portal_lacks(environ if session is None else session)
    if kind != "wlroots" and not lack:
        return "portal"
    wlroots_lack = ""
    if missing:
        wlroots_lack = (
            "This is a Wayland session whose compositor does not let programs see and use the screen by wlroots' "
            f"protocols (it lacks {', '.join(missing)})."
        )
    never = "X11's tools need --desktop x11 on a Wayland session: they see only X clients."
    raise EnvironmentLacksError(
        " ".join(one for one in (wlroots_lack, lack, never) if one),
        f"{_SANDBOX}, log in to GNOME, KDE, sway or another desktop that has one of these ways, or to an X11 session.",
    )


def portal_lacks(session: Mapping[str, str]) -> str:
    """Say why the portal cannot be used, as a sentence; "" if it can."""
    from agent.desktop.portal.consent import missing_on

    try:
        return "" if MARK in session else missing_on(session)  # a sandbox has Mutter's own interfaces
    except EnvironmentLacksError as error:
        return error.what


def _has_displays() -> bool:
    """Whether the environment selects the display, as on Linux. Other systems have only one desktop."""
    return sys.platform.startswith("linux")
