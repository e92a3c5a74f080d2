"""What the command palette offers besides Textual's own: past instructions."""

from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

if TYPE_CHECKING:
    from agent.tui.screens.run import RunScreen


def past_instructions(screen: "RunScreen") -> type[Provider]:
    """A provider that puts a past instruction on the line of a screen."""

    class PastInstructions(Provider):
        """Newest first."""

        async def discover(self) -> Hits:
            """All of them."""
            for text in reversed(screen.past):
                yield DiscoveryHit(text, lambda text=text: screen.use_instruction(text))

        async def search(self, query: str) -> Hits:
            """Those that match."""
            matcher = self.matcher(query)
            for text in reversed(screen.past):
                if (score := matcher.match(text)) > 0:
                    yield Hit(score, matcher.highlight(text), lambda text=text: screen.use_instruction(text))

    return PastInstructions
