"""The kinds of sandbox desktops (`configs/sandbox.toml`, `configs/sandbox/`), and their locale, built if missing."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foundation.configs import config_names, load_config, state_folder
from foundation.errors import EnvironmentLacksError, UsageError

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


#: Source files of locales for glibc's `localedef`.
_SOURCES = Path("/usr/share/i18n/locales")
_NAME = re.compile(r"(?P<place>[a-z]{2,3}_[A-Z]{2})(?P<code>\.(?i:utf-?8))?(?P<variant>@[a-z]+)?")


def locale_environ(name: str) -> dict[str, str]:
    """Return the environment variables for a locale such as "de_DE.UTF-8"; only UTF-8 is allowed.

    A locale that is not installed is built once from the system's sources (a second or two) in mai-agent's state
    folder, without root. Raises UsageError for an unknown locale; EnvironmentLacksError if it cannot be built.
    """
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise UsageError(f"{name!r} is no locale.", "Name a language and a country, as in de_DE.UTF-8 or fr_FR.")
    source = parts["place"] + (parts["variant"] or "")
    full = f"{parts['place']}.UTF-8{parts['variant'] or ''}"
    language = {"LANG": full, "LANGUAGE": parts["place"]}
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, timeout=10, check=False).stdout
        if full.replace("UTF-8", "utf8") in listed.split():
            return language
    folder = state_folder() / "locales"
    if not (folder / full).is_dir():
        _make(source, folder / full)
    return language | {"LOCPATH": str(folder)}


def _make(source: str, target: Path) -> None:
    if shutil.which("localedef") is None or not _SOURCES.is_dir():
        raise EnvironmentLacksError(
            f"The locale {target.name} is not on this system, and what it could be made from is not installed.",
            "Install it: apt-get install --no-install-recommends locales",
        )
    if not (_SOURCES / source).is_file():
        language = source.partition("_")[0]
        near = sorted(path.name for path in _SOURCES.glob(f"{language}_*"))
        raise UsageError(
            f"This system knows no locale {target.name}.",
            f"It knows {', '.join(near)}." if near else f"`ls {_SOURCES}` shows those that it knows.",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as making:
        made = Path(making, target.name)
        # The exit status is no criterion: warnings, which many locales cause, set it too.
        done = subprocess.run(
            ["localedef", "--no-archive", "-i", source, "-f", "UTF-8", str(made)],
            capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if not (made / "LC_CTYPE").is_file():
            last = (done.stderr.strip().splitlines() or ["it does not say why"])[-1]
            raise EnvironmentLacksError(f"The locale {target.name} could not be made ({last}).")
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # else another start has built it meanwhile
                raise
