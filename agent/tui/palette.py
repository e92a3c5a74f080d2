"""What the command palette offers besides Textual's own: past instructions."""

from collections.abc import Callable, Sequence

from textual.command import DiscoveryHit, Hit, Hits, Provider


def past_instructions(texts: Sequence[str], use: Callable[[str], None]) -> type[Provider]:
    """A provider of past instructions, oldest first in `texts`; `use` takes the chosen one."""

    class PastInstructions(Provider):
        """Newest first."""

        async def discover(self) -> Hits:
            """All of them."""
            for text in reversed(texts):
                yield DiscoveryHit(text, lambda text=text: use(text))

        async def search(self, query: str) -> Hits:
            """Those that match."""
            matcher = self.matcher(query)
            for text in reversed(texts):
                if (score := matcher.match(text)) > 0:
                    yield Hit(score, matcher.highlight(text), lambda text=text: use(text))

    return PastInstructions
