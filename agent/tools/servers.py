"""Reads which MCP servers a model may use, from a settings file in the form that MCP hosts share."""

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.tools.commented_json import read_json
from foundation.configs import load_config
from foundation.errors import UsageError

_READ: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".yaml": yaml.safe_load, ".yml": yaml.safe_load}
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)\}")


class ToolServer(BaseModel):
    """One MCP server: a command to start (stdio), or an address (streamable HTTP). Other keys of a host are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    command: str = Field("", validation_alias=AliasChoices("command", "cmd"))
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict, validation_alias=AliasChoices("env", "environment", "envs"))
    cwd: str | None = None
    url: str = Field("", validation_alias=AliasChoices("url", "uri", "serverUrl", "httpUrl"))
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False
    timeout: float = Field(60.0, gt=0, le=3600)  # seconds for a call

    @model_validator(mode="before")
    @classmethod
    def _as_most_hosts_write_it(cls, entry: Any) -> Any:
        """Unify entries: OpenCode lists command and arguments; it and goose mark disabled or built-in servers."""
        if not isinstance(entry, dict):
            return entry
        unused = entry.get("enabled") is False or entry.get("type") in ("builtin", "platform")
        entry = {**entry, "disabled": entry.get("disabled", unused)}
        if isinstance(command := entry.get("command"), list) and command:
            entry |= {"command": command[0], "args": command[1:]}
        return entry

    @property
    def reachable(self) -> bool:
        """Whether the entry has either a command or an address, and not both."""
        return bool(self.command) != bool(self.url)


def read_tool_servers(path: Path) -> dict[str, ToolServer]:
    """Return the servers in a file, by name. `${NAME}` is replaced by the environment variable.

    Raises UsageError: the file cannot be read, or an entry is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        read = _READ.get(path.suffix, read_json)(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"The MCP servers in {path} cannot be read: {error}.", "Is it the file of a host?") from error
    names = dict.fromkeys(name for host in load_config("mcp/hosts.toml").values() for name in host["keys"])
    table = next((read[name] for name in names if name in read), None) if isinstance(read, dict) else None
    if not isinstance(table, dict):
        raise UsageError(f"{path} lists no MCP servers.", 'Write them under "mcpServers", as other hosts do.')
    found = ((name, _server(path, name, _filled(entry))) for name, entry in table.items())
    return {name: server for name, server in found if not server.disabled}


def _server(path: Path, name: str, entry: Any) -> ToolServer:
    try:
        server = ToolServer.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, (name, *first["loc"])))
        raise UsageError(f"In {path}, {location}: {first['msg']}.", "Mend the entry.") from error
    if not server.reachable and not server.disabled:
        raise UsageError(f"In {path}, {name} needs a command or a url, and not both.", "Mend the entry.")
    return server


def _filled(value: Any) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), value)
    if isinstance(value, dict):
        return {name: _filled(one) for name, one in value.items()}
    return [_filled(one) for one in value] if isinstance(value, list) else value
