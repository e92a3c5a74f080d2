"""What a desktop writes about itself when it starts is no change of the run's; what is changed after that is."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from agent.core.changes import Change
from agent.desktop.changes import witness as witnesses
from agent.desktop.changes.witness import LinuxWitness, WindowChanges
from agent.desktop.guard.own_windows import serve_page
from agent.desktop.linux import bus
from agent.desktop.protocol.windows import Window, Windows
from foundation.errors import EnvironmentLacksError


class Silent:
    """A source that knows of nothing, or breaks."""

    remark = ""

    def __init__(self, broken_from: str = "") -> None:
        self._broken = broken_from

    def begin(self) -> None:
        self._say("begin")

    def changes(self) -> list[Change]:
        self._say("changes")
        return []

    def _say(self, what: str) -> None:
        if self._broken == what:
            raise RuntimeError(what)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / ".config").mkdir()
    table = {"starting_seconds": [1e6], "starting_age": 20.0}
    monkeypatch.setattr(witnesses, "entry", lambda _, name: table[name])
    monkeypatch.setattr(bus, "age", lambda _: 5.0)
    yield tmp_path


def opened(home: Path, source: Silent) -> LinuxWitness:
    witness = LinuxWitness({"HOME": str(home)}, lambda: None, source)
    witness.changes()
    return witness


def test_it_counts_as_having_been_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = opened(home, Silent())
    for name in ("plasmashellrc", "kdeglobals"):
        (home / ".config" / name).write_text("[Panels]\nHeight=30\n")
    assert [change.what for change in witness.changes()] == ["kde kdeglobals/Panels/Height"]
    monkeypatch.setattr(witnesses, "entry", lambda *_: [0.0])
    (home / ".config/plasmashellrc").write_text("[Panels]\nHeight=50\n")
    change = next(change for change in witness.changes() if "plasmashellrc" in change.what)
    assert (change.before, change.after) == ("30", "50")
    assert change.undo is not None and change.undo["before"] == "30"
    witness.close()


def test_on_a_desktop_that_was_there_for_long_nothing_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "age", lambda _: 60.0)
    witness = opened(home, Silent())
    (home / ".config/plasmashellrc").write_text("[Panels]\nHeight=30\n")
    assert [change.what for change in witness.changes()] == ["kde plasmashellrc/Panels/Height"]
    witness.close()


def test_a_session_of_unknown_age_is_no_young_one() -> None:
    assert bus.age({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/at/all"}) == float("inf")


def test_a_source_that_cannot_begin_tells_nothing_and_that_is_said(home: Path) -> None:
    witness = opened(home, Silent("begin"))
    (home / ".config/kdeglobals").write_text("[General]\nName=x\n")
    assert [change.what for change in witness.changes()] == ["kde kdeglobals/General/Name"]
    assert any("Silent failed" in remark for remark in witness.remarks)
    witness.close()


def test_a_source_that_breaks_later_does_not_cost_the_others(home: Path) -> None:
    witness = opened(home, Silent("changes"))
    (home / "new").touch()
    assert [change.what for change in witness.changes()] == ["~/new"]
    assert any("Silent failed" in remark for remark in witness.remarks)
    assert any("Windows are not known" in remark for remark in witness.remarks)
    witness.close()


def test_it_settles_when_nothing_was_written_for_a_moment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = opened(home, Silent())
    monkeypatch.setattr(witnesses, "_QUIET", 0.05)
    marks = [*range(8), *[8] * 10_000]
    monkeypatch.setattr(witness, "_mark", lambda: marks.pop(0))
    witness.settle(1000)
    assert marks[0] == 8
    witness.close()


def test_it_does_not_wait_for_a_program_that_never_stops_writing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = opened(home, Silent())
    monkeypatch.setattr(witnesses, "_QUIET", 1e6)
    monkeypatch.setattr(witness, "_mark", object)
    witness.settle(0.1)
    witness.close()


def test_windows_of_a_compositor_that_went_away_are_not_known_and_that_is_all_that_is_said() -> None:
    def gone() -> Windows:
        raise EnvironmentLacksError("sway tells no more of its windows.", "")

    shown = WindowChanges(gone)
    shown.begin()
    assert shown.changes() == []
    assert shown.remark.startswith("Windows are not known here")


class Shown:
    """Windows by their ids; those in `ordinary` are."""

    def __init__(self, there: dict[int, tuple[str, str]], ordinary: set[int]) -> None:
        self.there, self.ordinary = there, ordinary

    def windows(self) -> list[Window]:
        return [Window(number, title, app, 1) for number, (app, title) in self.there.items()]

    def is_ordinary(self, number: int) -> bool:
        return number in self.ordinary

    def close(self) -> None: ...


def test_a_browser_that_opened_with_our_page_is_no_change_of_the_run() -> None:
    there = {1: ("Thunar", "home")}
    changes = WindowChanges(lambda: cast("Windows", Shown(there, {1, 2, 3})))
    changes.begin()
    there[2] = ("Chromium", f"IT ASKS YOU · {serve_page()} - Chromium")
    assert changes.changes() == []
    there[3] = ("Chromium", "News - Chromium")
    assert [one.after for one in changes.changes()] == ["News - Chromium"] * 2


def test_a_new_window_counts_though_it_is_minimised_now_and_of_a_panel_only_its_other_windows() -> None:
    there, ordinary = {1: ("Xfce4-panel", "xfce4-panel"), 2: ("Thunar", "home")}, {2}
    changes = WindowChanges(lambda: cast("Windows", Shown(there, ordinary)))
    changes.begin()
    there |= {3: ("Xfce4-panel", "Panel 1"), 4: ("Xfce4-panel", "xfce4-panel"), 5: ("Thunar", "Desktop")}
    ordinary |= {3, 5}
    told = [("Xfce4-panel", "Panel 1"), ("Thunar", "Desktop")]
    assert [(one.what, one.after) for one in changes.changes() if one.kind == "window"] == told
    assert [one.what for one in changes.changes() if one.kind == "app"] == []
    ordinary.clear()
    assert [(one.what, one.after) for one in changes.changes() if one.kind == "window"] == told
