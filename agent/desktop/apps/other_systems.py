"""Installed applications on macOS (bundles) and Windows (the start menu), as their documentation says; not tested
there.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from agent.desktop.apps.catalogue import App

_BUNDLES = ("/Applications", "/Applications/Utilities", "/System/Applications", "/System/Applications/Utilities",
            "~/Applications")  # fmt: skip
_START_MENU = ("powershell", "-NoProfile", "-Command", "Get-StartApps | ConvertTo-Json -Compress")


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
