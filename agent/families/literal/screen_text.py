"""The outline of a screen and what changed so far, as the text that the literal engine is sent beside a screenshot."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.core.changes import Change
from agent.core.geometry import Region, Size
from agent.screen.outline import Element, Outline, ShownWindow

#: How such a text begins; nothing that a person writes does.
_HEAD = '{"screen":'
#: What is told of a change.
_TOLD = ("kind", "what", "before", "after")


@dataclass(frozen=True, slots=True)
class ScreenText:
    """What is known of a screen besides its picture."""

    outline: Outline | None = None
    changes: tuple[Change, ...] = ()  # on the computer, from the beginning of the run until then
    #: which desktop it is, and in which language, as XDG_CURRENT_DESKTOP, LANG and so on say; told of the screen now
    environ: Mapping[str, str] = field(default_factory=dict)


def write_screen(screen: ScreenText) -> str:
    """The text; `read_screen` gives back the same values."""
    listed = [{name: getattr(change, name) for name in _TOLD} for change in screen.changes]
    outline = None if screen.outline is None else screen.outline.to_json()
    told = {"screen": outline, "changes": listed, "environ": dict(screen.environ)}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def read_screen(text: str) -> ScreenText | None:
    """What such a text tells; None where it is none. Raises ValueError: it is one, but not whole."""
    if not text.startswith(_HEAD):
        return None
    try:
        told = json.loads(text)
        outline = None if told["screen"] is None else read_outline(told["screen"])
        changes = tuple(Change(**change) for change in told["changes"])
        environ = {str(name): str(value) for name, value in told["environ"].items()}
        return ScreenText(outline, changes, environ)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the text of the screen lacks something: {error}") from error


def read_outline(told: Mapping[str, Any]) -> Outline:
    """The outline that `Outline.to_json` told. Raises KeyError, TypeError or ValueError: it did not."""
    return Outline(
        Size(*told["size"]),
        tuple(map(_element, told["elements"])),
        tuple(ShownWindow(**window | {"box": Region(*window["box"])}) for window in told["windows"]),
        told["lacks"],
    )


def _element(told: Mapping[str, Any]) -> Element:
    limits = told.get("limits")
    values = {
        **told,
        "box": Region(*told["box"]),
        "states": frozenset(told["states"]),
        "limits": None if limits is None else (limits[0], limits[1]),
    }
    return Element(**values)
