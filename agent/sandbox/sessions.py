"""The kinds of sandbox desktops, described in `configs/sandbox.toml` and `configs/sandbox/`."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from foundation.configs import config_names, load_config
from foundation.errors import EnvironmentLacksError

#: Tables of a kind's configuration that are added to those of all kinds.
_TABLES = ["programs", "applications", "environment", "environment_as_root", "files", "copies", "services", "dconf"]


@dataclass(frozen=True, slots=True)
class Session:
    """One kind of desktop. Its configuration file explains the fields."""

    name: str
    title: str
    start: tuple[tuple[str, ...], ...]
    windows: frozenset[str]
    display: Literal["x11", "sway", "mutter"]  # Xvfb, or a compositor in `start`
    wallpaper: str  # "#rrggbb"
    folders: tuple[str, ...]
    libraries: tuple[str, ...]
    programs: Mapping[str, str]
    applications: Mapping[str, str]
    environment: Mapping[str, str]
    environment_as_root: Mapping[str, str]
    files: Mapping[str, str]
    copies: Mapping[str, str]
    services: Mapping[str, str]
    dconf: Mapping[str, Mapping[str, str]]

    @property
    def ordinary(self) -> bool:
        """Whether it must run as an ordinary user. Compositors reject root or show a warning."""
        return self.display != "x11"

    def missing(self) -> list[str]:
        """Return the Debian packages of required programs that are not installed."""
        return _missing(self.programs)

    def missing_applications(self) -> list[str]:
        """Return the Debian packages of its applications that are not installed."""
        return _missing(self.applications)

    def can_start(self) -> bool:
        """Return whether enough of it is installed."""
        try:
            self.check_installed()
        except EnvironmentLacksError:
            return False
        return True

    def check_installed(self) -> None:
        """Raise EnvironmentLacksError if a required program is missing, or all applications."""
        absent = self.missing_applications()
        if missing := self.missing():
            raise EnvironmentLacksError(
                f"The sandbox ({self.title}) needs programs that are not installed.",
                f"Install them: {install_line([*missing, *self.libraries])}",
            )
        if absent and len(absent) == len(set(self.applications.values())):
            raise EnvironmentLacksError(
                f"None of the applications of {self.title} is installed.", f"Install them: {install_line(absent)}"
            )


def session_names() -> list[str]:
    """Return the names of all kinds, sorted."""
    return config_names("sandbox")


def load_session(name: str) -> Session:
    """Load a kind of desktop. Raises KeyError for an unknown name."""
    if name not in session_names():
        raise KeyError(name)
    common, own = load_config("sandbox.toml"), load_config(f"sandbox/{name}.toml")
    return Session(
        name=name,
        title=own["title"],
        start=tuple(tuple(command) for command in own["start"]),
        windows=frozenset(own.get("windows", ())),
        display=own.get("display", "x11"),
        wallpaper=common["wallpaper"],
        folders=tuple(common["folders"]),
        libraries=(*common["libraries"], *own.get("libraries", ())),
        **{key: common.get(key, {}) | own.get(key, {}) for key in _TABLES},
    )


def install_line(packages: list[str]) -> str:
    """Return the command that installs packages on Debian."""
    return f"apt-get install --no-install-recommends {' '.join(packages)}"


def _missing(programs: Mapping[str, str]) -> list[str]:
    return sorted({package for program, package in programs.items() if shutil.which(program) is None})
