"""An answer that repeats one thing without end is read in time: a quadratic expression would never be done."""

import pytest

from agent.core.geometry import Size
from agent.families.registry import family_names, get_family
from foundation.chat_stream import Answer

FLOODS = [f"{piece * (100_000 // len(piece))}x" for piece in ("\n", " ", " \n", "<a>", "{", "Action: ")]


@pytest.mark.timeout(60)  # a quadratic one took four minutes for each of the first three
@pytest.mark.parametrize("name", family_names())
def test_a_flood_is_read(name: str) -> None:
    family = get_family(name)
    for flood in FLOODS:
        family.parse(Answer(flood), (Size(1000, 800),))
        if family.grounds:
            family.parse_grounding(Answer(flood), (Size(1000, 800),))
