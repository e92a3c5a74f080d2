"""An MCP server by the SDK, with tools that behave and tools that do not. Its argument: stdio, or a port for HTTP."""

import asyncio
import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Image, MCPServer

server = MCPServer("stub")
NOTES = Path(os.environ.get("NOTES", "/dev/null"))


@server.tool()
def add(text: str) -> str:
    """Add a note."""
    with NOTES.open("a") as file:
        file.write(f"{text}\n")
    return f"The notes have {len(text)} letters more.\x1b[31m"


@server.tool()
async def hang() -> str:
    """Never answer; what was cancelled is noted."""
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        add("cancelled")
        raise
    return ""


@server.tool()
def freeze() -> str:
    """Answer nothing more, to anybody."""
    time.sleep(600)
    return ""


@server.tool()
def flood() -> str:
    """Answer two million characters."""
    return "x" * 2_000_000


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("the notes are locked")


@server.tool(structured_output=False)
def picture() -> list[object]:
    """Answer with a picture."""
    return ["a picture:", Image(data=b"\x89PNG", format="png")]


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


if __name__ == "__main__":
    if sys.argv[1] == "broken":
        sys.exit("no module named notes")
    if sys.argv[1] == "silent":
        time.sleep(600)
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[1]))
