"""What may be sent to a fallback model on another machine: the [leaving] table of a policy file.

Nothing does unless a person wrote so. It holds for an endpoint that only helps out; one that a person named as the
model of the run is sent what that model needs.
"""

from typing import Literal, Self, TypeAlias

from pydantic import model_validator

from agent.core.geometry import DesktopPoint, Region, without
from agent.safety.policy_rules.rule import PolicyPart
from agent.safety.policy_rules.values import Box, Expression
from agent.safety.text import found
from agent.screen.outline import Element


class HiddenWindow(PolicyPart):
    """Windows that nobody elsewhere gets to see: those in which both expressions are found that are given."""

    app: Expression | None = None  # searched in the application's class
    title: Expression | None = None

    @model_validator(mode="after")
    def _not_idle(self) -> Self:
        if self.app is None and self.title is None:
            raise ValueError("it hides nothing: app or title is missing")
        return self

    def matches(self, app: str, title: str) -> bool:
        """Whether it speaks of this window."""
        searched = ((self.app, app), (self.title, title))
        return all(expression is None or found(expression, text) for expression, text in searched)


Screenshots: TypeAlias = Literal["never", "ask", "yes"]


class Leaving(PolicyPart):
    """What may be sent to a fallback model on another machine, when the main model is stuck."""

    screenshots: Screenshots = "never"
    hide: tuple[HiddenWindow, ...] = ()
    regions: tuple[Box, ...] = ()  # of the desktop, black in every picture

    def hides(self, app: str, title: str) -> bool:
        """Whether a window is to be hidden."""
        return any(one.matches(app, title) for one in self.hide)

    def covers(self, box: Region) -> bool:
        """Whether any of a box lies in a region that is black."""
        return any(without(box, one) != [box] for one in self.regions)

    def keeps_element(self, element: Element) -> bool:
        """Whether an element must be kept secret."""
        return self.hides(element.app, element.window) or self.covers(element.box)

    def keeps_point(self, point: DesktopPoint) -> bool:
        """Whether the element at a point must be kept secret."""
        return any(one.contains(point) for one in self.regions)


def holds_secret(element: Element) -> bool:
    """Whether secrets are typed into it."""
    return element.role == "password text"  # as AT-SPI names it
