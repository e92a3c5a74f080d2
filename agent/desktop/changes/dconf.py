"""Track settings in dconf, which `gsettings` writes.

The tool `dconf` reads them, because `gsettings get` cannot read a key without a schema, as in relocatable schemas.
"""

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import Setting, differences
from agent.desktop.changes.entries import Entry, entry_at
from agent.desktop.linux import places
from agent.desktop.programs import LAUNCHER_SOCKET, run_inside

#: Seconds for one tool. `dconf` takes 5 ms, `gsettings` 26 ms for the defaults of 2,168 keys.
_TIMEOUT = 2.0


class DconfStore:
    """A `Store`. A setting whose value equals its default counts as not set."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._file = places.config_home(environ) / "dconf" / "user"
        self._before: dict[str, str] | None = None  # None while unknown
        self._read: Entry | None = None  # the mark of the last read
        self._last: list[Change] = []
        self.remark = ""

    def begin(self) -> None:
        self.changes()

    def changes(self) -> list[Change]:
        """Return the changes, the last known ones if `dconf` fails."""
        mark = self.mark()
        if self._before is None or mark != self._read:
            try:
                now = self._values() if mark else {}
            except (OSError, subprocess.SubprocessError):
                self.remark = "Settings in dconf cannot be read, so their changes are unknown: is dconf-cli installed?"
                return self._last
            self._read, self.remark = mark, ""
            self._before = now if self._before is None else self._before
            self._last = self._differences(self._before, now)
        return self._last

    def mark(self) -> Entry | None:
        return entry_at(str(self._file))

    def _values(self) -> dict[str, str]:
        """Return all settings by their keys, in GVariant's text form. Raises OSError, SubprocessError."""
        found: dict[str, str] = {}
        folder = ""
        for line in run_tool(self._environ, "dconf", "dump", "/").splitlines():
            if line.startswith("["):
                folder = f"/{line.strip('[]/')}".rstrip("/")
            elif line:
                key, _, value = line.partition("=")
                found[f"{folder}/{key}"] = value
        return found

    def _differences(self, before: Mapping[str, str], now: Mapping[str, str]) -> list[Change]:
        keys = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        old, new = (
            {key: setting for key in keys if (setting := self._setting(key, values.get(key)))}
            for values in (before, now)
        )
        return list(differences("dconf", old, new, name=str, place=str))

    def _setting(self, key: str, text: str | None) -> Setting | None:
        if text is not None:
            return Setting(text, text)
        default = self._defaults.get(key)
        return None if default is None else Setting(default, None)  # putting it back means resetting the key

    @cached_property
    def _defaults(self) -> dict[str, str]:
        """The defaults of all keys that have a fixed path; empty if `gsettings` is missing."""
        found: dict[str, str] = {}
        with suppress(OSError, subprocess.SubprocessError):
            paths = dict(line.split(" ", 1) for line in self._listed("list-schemas", "--print-paths"))
            for schema, key, value in (line.split(" ", 2) for line in self._listed("list-recursively")):
                found.setdefault(paths.get(schema, "") + key, value)
        return found

    def _listed(self, *arguments: str) -> list[str]:
        return run_tool({**self._environ, "GSETTINGS_BACKEND": "memory"}, "gsettings", *arguments).splitlines()


def current(environ: Mapping[str, str], key: str) -> str | None:
    """Return a key's value in GVariant's text form; None if it is not set. Raises OSError, SubprocessError."""
    return run_tool(environ, "dconf", "read", key).rstrip("\n") or None


def set_again(environ: Mapping[str, str], key: str, text: str | None) -> None:
    """Set a key to an earlier value, or reset it if `text` is None. Raises OSError, SubprocessError."""
    run_tool(environ, "dconf", *(("reset", key) if text is None else ("write", key, text)))


def run_tool(environ: Mapping[str, str], *command: str) -> str:
    """Return the output of a tool. Raises OSError, SubprocessError.

    It runs in the sandbox that the environment names: dconf writes to the runtime folder, where programs of the sandbox
    can put links to files outside.
    """
    if LAUNCHER_SOCKET in environ:
        done = run_inside(command, environ, _TIMEOUT)
    else:
        done = subprocess.run(
            command, env=environ, timeout=_TIMEOUT, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            encoding="utf-8", errors="replace",
        )  # fmt: skip
    done.check_returncode()
    return done.stdout
