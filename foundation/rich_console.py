"""Rich's console with untrusted text escaped by `foreign_text`."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from foundation.foreign_text import harmless


class GatedConsole(Console):
    """A console in which only Rich controls the terminal: texts are escaped, links are dropped."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render segments and escape their text."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
                continue
            style = segment.style
            yield Segment(harmless(segment.text), style.update_link(None) if style and style.link else style)
