"""Standard folders of an environment (XDG Base Directory Specification)."""

import os
from collections.abc import Mapping
from pathlib import Path


def home(environ: Mapping[str, str]) -> Path:
    """Return the home folder."""
    return Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 -- Path.home() has no fallback


def config_home(environ: Mapping[str, str]) -> Path:
    """Return the user's configuration folder."""
    return _absolute(environ.get("XDG_CONFIG_HOME")) or home(environ) / ".config"


def data_home(environ: Mapping[str, str]) -> Path:
    """Return the user's data folder."""
    return _absolute(environ.get("XDG_DATA_HOME")) or home(environ) / ".local/share"


def config_dirs(environ: Mapping[str, str]) -> list[Path]:
    """Return the system's configuration folders, most important first."""
    return _list(environ.get("XDG_CONFIG_DIRS") or "/etc/xdg")


def data_dirs(environ: Mapping[str, str]) -> list[Path]:
    """Return the system's data folders, most important first."""
    return _list(environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share")


def _absolute(path: str | None) -> Path | None:
    return Path(path) if path and path.startswith("/") else None


def _list(paths: str) -> list[Path]:
    return [found for path in paths.split(":") if (found := _absolute(path))]
