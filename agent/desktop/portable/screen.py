"""Monitors and captures, through mss.

One capture object stays open for a whole run, because opening it for every grab costs five times the grab itself. It is
used from one thread only. Geometry is read in one function, because its form changes in mss 11.
"""

import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from agent.core.geometry import Region, Size, Viewport
from agent.desktop.protocol.monitors import number_of
from agent.screen.capture import Frame
from agent.screen.encode import keep_freed_memory
from foundation.errors import EnvironmentLacksError, UsageError

if TYPE_CHECKING:
    from mss import MSS


class MssScreen:
    """One monitor of this machine's desktop. `OpenDesktop` describes arguments and errors."""

    def __init__(self, monitor: int | None = None) -> None:
        keep_freed_memory()
        self._mss = _open_mss()
        entries, sides = self._mss.monitors[1:], ("left", "top", "width", "height")
        self.monitors = [Region(*(int(entry[side]) for side in sides)) for entry in entries]
        primary = next((one for one, entry in enumerate(entries) if entry.get("is_primary")), None)
        try:
            self._region = region = self.monitors[number_of(self.monitors, monitor, primary)]
        except UsageError:
            self._mss.close()
            raise
        self.home = region.middle

    def grab(self) -> Frame:
        """Capture the monitor (1.5 ms at 1080p through memory shared with the server, and 1 ms to an RGB image)."""
        from mss.exception import ScreenShotError
        from PIL import Image

        try:
            shot = self._mss.grab(asdict(self._region))
        except (ScreenShotError, OSError) as error:
            raise EnvironmentLacksError(
                f"The screen can no longer be captured ({error}).", "Is the display still there, and unlocked?"
            ) from error
        # `bgra` would be a copy of `raw`. The scale is the captured size over the requested size; it is never assumed.
        captured = Size(shot.width, shot.height)
        image = Image.frombytes("RGB", (captured.width, captured.height), shot.raw, "raw", "BGRX")
        return Frame(image, Viewport(self._region, captured), time.monotonic())

    def close(self) -> None:
        """Close the capture; safe to call twice."""
        self._mss.close()


def _open_mss() -> "MSS":
    from mss import MSS
    from mss.exception import ScreenShotError

    try:
        capture = MSS()
        if len(capture.monitors) < 2:
            raise ScreenShotError("no monitor is connected")
    except (ScreenShotError, OSError) as error:
        display = os.environ.get("DISPLAY", "")
        raise EnvironmentLacksError(
            f"The display {display!r} cannot be opened ({error}).",
            "Either DISPLAY names no running X server, or this user may not connect to it (a missing X cookie: see "
            "XAUTHORITY). Or run with --sandbox to use a throw-away desktop.",
        ) from error
    return capture
