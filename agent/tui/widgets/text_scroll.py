"""A text that may be longer than its place, read by the keys that everything here is read by."""

from typing import ClassVar

from textual.binding import Binding
from textual.containers import VerticalScroll

from agent.tui.widgets.keys import motions


class TextScroll(VerticalScroll):
    """Scrolls what it holds; takes the focus, which a screen gives to the first widget that does."""

    DEFAULT_CSS = "TextScroll { scrollbar-size-vertical: 1; }"
    BINDINGS: ClassVar = [
        *motions(
            ("scroll_up", "Line up"),
            ("scroll_down", "Line down"),
            ("page_up", "Page up"),
            ("page_down", "Page down"),
            ("scroll_home", "Beginning"),
            ("scroll_end", "End"),
        ),
        Binding("space", "page_down", "Page down", show=False),
    ]
