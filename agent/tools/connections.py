"""Connects to MCP servers for one run, and calls their tools.

Each server has a task of its own: a server that hangs, dies or floods only loses its own tools. Its output
is untrusted text; the policy has approved every call before.
"""

import asyncio
import base64
import json
import re
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from operator import itemgetter
from typing import IO, Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent, TextContent, Tool
from typing_extensions import override

from agent.run.loop.context import ToolAnswer, ToolFailedError, Tools
from agent.tools.servers import ToolServer
from foundation.foreign_text import harmless, on_one_line

#: Seconds for a server's start with its list of tools, and for its end.
_START, _END = 30.0, 5.0
#: Tools that a model is offered: each costs prompt tokens in every step, and small models choose badly among many.
_MOST_TOOLS = 40
#: Characters kept of a tool's description, of its parameters (a tool with more is left out), and of a result.
_DESCRIPTION, _PARAMETERS, _RESULT = 600, 4_000, 8_000
#: Pictures kept of a result, and characters of each in base64: each costs as many tokens as a screenshot.
_PICTURES, _PICTURE = 2, 12_000_000
_FORMATS = ("image/png", "image/jpeg", "image/webp")
#: Names that the formats of all families and endpoints can carry.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@asynccontextmanager
async def open_tools(servers: Mapping[str, ToolServer]) -> AsyncIterator["ServerTools"]:
    """Start the servers or connect to them, all at once; end them afterwards."""
    connections = [_Connection(name, server) for name, server in servers.items()]
    try:
        await asyncio.gather(*(connection.started() for connection in connections))
        yield ServerTools(connections)
    finally:
        await asyncio.gather(*(connection.close() for connection in connections))


class ServerTools(Tools):
    """The tools of all servers, named SERVER__TOOL."""

    def __init__(self, connections: Sequence["_Connection"]) -> None:
        remarks = [connection.remark for connection in connections if connection.remark]
        self._tools: dict[str, tuple[_Connection, Tool]] = {}
        left_out: list[str] = []
        offered = [(at, connection, tool) for connection in connections for at, tool in enumerate(connection.tools)]
        for _, connection, tool in sorted(offered, key=itemgetter(0)):  # in turn, so that no server takes all places
            name = f"{connection.name}__{tool.name}"
            fits = _NAME.fullmatch(name) and len(json.dumps(tool.input_schema)) <= _PARAMETERS
            if fits and name not in self._tools and len(self._tools) < _MOST_TOOLS:
                self._tools[name] = (connection, tool)
            else:
                left_out.append(on_one_line(name)[:80])
        if left_out:
            remarks.append(
                f"{len(left_out)} tools are not offered to the model (over {_MOST_TOOLS} tools, an odd name, or too "
                f"many parameters): {', '.join(left_out[:5])}{' ...' if len(left_out) > 5 else ''}"
            )
        self.names, self.remarks = list(self._tools), remarks
        self.definitions = [
            {
                "name": name,
                "description": harmless(tool.description or tool.title or "")[:_DESCRIPTION],
                "parameters": tool.input_schema,
            }
            for name, (_, tool) in self._tools.items()
        ]

    @override
    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        connection, tool = self._tools[name]
        return await connection.call(tool.name, arguments)


class _Connection:
    """One server. Its client is opened and closed in one task, as the client's cancel scopes require."""

    def __init__(self, name: str, server: ToolServer) -> None:
        self.name = name
        self.remark = ""  # why it has no tools
        self.tools: list[Tool] = []
        self._server = server
        self._client: Client | None = None
        self._ready, self._over = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._own())

    async def started(self) -> None:
        try:
            async with asyncio.timeout(_START):
                await self._ready.wait()
        except TimeoutError:
            self._task.cancel()
            self.remark = f"The MCP server {self.name} did not start within {_START:g} s; its tools are not offered."

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool. Raises ToolFailedError."""
        client, limit = self._client, self._server.timeout
        if client is None or self._task.done():
            raise ToolFailedError(f"the MCP server {self.name} has ended")
        asking = asyncio.ensure_future(client.call_tool(tool, dict(arguments)))
        try:
            done, _ = await asyncio.wait({asking, self._task}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asking.cancel()  # the client then tells the server that the call is cancelled
        if not done:
            raise ToolFailedError(f"{tool} did not answer within {limit:g} s")
        if asking not in done:
            raise ToolFailedError(f"the MCP server {self.name} has ended")
        try:
            result = asking.result()
        except Exception as error:  # whatever the client raises for a broken answer
            raise ToolFailedError(f"{tool} failed: {_first_line(error)}") from error
        answer = _answer(result)
        if result.is_error:
            raise ToolFailedError(f"{tool} failed: {answer.text}")
        return answer

    async def close(self) -> None:
        self._over.set()
        done, _ = await asyncio.wait({self._task}, timeout=_END)
        if not done:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_END)

    async def _own(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                async with AsyncExitStack() as opened:
                    client = await opened.enter_async_context(await self._opened(opened, errors))
                    self.tools = await _listed(client)
                    self._client = client
                    self._ready.set()
                    await self._over.wait()
            except Exception as error:  # a server may fail in any way; the run goes on without it
                errors.seek(0)
                lines = errors.read()[-2000:].strip().splitlines()
                why = on_one_line(lines[-1])[:200] if lines else _first_line(error)
                self.remark = f"The MCP server {self.name} does not work; its tools are not offered: {why}"
            finally:
                self._client = None
                self._ready.set()

    async def _opened(self, opened: AsyncExitStack, errors: IO[str]) -> Client:
        server = self._server
        if server.url:
            http = await opened.enter_async_context(httpx2.AsyncClient(headers=server.headers, timeout=server.timeout))
            return Client(streamable_http_client(server.url, http_client=http))
        words = StdioServerParameters(command=server.command, args=list(server.args), env=server.env, cwd=server.cwd)
        return Client(stdio_client(words, errlog=errors))  # type: ignore[arg-type]


async def _listed(client: Client) -> list[Tool]:
    found: list[Tool] = []
    page = await client.list_tools()
    while True:
        found += page.tools
        if page.next_cursor is None or len(found) > _MOST_TOOLS:
            return found
        page = await client.list_tools(cursor=page.next_cursor)


def _answer(result: CallToolResult) -> ToolAnswer:
    """Return the text of a result, shortened, and its first pictures; other content is only named."""
    parts, pictures = list[str](), list[bytes]()
    for part in result.content:
        if isinstance(part, TextContent):
            parts.append(part.text)
        elif isinstance(part, ImageContent) and len(pictures) < _PICTURES and (picture := _picture(part)):
            pictures.append(picture)
            parts.append(f"[picture {len(pictures)}]")
        else:
            parts.append(f"[{part.type}: not shown]")
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = harmless("\n".join(parts))
    if len(text) > _RESULT:
        text = f"{text[:_RESULT]}\n[{len(text) - _RESULT} more characters are left out]"
    return ToolAnswer(text, tuple(pictures))


def _picture(part: ImageContent) -> bytes | None:
    if part.mime_type not in _FORMATS or len(part.data) > _PICTURE:
        return None
    try:
        return base64.b64decode(part.data, validate=True)
    except ValueError:
        return None


def _first_line(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return on_one_line(str(error) or type(error).__name__)[:200]
