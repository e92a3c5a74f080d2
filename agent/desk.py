"""The desktop that the runs of one sitting work on, opened once and given back at the end."""

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.model.engines import Ask, Tell
from agent.options import RunOptions
from agent.safety.stop import StopSwitch

if TYPE_CHECKING:
    from agent.desktop.protocol.desktop import OpenDesktop
    from agent.sandbox.desktop import Sandbox


class Desk:
    """The desktop to work on: the person's own, or a sandbox that is started and ended here."""

    def __init__(self, options: RunOptions, tell: Tell, ask: Ask | None) -> None:
        self._options = options
        self._tell = tell
        self._ask = ask
        self._sandbox: Sandbox | None = None
        self._accessibility: Any = None

    @property
    def sandbox(self) -> "Sandbox | None":
        """The throw-away desktop; None for the person's own."""
        return self._sandbox

    @property
    def environ(self) -> dict[str, str] | None:
        """The environment for applications; None for this process's own."""
        return None if self._sandbox is None else dict(self._sandbox.environ)

    @property
    def open_desktop(self) -> "OpenDesktop":
        """The function that opens the desktop for one run."""
        from agent.desktop.factory import open_desktop

        if self._options.sandbox:
            return open_desktop
        return partial(open_desktop, kind=self._options.desktop, remote=self._options.remote)

    def check(self) -> None:
        """Raise at once if the display, the monitor or the machine is missing, unless a sandbox is wanted."""
        if self._options.remote is not None:
            self.open_desktop(StopSwitch(), self._options.monitor, None).screen.close()
        elif not self._options.sandbox:
            from agent.desktop.factory import check_display

            check_display(os.environ, self._options.desktop, self._options.monitor)

    def open(self, stop: StopSwitch) -> None:
        """Start the sandbox, if one is wanted."""
        if self._options.remote is not None:
            return
        if not self._options.sandbox:
            self._open_accessibility()
            from agent.desktop.factory import asks_first

            if asks := asks_first(os.environ, self._options.desktop):
                self._tell(asks)
            return
        from agent.sandbox.desktop import SandboxSpec, start_sandbox

        options = self._options
        spec = SandboxSpec(
            options.sandbox_size, options.keep, options.sandbox_session, options.sandbox_locale, options.sandbox_network
        )
        self._sandbox = start_sandbox(spec, self._tell, stop.check)
        self._sandbox.applied()

    def _open_accessibility(self) -> None:
        """Switch on accessibility in the person's session, if they agree."""
        if not sys.platform.startswith("linux"):
            return
        from agent.desktop.trees.switch import LentAccessibility

        wish: Any = self._options.accessibility or "ask"
        self._accessibility = LentAccessibility(os.environ, wish, self._ask, self._tell)

    def close(self) -> None:
        """End the sandbox, or say how to look at it; give back what was lent."""
        if self._accessibility is not None:
            self._accessibility.give_back()
        if self._sandbox is None:
            return
        if self._options.keep:
            self._tell(self._sandbox.how_to_look())
        self._sandbox.close()
