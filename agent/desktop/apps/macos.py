"""Installed applications on macOS: bundles found by folder, started with `open -a` (man open). Not run by us yet."""

from collections.abc import Iterator
from pathlib import Path

from agent.desktop.apps.catalogue import App

_FOLDERS = (
    "/Applications",
    "/Applications/Utilities",
    "/System/Applications",
    "/System/Applications/Utilities",
    "~/Applications",
)


def installed_apps(folders: tuple[str, ...] = _FOLDERS) -> Iterator[App]:
    """The application bundles in the usual folders."""
    for folder in folders:
        path = Path(folder).expanduser()
        if not path.is_dir():
            continue
        for bundle in sorted(path.glob("*.app")):
            yield App(id=str(bundle), name=bundle.stem, command=("open", "-a", str(bundle)))
