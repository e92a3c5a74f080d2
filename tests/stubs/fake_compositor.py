"""A compositor on a socket that offers some interfaces and one monitor, and does nothing with them."""

import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path

from agent.desktop.wayland.wire import Arguments, pack


class FakeCompositor:
    """Serves one client after the other, on a socket in `folder`; a context manager. `offered` are its interfaces."""

    def __init__(self, folder: Path, offered: tuple[str, ...] = ()) -> None:
        self.path = str(folder / "wayland-fake")
        self._offered = ("wl_shm", "wl_output", *offered)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(self.path)
        self._server.listen(4)
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> "FakeCompositor":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                with client, suppress(OSError):
                    self._serve_one(client)

    def _serve_one(self, client: socket.socket) -> None:
        def tell(target: int, opcode: int, signature: str, *arguments: int | str) -> None:
            body = pack(signature, arguments)
            client.sendall(struct.pack("=IHH", target, opcode, len(body) + 8) + body)

        data = b""
        while more := client.recv(65536):
            data += more
            while len(data) >= 8:
                target, opcode, length = struct.unpack_from("=IHH", data)
                if len(data) < length:
                    break
                body, data = data[8:length], data[length:]
                if target != 1:  # wl_display
                    continue
                number = Arguments(body, deque()).number()
                if opcode == 0:  # sync
                    tell(number, 0, "u", 0)
                    tell(1, 1, "u", number)
                else:  # get_registry
                    for name, interface in enumerate(self._offered):
                        tell(number, 0, "usu", name, interface, 1)
