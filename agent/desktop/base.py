"""What a desktop is: the protocol that every display system stands behind.

A new one is a folder beside `x11/` with a class of this shape, and a line in `factory.py`. What follows from its parts
is the same everywhere and comes for free: `protected.py` puts it together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.elements import Elements
from agent.desktop.hand import Hand, Rest
from agent.desktop.windows import Windows
from agent.desktop.witness import Witness
from agent.safety.situation import Sense
from agent.safety.stop import StopSwitch
from agent.screen.capture import Screen
from foundation.errors import UsageError

#: The stop key unless told otherwise: free in XFCE and KDE, which use ctrl+alt+escape, ctrl+shift+escape and
#: super+escape themselves. (GNOME has a use for it.)
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

    windows: bool = True  # it tells which window is where
    names: bool = False  # where it does not, it tells at least which there are, and which has the keyboard
    takeover: bool = True  # it tells when the person uses mouse or keyboard
    stop_key: bool = True  # a chord of keys stops a run wherever the focus is
    stops: str = ""  # what of its own ends a run anywhere, where there is no stop key
    remarks: tuple[str, ...] = ()  # what else it cannot do, as sentences

    @property
    def untold(self) -> frozenset[Sense]:
        """What rules go by and this desktop never tells."""
        if self.windows:
            return frozenset()
        return frozenset({"places"}) if self.names else frozenset({"places", "windows"})

    def lacks(self) -> list[str]:
        """What it cannot do, as sentences for the person."""
        stops = f"{self.stops}, " if self.stops else ""
        has = {"names": self.windows or self.names}
        lacking = [sentence for name, sentence in _LACKS.items() if not has.get(name, getattr(self, name))]
        return [*(sentence.format(stops=stops) for sentence in lacking), *self.remarks]


@dataclass(frozen=True, slots=True)
class Opens:
    """What an `OpenApp` would start.

    Args:
        names: name, identifier and program of the application, that of the one that opens a file or folder; the path
            alone, for a file that may start something itself.
        foreign: it was not installed by the system, or came since the run began.
    """

    names: tuple[str, ...] = ()
    foreign: bool = False


class Applications(Protocol):
    """The installed applications."""

    def names(self) -> list[str]:
        """What they are called, sorted, each once."""

    def identify(self, name: str, application: str = "") -> Opens | None:
        """What would be opened; without names where nothing would be, None if that is not known."""

    def may_start(self, name: str) -> bool:
        """Whether a file that is shown by a name in the usual folders is a program, or starts one."""

    def may_start_in(self, title: str, names: Sequence[str]) -> bool:
        """Whether an icon in the folder that a title names, or on the desktop for "", may be a program.

        Unless it is surely another file, by what is read there.
        """

    def lists_foreign(self, name: str) -> bool:
        """Whether an entry of that name in the menus was not put there by the system."""

    def browser(self) -> Opens | None:
        """What would show a web page; without names where nothing would, None if that is not known."""

    def visit(self, url: str, stop: StopSwitch) -> str:
        """Show a web page in the browser, in a new tab where it runs already, and say what happened.

        Raises:
            ActionFailedError: that is no address of a web page, there is no browser, or it ended with an error.
            StoppedError: the stop switch was set.
        """

    def open(self, name: str, stop: StopSwitch, application: str = "") -> str:
        """Open one, or a file or folder of the home with one; wait for its window, and say what happened.

        Raises:
            ActionFailedError: no such application or file, several files of that name, a file that is a program, or
                it ended with an error.
            StoppedError: the stop switch was set.
        """


class TextEntry(Protocol):
    """Enters text where the keyboard focus is, by the clipboard where there is one, and puts that back."""

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        """Enter the text, with Enter for each line end at its end: shells hold back what is pasted.

        Args:
            text: what to enter.
            press: presses a chord, by names of `agent.core.keys`.
            check_stop: is called before everything that is done, and may raise.

        Raises:
            ActionFailedError: nothing takes it, or not all of it.
        """


class Steered(Protocol):
    """A run that the person can pause: the part of `agent.run.control.steering.Steering` that is needed here."""

    @property
    def paused(self) -> str:
        """Why it is paused; "" when it is not."""

    def user_acted(self, what: str) -> None:
        """The person did something."""


@dataclass(frozen=True, slots=True)
class TakeoverWatch:
    """What is needed to notice that the person takes over."""

    steering: Steered  # is told
    rest: Rest  # of the hand, whose own doing does not count
    #: Whether a point, or the window with the focus for None, is our own: there, the person talks to us.
    is_ours: Callable[[tuple[int, int] | None], bool]


class Desktop(Protocol):
    """One desktop, opened for one run, whose stop switch it got."""

    @property
    def abilities(self) -> Abilities:
        """What it can do, and what it cannot."""

    @property
    def name(self) -> str:
        """What tells it from others on this machine, such as :0; "" where there is but one."""

    @property
    def monitors(self) -> list[Region]:
        """All monitors in desktop units, in the system's order."""

    @property
    def home(self) -> DesktopPoint:
        """The middle of the monitor that is watched: where the wheel turns when an action names no point."""

    @property
    def screen(self) -> Screen:
        """That monitor. Whoever looks at it closes it, on the thread where it is used."""

    @property
    def hand(self) -> Hand:
        """The hand, made when it is first asked for. Whoever uses it closes it, on the thread where it is used.

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
        """A connection to the windows, for the thread that calls; None where windows are unknown."""

    def open_witness(self, environ: Mapping[str, str], without: Sequence[Path] = ()) -> Witness | None:
        """Begin to watch what changes for applications with this environment; None where nothing can tell.

        Returns at once. Files in the folders of `without`, such as the one that the run is recorded in, do not count.
        """

    def open_elements(self) -> Elements | None:
        """A connection to the elements on the screen, for the thread that calls; None where they are unknown."""

    def shows(self, environ: Mapping[str, str]) -> bool:
        """Whether the windows of a program with this environment appear on this desktop."""

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        """Watch for the stop key, the pointer in a corner, a lost display and the person's taking over, until `close`.

        Args:
            stop_key: the chord, such as ctrl+alt+shift+escape; "none" for none.
            takeover: None where nobody could resume the run.

        Returns:
            A remark for the person, or "".

        Raises:
            UsageError: that is no chord.
        """

    def check_input(self) -> str:
        """Say in words what takes input here, without using it. Raises EnvironmentLacksError."""

    def close(self) -> None:
        """End the watches; does not wait, because a dead display may hang."""


#: Opens a desktop for a run with this stop switch, which ends what its hand does and is set by its watches: monitor 1,
#: 2 and so on, or None for the primary one; and the environment that applications are started in, or None for this
#: process's own. Raises EnvironmentLacksError where it cannot be used, and UsageError where there is no such monitor.
OpenDesktop: TypeAlias = Callable[[StopSwitch, int | None, Mapping[str, str] | None], Desktop]


def parse_chord(chord: str) -> tuple[list[str], str]:
    """Modifiers and key of a stop key as a person writes it; no key for none. Raises UsageError."""
    if chord.strip().lower() in ("", "none"):
        return [], ""
    *modifiers, key = [part.strip().lower() for part in chord.split("+")]
    if not modifiers or not key or not _MODIFIERS.issuperset(modifiers) or key in _MODIFIERS:
        raise UsageError(
            f"The stop key cannot be {chord!r}.", "Write it like ctrl+alt+shift+escape, or none for no stop key."
        )
    return modifiers, key
