"""The window of a trial on Wayland, of any compositor: an ordinary client with a picture in shared memory."""

import mmap
import os
from contextlib import suppress

from agent.core.geometry import Size
from agent.desktop.linux.xkb import Keymap
from agent.desktop.protocol.clipboard import HungError
from agent.desktop.trial.pattern import Pattern
from agent.desktop.trial.report import Report
from agent.desktop.wayland.layout import take_keymap
from agent.desktop.wayland.transfer import read_all, write_all
from agent.desktop.wayland.wire import Arguments, Connection, create_buffer

_XRGB = 1  # of wl_shm's formats
TITLE, APP = "mai-agent doctor", "mai-agent-doctor"
_SIZE = Size(640, 480)
_BUTTONS = {0x110: "left", 0x111: "right", 0x112: "middle"}
#: Kinds of plain text, the best first.
_TEXTS = ("text/plain;charset=utf-8", "text/plain", "UTF8_STRING", "STRING")
#: So many bytes of the person's clipboard are kept, of all kinds together.
_MOST = 64_000_000


class WaylandWindow:
    """See `Shown`.

    Args:
        path: of the compositor's socket.
        pattern: what it shows.
        copied: what it gives when something is copied in it.
        report: is told what reaches it.
    """

    def __init__(self, path: str, pattern: Pattern, copied: str, report: Report) -> None:
        self._pattern, self._copied, self._report = pattern, copied.encode(), report
        self._turned, self._size, self._drawn = False, _SIZE, False
        self._at, self._wheel, self._serial = (0.0, 0.0), [0.0, 0.0, 0, 0], 0
        self._keymap: Keymap | None = None
        self._clipboard: _Clipboard | None = None
        self._connection = connection = Connection(path)
        compositor, self._shared = connection.bind("wl_compositor", 4), connection.bind("wl_shm", 1)
        shell = connection.bind("xdg_wm_base", 1, self._of_shell)
        self._shell = shell
        self._devices = 0
        self._seat = connection.bind("wl_seat", 5, self._of_seat)
        connection.roundtrip()  # Mir tells a keyboard that comes after the focus nothing of it
        self._surface = connection.new()
        connection.request(compositor, 0, "n", self._surface)
        self._role, self._top = connection.new(self._of_role), connection.new(self._of_top)
        connection.request(shell, 2, "no", self._role, self._surface)
        connection.request(self._role, 1, "n", self._top)
        connection.request(self._top, 2, "s", TITLE)
        connection.request(self._top, 3, "s", APP)
        if connection.has("wl_data_device_manager"):
            self._clipboard = _Clipboard(connection, self._seat)
            report.copy, report.paste = self._copy, self._paste
        connection.request(self._surface, 6)  # without a picture: the compositor then says how large it is to be
        connection.roundtrip()

    def fileno(self) -> int:
        """See `Shown.fileno`."""
        return self._connection.fileno()

    def take(self) -> None:
        """See `Shown.take`."""
        while self._connection.pump(0):
            pass

    def turn(self) -> None:
        """See `Shown.turn`."""
        self._turned = not self._turned
        self._draw()

    def end(self) -> bool:
        """See `Shown.end`."""
        connection = self._connection
        if self._surface:
            if self._clipboard is not None:
                self._clipboard.put_back(self._serial)
            for target, opcode in ((self._top, 0), (self._role, 0), (self._surface, 0)):
                connection.request(target, opcode)
            self._surface = 0
            connection.roundtrip()
        return self._clipboard is not None and self._clipboard.is_ours

    def close(self) -> None:
        """See `Shown.close`."""
        self._connection.close()

    def _copy(self) -> None:
        assert self._clipboard is not None
        try:
            self._clipboard.give(dict.fromkeys(_TEXTS, self._copied), self._serial)
        except HungError:  # what cannot be kept must not be lost
            self._report.tell("not copied")
            return
        self._report.tell("copied")

    def _paste(self) -> None:
        assert self._clipboard is not None
        with suppress(HungError):
            self._report.enter(self._clipboard.text())

    def _of_shell(self, _: int, arguments: Arguments) -> None:
        self._connection.request(self._shell, 3, "u", arguments.number())

    def _of_top(self, opcode: int, arguments: Arguments) -> None:
        if opcode == 0:
            width, height = arguments.signed(), arguments.signed()
            self._size = Size(width, height) if width > 0 and height > 0 else self._size
        elif opcode == 1:
            self._report.tell("closed")

    def _of_role(self, _: int, arguments: Arguments) -> None:
        self._connection.request(self._role, 4, "u", arguments.number())
        self._draw()

    def _draw(self) -> None:
        """Show the pattern; tell that it is there once the compositor wants the next picture."""
        connection, size = self._connection, self._size
        buffer, memory = create_buffer(connection, self._shared, (size.width, size.height), size.width * 4, _XRGB)
        with memory:
            _paint(memory, self._pattern, size, turned=self._turned)
        connection.hear(buffer, lambda *_: connection.request(buffer, 0))
        kind, turned = "turned" if self._drawn else "there", self._turned
        self._drawn = True

        def shown(*_: object) -> None:
            self._report.tell(kind, width=size.width, height=size.height, turned=turned)

        connection.request(self._surface, 3, "n", connection.new(shown))
        connection.request(self._surface, 1, "oii", buffer, 0, 0)
        connection.request(self._surface, 2, "iiii", 0, 0, size.width, size.height)
        connection.request(self._surface, 6)

    def _of_seat(self, opcode: int, arguments: Arguments) -> None:
        """Take pointer and keyboard when there is one: asked for one that there is not, GNOME 43 ends itself."""
        if opcode != 0:
            return
        before, self._devices = self._devices, arguments.number()
        for bit, request, handler in ((1, 0, self._of_pointer), (2, 1, self._of_keyboard)):
            if self._devices & bit and not before & bit:
                self._connection.request(self._seat, request, "n", self._connection.new(handler))

    def _of_pointer(self, opcode: int, arguments: Arguments) -> None:
        match opcode:
            case 0 | 2:  # enter, motion
                if opcode == 0:
                    arguments.number(), arguments.number()
                else:
                    arguments.number()
                self._at = arguments.signed() / 256, arguments.signed() / 256
                self._report.tell("motion", x=self._at[0], y=self._at[1])
            case 1:
                self._report.tell("left")
            case 3:
                self._serial, _ = arguments.number(), arguments.number()
                button, down = arguments.number(), arguments.number()
                name, (x, y) = _BUTTONS.get(button, str(button)), self._at
                self._report.tell("press" if down else "release", button=name, x=x, y=y)
            case 4:
                _, axis = arguments.number(), arguments.number()
                self._wheel[1 - axis] += arguments.signed()
            case 8:
                axis = arguments.number()
                self._wheel[3 - axis] += arguments.signed()
            case 5 if any(self._wheel):  # the end of what belongs together
                right, down_, steps_right, steps_down = self._wheel
                self._wheel = [0.0, 0.0, 0, 0]
                self._report.tell("wheel", right=steps_right or _sign(right), down=steps_down or _sign(down_))

    def _of_keyboard(self, opcode: int, arguments: Arguments) -> None:
        match opcode:
            case 0:
                text = take_keymap(arguments)
                if self._keymap is not None:
                    self._keymap.close()
                self._keymap = Keymap(text) if text else None
            case 1:
                self._report.tell("focus", here=True)
            case 2:
                self._report.tell("focus", here=False)
            case 3 if self._keymap is not None:
                self._serial, _ = arguments.number(), arguments.number()
                code, down = arguments.number(), arguments.number()
                keymap = self._keymap
                self._report.key(keymap.name(code), keymap.modifiers(), keymap.character(code), down=bool(down))
            case 4 if self._keymap is not None:
                arguments.number()
                held, latched, locked, group = (arguments.number() for _ in range(4))
                self._keymap.set_modifiers(held, latched, locked, group)


class _Clipboard:
    """The clipboard as an ordinary client has it, while its window has the focus."""

    def __init__(self, connection: Connection, seat: int) -> None:
        self._connection = connection
        self._manager = connection.bind("wl_data_device_manager", 3)
        self._device = connection.new(self._of_device)
        connection.request(self._manager, 1, "no", self._device, seat)
        self._offers: dict[int, list[str]] = {}
        self._offer = 0
        self._given: dict[str, bytes] = {}
        self._before: dict[str, bytes] | None = None  # what it held before we gave something

    @property
    def is_ours(self) -> bool:
        """Whether it holds what we gave."""
        return bool(self._given)

    def give(self, kinds: dict[str, bytes], serial: int) -> None:
        """Own it with this, by the number of an event that the person, or our hand, caused.

        Raises:
            HungError: whoever holds it does not hand over what would be lost.
        """
        if self._before is None:
            self._before = self._read_all()
        connection, source = self._connection, self._connection.new()

        def asked(opcode: int, arguments: Arguments) -> None:
            if opcode == 1:
                kind, file = arguments.text(), arguments.file()
                write_all(file, kinds.get(kind, b""))
            elif opcode == 2:
                connection.request(source, 1)
                if self._given is kinds:
                    self._given = {}

        connection.hear(source, asked)
        connection.request(self._manager, 0, "n", source)
        for kind in kinds:
            connection.request(source, 0, "s", kind)
        self._given = kinds
        connection.request(self._device, 1, "ou", source, serial)

    def put_back(self, serial: int) -> None:
        """What it held before, if it still holds what we gave."""
        if self._before is None or not self._given:
            return
        if self._before:
            self.give(self._before, serial)
        else:
            self._given = {}
            self._connection.request(self._device, 1, "ou", 0, serial)

    def text(self) -> str:
        """The text in it; "" where there is none."""
        there = self._given or self._offers.get(self._offer, [])
        kind = next((one for one in _TEXTS if one in there), None)
        if kind is None:
            return ""
        return (self._given[kind] if self._given else self._read(kind)).decode("utf-8", "replace")

    def _read_all(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for kind in self._offers.get(self._offer, []):
            data = self._read(kind)
            if data and sum(map(len, found.values())) + len(data) <= _MOST:
                found[kind] = data
        return found

    def _read(self, kind: str) -> bytes:
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            self._connection.request(self._offer, 1, "s", kind, files=[writing])
        finally:
            os.close(writing)
        try:
            return read_all(reading)
        finally:
            os.close(reading)

    def _of_device(self, opcode: int, arguments: Arguments) -> None:
        if opcode == 0:
            offer = arguments.number()
            kinds = self._offers[offer] = []
            self._connection.hear(offer, lambda which, told: kinds.append(told.text()) if which == 0 else None)
        elif opcode == 5:
            self._offer = arguments.number()
            for old in [one for one in self._offers if one != self._offer]:
                del self._offers[old]
                self._connection.request(old, 2)


def _paint(memory: mmap.mmap, pattern: Pattern, size: Size, *, turned: bool) -> None:
    import numpy as np

    picture = np.zeros((size.height, size.width, 4), np.uint8)
    for cell, (red, green, blue) in pattern.cells(size, turned=turned):
        picture[cell.top : cell.top + cell.height, cell.left : cell.left + cell.width] = (blue, green, red, 255)
    memory[:] = picture.tobytes()


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
