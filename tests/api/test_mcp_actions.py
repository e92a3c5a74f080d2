"""The tool `act`: what an action would not heed is refused, not passed over."""

from typing import Any

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from agent.mcp.server import DesktopTools

NOBODY: Any = None


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
        await DesktopTools({}).act(context=NOBODY, **given)  # type: ignore[arg-type]
