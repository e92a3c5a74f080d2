"""The compositor of a Wayland sandbox: its environment variables and its set-up."""

import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from jeepney import DBusAddress

from agent.core.geometry import Size
from agent.desktop.factory import check_display
from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.programs import run_inside
from foundation.errors import EnvironmentLacksError

Compositor: TypeAlias = Literal["sway", "mutter"]

_POLL = 0.05
_PATIENCE = 5.0
_SHELL = DBusAddress("/org/gnome/Shell", "org.gnome.Shell", "org.gnome.Shell")


def names(compositor: Compositor, folder: Path) -> dict[str, str]:
    """Return its environment variables. Sway uses the given SWAYSOCK, and the first free name for its display."""
    if compositor == "mutter":
        return {"WAYLAND_DISPLAY": f"{folder}/run/wayland-0"}
    return {"WAYLAND_DISPLAY": f"{folder}/run/wayland-1", "SWAYSOCK": f"{folder}/run/sway.sock"}


def set_up(
    compositor: Compositor,
    environ: Mapping[str, str],
    size: Size,
    colour: str,
    seconds: float,
    check: Callable[[], None],
) -> None:
    """Wait until the compositor listens, and set up its only monitor.

    `colour` (#rrggbb) is the background. An exception from `check` ends the wait. Raises EnvironmentLacksError after
    `seconds`.
    """
    deadline = time.monotonic() + seconds
    overview = Overview(environ)
    while not (
        Path(environ["WAYLAND_DISPLAY"]).exists()
        and (overview.closed() if compositor == "mutter" else _told(environ, size, colour))
    ):
        if time.monotonic() >= deadline:
            raise EnvironmentLacksError(
                "The sandbox's compositor did not come up in time.", "Is the machine very busy?"
            )
        check()
        time.sleep(_POLL)
    check_display(environ)


def _told(environ: Mapping[str, str], size: Size, colour: str) -> bool:
    """Configure sway's monitor. Return whether sway accepted it."""
    output = f"output HEADLESS-1 resolution {size} position 0 0 scale 1 background {colour} solid_color"
    try:
        return run_inside(("swaymsg", output), environ, _PATIENCE).returncode == 0
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
        with suppress(BusError), Bus(self._environ, _PATIENCE) as bus:
            if not bus.property(_SHELL, "OverviewActive"):
                return self._was_open
            self._was_open = True
            properties = _SHELL.with_interface("org.freedesktop.DBus.Properties")
            bus.call(properties, "Set", "ssv", _SHELL.interface, "OverviewActive", ("b", False))
        return False
