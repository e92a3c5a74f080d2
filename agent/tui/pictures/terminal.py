"""What this terminal can draw: pixels, or characters that divide their cell into parts.

Halves and quadrants (U+2580 to U+259F) are in the fonts of terminals. Sextants (U+1FB00, Unicode 13) and octants
(U+1CD00, Unicode 16) are in few, so they are used only if the terminal is known to draw them without a font. Inside
tmux and screen, the terminal outside is unknown.
"""

import os
import sys
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from agent.settings import CHOICES

Cells: TypeAlias = Literal["octants", "sextants", "quadrants", "halves"]

#: Variables by which terminals with sixel or kitty graphics make themselves known, and values of TERM_PROGRAM and TERM.
_GRAPHIC_VARIABLES = "KITTY_WINDOW_ID WEZTERM_PANE KONSOLE_VERSION GHOSTTY_RESOURCES_DIR WT_SESSION XTERM_VERSION"
_GRAPHIC_PROGRAMS = ("iTerm.app", "WezTerm", "ghostty", "mintty", "vscode", "contour", "rio")
_GRAPHIC_TERMS = ("kitty", "foot", "mlterm", "contour", "wezterm", "ghostty")
#: VTE (the terminals of GNOME, XFCE, MATE) draws these characters itself from these versions on; 7802 is 0.78.2.
_VTE_OCTANTS, _VTE_SEXTANTS = 7800, 6200
#: Terminals that draw sextants themselves in every version in use.
_DRAW_SEXTANTS = ("KITTY_WINDOW_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR")
#: Pixels of a cell if the terminal does not report them: those of the first terminal with sixels (VT340).
_CELL = (10, 20)


def wanted_way(setting: str | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """What the person set: MAI_AGENT_IMAGES before the settings file; `auto` if neither holds a known value."""
    candidates = (environ.get("MAI_AGENT_IMAGES"), setting)
    return next((one for one in candidates if one in CHOICES["images"]), None) or "auto"


def may_have_graphics(wanted: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to ask the terminal for pixels. tmux and screen would show the question as a window's title."""
    if wanted != "auto":
        return wanted == "pixels"
    if environ.get("TMUX") or environ.get("STY"):
        return False
    return (
        any(environ.get(name) for name in _GRAPHIC_VARIABLES.split())
        or environ.get("TERM_PROGRAM", "") in _GRAPHIC_PROGRAMS
        or any(name in environ.get("TERM", "") for name in _GRAPHIC_TERMS)
    )


def cells_for(wanted: str, environ: Mapping[str, str] = os.environ) -> Cells:
    """The characters that pictures are made of: the wanted ones, or the finest that are sure to be drawn."""
    if wanted in get_args(Cells):
        return wanted  # type: ignore[return-value]  # it is one of them
    if environ.get("TERM") == "linux":  # the console's fonts have 256 or 512 characters
        return "halves"
    if environ.get("TMUX") or environ.get("STY"):
        return "quadrants"
    vte = environ.get("VTE_VERSION", "")
    if vte.isascii() and vte.isdigit():
        return "octants" if int(vte) >= _VTE_OCTANTS else "sextants" if int(vte) >= _VTE_SEXTANTS else "quadrants"
    known = any(environ.get(name) for name in _DRAW_SEXTANTS) or "foot" in environ.get("TERM", "")
    return "sextants" if known else "quadrants"


def cell_size() -> tuple[int, int]:
    """Width and height of a cell of this terminal, in pixels."""
    try:
        import fcntl
        import struct
        import termios

        packed = fcntl.ioctl(sys.__stdout__.fileno(), termios.TIOCGWINSZ, b"\0" * 8)  # type: ignore[union-attr]
        rows, columns, width, height = struct.unpack("HHHH", packed)
    except (ImportError, OSError, ValueError, AttributeError):
        return _CELL
    return (width // columns, height // rows) if columns and rows and width >= columns and height >= rows else _CELL
