"""The prompt texts of a family's publisher, as values with placeholders that a request fills in.

They are no part of this program: `agent.prompts` reads them from files that the person downloaded.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

#: A placeholder that a request fills in. It survives JSON encoding and `str.format`.
_MARK = re.compile(r"%%mai-agent:([a-z_]+)%%")
#: The part that asks for one point.
GROUNDING = "grounding"


def mark(hole: str) -> str:
    """Return a name's placeholder."""
    return f"%%mai-agent:{hole}%%"


@dataclass(frozen=True, slots=True)
class Published:
    """A family's published texts by the part of a request, and where they are from."""

    source: str  # "repository@commit"
    parts: Mapping[str, str]  # texts with marks
    phone: Sequence[str] = ()  # parts that describe a phone

    def fitting(self, *, reference: bool, tools: bool) -> "Published":
        """Return the parts that suit requests in this style. With tools, only the part for points is left."""
        if reference and not tools:
            return self
        fitting = {GROUNDING, *(() if tools else self.parts.keys() - set(self.phone))}
        return replace(self, parts={part: text for part, text in self.parts.items() if part in fitting})

    def fill(self, part: str, values: Mapping[str, str]) -> str | None:
        """Return the text of a part with its marks filled; None if the publisher's words have no such part."""
        text = self.parts.get(part)
        return None if text is None else _MARK.sub(lambda found: values[found[1]], text)


#: The record's name for this program's own words.
OURS = "ours"


def words_of(published: Published | None, *, points: bool = False) -> str:
    """Return the source of the words in requests for actions (or points), as records and lists show it."""
    parts = set() if published is None else {part for part in published.parts if (part == GROUNDING) == points}
    return f"published, {published.source}" if published and parts else OURS
