"""Opens an application by name: found, started detached, and waited for until its window is there."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path

from agent.desktop.apps import linux, macos, windows
from agent.desktop.apps.catalogue import App, Catalogue
from agent.desktop.hand import ActionFailedError
from agent.desktop.windows import Connection, OpenWindows, WindowId, Windows
from agent.safety.stop import StopSwitch

#: A first start from a cold disk can take this long; a warm one takes 0.2 to 0.3 s.
_WINDOW_TIMEOUT = 12.0
#: A program that ended without an error handed over to one that already ran, whose window may need this long.
_HANDOVER_TIMEOUT = 3.0


class Launcher:
    """The installed applications; see `Applications`.

    Args:
        environ: the environment that they are searched and started in; None for this process's own.
        open_windows: tells when the window of one has appeared.
    """

    def __init__(self, environ: Mapping[str, str] | None, open_windows: OpenWindows) -> None:
        self._open_windows = open_windows
        self._environ = dict(os.environ if environ is None else environ)
        self._environ.pop("MAI_AGENT_API_KEY", None)  # no application needs it, and a terminal would show it
        self._started: list[subprocess.Popen[bytes]] = []

    @cached_property
    def catalogue(self) -> Catalogue:
        """The installed applications; read once."""
        match sys.platform:
            case "darwin":
                return Catalogue(macos.installed_apps())
            case "win32":
                return Catalogue(windows.installed_apps())
        return Catalogue(linux.installed_apps(self._environ))

    def names(self) -> list[str]:
        """See `Applications.names`."""
        return self.catalogue.names()

    def identify(self, name: str) -> tuple[str, ...] | None:
        """See `Applications.identify`."""
        try:
            app = self.catalogue.find(name)
        except OSError:
            return None
        if app is None:
            return ()
        return tuple(filter(None, (app.name, app.id, app.program.rsplit("/", 1)[-1])))

    def open(self, name: str, stop: StopSwitch) -> str:
        """See `Applications.open`."""
        app = self.catalogue.find(name)
        if app is None:
            similar = self.catalogue.similar(name)
            hint = f"; similar names: {', '.join(similar)}" if similar else ""
            raise ActionFailedError(f"no installed application is called {name[:60]!r}{hint}")
        with closing(Connection(self._open_windows)) as connection:
            known = connection.get()
            before = {window.id for window in known.windows()} if known else set()
            return self._wait_for_window(app, self._start(app), known, before, stop)

    def _start(self, app: App) -> "subprocess.Popen[bytes]":
        command = linux.start_command(app)
        if command is None:
            raise ActionFailedError(f"{app.name} needs a terminal, and none is installed")
        home = self._environ.get("HOME", "")
        try:
            process = subprocess.Popen(
                command, env=self._environ, cwd=home if Path(home).is_dir() else None, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as error:
            raise ActionFailedError(f"{app.name} cannot be started: {error}") from error
        self._started = [earlier for earlier in self._started if earlier.poll() is None]
        self._started.append(process)
        return process

    def _wait_for_window(
        self,
        app: App,
        process: "subprocess.Popen[bytes]",
        known: Windows | None,
        before: set[WindowId],
        stop: StopSwitch,
    ) -> str:
        deadline = time.monotonic() + _WINDOW_TIMEOUT
        while time.monotonic() < deadline:
            stop.sleep(0.05)
            status = process.poll()
            if status:
                raise ActionFailedError(f"{app.name} ended at once with status {status}")
            if status == 0:
                deadline = min(deadline, time.monotonic() + _HANDOVER_TIMEOUT)
            new = [window for window in known.windows() if window.id not in before] if known else []
            if new:
                return f"opened {app.name} (window “{new[-1].title}”)"
        return f"started {app.name}; no new window appeared"
