"""What a host asks for that is not there, or would not be heeded, is refused with the reason."""

from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError

from agent.mcp.server import DesktopTools, build_server
from agent.options import RunOptions
from agent.settings import Settings

NOBODY: Any = None
OPTIONS = RunOptions(settings=Settings(), runs=Path("runs"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"action": "type", "text": "abc", "window": "Nope"}, "type takes no window"),
        ({"action": "press", "text": "ctrl+a", "window": "Nope"}, "press takes no window"),
        ({"action": "close_window", "text": "Mousepad"}, "close_window takes no text"),
        ({"action": "open", "target": "mousepad"}, "open needs text"),
        ({"action": "type", "text": ""}, "type needs text"),
        ({"action": "set", "target": "Dark mode"}, "set needs text"),
        ({"action": "click"}, "click needs target"),
    ],
)
async def test_an_action_without_what_it_needs_or_with_more_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ToolError, match=said):
        await DesktopTools(OPTIONS).act(context=NOBODY, **given)  # type: ignore[arg-type]


async def test_an_argument_that_no_tool_knows_is_refused() -> None:
    server = build_server(DesktopTools(OPTIONS))
    assert all(tool.input_schema["additionalProperties"] is False for tool in await server.list_tools())
    with pytest.raises(ToolError, match=r"windw\n\s+Extra inputs are not permitted"):
        await server.call_tool("act", {"action": "click", "target": "OK", "windw": "Save As"})


async def test_every_argument_of_every_tool_is_described() -> None:
    tools = await build_server(DesktopTools(OPTIONS)).list_tools()
    told = [(tool.name, name, one) for tool in tools for name, one in tool.input_schema["properties"].items()]
    assert [(tool, name) for tool, name, one in told if "description" not in one and "enum" not in one] == []


def test_a_run_that_is_not_there_is_named() -> None:
    for read in (DesktopTools(OPTIONS).run, DesktopTools(OPTIONS).report):
        with pytest.raises(ResourceNotFoundError, match="nope"):
            read("nope")
