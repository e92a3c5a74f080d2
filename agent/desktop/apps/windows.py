"""Installed applications on Windows: the start menu, by `Get-StartApps`; started through the shell's AppsFolder.

Written against Microsoft's documentation of the two; not run by us yet.
"""

import json
import subprocess
from collections.abc import Iterator

from agent.desktop.apps.catalogue import App

_LIST = ("powershell", "-NoProfile", "-Command", "Get-StartApps | ConvertTo-Json -Compress")


def installed_apps() -> Iterator[App]:
    """The entries of the start menu; none where PowerShell cannot tell."""
    try:
        done = subprocess.run(_LIST, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return
    yield from parse_start_apps(done.stdout)


def parse_start_apps(text: str) -> Iterator[App]:
    """The applications in the JSON that `Get-StartApps | ConvertTo-Json` prints: one object or a list."""
    try:
        entries = json.loads(text or "[]")
    except ValueError:
        return
    for entry in [entries] if isinstance(entries, dict) else entries:
        name, identifier = entry.get("Name"), entry.get("AppID")
        if name and identifier:
            yield App(id=identifier, name=name, command=("explorer.exe", f"shell:AppsFolder\\{identifier}"))
