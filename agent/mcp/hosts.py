"""Writes mai-agent into the settings of MCP hosts, and takes it out again.

An entry is inserted as text, so that comments, order and spaces of the file stay. What was inserted is remembered, and
removing exactly that gives back the file as it was.
"""

import difflib
import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agent.mcp.settings_text import SettingsError, insert_json, insert_toml, insert_yaml, read_json
from foundation.configs import load_config, state_folder
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import write_atomically

NAME = "mai-agent"
_INSERT: dict[str, Callable[[str, Sequence[str], str, Any], str]] = {
    "json": insert_json, "toml": insert_toml, "yaml": insert_yaml,
}  # fmt: skip
_READ: dict[str, Callable[[str], Any]] = {"json": read_json, "toml": tomllib.loads, "yaml": yaml.safe_load}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a host's settings, not written yet. None is a file that does not exist."""

    path: Path
    before: str | None
    after: str | None
    memory: Path  # the file that remembers what was inserted
    inserted: str = ""  # what is to be remembered; "" to forget it
    made: bool = False  # whether the file is made for the entry

    @property
    def differs(self) -> bool:
        """Whether anything is to be written."""
        return self.before != self.after

    def diff(self) -> Iterator[str]:
        """Yield the change as lines of a unified diff."""
        before, after = (self.before or "").splitlines(), (self.after or "").splitlines()
        yield from difflib.unified_diff(before, after, str(self.path), str(self.path), lineterm="")

    def write(self) -> None:
        """Write it. Raises EnvironmentLacksError."""
        try:
            if self.inserted:
                self.memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                known = {"path": str(self.path), "inserted": self.inserted, "made": self.made}
                write_atomically(self.memory, json.dumps(known).encode())
            if self.after is None:
                self.path.unlink(missing_ok=True)
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self.path.resolve(), self.after.encode())
            if not self.inserted:
                self.memory.unlink(missing_ok=True)
        except OSError as error:
            raise EnvironmentLacksError(f"{self.path} cannot be written ({error.strerror or error}).", "") from error


def host_names() -> list[str]:
    """Return the names of the known hosts."""
    return sorted(load_config("mcp/hosts.toml"))


def installed(host: str, file: str | None, options: Sequence[str]) -> Change:
    """Return the change that writes the entry into a host's settings. Raises UsageError."""
    data = load_config("mcp/hosts.toml")[host]
    path, memory = _path(data["path"], file), _memory(host)
    if memory.is_file():  # an earlier entry, perhaps with other options
        before = _read(path)
        without = uninstalled(host, file).after
    else:
        before = without = _read(path)
    command, args = sys.executable, ["-m", "agent", "mcp", *options]
    filled = {"{command}": command, "{args}": args, "{argv}": [command, *args]}
    entry = {key: filled.get(value, value) if isinstance(value, str) else value for key, value in data["entry"].items()}
    kind = data["format"]
    try:
        settings = _READ[kind](without or "") or {}
        for key in data["keys"]:
            settings = settings.get(key) or {}
        if NAME in settings:
            raise UsageError(f"{path} has an entry {NAME} already.", "Remove it there first.")
        inserted = _INSERT[kind](without or "", data["keys"], NAME, entry)
        _READ[kind](inserted)
    except (SettingsError, AttributeError, TypeError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read as {kind} ({error}).", "Mend it, or add the entry by hand.") from error
    return Change(path, before, inserted, memory, _added(without or "", inserted), without is None)


def uninstalled(host: str, file: str | None) -> Change:
    """Return the change that takes the entry out. Raises UsageError if it was changed meanwhile, or is not ours."""
    memory = _memory(host)
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError):
        path = _path(load_config("mcp/hosts.toml")[host]["path"], file)
        raise UsageError(f"mai-agent was not installed in {host}.", f"Look into {path}.") from None
    path = Path(known["path"])
    before = _read(path)
    if before is None or known["inserted"] not in before:
        if before is not None and f'"{NAME}"' in before:
            raise UsageError(f"The entry in {path} was changed since.", "Remove it by hand.")
        return Change(path, before, before, memory)
    after: str | None = before.replace(known["inserted"], "", 1)
    if known["made"] and not (after or "").strip():
        after = None
    return Change(path, before, after, memory)


def _added(before: str, after: str) -> str:
    """Return the text by which `after` is longer: insertions are in one place."""
    pairs = enumerate(zip(before, after, strict=False))
    start = next((at for at, (old, new) in pairs if old != new), len(before))
    return after[start : start + len(after) - len(before)]


def _path(told: str, file: str | None) -> Path:
    if file is not None:
        return Path(file).expanduser()
    config = "~/Library/Application Support" if sys.platform == "darwin" else "~/.config"
    return Path(told.replace("{config}", config)).expanduser()


def _memory(host: str) -> Path:
    return state_folder() / "mcp" / f"{host}.json"


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}).", "Name another file with --file.") from error
