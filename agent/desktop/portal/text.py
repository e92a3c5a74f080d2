"""Enters text in a session: short text by keys that the layout has, all other text by pasting.

No character is ever dropped: text that the keyboard lacks is pasted or refused, whereas the desktop would skip it.
"""

from collections.abc import Callable, Mapping
from functools import partial

from agent.desktop.apps.catalogue import takes_text
from agent.desktop.changes.dconf import DconfStore
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.clipboard import PortalClipboard
from agent.desktop.portal.input import PortalInput
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.protocol.windows import OpenWindows
from agent.desktop.wayland.text import CheckedTextEntry, FocusCheck

#: Text up to this length, in characters, is typed by keys if possible.
_KEYS_AT_FIRST = 60
#: If pasting fails, text up to this length, in characters, is typed by keys.
_MOST_KEYS = 200
#: Seconds to wait for an application to fetch pasted text.
_FETCH_TIMEOUT = 1.5
_PASTE, _PASTE_IN_TERMINALS = ("ctrl", "v"), ("ctrl", "shift", "v")
_NOTHING_TOOK_IT = "nothing on the screen took the text: is the right field focused?"
_NO_WAY = (
    "this keyboard lacks some of the characters (or Caps Lock is on), and the desktop does not share its clipboard: "
    "nothing was typed"
)
_INPUT_SOURCES = "/org/gnome/desktop/input-sources/sources"
_INPUT_METHODS = ("GTK_IM_MODULE", "QT_IM_MODULE", "XMODIFIERS")


class PortalTextEntry(CheckedTextEntry):
    """Enters text by keys or by pasting.

    `composes` returns whether keys go through an input method and so do not type their letters. `told_app` returns the
    focused application's name; it is called only if the windows are not known.
    """

    def __init__(
        self,
        source: Callable[[], PortalInput],
        clipboard: Callable[[], PortalClipboard],
        open_windows: OpenWindows,
        composes: Callable[[], bool],
        told_app: Callable[[], str],
    ) -> None:
        super().__init__(open_windows)
        self._source = source
        self._clipboard = clipboard
        self._composes = composes
        self._told_app = told_app

    def _enter(self, text: str, press: Callable[[tuple[str, ...]], None], focus: FocusCheck) -> None:
        app = self._told_app() if focus.windows is None else "" if focus.window is None else focus.window.app
        clipboard = self._clipboard()
        if len(text) <= _KEYS_AT_FIRST and not takes_text(app, "completing") and self._type(text, focus):
            return
        if clipboard.lacks:
            if not self._type(text, focus):
                raise ActionFailedError(_NO_WAY)
            return
        try:
            with clipboard.lent():
                clipboard.offer(text, focus.check_stop)
                focus.look()
                # Ctrl+V means something else in a terminal, and text pasted after it would be misread.
                chord = _PASTE_IN_TERMINALS if takes_text(app, "primary") else _PASTE
                if clipboard.pasted(partial(press, chord), _FETCH_TIMEOUT, focus.check_stop):
                    return
                # The loan lasts until here: an application that hung and fetches late must get this text, not the
                # user's content.
                if len(text) <= _MOST_KEYS and self._type(text, focus):
                    return
        except BusError as error:
            raise ActionFailedError(f"the clipboard cannot be used ({error})") from error
        raise ActionFailedError(_NOTHING_TOOK_IT)

    def _type(self, text: str, focus: FocusCheck) -> bool:
        """Type the text by keys. Return False, with nothing typed, if the keyboard cannot."""
        strokes = None if self._composes() else self._source().strokes(text)
        if strokes is None:
            return False
        self._source().type(strokes, focus.before_key)
        return True


def composes(environ: Mapping[str, str]) -> bool:
    """Whether one of the user's input sources is an input method, whose keys do not type letters directly.

    The source in use now is not reported. GNOME always runs IBus and lists its engines among the input sources;
    elsewhere, applications' environment variables name Fcitx.
    """
    sources = DconfStore(environ).current(_INPUT_SOURCES)
    if sources is not None:
        return "('ibus', " in sources
    return any("fcitx" in environ.get(name, "").lower() for name in _INPUT_METHODS)
