"""The desktop of GNOME or KDE on Wayland: one session, through the portal or (disposable desktops) Mutter itself."""

import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import cached_property, partial

from typing_extensions import override

from agent.desktop.linux.bus import BusError
from agent.desktop.portal.consent import open_portal
from agent.desktop.portal.input import PortalInput, open_libei
from agent.desktop.portal.screen import PortalScreen
from agent.desktop.portal.session import Session, open_mutter
from agent.desktop.portal.takeover import IdleWatch, active_application, tells_idle, terminal_has_focus
from agent.desktop.portal.text import PortalClipboard, PortalTextEntry, composes
from agent.desktop.portal.windows import (
    PortalStopKey,
    ShellStopKey,
    has_extension,
    has_shortcuts,
    open_described_windows,
)
from agent.desktop.programs import MARK
from agent.desktop.protocol.desktop import DEFAULT_CHORD, Abilities, TakeoverWatch, TextEntry, parse_chord
from agent.desktop.protocol.windows import Windows
from agent.desktop.trees.switch import session_bus
from agent.desktop.wayland.desktop import NO_CORNER, Pointer, SeatWatch, WaylandDesktop
from agent.desktop.wayland.devices import read_layout, read_seat
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

_RESTART = "Does it run (`systemctl --user status pipewire`)? Then start again."
_ENDED = "the desktop ended sharing its screen"
_SCALED = "On a scaled monitor, this desktop takes the pointer only by libei, which is missing."
_MARK = "the desktop's screen-sharing indicator (click it)"
_TO_BE_HAD = (
    f"To stop the agent here, use {_MARK}, Ctrl-C, `mai-agent stop`, or Esc Esc in its terminal. For a stop key, "
    "name one with the setting stop_key: the desktop asks you once."
)
_NO_CLIPBOARD = "The desktop does not share its clipboard: only characters on the keyboard can be typed."


class PortalDesktop(WaylandDesktop):
    """A desktop behind a session. `OpenDesktop` describes arguments and errors."""

    def __init__(self, stop: StopSwitch, monitor: int | None, environ: Mapping[str, str] | None) -> None:
        super().__init__(stop, environ)
        # The portal's dialog asks the person. In our own sandbox there is nobody to ask.
        in_sandbox = MARK in self._environ
        self._session: Session = (
            open_mutter(self._environ, monitor) if in_sandbox else open_portal(self._environ, monitor, stop)
        )
        self._is_cut_off: Callable[[], bool] = lambda: False  # until the screen is open
        self._watches.callback(self._session.close)
        with ExitStack() as begun:  # closes what is open if a later step fails
            begun.callback(self.close)
            self._session.on_closed(self._ended)
            self.screen = PortalScreen(self._session)
            begun.callback(self.screen.close)
            self._is_cut_off = self.screen.is_cut_off
            self.monitors, self.home = list(self._session.monitors), self.screen.home
            self._pointer = Pointer(self.home.rounded())
            self._clipboard: PortalClipboard = PortalClipboard(self._session)
            self._watches.callback(self._clipboard.close)
            self.abilities = Abilities(
                windows=self.open_windows() is not None,
                takeover=self._tells_idle() or tells_idle(self._environ),
                stop_key=has_extension(self._environ) or has_shortcuts(self._environ),
                stops=_MARK,
                remarks=(NO_CORNER,) if self._session.has_clipboard else (_NO_CLIPBOARD, NO_CORNER),
            )
            begun.pop_all()

    @cached_property
    def _input(self) -> PortalInput:
        layout, seat = partial(read_layout, self._path), read_seat(self._path)
        try:
            libei = open_libei(self._session)
        except BusError as error:
            raise EnvironmentLacksError(f"This desktop takes no input ({error}).", "Log out and in again.") from error
        if libei is not None:
            return PortalInput(libei, self._pointer, seat, layout, self._stop, libei.close)
        view = self._session.viewport
        if self._session.unscaled_only and view.captured != view.region.size:
            raise EnvironmentLacksError(_SCALED, "Install libei and the extra: pip install 'mai-agent[wayland]'.")
        return PortalInput(self._session, self._pointer, seat, layout, self._stop)

    @cached_property
    def text_entry(self) -> TextEntry:
        return PortalTextEntry(
            self._input,
            self._clipboard,
            self.open_windows,
            lambda: composes(self._environ),
            lambda: active_application(session_bus(self._environ)),
        )

    @override
    def open_windows(self) -> Windows | None:
        return open_described_windows(self._environ)

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        remark = self._watch_key(stop_key)  # first: the user's answer to its dialog is no takeover
        self._watches.callback(SeatWatch(self._path, self._stop, takeover).close)
        if takeover is not None and tells_idle(self._environ):
            ours = partial(terminal_has_focus, session_bus(self._environ))
            known = self.abilities.windows  # then `takeover.is_ours` finds our own window reliably
            watch = IdleWatch(self._environ, takeover, (lambda: False) if known else ours)
            self._watches.callback(watch.close)
        return remark

    def _watch_key(self, chord: str) -> str:
        """Watch the stop key. Return a remark for the user, or "". Raises UsageError: the chord is invalid."""
        if not parse_chord(chord)[1] or not self.abilities.stop_key:
            return ""
        key: ShellStopKey | PortalStopKey
        if has_extension(self._environ):
            key = ShellStopKey(self._environ, self._stop, chord)
        elif chord == DEFAULT_CHORD:  # the user chose no key, so no dialog is shown
            return _TO_BE_HAD
        else:
            key = PortalStopKey(self._environ, self._stop, chord)
        self._watches.callback(key.close)
        return key.remark

    def check_input(self) -> str:
        return "a pointer and a keyboard that the desktop lent us"

    def _ended(self) -> None:
        """Handle the end of the session. The user ended it, unless the program that opened it is gone."""
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
            tried.connect(self._path)
            if self._is_cut_off():
                self._stop.fail(EnvironmentLacksError("PipeWire, which hands the screen over, went away.", _RESTART))
            elif self._session.is_lost:
                self._stop.fail(EnvironmentLacksError("The desktop portal went away.", "Start again, or log in again."))
            else:
                self._stop.stop(_ENDED)
            return
        self._stop.fail(EnvironmentLacksError("The desktop went away.", "Is the session still running?"))
