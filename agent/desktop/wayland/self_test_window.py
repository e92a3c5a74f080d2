"""The window of the self-test on any Wayland compositor: python -m agent.desktop.wayland.self_test_window NUMBER."""

import os
from contextlib import suppress

from agent.core.geometry import Size
from agent.desktop.linux.xkb import Keymap
from agent.desktop.protocol.clipboard import TEXTS, HungError
from agent.desktop.self_test.capture import Pattern
from agent.desktop.self_test.window_program import APP, TITLE, Shown, serve
from agent.desktop.wayland.devices import take_keymap
from agent.desktop.wayland.selection import DATA_DEVICE, Selection
from agent.desktop.wayland.wire import Arguments, Connection, create_buffer, socket_of

_XRGB = 1  # a wl_shm format
_BUTTONS = {0x110: "left", 0x111: "right", 0x112: "middle"}


class WaylandWindow(Shown):
    """An ordinary client that draws into shared memory."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__(pattern)
        self._at, self._wheel = (0.0, 0.0), [0.0, 0.0, 0, 0]
        self._keymap: Keymap | None = None
        self._selection: Selection | None = None
        self._connection = connection = Connection(socket_of(os.environ))
        compositor, self._shared = connection.bind("wl_compositor", 4), connection.bind("wl_shm", 1)
        self._shell = connection.bind("xdg_wm_base", 1, self._of_shell)
        self._devices = 0
        self._seat = connection.bind("wl_seat", 5, self._of_seat)
        connection.roundtrip()  # Mir does not announce a keyboard that is added after the focus
        self._surface = connection.new()
        connection.request(compositor, 0, "n", self._surface)
        self._role, top = connection.new(self._of_role), connection.new(self._of_top)
        connection.request(self._shell, 2, "no", self._role, self._surface)
        connection.request(self._role, 1, "n", top)
        connection.request(top, 2, "s", TITLE)
        connection.request(top, 3, "s", APP)
        if connection.has("wl_data_device_manager"):
            manager = connection.bind("wl_data_device_manager", 3)
            self._selection = Selection(connection, manager, self._seat, DATA_DEVICE)
        connection.request(self._surface, 6)  # a commit without a buffer: the compositor replies with the size
        connection.roundtrip()

    def fileno(self) -> int:
        return self._connection.fileno()

    def take(self) -> None:
        while self._connection.pump(0):
            pass

    def draw(self) -> None:
        connection, size, turned = self._connection, self.size, self.turned
        buffer, memory = create_buffer(connection, self._shared, (size.width, size.height), size.width * 4, _XRGB)
        red, green, blue = self.pattern.colours[turned]
        with memory:
            memory[:] = bytes((blue, green, red, 255)) * size.area
        connection.hear(buffer, lambda *_: connection.request(buffer, 0))
        # The frame callback means that the picture is on the screen.
        connection.request(self._surface, 3, "n", connection.new(lambda *_: self.drawn(turned=turned)))
        connection.request(self._surface, 1, "oii", buffer, 0, 0)
        connection.request(self._surface, 2, "iiii", 0, 0, size.width, size.height)
        connection.request(self._surface, 6)

    def clipboard(self) -> str:
        kinds = [] if self._selection is None else self._selection.kinds()
        kind = next((one for one in TEXTS if one in kinds), None)
        if kind is not None and self._selection is not None:
            with suppress(HungError):
                return self._selection.read(kind).decode("utf-8", "replace")
        return ""

    def close(self) -> None:
        self._connection.close()

    def _of_shell(self, _: int, arguments: Arguments) -> None:
        self._connection.request(self._shell, 3, "u", arguments.number())

    def _of_top(self, opcode: int, arguments: Arguments) -> None:
        if opcode == 0:
            width, height = arguments.signed(), arguments.signed()
            self.size = Size(width, height) if width > 0 and height > 0 else self.size

    def _of_role(self, _: int, arguments: Arguments) -> None:
        self._connection.request(self._role, 4, "u", arguments.number())
        self.draw()

    def _of_seat(self, opcode: int, arguments: Arguments) -> None:
        """Take pointer and keyboard when they exist: GNOME 43 crashes if a client asks for one that does not exist."""
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
                    arguments.number()
                arguments.number()
                self._at = arguments.signed() / 256, arguments.signed() / 256
                self.tell("motion", x=self._at[0], y=self._at[1])
            case 1:
                self.tell("left")
            case 3:
                _, _, button, down = (arguments.number() for _ in range(4))
                name, (x, y) = _BUTTONS.get(button, str(button)), self._at
                self.tell("press" if down else "release", button=name, x=x, y=y)
            case 4:
                _, axis = arguments.number(), arguments.number()
                self._wheel[1 - axis] += arguments.signed()
            case 8:
                axis = arguments.number()
                self._wheel[3 - axis] += arguments.signed()
            case 5 if any(self._wheel):  # frame: the end of a group of events
                right, down_, steps_right, steps_down = self._wheel
                self._wheel = [0.0, 0.0, 0, 0]
                self.tell("wheel", right=steps_right or _sign(right), down=steps_down or _sign(down_))

    def _of_keyboard(self, opcode: int, arguments: Arguments) -> None:
        match opcode:
            case 0:
                text = take_keymap(arguments)
                if self._keymap is not None:
                    self._keymap.close()
                self._keymap = Keymap(text) if text else None
            case 1 | 2:
                self.tell("focus", here=opcode == 1)
            case 3 if self._keymap is not None:
                _, _, code, down = (arguments.number() for _ in range(4))
                keymap = self._keymap
                self.key(keymap.name(code), keymap.modifiers(), keymap.character(code), down=bool(down))
            case 4 if self._keymap is not None:
                arguments.number()
                held, latched, locked, group = (arguments.number() for _ in range(4))
                self._keymap.set_modifiers(held, latched, locked, group)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


if __name__ == "__main__":
    serve(WaylandWindow)
