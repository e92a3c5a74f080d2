"""Writes mai-agent into the settings of MCP hosts, and takes it out again.

An entry is inserted as text, so that comments, order and spaces of the file stay. The inserted text is stored, and
removing exactly this text restores the file. Of JSON that the host has rewritten since, only the values stay.
"""

import difflib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agent.tools.commented_json import read_json, tokens
from foundation.configs import load_config, state_folder
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import write_atomically

NAME = "mai-agent"


class SettingsError(ValueError):
    """The file is not shaped like settings."""


def insert_json(text: str, keys: Sequence[str], name: str, entry: Any) -> str:
    """Return the text with `name: entry` first in the object at `keys`, which is made if it is missing."""
    if not text.strip():
        document: Any = {name: entry}
        for key in reversed(keys):
            document = {key: document}
        return text + json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    at, found = _object(text, keys)
    for key in reversed(keys[found:]):
        name, entry = key, {name: entry}
    unit = _indent(text)
    written = json.dumps({name: entry}, indent=unit, ensure_ascii=False)[1:-1].rstrip()
    body = written.replace("\n", _newline(text) + unit * found)
    follows = next((sign for place, sign in tokens(text) if place >= at), "}")
    return f"{text[:at]}{body}{'' if follows == '}' else ','}{text[at:]}"


def insert_toml(text: str, keys: Sequence[str], name: str, entry: dict[str, Any]) -> str:
    """Return the text with a table at its end."""
    lines = [f"[{'.'.join(keys)}.{name}]", *(f"{key} = {_toml(value)}" for key, value in entry.items())]
    end = _newline(text)
    gap = "" if not text else end if text.endswith("\n") else 2 * end
    return f"{text}{gap}" + end.join(lines) + end


def insert_yaml(text: str, keys: Sequence[str], name: str, entry: dict[str, Any]) -> str:
    """Return the text with a member of a mapping at the top level, which is made if it is missing."""
    (key,) = keys
    heading = re.search(rf"^{re.escape(key)}:[ \t]*(#.*)?\r?$\n?", text, re.MULTILINE)
    if heading is None:
        if re.search(rf"^{re.escape(key)}:", text, re.MULTILINE):
            raise SettingsError(f"{key} is written on one line")
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{key}:\n{_yaml(name, entry, '  ')}"
    below = re.match(r"([ \t]+)\S", text[heading.end() :])
    gap = "" if heading[0].endswith("\n") else "\n"
    added = f"{gap}{_yaml(name, entry, below[1] if below else '  ')}"
    return text[: heading.end()] + added.replace("\n", _newline(text)) + text[heading.end() :]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _object(text: str, keys: Sequence[str]) -> tuple[int, int]:
    """Return the offset after the opening brace of the deepest existing object on the path `keys`, and its depth.

    Raises SettingsError: the text is not an object.
    """
    path: list[str] = []  # the keys of the objects around, "" for lists
    found = place = -1
    last = ""
    for at, sign in tokens(text):
        if sign in "{[":
            path.append(json.loads(last) if last.startswith('"') else "")
            inside = path[1:]
            if sign == "{" and len(inside) > found and inside == list(keys)[: len(inside)]:
                found, place = len(inside), at + 1
        elif sign in "}]":
            path.pop()
        if sign != ":":
            last = sign if sign.startswith('"') else ""
    if place < 0:
        raise SettingsError("it is no object")
    return place, found


def _indent(text: str) -> str:
    """Return the indentation that the text uses; two spaces if it uses none."""
    match = re.search(r"\{[^\S\n]*(?://[^\n]*)?\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # strings, booleans and lists of strings are written alike


def _yaml(name: str, entry: dict[str, Any], indent: str) -> str:
    lines = [f"{indent}{name}:", *(f"{indent}{indent}{key}: {json.dumps(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


_INSERT: dict[str, Callable[[str, Sequence[str], str, Any], str]] = {
    "json": insert_json, "toml": insert_toml, "yaml": insert_yaml,
}  # fmt: skip
_READ: dict[str, Callable[[str], Any]] = {
    "json": read_json, "toml": lambda text: tomllib.loads(text.removeprefix("\ufeff")), "yaml": yaml.safe_load,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a host's settings, not written yet. None stands for a file that does not exist."""

    path: Path
    before: str | None
    after: str | None
    memory: Path  # the file that remembers what was inserted
    inserted: str = ""  # what is to be remembered; "" to forget it
    entry: Mapping[str, Any] = field(default_factory=dict)  # the inserted entry
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
        """Write the change. Raises EnvironmentLacksError."""
        try:
            if self.inserted:
                self.memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                known = {"path": str(self.path), "inserted": self.inserted, "made": self.made, "entry": self.entry}
                write_atomically(self.memory, json.dumps(known).encode())
            if self.after is None:
                self.path.resolve().unlink(missing_ok=True)
            else:
                self.path.resolve().parent.mkdir(parents=True, exist_ok=True)
                mode = 0o600 if self.before is None else self.path.stat().st_mode & 0o777
                write_atomically(self.path.resolve(), self.after.encode(), mode)
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
    before = without = _read(path)
    if (known := _remembered(memory)) is not None and Path(known["path"]) == path:
        without = uninstalled(host, file).after  # an earlier entry, perhaps with other options
    # -P: a host starts it in a project's folder, whose modules must not shadow ours.
    command, args = sys.executable, ["-P", "-m", "agent", "mcp", *options]
    filled = {"{command}": command, "{args}": args, "{argv}": [command, *args]}
    entry = {key: filled.get(value, value) if isinstance(value, str) else value for key, value in data["entry"].items()}
    kind = data["format"]
    try:
        if NAME in _section(_READ[kind](without or ""), data["keys"]):
            raise UsageError(f"{path} has an entry {NAME} already.", "Remove it there first.")
        inserted = _INSERT[kind](without or "", data["keys"], NAME, entry)
        was, becomes = (_READ[kind](text) or {} for text in (without or "", inserted))
        if _section(becomes, data["keys"]) != {**_section(was, data["keys"]), NAME: entry}:
            raise SettingsError("the entry would not be read back, or others would be lost")
    except (SettingsError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read as {kind} ({error}).", "Fix it, or add the entry by hand.") from error
    return Change(path, before, inserted, memory, _added(without or "", inserted), entry, without is None)


def uninstalled(host: str, file: str | None) -> Change:
    """Return the change that takes the entry out. Raises UsageError if it was changed meanwhile, or is not ours."""
    memory = _memory(host)
    if (known := _remembered(memory)) is None:
        path = _path(load_config("mcp/hosts.toml")[host]["path"], file)
        raise UsageError(f"mai-agent was not installed in {host}.", f"Look into {path}.")
    path, data = Path(known["path"]), load_config("mcp/hosts.toml")[host]
    before = _read(path)
    if before is None or not _names_us(data, before):
        return Change(path, before, before, memory)
    found = (text for text in _without(before, data, known) if _is_without(text, before, data, known))
    if (after := next(found, None)) is None:
        raise UsageError(f"The entry in {path} was changed since.", "Remove it by hand.")
    return Change(path, before, None if known["made"] and not after.strip() else after, memory)


def _without(text: str, data: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    """Yield settings without our entry: first for an unchanged file, then for JSON that its host has rewritten."""
    yield text.replace(known["inserted"], "", 1)
    if data["format"] == "json":
        with suppress(ValueError):  # a file with comments
            settings = json.loads(text)
            del _section(settings, data["keys"])[NAME]
            left = json.dumps(settings, indent=_indent(text), ensure_ascii=False) + "\n"
            left.encode()  # raises ValueError for half a character
            yield left.replace("\n", _newline(text))


def _is_without(after: str, before: str, data: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Return whether a text has all settings but our entry, and the entry was as it was written."""
    read, keys = _READ[data["format"]], data["keys"]
    try:
        members, others = _section(read(before), keys), _section(read(after), keys)
    except (ValueError, yaml.YAMLError):
        return False
    entry = members.pop(NAME)
    return entry == known["entry"] and members == others


def _names_us(data: Mapping[str, Any], text: str) -> bool:
    """Return whether a host's settings have an entry of ours; if they cannot be parsed, whether they mention it."""
    try:
        return NAME in _section(_READ[data["format"]](text), data["keys"])
    except (ValueError, yaml.YAMLError):
        return NAME in text


def _remembered(memory: Path) -> dict[str, Any] | None:
    """Return what was inserted earlier, and where; None if nothing was."""
    try:
        known: dict[str, Any] = json.loads(memory.read_text())
        return known if Path(known["path"]) and known["inserted"] + "" and {"made", "entry"} <= known.keys() else None
    except (OSError, ValueError, TypeError, LookupError):  # not as `Change.write` left it
        return None


def _section(settings: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return the members at some keys; none if a key is missing. Raises SettingsError: something else stands there."""
    found: Any = settings
    for key in ("", *keys):
        found = found.get(key) if key else found
        found = {} if found is None else found
        if not isinstance(found, dict):
            raise SettingsError(f"{key or 'the whole'} is no table of names")
    members: dict[str, Any] = found
    return members


def _added(before: str, after: str) -> str:
    """Return the text by which `after` is longer: insertions are in one place."""
    pairs = enumerate(zip(before, after, strict=False))
    start = next((at for at, (old, new) in pairs if old != new), len(before))
    return after[start : start + len(after) - len(before)]


def _path(template: str, file: str | None) -> Path:
    if file is not None:
        return Path(file).expanduser().absolute()
    config = "~/Library/Application Support" if sys.platform == "darwin" else "~/.config"
    return Path(template.replace("{config}", config)).expanduser()


def _memory(host: str) -> Path:
    return state_folder() / "mcp" / f"{host}.json"


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}).", "Name another file with --file.") from error
