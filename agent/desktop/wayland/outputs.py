"""The monitors of a Wayland desktop: position in logical units, pixel size and rotation."""

from dataclasses import dataclass

from agent.core.geometry import Region
from agent.desktop.wayland.wire import Arguments, Connection

_MANAGER = "zxdg_output_manager_v1"
_GET_OUTPUT = 1
#: wl_output's events, and the flag of its current mode.
_GEOMETRY, _MODE, _SCALE = 0, 1, 3
_CURRENT = 1


@dataclass(slots=True)
class _OutputEvents:
    """The events of one wl_output and its zxdg_output_v1."""

    at: tuple[int, int] = (0, 0)
    pixels: tuple[int, int] = (0, 0)
    scale: int = 1
    transform: int = 0
    logical_at: tuple[int, int] | None = None
    logical_size: tuple[int, int] | None = None
    number: int = 0

    def output(self, opcode: int, arguments: Arguments) -> None:
        """Handle an event of wl_output."""
        if opcode == _GEOMETRY:
            self.at = arguments.signed(), arguments.signed()
            for _ in range(3):
                arguments.signed()
            arguments.text(), arguments.text()
            self.transform = arguments.signed()
        elif opcode == _MODE and arguments.number() & _CURRENT:
            self.pixels = arguments.signed(), arguments.signed()
        elif opcode == _SCALE:
            self.scale = arguments.signed()

    def logical(self, opcode: int, arguments: Arguments) -> None:
        """Handle an event of zxdg_output_v1."""
        if opcode == 0:
            self.logical_at = arguments.signed(), arguments.signed()
        elif opcode == 1:
            self.logical_size = arguments.signed(), arguments.signed()


@dataclass(frozen=True, slots=True)
class Output:
    """One monitor."""

    number: int  # object ID of its wl_output
    region: Region  # in logical units, which the pointer uses too
    transform: int  # wl_output.transform: quarter turns, plus 4 if mirrored
    pixels: tuple[int, int] = (0, 0)  # its pixel size after rotation; zeros if unknown

    @property
    def words(self) -> str:
        """A description of its size, position, scale and rotation."""
        pixels = f", scale {self.pixels[0] / self.region.width:.3g}" if self.pixels[0] else ""
        turned = f", turned by {90 * (self.transform & 3)} degrees" if self.transform & 3 else ""
        mirrored = ", mirrored" if self.transform & 4 else ""
        return f"{self.region.size} at {self.region.left},{self.region.top}{pixels}{turned}{mirrored}"


def read_outputs(connection: Connection) -> list[Output]:
    """Return all active monitors, in the compositor's order. Raises EnvironmentLacksError."""
    found: list[_OutputEvents] = []
    manager = connection.bind(_MANAGER, 3) if connection.has(_MANAGER) else None
    for which in range(len(connection.globals.get("wl_output", []))):
        events = _OutputEvents()
        found.append(events)
        events.number = connection.bind("wl_output", 3, events.output, which)
        if manager is not None:
            connection.request(manager, _GET_OUTPUT, "no", connection.new(events.logical), events.number)
    connection.roundtrip()
    return [
        Output(events.number, region, events.transform, _turned(events))
        for events in found
        if (region := _region(events)) is not None
    ]


def _turned(events: _OutputEvents) -> tuple[int, int]:
    """Return the width and height in pixels after rotation."""
    width, height = events.pixels
    return (height, width) if events.transform % 2 else (width, height)


def _region(events: _OutputEvents) -> Region | None:
    """Return the region in logical units, or None if the monitor is off."""
    size = events.logical_size
    if size is None:
        width, height = _turned(events)
        size = width // events.scale, height // events.scale
    return Region(*(events.logical_at or events.at), *size) if min(size) > 0 else None
