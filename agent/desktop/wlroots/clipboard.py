"""The clipboard of a Wayland desktop, by data control: it is read and owned without a window of ours."""

import os
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cached_property

from agent.desktop.protocol.clipboard import HungError
from agent.desktop.wayland.transfer import read_all, write_all
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.errors import EnvironmentLacksError

_MANAGERS = ("ext_data_control_manager_v1", "zwlr_data_control_manager_v1")
_CREATE_SOURCE, _GET_DEVICE = 0, 1
_SET_SELECTION, _RECEIVE, _OFFER = 0, 0, 0
_DATA_OFFER, _SELECTION = 0, 1
_SEND, _CANCELLED = 0, 1


class WlrootsClipboard:
    """See `Clipboard`; a connection of its own, made when it is first asked for. Used from one thread at a time.

    Args:
        path: of the compositor's socket.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: Connection | None = None
        self._manager = self._device = 0
        self._offers: dict[int, list[str]] = {}  # kinds, by the number of what is offered
        self._held: int | None = None  # the number of what is in the clipboard
        self._given: Mapping[str, bytes] = {}  # what we gave it, as long as it holds that

    @cached_property
    def lacks(self) -> str:
        """See `Clipboard.lacks`."""
        with suppress(EnvironmentLacksError), closing(Connection(self._path)) as connection:
            return "" if any(map(connection.has, _MANAGERS)) else "this desktop tells no program what it holds."
        return ""

    def kinds(self) -> list[str]:
        """See `Clipboard.kinds`."""
        try:
            self._connected().roundtrip()
        except EnvironmentLacksError as error:
            self.close()
            raise HungError from error
        return list(self._offers.get(self._held, ())) if self._held else []

    def read(self, kind: str) -> bytes | None:
        """See `Clipboard.read`."""
        if kind not in self.kinds():
            return None
        if kind in self._given:  # nobody else would answer
            return self._given[kind]
        assert self._held is not None
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            self._connected().request(self._held, _RECEIVE, "s", kind, files=[writing])
        except EnvironmentLacksError as error:
            os.close(reading)
            raise HungError from error
        finally:
            os.close(writing)
        with os.fdopen(reading, "rb", buffering=0) as source:
            return read_all(source.fileno())

    def give(self, kinds: Mapping[str, bytes]) -> None:
        """Own the clipboard with this, until somebody copies or this is closed; `serve` hands it over.

        Raises:
            EnvironmentLacksError: the compositor is gone, or has no data control.
        """
        connection = self._connected()
        source = connection.new()
        connection.hear(source, lambda opcode, arguments: self._of_source(source, kinds, opcode, arguments))
        connection.request(self._manager, _CREATE_SOURCE, "n", source)
        for kind in kinds:
            connection.request(source, _OFFER, "s", kind)
        self._given = kinds
        connection.request(self._device, _SET_SELECTION, "o", source)
        connection.roundtrip()

    def serve(self, seconds: float) -> bool:
        """Hand over what was given, to whoever asks within some seconds; whether it is still ours."""
        deadline = time.monotonic() + seconds
        while self._given and (left := deadline - time.monotonic()) > 0:
            self._connected().pump(left)
        return bool(self._given)

    def close(self) -> None:
        """Hang up, and give up what was given; never raises."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._held, self._given = None, None, {}
        self._offers.clear()

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = Connection(self._path)
            try:
                known = next((one for one in _MANAGERS if connection.has(one)), _MANAGERS[-1])
                self._manager, seat = connection.bind(known, 1), connection.bind("wl_seat", 1)
                self._device = connection.new(self._of_device)
                self._connection = connection
                connection.request(self._manager, _GET_DEVICE, "no", self._device, seat)
                connection.roundtrip()
            except BaseException:
                self._connection = None
                connection.close()
                raise
        return self._connection

    def _of_device(self, opcode: int, arguments: Arguments) -> None:
        connection = self._connection
        if connection is None:
            return
        number = arguments.number()
        if opcode == _DATA_OFFER:
            kinds = self._offers[number] = []
            connection.hear(number, lambda _, told: kinds.append(told.text()))
        elif opcode == _SELECTION:
            self._held = number or None
            for old in [one for one in self._offers if one != number]:
                connection.forget(old)
                del self._offers[old]

    def _of_source(self, source: int, kinds: Mapping[str, bytes], opcode: int, arguments: Arguments) -> None:
        if opcode == _CANCELLED and self._given is kinds:
            self._given = {}
            if self._connection is not None:
                self._connection.request(source, 1)
        if opcode == _SEND:
            kind, file = arguments.text(), arguments.file()
            write_all(file, kinds.get(kind, b""))
