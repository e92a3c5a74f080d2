"""The person's own desktop, for commands that look at it or use it without a run."""

import os

from agent.desktop import factory
from agent.desktop.protocol.desktop import Desktop
from agent.safety.stop import StopSwitch
from agent.settings import load_settings
from foundation.printing import remark


def open_own_desktop(stop: StopSwitch, monitor: int | None = None) -> Desktop:
    """Open it by the way that is set; say first what it will ask the person. See `OpenDesktop`."""
    kind = load_settings().desktop
    if asks := factory.asks_first(os.environ, kind):
        remark(asks)
    return factory.open_desktop(stop, monitor, kind=kind)
