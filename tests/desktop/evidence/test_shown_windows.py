"""Which windows opened and closed, as a receipt tells it."""

from agent.desktop.evidence.witness import WindowChanges
from agent.desktop.protocol.windows import Windows
from foundation.errors import EnvironmentLacksError


def test_windows_of_a_compositor_that_went_away_are_not_known_and_that_is_all_that_is_said() -> None:
    def gone() -> Windows:
        raise EnvironmentLacksError("sway tells no more of its windows.", "")

    shown = WindowChanges(gone)
    shown.begin()
    assert shown.changes() == []
    assert shown.remark.startswith("Windows are not known here")
