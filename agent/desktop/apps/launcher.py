"""Opens an application by name, and waits for its window.

The application lists for macOS and Windows follow the systems' documentation; they are not tested yet.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path

from agent.desktop.apps import files, linux
from agent.desktop.apps.catalogue import App, Catalogue
from agent.desktop.programs import Started, start_program
from agent.desktop.protocol.desktop import Applications, Opens
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.protocol.windows import Connection, OpenWindows
from agent.model.engines import KEY_VARIABLES
from agent.safety.addresses import is_web_page
from agent.safety.situation import Fact
from agent.safety.stop import StopSwitch

#: Seconds. A first start from a cold disk can take this long; a warm start takes 0.2 to 0.3 s.
_WINDOW_TIMEOUT = 12.0
#: Seconds for a window after the program has exited without an error, because it handed over to a running instance.
_HANDOVER_TIMEOUT = 3.0
_BUNDLES = ("/Applications", "/Applications/Utilities", "/System/Applications", "/System/Applications/Utilities",
            "~/Applications")  # fmt: skip
_START_MENU = ("powershell", "-NoProfile", "-Command", "Get-StartApps | ConvertTo-Json -Compress")


class Launcher(Applications):
    """Finds and starts the installed applications in `environ`; None for this process's own environment."""

    def __init__(self, environ: Mapping[str, str] | None, open_windows: OpenWindows) -> None:
        self._open_windows = open_windows
        self._environ = dict(os.environ if environ is None else environ)
        for variable in KEY_VARIABLES:  # no application needs them, and a terminal would show them
            self._environ.pop(variable, None)
        self._started: list[Started] = []
        self._began = time.time()

    @cached_property
    def catalogue(self) -> Catalogue:
        match sys.platform:
            case "darwin":
                return Catalogue(macos_apps())
            case "win32":
                return Catalogue(windows_apps())
        return Catalogue(linux.installed_apps(self._environ), linux.desktops(self._environ))

    def names(self) -> list[str]:
        return self.catalogue.names()

    def identify(self, name: str, application: str = "") -> Opens | None:
        try:
            app, path = self._meant(name, application)
        except OSError:
            return None
        except ActionFailedError:  # `open` will open nothing and say why
            return Opens()
        if path is not None and files.may_start_something(path):  # dangerous with any application
            return Opens((str(path),))
        return self._opens(app)

    def _opens(self, app: App) -> Opens:
        if not sys.platform.startswith("linux"):
            return Opens((app.name,))
        names = tuple(filter(None, (app.name, app.id, app.program.rsplit("/", 1)[-1])))
        return Opens(names, linux.is_foreign(app, self._environ, self._began), app.ordinary)

    def starting(self, names: Sequence[str], folder: str | None, *, opened: bool) -> frozenset[Fact]:
        home, facts = self._home(), set[Fact]()
        if home is None:
            return frozenset()
        if any(files.shows_own_entry(name, home, self._environ) for name in names):
            facts.add("not the system's")
        if opened and any(files.shows_program(name, home, self._environ) for name in names):
            facts.add("may be a program")
        # Captions under icons often cannot be read, so the folder counts too.
        if opened and folder is not None and files.shows_program_in(folder, names, home, self._environ):
            facts.add("beside programs")
        return frozenset(facts)

    def _home(self) -> Path | None:
        home = self._environ.get("HOME", "")
        return Path(home) if sys.platform.startswith("linux") and Path(home).is_dir() else None

    def open(self, name: str, stop: StopSwitch, application: str = "") -> str:
        app, path = self._meant(name, application)
        home = self._home()
        prefix = "" if path is None or home is None else f"{files.shown_path(home, path)} with "
        return self._open(f"{prefix}{app.name}", app, path, stop)

    def browser(self) -> Opens | None:
        app = self._browser()
        return Opens() if app is None else self._opens(app)

    def visit(self, url: str, stop: StopSwitch) -> str:
        if not is_web_page(url):
            raise ActionFailedError(f"{url[:60]!r} is no address of a web page: use one with http:// or https://")
        app = self._browser()
        if app is None:
            raise ActionFailedError("no web browser is installed, so no page can be visited")
        return self._open(f"{url[:200]} with {app.name}", app, url, stop)

    def _browser(self) -> App | None:
        types = ["x-scheme-handler/https", "x-scheme-handler/http", "text/html"]
        return self.catalogue.opener(types, linux.chosen_for(types, self._environ))

    def _meant(self, name: str, application: str) -> tuple[App, Path | None]:
        """Return the application to start, and the file or folder that it opens. Raises ActionFailedError."""
        app = None if application or files.is_path(name) else self.catalogue.find(name)
        if app is not None:
            return app, None
        home = self._home()
        path = None if home is None else files.find_file(name, home, self._environ)
        if path is None:
            raise ActionFailedError(self._not_found(name, application))
        if application:
            opener = self.catalogue.find(application)
            if opener is None:
                raise ActionFailedError(self._not_found(application))
            return opener, path
        if files.may_start_something(path):
            raise ActionFailedError(f"{path.name} may be a program: say which application is to open it")
        types = linux.types_of(path)
        opener = self.catalogue.opener(types, linux.chosen_for(types, self._environ))
        if opener is None:
            raise ActionFailedError(f"no application is known to open {path.name} ({types[0]})")
        return opener, path

    def _not_found(self, name: str, application: str = "") -> str:
        if application or files.is_path(name):
            return f"no file or folder in your home is called {name[:60]!r}"
        similar = self.catalogue.similar(name)
        hint = f"; similar names: {', '.join(similar)}" if similar else ""
        return f"no installed application, file or folder is called {name[:60]!r}{hint}"

    def _open(self, description: str, app: App, opened: Path | str | None, stop: StopSwitch) -> str:
        """Start an application, and wait for its window. Raises ActionFailedError."""
        command, home = linux.start_command(app, opened), self._environ.get("HOME", "")
        if command is None:
            raise ActionFailedError(f"{app.name} needs a terminal, and none is installed")
        with closing(Connection(self._open_windows)) as connection:
            known = connection.get()
            before = {window.id for window in known.windows()} if known else set()
            try:
                process = start_program(command, self._environ, home if Path(home).is_dir() else None)
            except OSError as error:
                raise ActionFailedError(f"{app.name} cannot be started: {error}") from error
            deadline = time.monotonic() + _WINDOW_TIMEOUT
            self._started = [*(earlier for earlier in self._started if earlier.poll() is None), process]
            while time.monotonic() < deadline:
                stop.sleep(0.05)
                status = process.poll()
                if status:
                    raise ActionFailedError(f"{description} ended at once with status {status}")
                if status == 0:
                    deadline = min(deadline, time.monotonic() + _HANDOVER_TIMEOUT)
                new = [window for window in known.windows() if window.id not in before] if known else []
                if new:
                    return f"opened {description} (window “{new[-1].title}”)"
        return f"started {description}; no new window appeared"


def macos_apps(folders: tuple[str, ...] = _BUNDLES) -> Iterator[App]:
    """Return the application bundles in the usual folders."""
    for folder in folders:
        for bundle in sorted(Path(folder).expanduser().glob("*.app")):
            yield App(id=str(bundle), name=bundle.stem, command=("open", "-a", str(bundle)))


def windows_apps() -> Iterator[App]:
    """Return the entries of the start menu; none if PowerShell fails."""
    try:
        done = subprocess.run(_START_MENU, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return
    yield from parse_start_apps(done.stdout)


def parse_start_apps(text: str) -> Iterator[App]:
    """Return the applications in the JSON of `Get-StartApps | ConvertTo-Json`: one object or a list."""
    try:
        entries = json.loads(text or "[]")
    except ValueError:
        return
    for entry in [entries] if isinstance(entries, dict) else entries:
        name, identifier = entry.get("Name"), entry.get("AppID")
        if name and identifier:
            yield App(id=identifier, name=name, command=("explorer.exe", f"shell:AppsFolder\\{identifier}"))
