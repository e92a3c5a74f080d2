"""A drawn desktop, and a screen that shows a film of it against a clock that stands until someone sleeps."""

from collections.abc import Callable

from PIL import Image, ImageDraw

from agent.core.geometry import Size, Viewport
from agent.screen.capture import Frame

SIZE = (640, 480)
CARET, CLOCK, BOX = (200, 170), (580, 8), (130, 300)


def draw(
    *,
    window: tuple[int, int] = (100, 80),
    caret: bool = False,
    clock: str = "12:00",
    ticked: bool = False,
    shade: int = 230,
) -> Image.Image:
    """A window with a text field and a check box, and a clock in the panel."""
    image = Image.new("RGB", SIZE, (40, 90, 120))
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, SIZE[0], 24), fill=(20, 20, 20))
    pen.text(CLOCK, clock, fill="white")
    left, top = window
    pen.rectangle((left, top, left + 320, top + 280), fill=(shade, shade, shade), outline="black")
    pen.rectangle((left + 20, top + 80, left + 300, top + 110), fill="white", outline="grey")
    if caret:
        pen.line((*CARET, CARET[0], CARET[1] + 14), fill="black")
    pen.rectangle((*BOX, BOX[0] + 13, BOX[1] + 13), fill="white", outline="black")
    if ticked:
        pen.line((BOX[0] + 3, BOX[1] + 6, BOX[0] + 6, BOX[1] + 10), fill="black", width=2)
        pen.line((BOX[0] + 6, BOX[1] + 10, BOX[0] + 11, BOX[1] + 3), fill="black", width=2)
    return image


class FilmScreen:
    """A `Screen` whose picture is a function of the time since it was made; `sleep` is what lets time pass."""

    def __init__(self, film: Callable[[float], Image.Image]) -> None:
        self._film = film
        self.now = 1000.0
        self.looks = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def grab(self) -> Frame:
        self.looks += 1
        image = self._film(round(self.now - 1000.0, 6))
        return Frame(image, Viewport.of_image(Size(*image.size)), self.now)

    def close(self) -> None:
        """Nothing to close."""
