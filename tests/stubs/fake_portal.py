"""A desktop portal on a bus of its own, whose person answers its dialog as a test says."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, HeaderFields, Message, MessageType, new_error, new_method_return, new_signal
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection

PATH = "/org/freedesktop/portal/desktop"
PREFIX = "org.freedesktop.portal."
ALL = 3  # keyboard and pointer
STREAM = (42, {"position": ("(ii)", (0, 0)), "size": ("(ii)", (1280, 800)), "mapping_id": ("s", "m")})


def allowed(**more: Any) -> tuple[int, dict[str, Any]]:
    """What a start returns that was allowed."""
    given = {
        "devices": ("u", ALL),
        "streams": ("a(ua{sv})", [STREAM]),
        "clipboard_enabled": ("b", True),
        "restore_token": ("s", "fresh"),
    }
    return 0, {name: value for name, value in (given | more).items() if value is not None}


class FakePortal:
    """Answers as `starts` say, one after the other; None never answers.

    Args:
        address: of the bus.
        interfaces: which it has.
    """

    def __init__(
        self, address: str, interfaces: tuple[str, ...] = ("RemoteDesktop", "ScreenCast", "Clipboard")
    ) -> None:
        self.interfaces = interfaces
        self.starts: list[tuple[int, dict[str, Any]] | None] = []
        self.asked: list[tuple[str, tuple[Any, ...]]] = []  # members and bodies, in order
        self._session = ""
        self._peer = ""
        self._connection = open_dbus_connection(address)
        self._connection.send_and_get_reply(message_bus.RequestName(f"{PREFIX}Desktop"), timeout=10)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def options(self, member: str) -> dict[str, Any]:
        """What it was asked with, the last time."""
        body = [body for name, body in self.asked if name == member][-1]
        return {name: value for name, (_, value) in body[-1].items()}

    def members(self) -> list[str]:
        """What was asked, in order, without properties."""
        return [name for name, _ in self.asked]

    def end_session(self) -> None:
        """The person presses the desktop's own button."""
        self._signal(self._session, "Session", "Closed")

    def press_shortcut(self, name: str) -> None:
        """The person presses the chord of a shortcut."""
        self._signal(PATH, "GlobalShortcuts", "Activated", "osta{sv}", (self._session, name, 1, {}))

    def close(self) -> None:
        """It goes away."""
        with suppress(OSError):
            self._connection.sock.shutdown(2)
        self._thread.join(5)
        self._connection.close()

    def _serve(self) -> None:
        while True:
            try:
                message = self._connection.receive()
            except OSError:
                return
            if message.header.message_type is MessageType.method_call:
                self._answer(message)

    def _answer(self, call: Message) -> None:
        fields = call.header.fields
        interface, member = fields[HeaderFields.interface], fields[HeaderFields.member]
        self._peer = fields[HeaderFields.sender]
        if member == "Get":
            known = call.body[0].removeprefix(PREFIX) in self.interfaces
            found = {"version": ("u", 2), "AvailableCursorModes": ("u", 7)}[call.body[1]]
            self._connection.send(
                new_method_return(call, "v", (found,)) if known else new_error(call, f"{PREFIX}Error.NotFound")
            )
            return
        if interface.removeprefix(PREFIX) not in (*self.interfaces, "Request", "Session"):
            self._connection.send(new_error(call, "org.freedesktop.DBus.Error.UnknownMethod"))
            return
        self.asked.append((member, call.body or ()))
        if member in ("Close", "RequestClipboard"):
            self._connection.send(new_method_return(call))
            return
        token = call.body[-1]["handle_token"][1]
        request = f"{PATH}/request/{self._peer[1:].replace('.', '_')}/{token}"
        response: tuple[int, dict[str, Any]] | None = (0, {})
        if member == "CreateSession":
            name = call.body[-1]["session_handle_token"][1]
            self._session = f"{PATH}/session/{self._peer[1:].replace('.', '_')}/{name}"
            response = (0, {"session_handle": ("s", self._session)})
        elif member in ("Start", "BindShortcuts"):
            response = self.starts.pop(0)
        if response is not None:
            # Before the call itself is answered, as a portal may do that needs nobody.
            self._signal(request, "Request", "Response", "ua{sv}", response)
        self._connection.send(new_method_return(call, "o", (request,)))

    def _signal(self, path: str, interface: str, member: str, signature: str = "", body: tuple[Any, ...] = ()) -> None:
        signal = new_signal(DBusAddress(path, interface=f"{PREFIX}{interface}"), member, signature, body)
        signal.header.fields[HeaderFields.destination] = self._peer
        self._connection.send(signal)


@contextmanager
def session_bus_in(folder: Path) -> Iterator[str]:
    """A session bus of a test's own; its address."""
    address = f"unix:path={folder}/bus"
    command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address={address}", "--print-address=1"]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        # It prints its address once it listens. Its socket file is there earlier, and refuses connections until then.
        assert daemon.stdout is not None
        assert daemon.stdout.readline()
        yield address
    finally:
        daemon.kill()
        daemon.wait()
