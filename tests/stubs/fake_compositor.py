"""A compositor on a socket that knows one monitor and copies it by ext-image-copy-capture, after the protocol's file.

It keeps to the letter where real ones may be kinder: a second frame of one session waits for ever, as nothing changes.
"""

import mmap
import os
import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path

from agent.desktop.wayland.wire import Arguments, pack

XRGB, ABGR = 1, 0x34324241
MANAGERS = ("ext_image_copy_capture_manager_v1", "ext_output_image_capture_source_manager_v1")


class FakeCompositor:
    """Serves one client after the other; a context manager.

    Args:
        folder: where its socket is made.
        size: of the monitor, in its own lines.
        transform: how it is turned.
        formats: what the copy can be had in.
        misses: so many frames fail, as if the monitor had changed its size meanwhile.
        stops: sessions end at once.
        offered: what it offers besides.
    """

    def __init__(
        self,
        folder: Path,
        size: tuple[int, int] = (8, 4),
        transform: int = 0,
        formats: tuple[int, ...] = (0x34325241, XRGB),
        misses: int = 0,
        stops: bool = False,
        offered: tuple[str, ...] = MANAGERS,
    ) -> None:
        self.path = str(folder / "wayland-fake")
        self._size, self._transform, self._formats = size, transform, formats
        self._misses, self._stops = misses, stops
        self._globals = ["wl_shm", "wl_output", *offered]
        self.sessions = 0
        self.errors: list[str] = []
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
                    _Client(self, client).serve()


class _Client:
    """One connection."""

    def __init__(self, compositor: FakeCompositor, client: socket.socket) -> None:
        self._of, self._client = compositor, client
        self._kinds = {1: "wl_display"}
        self._files: deque[int] = deque()
        self._memory: dict[int, mmap.mmap] = {}  # of pools, then of buffers
        self._session: dict[int, int] = {}  # of a frame
        self._taken: dict[int, int] = {}  # frames of a session
        self._attached: dict[int, int] = {}

    def serve(self) -> None:
        data = b""
        while True:
            more, files, _, _ = socket.recv_fds(self._client, 65536, 8)
            if not more:
                return
            self._files += files
            data += more
            while len(data) >= 8:
                target, opcode, length = struct.unpack_from("=IHH", data)
                if len(data) < length:
                    break
                body, data = data[8:length], data[length:]
                self._request(target, self._kinds.get(target, "?"), opcode, Arguments(body, self._files))

    def _tell(self, target: int, opcode: int, signature: str = "", *arguments: int | str) -> None:
        body = pack(signature, arguments)
        self._client.sendall(struct.pack("=IHH", target, opcode, len(body) + 8) + body)

    def _request(self, target: int, kind: str, opcode: int, told: Arguments) -> None:
        of = self._of
        match kind, opcode:
            case "wl_display", 0:
                number = told.number()
                self._tell(number, 0, "u", 0)
                self._tell(1, 1, "u", number)
            case "wl_display", 1:
                registry = told.number()
                self._kinds[registry] = "registry"
                for name, interface in enumerate(of._globals):
                    self._tell(registry, 0, "usu", name, interface, 1)
            case "registry", 0:
                told.number()
                interface, _, number = told.text(), told.number(), told.number()
                self._kinds[number] = interface
                if interface == "wl_output":
                    self._tell(number, 0, "iiiiissi", 0, 0, 0, 0, 0, "made", "up", of._transform)
                    self._tell(number, 1, "uiii", 1, *of._size, 60000)
                    self._tell(number, 2)
            case "wl_shm", 0:
                number, file, length = told.number(), told.file(), told.signed()
                self._kinds[number] = "pool"
                self._memory[number] = mmap.mmap(file, length)
                os.close(file)
            case "pool", 0:
                number = told.number()
                self._kinds[number], self._memory[number] = "buffer", self._memory[target]
            case "ext_output_image_capture_source_manager_v1", 0:
                self._kinds[told.number()] = "source"
            case "ext_image_copy_capture_manager_v1", 0:
                self._begin(told.number())
            case "session", 0:
                number = told.number()
                self._kinds[number], self._session[number] = "frame", target
                self._taken[target] = self._taken.get(target, 0) + 1
            case "frame", 1:
                self._attached[target] = told.number()
            case "frame", 3:
                self._capture(target)
            case (("frame" | "session" | "source" | "buffer" | "pool"), _):
                pass
            case _:
                of.errors.append(f"{kind} has no request {opcode}")

    def _begin(self, session: int) -> None:
        of = self._of
        self._kinds[session] = "session"
        of.sessions += 1
        if of._stops:
            self._tell(session, 5)
            return
        for one in of._formats:
            self._tell(session, 1, "u", one)
        self._tell(session, 0, "uu", *of._size)
        self._tell(session, 4)

    def _capture(self, frame: int) -> None:
        of = self._of
        if self._taken[self._session[frame]] > 1:
            return  # nothing has changed since
        if of._misses:
            of._misses -= 1
            self._tell(frame, 4, "u", 1)
            return
        width, height = of._size
        memory, kind = self._memory[self._attached[frame]], next(one for one in of._formats if one in (XRGB, ABGR))
        for y in range(height):
            for x in range(width):
                red, green, blue = colour(x, y)
                pixel = bytes((blue, green, red, 0) if kind == XRGB else (red, green, blue, 0))
                memory[(y * width + x) * 4 : (y * width + x) * 4 + 4] = pixel
        self._tell(frame, 0, "u", of._transform)
        self._tell(frame, 1, "iiii", 0, 0, width, height)
        self._tell(frame, 2, "uuu", 0, 1, 2)
        self._tell(frame, 3)


def colour(x: int, y: int) -> tuple[int, int, int]:
    """What is at a place of the monitor, in its own lines."""
    return 10 * x, 20 * y, 200
