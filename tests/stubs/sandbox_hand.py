"""The real hand on the display of a throw-away desktop."""

from collections.abc import Mapping
from functools import partial

from agent.desktop.apps.launcher import Launcher
from agent.desktop.input.hand import InputHand
from agent.desktop.programs import host_pid
from agent.desktop.x11.desktop import X11Input
from agent.desktop.x11.text import X11TextEntry
from agent.desktop.x11.windows import open_windows
from agent.safety.stop import StopSwitch


def sandbox_hand(environ: Mapping[str, str]) -> InputHand:
    """A hand that works in the sandbox of this environment; for who closes it."""
    stop = StopSwitch()
    text = X11TextEntry(partial(host_pid, environ=environ))
    return InputHand(stop, X11Input(stop), text, Launcher(environ, open_windows))
