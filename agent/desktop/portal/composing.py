"""Whether keys of this session go through an input method, so that they are sounds of characters and not letters."""

from collections.abc import Mapping

from agent.desktop.evidence.dconf import DconfStore

_SOURCES = "/org/gnome/desktop/input-sources/sources"
_VARIABLES = ("GTK_IM_MODULE", "QT_IM_MODULE", "XMODIFIERS")


def composes(environ: Mapping[str, str]) -> bool:
    """Whether one of the person's ways of typing is an input method; which one is in use now, nobody tells.

    GNOME runs IBus in any case, and lists what of it is used; elsewhere, who uses Fcitx says so to applications.
    """
    told = DconfStore(environ).current(_SOURCES)
    if told is not None:
        return any(kind == "ibus" for kind, *_ in told["value"])
    return any("fcitx" in environ.get(name, "").lower() for name in _VARIABLES)
