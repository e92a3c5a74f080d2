"""The monitors of a Wayland desktop: position in logical units, pixel size and rotation."""

from dataclasses import dataclass

from agent.core.geometry import Region
from agent.desktop.wayland.wire import Arguments, Connection

_MANAGER = "zxdg_output_manager_v1"
_GET_OUTPUT = 1
#: wl_output's events, and the flag of its current mode.
_GEOMETRY, _MODE = 0, 1
_CURRENT = 1


@dataclass(slots=True)
class Output:
    """One monitor, as its wl_output and zxdg_output_v1 describe it."""

    number: int = 0  # object ID of its wl_output
    at: tuple[int, int] = (0, 0)  # in logical units, which the pointer uses too
    size: tuple[int, int] = (0, 0)  # in logical units; zeros if it is off
    pixels: tuple[int, int] = (0, 0)  # its pixel size after rotation; zeros if unknown
    transform: int = 0  # wl_output.transform: quarter turns, plus 4 if mirrored

    @property
    def region(self) -> Region:
        """Its rectangle in logical units."""
        return Region(*self.at, *self.size)

    @property
    def words(self) -> str:
        """A description of its size, position, scale and rotation."""
        pixels = f", scale {self.pixels[0] / self.size[0]:.3g}" if self.pixels[0] else ""
        turned = f", turned by {90 * (self.transform & 3)} degrees" if self.transform & 3 else ""
        mirrored = ", mirrored" if self.transform & 4 else ""
        return f"{self.region.size} at {self.at[0]},{self.at[1]}{pixels}{turned}{mirrored}"

    def of_output(self, opcode: int, arguments: Arguments) -> None:
        """Handle an event of wl_output."""
        if opcode == _GEOMETRY:
            for _ in range(5):
                arguments.signed()
            arguments.text(), arguments.text()
            self.transform = arguments.signed()
        elif opcode == _MODE and arguments.number() & _CURRENT:
            width, height = arguments.signed(), arguments.signed()
            self.pixels = (height, width) if self.transform % 2 else (width, height)

    def of_logical(self, opcode: int, arguments: Arguments) -> None:
        """Handle an event of zxdg_output_v1."""
        if opcode == 0:
            self.at = arguments.signed(), arguments.signed()
        elif opcode == 1:
            self.size = arguments.signed(), arguments.signed()


def read_outputs(connection: Connection) -> list[Output]:
    """Return all active monitors, in the compositor's order. Raises EnvironmentLacksError."""
    found: list[Output] = []
    manager = connection.bind(_MANAGER, 3)
    for which in range(len(connection.globals.get("wl_output", []))):
        one = Output()
        found.append(one)
        one.number = connection.bind("wl_output", 3, one.of_output, which)
        connection.request(manager, _GET_OUTPUT, "no", connection.new(one.of_logical), one.number)
    connection.roundtrip()
    return [one for one in found if min(one.size) > 0]
