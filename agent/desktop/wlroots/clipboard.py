"""The clipboard of a Wayland desktop through data control, which can read it without a window."""

from contextlib import closing, suppress
from functools import cached_property

from agent.desktop.protocol.clipboard import HungError
from agent.desktop.wayland.selection import DATA_CONTROL, Selection
from agent.desktop.wayland.wire import Connection
from foundation.errors import EnvironmentLacksError

MANAGERS = ("ext_data_control_manager_v1", "zwlr_data_control_manager_v1")


class WlrootsClipboard:
    """A `Clipboard`. Uses its own connection to the compositor's socket, opened on first use."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: Connection | None = None
        self._selection: Selection | None = None

    @cached_property
    def lacks(self) -> str:
        with suppress(EnvironmentLacksError), closing(Connection(self._path)) as connection:
            return "" if any(map(connection.has, MANAGERS)) else "this desktop tells no program what it holds."
        return ""

    def kinds(self) -> list[str]:
        return self._now().kinds()

    def read(self, kind: str) -> bytes | None:
        selection = self._now()
        return selection.read(kind) if kind in selection.kinds() else None

    def close(self) -> None:
        """Disconnect. Never raises."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._selection = None

    def _now(self) -> Selection:
        """Return the present selection. Raises HungError."""
        try:
            connection = self._connection = self._connection or Connection(self._path)
            if self._selection is None:
                known = next((one for one in MANAGERS if connection.has(one)), MANAGERS[-1])
                manager, seat = connection.bind(known, 1), connection.bind("wl_seat", 1)
                self._selection = Selection(connection, manager, seat, DATA_CONTROL)
            connection.roundtrip()
        except EnvironmentLacksError as error:
            self.close()
            raise HungError from error
        return self._selection
