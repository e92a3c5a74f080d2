"""The part of the doctor that looks at a desktop: whether it can be seen and touched, and what really arrives."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from agent.desktop.factory import asks_consent, asks_first, describe_display, open_desktop, self_test_window
from agent.desktop.protocol.desktop import DEFAULT_CHORD, Desktop, Finding
from agent.desktop.self_test.capture import what_is_empty
from agent.desktop.self_test.checks import SelfTest, window_environ
from agent.safety.stop import Registered, StopSwitch
from agent.settings import DesktopKind
from foundation.errors import EnvironmentLacksError, MaiError, StoppedError
from foundation.printing import remark

#: Seconds between the announcement and the first move.
COUNTDOWN = 3
_UNTRIED = "nothing was really clicked, typed or looked for"
_TRY = "`mai-agent doctor --try` does it, in a window of its own."


@dataclass(frozen=True, slots=True, kw_only=True)
class DesktopDoctor:
    """Looks at one desktop."""

    stop: StopSwitch  # ends a trial
    kind: DesktopKind  # how it is captured and controlled
    monitor: int | None  # which one, from 1; None for the primary one
    tried: bool  # whether it is really tried
    #: The stop key of a trial on the person's own desktop; "" for a throw-away desktop, which needs no countdown.
    stop_key: str = DEFAULT_CHORD
    environ: Mapping[str, str] | None = None  # of the programs of a throw-away one; None for this process's own

    def findings(self) -> Iterator[Finding]:
        """Yield the findings, the screen first. Raises StoppedError: the person ended the trial."""
        environ = os.environ if self.environ is None else self.environ
        if not self.tried and asks_consent(environ, self.kind):
            yield Finding("screen", ok=None, detail=f"the desktop itself asks you first, so {_UNTRIED}", remedy=_TRY)
            return
        if asks := asks_first(environ, self.kind):
            remark(asks)
        try:
            desktop = open_desktop(self.stop, self.monitor, self.environ, self.kind)
        except MaiError as error:
            yield Finding("screen", ok=False, detail=error.what, remedy=error.remedy)
            return
        with ExitStack() as opened:
            opened.callback(desktop.close)
            opened.callback(desktop.screen.close)
            screen = attempted("screen", lambda: _capture(desktop, tried=self.tried))
            yield screen
            if screen.ok is not False:
                taken = attempted("input", desktop.check_input)
                yield taken if self.tried or not taken.ok else replace(taken, ok=None, remedy=_TRY)
                yield from self._trial(desktop) if self.tried else [Finding("trial", None, _UNTRIED, _TRY)]
            yield from (Finding("limit", ok=True, detail=one) for one in desktop.abilities.lacks())

    def _trial(self, desktop: Desktop) -> Iterator[Finding]:
        environ = window_environ(desktop, os.environ)
        if environ is None:
            detail = "this system cannot show a window of our own, so nothing was tried"
            yield Finding("trial", ok=False, detail=detail)
            return
        with closing(Registered(f"doctor-{os.getpid()}", "doctor --try")):
            if self.stop_key:
                self._announce()
            yield from SelfTest(desktop, self_test_window(environ), environ, self.stop, self.stop_key).run()

    def _announce(self) -> None:
        remark(
            "For some seconds, a window of our own gets the pointer and the keyboard: do not touch them.",
            f"Ctrl-C ends it, and so does {self.stop_key} where that is watched.",
        )
        for left in range(COUNTDOWN, 0, -1):
            remark(f"{left} ...")
            self.stop.sleep(1)


def display(environ: Mapping[str, str], kind: DesktopKind) -> Iterator[Finding]:
    """Yield the monitors and the keyboard layouts, if the display reports them."""
    try:
        monitors, layouts = describe_display(environ, kind)
    except EnvironmentLacksError:
        return  # already reported
    if monitors:
        yield Finding("monitors", ok=True, detail="; ".join(monitors))
    if layouts:
        yield Finding("keyboard layout", ok=True, detail=", ".join(layouts))


def attempted(name: str, look: Callable[[], str | Finding]) -> Finding:
    """Return what `look` finds, or its error, as a finding."""
    try:
        found = look()
    except StoppedError:
        raise
    except MaiError as error:
        return Finding(name, ok=False, detail=error.what, remedy=error.remedy)
    return Finding(name, ok=True, detail=found) if isinstance(found, str) else found


def _capture(desktop: Desktop, *, tried: bool) -> Finding:
    frame = desktop.screen.grab()
    scale_x, scale_y = frame.viewport.scale
    monitors = ", ".join(f"{region.size} at {region.left},{region.top}" for region in desktop.monitors)
    scale = "" if scale_x == scale_y == 1 else f", captured at scale {scale_x:g}x{scale_y:g}"
    detail = f"{desktop.name} {monitors}{scale}".strip()
    if empty := what_is_empty(frame.image):
        detail = f"{detail}, but {empty}: either nothing is shown, or it is not seen"
        return Finding("screen", ok=None, detail=detail, remedy="" if tried else _TRY)
    return Finding("screen", ok=True, detail=detail)
