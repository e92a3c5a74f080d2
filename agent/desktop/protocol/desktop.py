"""What a desktop is: the protocol that every display system implements.

A new display system is a folder beside `x11/` with a class of this shape, and a line in `factory.py`. What follows from
its parts is the same everywhere: `guard/` puts it together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.hand import Hand, Rest
from agent.desktop.protocol.windows import Windows
from agent.desktop.protocol.witness import Witness
from agent.safety.situation import Sense
from agent.safety.stop import StopSwitch
from agent.screen.capture import Screen
from foundation.errors import UsageError

#: The default stop key. It is free in XFCE and KDE, which use ctrl+alt+escape, ctrl+shift+escape and super+escape
#: themselves. (GNOME has a use for it.)
DEFAULT_CHORD = "ctrl+alt+shift+escape"
_MODIFIERS = frozenset({"shift", "ctrl", "alt", "super"})

_LACKS = {
    "windows": "It is not known here which window a click goes to: rules about windows ask.",
    "names": "Nor is it known which window has the keyboard: the same holds for keys and texts.",
    "takeover": "It is not noticed here when you use mouse or keyboard yourself: pause the run first.",
    "stop_key": "There is no stop key here: on this desktop the agent stops by {stops}Ctrl-C, `mai-agent stop`, and "
    "Esc Esc where it runs.",
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a desktop can do besides being seen and touched."""

    windows: bool = True  # tells which window is where
    names: bool = False  # without `windows`: tells at least which windows exist, and which has the keyboard
    takeover: bool = True  # tells when the person uses mouse or keyboard
    stop_key: bool = True  # a chord of keys stops a run wherever the focus is
    stops: str = ""  # the desktop's own way to stop a run, where there is no stop key
    remarks: tuple[str, ...] = ()  # other limits, as sentences

    @property
    def untold(self) -> frozenset[Sense]:
        """What rules need and this desktop never tells."""
        if self.windows:
            return frozenset()
        return frozenset({"places"}) if self.names else frozenset({"places", "windows"})

    def lacks(self) -> list[str]:
        """Return what it cannot do, as sentences for the person."""
        stops = f"{self.stops}, " if self.stops else ""
        has = {"names": self.windows or self.names}
        lacking = [sentence for name, sentence in _LACKS.items() if not has.get(name, getattr(self, name))]
        return [*(sentence.format(stops=stops) for sentence in lacking), *self.remarks]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of `doctor` and its result."""

    name: str
    ok: bool | None  # None: not tried
    detail: str  # a sentence
    remedy: str = ""  # what to do, as a sentence
    needed: bool = False  # nothing works without it


@dataclass(frozen=True, slots=True)
class Opens:
    """What an `OpenApp` would start.

    Args:
        names: name, identifier and program of the application that starts or opens the file; only the path, for a file
            that may start something itself.
        foreign: the system did not install it, or it came after the run began.
    """

    names: tuple[str, ...] = ()
    foreign: bool = False


class Applications(Protocol):
    """The installed applications."""

    def names(self) -> list[str]:
        """Return their names, sorted, each once."""

    def identify(self, name: str, application: str = "") -> Opens | None:
        """Return what would be opened; no names if nothing would be, None if that is unknown."""

    def may_start(self, name: str) -> bool:
        """Whether a file of that name in the usual folders is a program, or starts one."""

    def may_start_in(self, title: str, names: Sequence[str]) -> bool:
        """Whether an icon with these captions may be a program, in the folder of a window title, or "" the desktop."""

    def lists_foreign(self, name: str) -> bool:
        """Whether the system did not install the menu entry of that name."""

    def browser(self) -> Opens | None:
        """Return what would show a web page; no names if nothing would, None if that is unknown."""

    def visit(self, url: str, stop: StopSwitch) -> str:
        """Show a web page in the browser, in a new tab if it runs already, and describe what happened.

        Raises:
            ActionFailedError: no web address, no browser, or the browser ended with an error.
            StoppedError: the stop switch was set.
        """

    def open(self, name: str, stop: StopSwitch, application: str = "") -> str:
        """Open an application, or a file or folder of the home; wait for the window, and describe what happened.

        Raises:
            ActionFailedError: no such application or file, several files of that name, a file that is a program, or
                the application ended with an error.
            StoppedError: the stop switch was set.
        """


class TextEntry(Protocol):
    """Enters text where the keyboard focus is, by the clipboard where there is one, and restores the clipboard."""

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        """Enter the text, then press Enter for each line end at its end: shells hold back what is pasted.

        Args:
            text: what to enter.
            press: presses a chord, by names of `agent.core.keys`.
            check_stop: called before every event; may raise.

        Raises:
            ActionFailedError: nothing takes it, or not all of it.
        """


class Steered(Protocol):
    """The part of `agent.run.control.steering.Steering` that the takeover watch needs."""

    @property
    def paused(self) -> str:
        """Why the run is paused; "" if it is not."""

    def user_acted(self, what: str) -> None:
        """Note that the person did something."""


@dataclass(frozen=True, slots=True)
class TakeoverWatch:
    """What a desktop needs to notice that the person takes over."""

    steering: Steered
    rest: Rest  # of the hand, whose own events do not count
    #: Whether a point, or the focused window for None, is our own: there, the person talks to us.
    is_ours: Callable[[tuple[int, int] | None], bool]


class Desktop(Protocol):
    """One desktop, opened for one run with its stop switch."""

    @property
    def abilities(self) -> Abilities:
        """What it can do."""

    @property
    def name(self) -> str:
        """Its name on this machine, such as :0; "" where there is only one."""

    @property
    def monitors(self) -> list[Region]:
        """All monitors in desktop units, in the system's order."""

    @property
    def home(self) -> DesktopPoint:
        """The middle of the watched monitor: the wheel turns there if an action names no point."""

    @property
    def screen(self) -> Screen:
        """The watched monitor. Its user closes it, on the thread that captures."""

    @property
    def hand(self) -> Hand:
        """The hand, made at first use. Its user closes it, on the thread that acts.

        Raises:
            EnvironmentLacksError: this desktop takes no input, or a program for entering text is missing.
        """

    @property
    def text_entry(self) -> TextEntry:
        """How that hand enters text."""

    @property
    def applications(self) -> Applications:
        """The installed applications."""

    def open_windows(self) -> Windows | None:
        """Open a connection to the windows for the calling thread; None where windows are unknown."""

    def open_witness(self, environ: Mapping[str, str], without: Sequence[Path] = ()) -> Witness | None:
        """Begin to watch what changes for applications with this environment; None where nothing can tell.

        Returns at once. Files in the folders of `without`, such as the run's own record, do not count.
        """

    def open_elements(self) -> Elements | None:
        """Open a connection to the screen's elements for the calling thread; None where they are unknown."""

    def shows(self, environ: Mapping[str, str]) -> bool:
        """Whether windows of a program with this environment appear on this desktop."""

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        """Watch for the stop key, the pointer in a corner, a lost display and a takeover, until `close`.

        Args:
            stop_key: the chord, such as ctrl+alt+shift+escape; "none" for none.
            takeover: None if nobody could resume the run.

        Returns:
            A remark for the person, or "".

        Raises:
            UsageError: that is no chord.
        """

    def check_input(self) -> str:
        """Describe what takes input here, without using it. Raises EnvironmentLacksError."""

    def close(self) -> None:
        """End the watches; does not wait, because a dead display may hang."""


#: Opens a desktop for a run. Gets the stop switch; the monitor (1, 2, ..., or None for the primary one); and the
#: environment in which applications start (None for this process's own). Raises EnvironmentLacksError if the desktop
#: cannot be used, and UsageError if there is no such monitor.
OpenDesktop: TypeAlias = Callable[[StopSwitch, int | None, Mapping[str, str] | None], Desktop]


def parse_chord(chord: str) -> tuple[list[str], str]:
    """Return modifiers and key of a stop key as a person writes it; no key for none. Raises UsageError."""
    if chord.strip().lower() in ("", "none"):
        return [], ""
    *modifiers, key = [part.strip().lower() for part in chord.split("+")]
    if not modifiers or not key or not _MODIFIERS.issuperset(modifiers) or key in _MODIFIERS:
        raise UsageError(
            f"The stop key cannot be {chord!r}.", "Write it like ctrl+alt+shift+escape, or none for no stop key."
        )
    return modifiers, key
