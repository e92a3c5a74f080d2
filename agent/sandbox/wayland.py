"""The compositor of a throw-away desktop on Wayland: what names it, and what it is told once it listens (sway)."""

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.desktop.door import run_inside
from agent.desktop.factory import check_display
from agent.geometry import Size
from foundation.errors import EnvironmentLacksError

_POLL = 0.05


def names(folder: Path) -> dict[str, str]:
    """The variables that name it: sway takes the second as it is told, and the first free one for the other."""
    return {"WAYLAND_DISPLAY": f"{folder}/run/wayland-1", "SWAYSOCK": f"{folder}/run/sway.sock"}


def set_up(environ: Mapping[str, str], size: Size, colour: str, seconds: float, check: Callable[[], None]) -> None:
    """Wait until it listens, and give it its monitor.

    Args:
        environ: of its programs.
        size: of its one monitor, in pixels.
        colour: of what is behind the windows, as #rrggbb.
        seconds: after which it is late.
        check: called while waiting; whatever it raises ends that.

    Raises:
        EnvironmentLacksError: it is late, or lacks something.
    """
    deadline = time.monotonic() + seconds
    sockets = [Path(environ[name]) for name in names(Path())]
    while not (all(path.exists() for path in sockets) and _told(environ, size, colour)):
        if time.monotonic() >= deadline:
            raise EnvironmentLacksError(
                "The sandbox's compositor did not come up in time.", "Is the machine very busy?"
            )
        check()
        time.sleep(_POLL)
    check_display(environ)


def _told(environ: Mapping[str, str], size: Size, colour: str) -> bool:
    """Tell it how its monitor is; whether it took that."""
    output = f"output HEADLESS-1 resolution {size} position 0 0 scale 1 background {colour} solid_color"
    try:
        return run_inside(("swaymsg", output), environ, 5.0).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
