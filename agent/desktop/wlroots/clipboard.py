"""The clipboard of a Wayland desktop through data control, which can read and own it without a window."""

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cached_property

from agent.desktop.protocol.clipboard import HungError
from agent.desktop.wayland.selection import DATA_CONTROL, Selection
from agent.desktop.wayland.wire import Connection
from foundation.errors import EnvironmentLacksError

_MANAGERS = ("ext_data_control_manager_v1", "zwlr_data_control_manager_v1")


class WlrootsClipboard:
    """A `Clipboard`. Uses its own connection, opened on first use, from one thread at a time.

    Args:
        path: the compositor's socket.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: Connection | None = None
        self._selection: Selection | None = None

    @cached_property
    def lacks(self) -> str:
        with suppress(EnvironmentLacksError), closing(Connection(self._path)) as connection:
            return "" if any(map(connection.has, _MANAGERS)) else "this desktop tells no program what it holds."
        return ""

    def kinds(self) -> list[str]:
        try:
            connection, selection = self._connected()
            connection.roundtrip()
        except EnvironmentLacksError as error:
            self.close()
            raise HungError from error
        return selection.kinds()

    def read(self, kind: str) -> bytes | None:
        return self._connected()[1].read(kind) if kind in self.kinds() else None

    def give(self, kinds: Mapping[str, bytes]) -> None:
        """Own the clipboard until someone else copies or this is closed; `serve` delivers the content.

        Raises:
            EnvironmentLacksError: the compositor is gone, or has no data control.
        """
        connection, selection = self._connected()
        selection.give(kinds)
        connection.roundtrip()

    def serve(self, seconds: float) -> bool:
        """Deliver the content to applications for some seconds. Return whether we still own the clipboard."""
        connection, selection = self._connected()
        deadline = time.monotonic() + seconds
        while selection.given and (left := deadline - time.monotonic()) > 0:
            connection.pump(left)
        return bool(selection.given)

    def close(self) -> None:
        """Disconnect, which gives up the clipboard. Never raises."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._selection = None

    def _connected(self) -> tuple[Connection, Selection]:
        if self._connection is None or self._selection is None:
            connection = Connection(self._path)
            try:
                known = next((one for one in _MANAGERS if connection.has(one)), _MANAGERS[-1])
                manager, seat = connection.bind(known, 1), connection.bind("wl_seat", 1)
                selection = Selection(connection, manager, seat, DATA_CONTROL)
                connection.roundtrip()
            except BaseException:
                connection.close()
                raise
            self._connection, self._selection = connection, selection
        return self._connection, self._selection
