"""The desktop of the X server that DISPLAY names."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property

from agent.desktop.linux_desktop import LinuxDesktop
from agent.desktop.portable import PortableDesktop
from agent.desktop.protocol.desktop import Abilities, TakeoverWatch, TextEntry
from agent.desktop.protocol.hand import Input
from agent.desktop.protocol.windows import Windows
from agent.desktop.x11.input import X11Input
from agent.desktop.x11.person import Takeover, X11InputLog
from agent.desktop.x11.selections import X11Clipboard
from agent.desktop.x11.text import X11TextEntry
from agent.desktop.x11.watches import DisplayWatch, StopKey
from agent.desktop.x11.windows import X11Windows, open_windows, same_display
from agent.safety.stop import StopSwitch

_WAYLAND = "This is a Wayland session: only X11 applications can be seen and used, the rest of the screen is black."


class X11Desktop(LinuxDesktop, PortableDesktop):
    """A desktop of X11."""

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(stop, monitor, environ)
        self._environ = os.environ if environ is None else environ
        self.name = os.environ.get("DISPLAY", "")
        self.abilities = Abilities(remarks=(_WAYLAND,) if os.environ.get("WAYLAND_DISPLAY") else ())
        self._watches = ExitStack()

    @cached_property
    def text_entry(self) -> TextEntry:
        return X11TextEntry(self._number_outside)

    def _input(self) -> Input:
        return X11Input(self._stop)

    def open_windows(self) -> Windows | None:
        return open_windows()

    def _open_clipboard(self) -> X11Clipboard:
        return X11Clipboard()

    def open_input_log(self) -> X11InputLog:
        return X11InputLog()

    def _accessibility_bus(self, windows: Windows) -> str:
        assert isinstance(windows, X11Windows)
        return windows.told_bus()

    def shows(self, environ: Mapping[str, str]) -> bool:
        return same_display(environ.get("DISPLAY", ""), self.name)

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        key = StopKey(self._stop, stop_key)
        self._watches.callback(key.close)
        self._watches.callback(DisplayWatch(self._stop).close)
        if takeover is not None:
            self._watches.callback(Takeover(takeover).close)
        return key.remark

    def close(self) -> None:
        self._watches.close()
