"""Finds the terminal that runs us among the windows of the desktop, and keeps it out of the captured picture.

What the program prints there would otherwise be read back by the model as if it were part of the task, and a click in
it could answer our own questions.
"""

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from agent.desktop.x11.connection import display_lost, open_display
from agent.desktop.x11.windows import Window, WindowList, window_list
from agent.geometry import Region
from agent.screen.capture import Frame, Screen
from foundation.errors import EnvironmentLacksError

#: Nothing on a screen that is done with for good looks like this; the model sees a blank area.
_GREY = (128, 128, 128)
_TMUX_TIMEOUT = 1.0
#: For so long after our window has gone from a place, its picture may still be there, in seconds.
_LINGER = 0.25
#: Helpers that really hide what is under them; others (overlays, bubbles of the desktop) may be seen through.
_COVERING = {
    f"_NET_WM_WINDOW_TYPE_{kind}" for kind in ("MENU", "DROPDOWN_MENU", "POPUP_MENU", "COMBO", "TOOLTIP", "DND")
}
_REMARK = (
    "The window of this terminal cannot be told from others here: keep it off the screen that the agent works on, "
    "because the agent sees it and could click in it."
)


@dataclass(frozen=True, slots=True)
class Own:
    """Our own windows (several where one program shows several and does not say which is ours), and what to tell."""

    windows: frozenset[int] = frozenset()
    remark: str = ""


def find_own() -> Own:
    """The windows of the terminal that runs us; nothing over SSH, or where it is on another display."""
    display = os.environ.get("DISPLAY", "")
    here = [process for process in _terminal_ends() if _on_display(_environ(process), display)]
    if not here:
        return Own()
    served = bool(os.environ.get("TEXTUAL_DRIVER"))  # in some browser, on this desktop or another
    visible = served or (sys.stdout is not None and sys.stdout.isatty())
    windows = window_list()
    if windows is None:
        return Own(remark=_REMARK if visible else "")
    try:
        found = frozenset(one for process in here for one in _windows_of(process, windows))
    except Exception:  # python3-xlib surfaces a lost connection as any of a dozen exceptions
        found = frozenset()
    finally:
        windows.close()
    return Own(found, "" if found or not visible else _REMARK)


def _terminal_ends() -> list[psutil.Process]:
    """The processes that hang on a terminal for us: this one, or the clients of the tmux or screen that we run in."""
    environ = os.environ
    with suppress(psutil.Error, OSError, subprocess.SubprocessError, ValueError):
        if environ.get("TMUX"):
            target = ["-t", environ["TMUX_PANE"]] if environ.get("TMUX_PANE") else []
            told = subprocess.run(
                ["tmux", "list-clients", *target, "-F", "#{client_pid}"],
                capture_output=True, text=True, timeout=_TMUX_TIMEOUT, stdin=subprocess.DEVNULL, check=True,
            )  # fmt: skip
            return [psutil.Process(int(line)) for line in told.stdout.split()]
        if environ.get("STY"):
            return [
                process
                for process in psutil.process_iter(["name", "uids", "terminal"])
                if process.info["name"] == "screen"
                and process.info["terminal"]
                and process.info["uids"].real == os.getuid()
            ]
        return [psutil.Process()]
    return []


def _environ(process: psutil.Process) -> Mapping[str, str]:
    """The environment that a process was started with: ours too, because a sandbox changes the running one."""
    with suppress(psutil.Error, OSError):
        return process.environ()
    return {}


def _on_display(environ: Mapping[str, str], display: str) -> bool:
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return False
    if not sys.platform.startswith("linux"):
        return True
    return bool(display) and _plain(environ.get("DISPLAY", "")) == _plain(display)


def _plain(display: str) -> str:
    """:0, :0.0 and unix:0 are one display."""
    host, _, number = display.rpartition(":")
    return f"{'' if host == 'unix' else host}:{number.split('.')[0]}"


def _windows_of(process: psutil.Process, windows: WindowList) -> list[int]:
    """The window that a terminal's process says it is in, or else those of the nearest process above that has any."""
    above = [parent.pid for parent in process.parents()]
    told = _environ(process).get("WINDOWID", "")
    if told.isdigit():
        found = windows.client(int(told))
        window = windows.window(found) if found else None
        if window is not None and (window.pid is None or window.pid in above):  # a stale number may be anybody's
            return [window.id]
    listed = [window for window in windows.windows() if window.pid is not None and windows.is_ordinary(window.id)]
    return _nearest(listed, above, windows.active())


def _nearest(listed: Sequence[Window], above: Iterable[int], active: Window | None) -> list[int]:
    for pid in above:
        theirs = [window.id for window in listed if window.pid == pid]
        if active is not None and active.id in theirs:  # the command was just typed there
            return [active.id]
        if theirs:
            return theirs
    return []


class MaskedScreen:
    """A `Screen` on which our own windows are blank, as far as they can be seen.

    Args:
        screen: the real one.
        own: our windows.
    """

    def __init__(self, screen: Screen, own: frozenset[int]) -> None:
        self._screen = screen
        self._own = own
        self._view: _View | None = None
        self._seen: list[tuple[list[Region], float]] = []

    def grab(self) -> Frame:
        """Capture, and blank where our windows are, before and after it: one may be moved meanwhile.

        Also where they were just now: without a compositor, what was under them takes a moment to be drawn.
        """
        self._note(self._visible())
        frame = self._screen.grab()
        self._note(self._visible())
        for regions, _ in self._seen:
            for region in regions:
                _blank(frame, region)
        return frame

    def _note(self, regions: list[Region]) -> None:
        now = time.monotonic()
        recent = [(known, last) for known, last in self._seen if now - last < _LINGER and known != regions]
        self._seen = [*recent, (regions, now)]

    def _visible(self) -> list[Region]:
        try:
            self._view = self._view or _View(self._own)
            return self._view.visible()
        except EnvironmentLacksError:
            raise
        except Exception as error:  # python3-xlib surfaces a lost connection as any of a dozen exceptions
            raise display_lost(error) from error

    def close(self) -> None:
        """Close both connections."""
        view, self._view = self._view, None
        if view is not None:
            view.close()
        self._screen.close()


def _blank(frame: Frame, region: Region) -> None:
    monitor, (scale_x, scale_y) = frame.viewport.region, frame.viewport.scale
    left, top = (region.left - monitor.left) * scale_x, (region.top - monitor.top) * scale_y
    right, bottom = left + region.width * scale_x, top + region.height * scale_y
    far = min(frame.image.width, math.ceil(right)), min(frame.image.height, math.ceil(bottom))
    box = (max(0, math.floor(left)), max(0, math.floor(top)), *far)
    if box[0] < box[2] and box[1] < box[3]:
        frame.image.paste(_GREY, box)


class _View:
    """Where our windows can be seen, kept up to date by the X server's own events: looking costs one round trip."""

    def __init__(self, own: frozenset[int]) -> None:
        from Xlib import X

        self._own = own
        self._display = open_display()
        self._root = self._display.screen().root
        self._root.change_attributes(event_mask=X.SubstructureNotifyMask | X.PropertyChangeMask)
        self._visible: list[Region] | None = None
        self._frames: dict[int, int] = {}

    def visible(self) -> list[Region]:
        """The parts of our windows that nothing covers."""
        self._display.sync()
        while self._display.pending_events():
            event = self._display.next_event()
            if type(event).__name__ in ("ReparentNotify", "DestroyNotify"):
                self._frames.clear()
            self._visible = None
        if self._visible is None:
            self._visible = self._look()
        return self._visible

    def _look(self) -> list[Region]:
        stack = [child.id for child in self._root.query_tree().children]
        clients = {*(self._property(self._root.id, "_NET_CLIENT_LIST") or ()), *self._own}
        of_frame = {self._frame(client): client for client in clients}
        ours = {frame for frame, client in of_frame.items() if client in self._own}
        seen: list[Region] = []
        for identifier in stack:  # from the lowest up: what comes later covers what was there
            box = self._box(identifier)
            if box is None:
                continue
            if identifier in ours:
                seen.append(box)
            elif seen:
                for cover in self._covers(identifier, box, of_frame.get(identifier)):
                    seen = [rest for region in seen for rest in without(region, cover)]
        return seen

    def _covers(self, identifier: int, box: Region, client: int | None) -> list[Region]:
        """The part of a window that hides what is under it."""
        if client is None:
            return [box] if self._is_menu(identifier) else []
        if self._property(identifier, "_NET_WM_WINDOW_OPACITY"):
            return []
        opaque, shadow = self._property(client, "_NET_WM_OPAQUE_REGION"), self._property(client, "_GTK_FRAME_EXTENTS")
        if client == identifier and opaque:
            return [
                Region(box.left + x, box.top + y, w, h)
                for x, y, w, h in zip(*[iter(opaque)] * 4, strict=False)
                if w and h
            ]
        if shadow and len(shadow) == 4:
            left, right, top, bottom = shadow
            width, height = box.width - left - right, box.height - top - bottom
            return [Region(box.left + left, box.top + top, width, height)] if width > 0 and height > 0 else []
        return [box]

    def _is_menu(self, identifier: int) -> bool:
        mask = ~self._display.display.info.resource_id_mask
        if any(identifier & mask == own & mask for own in self._own):  # a menu of our own terminal is ours
            return False
        kinds = self._property(identifier, "_NET_WM_WINDOW_TYPE") or ()
        return any(self._display.get_atom_name(kind) in _COVERING for kind in kinds)

    def _frame(self, client: int) -> int:
        """The child of the root that a window is in."""
        if client not in self._frames:
            handle = self._display.create_resource_object("window", client)
            with suppress(Exception):  # it closed in between
                while (parent := handle.query_tree().parent) and parent.id != self._root.id:
                    handle = parent
            self._frames[client] = handle.id
        return self._frames[client]

    def _box(self, identifier: int) -> Region | None:
        """Where a child of the root is; None if it cannot be seen."""
        from Xlib import X

        handle = self._display.create_resource_object("window", identifier)
        with suppress(Exception):  # it closed in between
            attributes = handle.get_attributes()
            if attributes.map_state != X.IsViewable or attributes.win_class != X.InputOutput:
                return None
            at = handle.get_geometry()
            return Region(at.x, at.y, at.width + 2 * at.border_width, at.height + 2 * at.border_width)
        return None

    def _property(self, identifier: int, name: str) -> Any:
        handle = self._display.create_resource_object("window", identifier)
        with suppress(Exception):  # it closed in between
            found = handle.get_full_property(self._display.intern_atom(name), 0)
            return None if found is None else found.value
        return None

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self._display.close()


def without(region: Region, cover: Region) -> list[Region]:
    """A rectangle minus another one, as up to four rectangles."""
    left, top = max(region.left, cover.left), max(region.top, cover.top)
    right = min(region.left + region.width, cover.left + cover.width)
    bottom = min(region.top + region.height, cover.top + cover.height)
    if left >= right or top >= bottom:
        return [region]
    far_right, far_bottom = region.left + region.width, region.top + region.height
    parts = (
        (region.left, region.top, region.width, top - region.top),
        (region.left, bottom, region.width, far_bottom - bottom),
        (region.left, top, left - region.left, bottom - top),
        (right, top, far_right - right, bottom - top),
    )
    return [Region(*part) for part in parts if part[2] > 0 and part[3] > 0]
