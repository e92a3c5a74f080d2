"""What a desktop is: the protocol that every display system implements.

A new display system needs a folder beside `x11/` with a class that implements it, and a line in `factory.py`. `guard/`
combines its parts in the same way for every display system.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.hand import Hand, Rest
from agent.desktop.protocol.input_log import InputLog
from agent.desktop.protocol.windows import Windows
from agent.desktop.protocol.witness import Witness
from agent.safety.situation import Fact, Sense
from agent.safety.stop import StopSwitch
from agent.screen.capture import Screen
from foundation.errors import UsageError

#: The default stop key. XFCE and KDE do not use it (they use ctrl+alt+escape, ctrl+shift+escape and super+escape), but
#: GNOME does.
DEFAULT_CHORD = "ctrl+alt+shift+escape"
#: Seconds after an action during which its own input may still be reported, because a watch is late on a busy machine.
SETTLES = 0.3
_MODIFIERS = frozenset({"shift", "ctrl", "alt", "super"})

_LACKS = {
    "windows": "This desktop does not tell which window a click goes to, so rules about windows ask you.",
    "names": "Nor does it tell which window has the keyboard focus, so rules about keys and texts ask too.",
    "takeover": "Your own use of mouse or keyboard is not detected here: pause the run first.",
    "stop_key": "There is no stop key here: on this desktop, stop the agent by {stops}Ctrl-C, `mai-agent stop`, or "
    "Esc Esc in its terminal.",
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a desktop can do besides screen capture and input."""

    windows: bool = True  # knows where each window is
    names: bool = False  # without `windows`: knows at least which windows exist, and which has the keyboard focus
    takeover: bool = True  # detects when the person uses mouse or keyboard
    stop_key: bool = True  # has a global hotkey that stops a run
    stops: str = ""  # the desktop's own way to stop a run if there is no stop key
    remarks: tuple[str, ...] = ()  # other limits, as sentences
    machine: str = ""  # the address of another machine whose desktop it is

    @property
    def untold(self) -> frozenset[Sense]:
        """The information that rules need and that this desktop never provides."""
        if self.windows:
            return frozenset()
        return frozenset({"places"}) if self.names else frozenset({"places", "windows"})

    def lacks(self) -> list[str]:
        """Return what the desktop cannot do, as sentences for the person."""
        stops = f"{self.stops}, " if self.stops else ""
        has = {"names": self.windows or self.names}
        lacking = [sentence for name, sentence in _LACKS.items() if not has.get(name, getattr(self, name))]
        return [*(sentence.format(stops=stops) for sentence in lacking), *self.remarks]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of `doctor`."""

    name: str
    ok: bool | None  # None: not tried
    detail: str  # a sentence
    remedy: str = ""  # what to do, as a sentence
    needed: bool = False  # nothing works if this check fails


@dataclass(frozen=True, slots=True)
class Opens:
    """What an `OpenApp` would start.

    Args:
        names: name, identifier and program of the application that starts or opens the file; only the path if the file
            may run something itself.
        foreign: whether the system did not install the application, or it appeared after the run began.
        ordinary: whether its categories say that it is a game, or for documents, pictures, sound and the like.
    """

    names: tuple[str, ...] = ()
    foreign: bool = False
    ordinary: bool = False


class Applications(Protocol):
    """The installed applications. Methods with a body are for desktops whose applications are not known."""

    def names(self) -> list[str]:
        """Return the applications' names, sorted, without duplicates."""
        return []

    def identify(self, name: str, application: str = "") -> Opens | None:  # noqa: ARG002
        """Return what `open` would open: without names if it would open nothing, None if that is unknown."""
        return None

    def starting(self, names: Sequence[str], folder: str | None, *, opened: bool) -> frozenset[Fact]:  # noqa: ARG002
        """Return what is known of an icon or entry with these captions: whether it may start a program, and whose.

        `folder` is the title of the window that shows the icon's folder, "" for the desktop, None if unknown. Without
        `opened`, it is only pressed, as in a menu.
        """
        return frozenset()

    def browser(self) -> Opens | None:
        """Return the browser that would show a web page; without names if there is none, None if unknown."""
        return None

    def visit(self, url: str, stop: StopSwitch) -> str:
        """Show a web page in the browser, in a new tab if it already runs, and describe what happened.

        Raises ActionFailedError: this is no web address, there is no browser, or it exited with an error; StoppedError.
        """

    def open(self, name: str, stop: StopSwitch, application: str = "") -> str:
        """Open an application, or a file or folder in the home; wait for its window, and describe what happened.

        Raises ActionFailedError: there is no such application or file, several have this name, the file is a program,
        or the application exited with an error; StoppedError.
        """


class TextEntry(Protocol):
    """Enters text where the keyboard focus is. Uses the clipboard if there is one, and restores it."""

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        """Enter the text, then press Enter for each newline at its end, because shells do not run pasted lines.

        `press` presses a chord, by the key names of `agent.core.keys`. `check_stop` is called before every event and
        may raise. Raises ActionFailedError: no application took the text, or only a part of it.
        """


class Steered(Protocol):
    """The part of `agent.run.control.Steering` that the takeover watch needs."""

    @property
    def paused(self) -> str:
        """Why the run is paused; "" if it is not."""

    def user_acted(self, what: str) -> None:
        """Note what the person did with mouse or keyboard."""


@dataclass(frozen=True, slots=True)
class TakeoverWatch:
    """What a desktop needs to detect that the person takes over."""

    steering: Steered
    rest: Rest  # of the hand, whose own events are ignored
    #: Whether a point (None: the keyboard focus) is on our own window. There the person uses mai-agent itself.
    is_ours: Callable[[tuple[int, int] | None], bool]

    @property
    def counts(self) -> bool:
        """Whether input counts as the person's: the run is not paused, and our own input has been reported."""
        return not (self.rest.busy or self.steering.paused or time.monotonic() - self.rest.since < SETTLES)

    def used(self) -> None:
        """Tell that the person used mouse or keyboard."""
        self.steering.user_acted("used mouse or keyboard")


class Desktop(Protocol):
    """One desktop, opened for one run with its stop switch. Methods with a body are for desktops that know no more."""

    abilities: Abilities
    name: str  # on this machine, such as :0; "" if there can be only one
    monitors: list[Region]  # in desktop units, in the system's order
    home: DesktopPoint  # the middle of the watched monitor
    screen: Screen  # the captured monitor. The caller closes it, on the thread that captures
    applications: Applications  # the installed ones

    @property
    def hand(self) -> Hand:
        """The hand, created at first use. The caller closes it, on the thread that acts.

        Raises EnvironmentLacksError: this desktop accepts no input, or a program for text entry is missing.
        """

    @property
    def text_entry(self) -> TextEntry:
        """The text entry that `hand` uses."""

    def open_windows(self) -> Windows | None:
        """Open a connection to the windows for the calling thread; None if windows are unknown."""
        return None

    def open_witness(self, environ: Mapping[str, str], without: Sequence[Path] = ()) -> Witness | None:  # noqa: ARG002
        """Start to watch for changes that applications with this environment make; None if nothing can be watched.

        Returns at once. Files in the folders of `without`, such as the run's own record, are ignored.
        """
        return None

    def open_elements(self) -> Elements | None:
        """Open a connection to the screen's elements for the calling thread; None if elements are unknown."""
        return None

    def open_input_log(self) -> InputLog | None:
        """Start to listen to the person's mouse and keyboard; None if this desktop never reports them.

        Raises EnvironmentLacksError if listening is impossible on this display.
        """
        return None

    def shows(self, environ: Mapping[str, str]) -> bool:
        """Whether windows of a program with this environment appear on this desktop."""

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        """Watch for the stop key, the pointer in a corner, a lost display and a takeover, until `close`.

        `stop_key` is a chord, such as ctrl+alt+shift+escape, or "none"; `takeover` is None if nobody could resume the
        run. Returns a remark for the person, or "". Raises UsageError: `stop_key` is not a chord.
        """

    def check_input(self) -> str:
        """Describe how input works on this desktop, without sending any. Raises EnvironmentLacksError."""

    def close(self) -> None:
        """End the watches. Does not wait for them, because a dead display may hang."""


#: Opens a desktop for a run. Gets the stop switch; the monitor (1, 2, ..., or None for the primary one); and the
#: environment in which applications start (None for this process's own). Raises EnvironmentLacksError if the desktop
#: cannot be used, and UsageError if the monitor does not exist.
OpenDesktop: TypeAlias = Callable[[StopSwitch, int | None, Mapping[str, str] | None], Desktop]


def parse_chord(chord: str) -> tuple[list[str], str]:
    """Parse a stop key into its modifiers and its key; the key is "" for no stop key. Raises UsageError."""
    if chord.strip().lower() in ("", "none"):
        return [], ""
    *modifiers, key = [part.strip().lower() for part in chord.split("+")]
    if not modifiers or not key or not _MODIFIERS.issuperset(modifiers) or key in _MODIFIERS:
        raise UsageError(
            f"The stop key cannot be {chord!r}.", "Write it like ctrl+alt+shift+escape, or none for no stop key."
        )
    return modifiers, key


def number_of(monitors: Sequence[Region], monitor: int | None, primary: int | None = None) -> int:
    """Return the index, from 0, of a monitor that users number from 1.

    For None, return the primary monitor, or else the monitor at the origin, or else the first.

    Raises UsageError: there is no such monitor.
    """
    if monitor is None:
        at_origin = (number for number, one in enumerate(monitors) if one.left == one.top == 0)
        return next(at_origin, 0) if primary is None else primary
    if 1 <= monitor <= len(monitors):
        return monitor - 1
    have = "only monitor 1" if len(monitors) == 1 else f"monitors 1 to {len(monitors)}"
    raise UsageError(f"There is no monitor {monitor}: this desktop has {have}.", "Choose one of these.")
