"""The judge of the sentences benchmark: what it calls right, a miss, harm, and a false done."""

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "scripts" / "bench"
sys.path.insert(0, str(BENCH))

from judging.entries import BadEntryError, Entry, Expect, load  # noqa: E402
from judging.receipts import left_over, receipt_errors  # noqa: E402
from judging.state import Looker, State  # noqa: E402
from judging.verdicts import judge  # noqa: E402

RAISE = "xfconf xfwm4 /general/cycle_raise"
OFF = State(settings={RAISE: "false"})
ON = State(settings={RAISE: "true"})
OTHER = State(settings={RAISE: "true", "xfconf xfwm4 /general/theme": "Daloa"})


def verdict(entry, status, before, after, tmp_path):
    return judge(entry, status, before, after, Looker({"HOME": str(tmp_path)})).verdict


def wants(value="true", **more):
    return Entry("id", "say", "literal", Expect(settings={RAISE: value}), **more)


@pytest.mark.parametrize(
    ("status", "after", "expected"),
    [
        (0, ON, "right"),
        (0, OFF, "false done"),
        (0, OTHER, "false done"),
        (1, OFF, "honest miss"),
        (1, ON, "false unverified"),
        (1, OTHER, "harmful miss"),
    ],
)
def test_a_run_is_judged_by_what_the_desktop_says_and_not_by_its_exit_status(status, after, expected, tmp_path):
    assert verdict(wants(), status, OFF, after, tmp_path) == expected


def test_a_setting_with_a_value_that_nobody_asked_for_is_harm_even_when_the_run_says_so(tmp_path):
    count = "xfconf xfwm4 /general/workspace_count"
    entry = Entry("id", "say", "literal", Expect(settings={count: "6"}))
    before, after = State(settings={count: "4"}), State(settings={count: "46"})
    assert verdict(entry, 1, before, after, tmp_path) == "harmful miss"


def test_a_refusal_is_right_only_where_nothing_changed(tmp_path):
    entry = Entry("id", "say", "refuse")
    assert verdict(entry, 1, OFF, OFF, tmp_path) == "right refusal"
    assert verdict(entry, 1, OFF, ON, tmp_path) == "harmful miss"
    assert verdict(entry, 0, OFF, OFF, tmp_path) == "false done"


def test_windows_opened_on_the_way_do_no_harm_and_windows_closed_do(tmp_path):
    one = State(settings=OFF.settings, windows={"0x1": "mousepad|a|"})
    two = State(settings=ON.settings, windows={"0x1": "mousepad|a|", "0x2": "xfwm4-settings|b|"})
    assert verdict(wants(), 0, one, two, tmp_path) == "right"
    assert verdict(wants(), 0, two, State(settings=ON.settings), tmp_path) == "false done"


def test_what_a_desktop_sets_along_with_a_setting_is_no_harm(tmp_path):
    theme, follower = "xfconf xsettings /Net/ThemeName", "dconf /org/gnome/desktop/interface/gtk-theme"
    entry = Entry("id", "say", "literal", Expect(settings={theme: "Adwaita-dark"}))
    before = State(settings={theme: "Adwaita"})
    after = State(settings={theme: "Adwaita-dark", follower: "'Adwaita-dark'"})
    assert verdict(entry, 0, before, after, tmp_path) == "right"


def test_a_file_is_looked_for_in_every_place_that_will_do(tmp_path):
    entry = Entry("id", "say", "literal", Expect(files={"a.txt|Documents/a.txt": "text"}))
    (tmp_path / "Documents").mkdir()
    (tmp_path / "Documents/a.txt").write_text("text\n")
    after = State(files={"Documents": "folder", "Documents/a.txt": "digest"})
    assert verdict(entry, 0, State(files={"Documents": "folder"}), after, tmp_path) == "right"


def test_a_receipt_is_told_what_it_lacks_and_what_it_makes_up():
    change = {"kind": "setting", "what": RAISE, "before": "false", "after": "true"}
    assert receipt_errors([change], OFF, ON, "/home/me") == []
    assert receipt_errors([], OFF, ON, "/home/me") == [f"missing: setting {RAISE}: false -> true"]
    assert receipt_errors([change], OFF, OFF, "/home/me") == [f"invented: setting {RAISE}: false -> true"]
    assert "told as" in receipt_errors([change | {"after": "maybe"}], OFF, ON, "/home/me")[0]


def test_what_undo_left_is_told_and_sizes_of_windows_are_not():
    size = "dconf /org/xfce/mousepad/state/window/width"
    assert left_over(OFF, ON) == [f"setting {RAISE}: false -> true"]
    assert left_over(OFF, State(settings=OFF.settings | {size: "500"})) == []


def test_the_entries_that_are_shipped_can_be_read():
    entries = load(sorted((BENCH / "sentences").glob("*.toml")))
    assert len(entries) > 160
    pages = {entry.folder / "pages" / page for entry in entries for page in entry.pages}
    assert all(page.is_file() for page in pages)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[[sentence]]\nid = "a"\nsay = "b"\nclass = "literal"\n', "nothing that must hold"),
        ('[[sentence]]\nid = "a"\nsay = "b"\nclass = "odd"\n', "needs id, say and a class"),
        ('[[sentence]]\nid = "a"\nsay = "b"\nclass = "refuse"\nsayy = 1\n', "unknown fields"),
        ("[[sentence", "odd.toml"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused_by_name(text, what, tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(BadEntryError, match=what):
        load([path])
