"""A family whose answers give several actions."""

from dataclasses import replace
from typing import Any

from agent.core.actions import AskUser, CallTool, Click, Finish, PressKeys, TypeText
from agent.core.geometry import Grid, GridPoint
from agent.families.registry import get_family


class Several:
    """MAI-UI, whose answers give an action for every line of the text that is to be typed."""

    def __init__(self, **more: Any) -> None:
        self._more = more
        self._family = get_family("mai-ui")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)

    def parse_seen(self, answer: Any, sent: Any, outline: Any) -> Any:
        return self.parse(answer, sent)

    def parse(self, answer: Any, sent: Any) -> Any:
        decision = self._family.parse(answer, sent)
        (action,) = decision.actions
        if not isinstance(action, TypeText):
            return decision
        words: dict[str, Any] = {
            "click": Click(GridPoint(500, 500, Grid.relative(999))), "alt+f4": PressKeys(("alt", "f4")),
            "ask": AskUser("Which?"), "weather": CallTool("weather", {"city": "Rome"}), "done": Finish(True),
            **self._more,
        }  # fmt: skip
        actions = tuple(words.get(line, TypeText(line)) for line in action.text.split())
        return replace(decision, actions=actions, calls=decision.calls * len(actions))
