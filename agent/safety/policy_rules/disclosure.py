"""What may be sent to a fallback model on another machine: the [leaving] table of a policy file.

By default, nothing is sent. The table applies only to fallback endpoints; the run's main model gets whatever it needs.
"""

from typing import Literal, Self, TypeAlias

from pydantic import model_validator

from agent.core.geometry import DesktopPoint, Region, without
from agent.safety.policy_rules.rule import PolicyPart
from agent.safety.policy_rules.values import Box, Expression
from agent.safety.text import found
from agent.screen.outline import Element


class HiddenWindow(PolicyPart):
    """Windows whose content must not leave the machine: those that match all given expressions."""

    app: Expression | None = None  # searched in the application's class
    title: Expression | None = None

    @model_validator(mode="after")
    def _not_idle(self) -> Self:
        if self.app is None and self.title is None:
            raise ValueError("it hides nothing: app or title is missing")
        return self

    def matches(self, app: str, title: str) -> bool:
        """Whether a window matches."""
        searched = ((self.app, app), (self.title, title))
        return all(expression is None or found(expression, text) for expression, text in searched)


Screenshots: TypeAlias = Literal["never", "ask", "yes"]


class Leaving(PolicyPart):
    """What may be sent to a fallback model on another machine, when the main model is stuck."""

    screenshots: Screenshots = "never"
    hide: tuple[HiddenWindow, ...] = ()
    regions: tuple[Box, ...] = ()  # in desktop units, blacked out in every screenshot

    def hides(self, app: str, title: str) -> bool:
        """Whether a window must be hidden."""
        return any(one.matches(app, title) for one in self.hide)

    def covers(self, box: Region) -> bool:
        """Whether a box overlaps a blacked-out region."""
        return any(without(box, one) != [box] for one in self.regions)

    def hides_element(self, element: Element) -> bool:
        """Whether an element must not be disclosed."""
        return self.hides(element.app, element.window) or self.covers(element.box)

    def hides_point(self, point: DesktopPoint) -> bool:
        """Whether the element at a point must not be disclosed."""
        return any(one.contains(point) for one in self.regions)


def holds_secret(element: Element) -> bool:
    """Whether an element is a password field."""
    return element.role == "password text"  # AT-SPI's role name
