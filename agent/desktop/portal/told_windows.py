"""Windows of desktops that have a way of telling all of them beside Wayland: GNOME with our extension, and KDE.

Both tell the same: {"windows": [...], "pointer": [x, y]}, the lowest window first, in desktop units.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from agent.core.geometry import Region
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.kwin import Kwin
from agent.desktop.portal.shell import Shell
from agent.desktop.protocol.windows import Layer, Window, WindowId
from agent.desktop.wayland.stacked import StackedWindows, Told
from foundation.errors import EnvironmentLacksError


class Teller(Protocol):
    """Who tells of the windows. Both methods raise BusError."""

    def tell(self) -> Any:
        """What is there now; see above."""

    def activate(self, identifier: WindowId) -> bool:
        """Bring a window to the front; whether it was there."""


class ToldWindows(StackedWindows):
    """See `Windows`."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._orders: dict[WindowId, int] = {}

    def read(self) -> list[Told]:
        """See `StackedWindows.read`."""
        described = list(self._described())
        self._orders = {one["id"]: int(one["order"]) for one in described}
        found = [told for one in described if (told := _told(one)) is not None]
        return sorted(found, key=lambda one: one.visible)

    def order(self, identifier: WindowId) -> int:
        """See `StackedWindows.order`."""
        return self._orders.get(identifier, 0)

    def pointer(self) -> tuple[int, int]:
        """See `Windows.pointer`."""
        x, y = self._ask(self._teller.tell)["pointer"]
        return int(x), int(y)

    def bring(self, identifier: WindowId) -> bool:
        """See `StackedWindows.bring`."""
        return bool(self._ask(lambda: self._teller.activate(identifier)))

    def close(self) -> None:
        """See `Windows.close`: each look is a connection of its own."""

    def _described(self) -> Iterator[Mapping[str, Any]]:
        yield from self._ask(self._teller.tell)["windows"]

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except BusError as error:
            raise EnvironmentLacksError(
                f"The desktop tells no more of its windows ({error}).", "Is the session still running?"
            ) from error


def _told(one: Mapping[str, Any]) -> Told | None:
    """A window as it is described; None for one that has no place yet."""
    if min(*one["box"][2:], *one["outer"][2:]) < 1:
        return None
    box, outer = (Region(*map(int, one[name])) for name in ("box", "outer"))
    window = Window(one["id"], one["title"], one["app"], one["pid"] or None)
    surface = None if one["surface"] is None else (int(one["surface"][0]), int(one["surface"][1]))
    layer = Layer(
        window, box, outer, one["helper"], one["backdrop"], one["passing"], window.pid, frozenset(one["kinds"]), surface
    )
    return Told(layer, one["shown"], one["focused"], "dialog" if one["dialog"] else "", one["owner"])


def open_told_windows(environ: Mapping[str, str]) -> ToldWindows | None:
    """The windows of a session, for the thread that calls; None where nobody tells of them."""
    for teller in (Shell(environ), Kwin(environ)):
        with suppress(BusError):
            if teller.is_there():
                return ToldWindows(teller)
    return None
