"""Reads which MCP servers a model may use, from a settings file in the form that MCP hosts share."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from foundation.errors import UsageError

#: The tables of servers in the files of hosts: Claude, Cursor, Gemini CLI and others; VS Code; Codex.
_TABLES = ("mcpServers", "servers", "mcp_servers")
#: Comments in JSON, beside strings, which may hold the same characters.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)\}")


class ToolServer(BaseModel):
    """One MCP server: a command to start (stdio), or an address (streamable HTTP). Other keys of a host are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False
    timeout: float = Field(60.0, gt=0, le=3600)  # seconds for a call

    @property
    def reachable(self) -> bool:
        """Whether the entry has either a command or an address, and not both."""
        return bool(self.command) != bool(self.url)


def read_tool_servers(path: Path) -> dict[str, ToolServer]:
    """Return the servers in a file, by name. `${NAME}` is replaced by the environment variable.

    Raises UsageError: the file cannot be read, or an entry is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
        read = tomllib.loads(text) if path.suffix == ".toml" else json.loads(_COMMENT.sub(r"\1", text))
    except (OSError, ValueError) as error:
        raise UsageError(f"The MCP servers in {path} cannot be read: {error}.", "Is it the file of a host?") from error
    table = next((read[name] for name in _TABLES if name in read), None) if isinstance(read, dict) else None
    if not isinstance(table, dict):
        raise UsageError(f"{path} lists no MCP servers.", 'Write them under "mcpServers", as other hosts do.')
    found = {name: _server(path, name, _filled(entry)) for name, entry in table.items()}
    return {name: server for name, server in found.items() if not server.disabled}


def _server(path: Path, name: str, entry: Any) -> ToolServer:
    try:
        server = ToolServer.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, (name, *first["loc"])))
        raise UsageError(f"In {path}, {location}: {first['msg']}.", "Mend the entry.") from error
    if not server.reachable:
        raise UsageError(f"In {path}, {name} needs a command or a url, and not both.", "Mend the entry.")
    return server


def _filled(value: Any) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), value)
    if isinstance(value, dict):
        return {name: _filled(one) for name, one in value.items()}
    return [_filled(one) for one in value] if isinstance(value, list) else value
