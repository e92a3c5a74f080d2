"""A screenshot in the terminal: sixel or kitty graphics where the terminal has them, half blocks elsewhere.

textual-image asks the terminal what it can when it is imported, which must happen before the application runs and takes
a moment: `image_widget` is called by whoever starts it.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from textual.containers import Container

from agent.tui.screenshot import COARSE, SHARP

if TYPE_CHECKING:
    from PIL.Image import Image


#: Variables by which terminals with sixel or kitty graphics make themselves known, and values of TERM_PROGRAM and TERM.
_GRAPHIC_VARIABLES = "KITTY_WINDOW_ID WEZTERM_PANE KONSOLE_VERSION GHOSTTY_RESOURCES_DIR WT_SESSION XTERM_VERSION"
_GRAPHIC_PROGRAMS = ("iTerm.app", "WezTerm", "ghostty", "mintty", "vscode", "contour", "rio")
_GRAPHIC_TERMS = ("kitty", "foot", "mlterm", "contour", "wezterm", "ghostty")


def ask_terminal() -> None:
    """Find out what the terminal can draw, if it is one that may draw pixels; before the application runs."""
    if _may_have_graphics():
        image_widget()


@cache
def image_widget() -> type[Any]:
    """The class of widget that draws images here: the best that the terminal can."""
    if not _may_have_graphics():
        with _no_terminal():
            from textual_image.widget import HalfcellImage
        return HalfcellImage
    import textual_image.widget

    return textual_image.widget.Image


def _may_have_graphics() -> bool:
    """Whether it is worth asking the terminal: tmux and screen take the question for a window's title."""
    environ = os.environ
    if environ.get("TMUX") or environ.get("STY") or environ.get("MAI_AGENT_IMAGES") == "blocks":
        return False
    return (
        environ.get("MAI_AGENT_IMAGES") == "pixels"
        or any(environ.get(name) for name in _GRAPHIC_VARIABLES.split())
        or environ.get("TERM_PROGRAM", "") in _GRAPHIC_PROGRAMS
        or any(name in environ.get("TERM", "") for name in _GRAPHIC_TERMS)
    )


@contextmanager
def _no_terminal() -> Iterator[None]:
    """While it is imported, textual-image finds no terminal to ask."""
    terminal, sys.__stdout__ = sys.__stdout__, io.StringIO()  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        sys.__stdout__ = terminal  # type: ignore[misc]


class Picture(Container):
    """Shows one image as large as its own place allows."""

    DEFAULT_CSS = "Picture { align: center middle; }"

    def __init__(self) -> None:
        super().__init__()
        self._drawn: Any = None

    @property
    def aspect(self) -> float:
        """Width over height of the place, in pixels; cells are about twice as high as wide."""
        return self.size.width / max(1, self.size.height * 2)

    @property
    def across(self) -> int:
        """Pixels of a screenshot that are worth showing across it."""
        widget = image_widget()
        drawn_by = getattr(widget, "_Renderable", widget).__module__
        return SHARP if drawn_by.endswith((".sixel", ".tgp")) else COARSE

    def show(self, image: "Image | None") -> None:
        """Show an image where there is one, and room for it."""
        if image is None or self.size.width < 4 or self.size.height < 2:
            if self._drawn is not None:
                self._drawn.display = False
            return
        if self._drawn is None:
            self._drawn = image_widget()()
            self.mount(self._drawn)
        wide = image.width / image.height > self.aspect
        self._drawn.styles.width = "100%" if wide else "auto"
        self._drawn.styles.height = "auto" if wide else "100%"
        self._drawn.display = True
        self._drawn.image = image
