"""In which way this terminal is sent pictures: as pixels, or as characters that halve, quarter, ... their cell.

Halves and quadrants (U+2580 to U+259F) are in the fonts of terminals. Sextants (U+1FB00, Unicode 13) and octants
(U+1CD00, Unicode 16) are in few, so they are only taken where the terminal is known to draw them itself, whatever its
font; in tmux and screen nobody knows what the terminal outside can.
"""

import os
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

#: `halves` to `octants` are characters; `pixels` is sixel or kitty graphics; `off` is no picture at all.
Way: TypeAlias = Literal["pixels", "octants", "sextants", "quadrants", "halves", "off"]
Cells: TypeAlias = Literal["octants", "sextants", "quadrants", "halves"]

#: What may be set: a way, `auto`, or `blocks`: the finest characters that are sure to be drawn here.
SETTINGS = ("auto", "blocks", *get_args(Way))

#: Variables by which terminals with sixel or kitty graphics make themselves known, and values of TERM_PROGRAM and TERM.
_GRAPHIC_VARIABLES = "KITTY_WINDOW_ID WEZTERM_PANE KONSOLE_VERSION GHOSTTY_RESOURCES_DIR WT_SESSION XTERM_VERSION"
_GRAPHIC_PROGRAMS = ("iTerm.app", "WezTerm", "ghostty", "mintty", "vscode", "contour", "rio")
_GRAPHIC_TERMS = ("kitty", "foot", "mlterm", "contour", "wezterm", "ghostty")
#: From these versions on VTE (GNOME's, XFCE's, MATE's terminals) draws them itself; its number is 7802 for 0.78.2.
_VTE_OCTANTS, _VTE_SEXTANTS = 7800, 6200
#: Terminals that draw sextants themselves in every version that is about.
_DRAW_SEXTANTS = ("KITTY_WINDOW_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR")


def wanted_way(setting: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """What the person set: MAI_AGENT_IMAGES before the settings file; `auto` where neither says anything known."""
    environ = os.environ if environ is None else environ
    said = (environ.get("MAI_AGENT_IMAGES"), setting)
    return next((one for one in said if one is not None and one in SETTINGS), "auto")


def may_have_graphics(wanted: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether it is worth asking the terminal for pixels: tmux and screen take the question for a window's title."""
    environ = os.environ if environ is None else environ
    if wanted != "auto":
        return wanted == "pixels"
    if environ.get("TMUX") or environ.get("STY"):
        return False
    return (
        any(environ.get(name) for name in _GRAPHIC_VARIABLES.split())
        or environ.get("TERM_PROGRAM", "") in _GRAPHIC_PROGRAMS
        or any(name in environ.get("TERM", "") for name in _GRAPHIC_TERMS)
    )


def cells_for(wanted: str, environ: Mapping[str, str] | None = None) -> Cells:
    """The characters that pictures are made of: those that are wanted, or the finest that are sure to be drawn."""
    environ = os.environ if environ is None else environ
    for cells in get_args(Cells):
        if wanted == cells:
            return cells  # type: ignore[no-any-return]
    if environ.get("TERM") == "linux":  # the console's fonts have 256 or 512 characters
        return "halves"
    if environ.get("TMUX") or environ.get("STY"):
        return "quadrants"
    vte = environ.get("VTE_VERSION", "")
    if vte.isascii() and vte.isdigit():
        return "octants" if int(vte) >= _VTE_OCTANTS else "sextants" if int(vte) >= _VTE_SEXTANTS else "quadrants"
    known = any(environ.get(name) for name in _DRAW_SEXTANTS) or "foot" in environ.get("TERM", "")
    return "sextants" if known else "quadrants"
