"""Files of a home, watched without a desktop: what is told of them, within which limits."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.desktop.changes import files as homes
from agent.desktop.changes.files import Files


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[..., "Watched"]]:
    opened: list[Watched] = []

    def begin(*without: Path) -> Watched:
        opened.append(Watched(tmp_path, without))
        return opened[-1]

    yield begin
    for watched in opened:
        watched.files.close()


class Watched:
    def __init__(self, root: Path, without: tuple[Path, ...] = ()) -> None:
        self.root = root
        self.files = Files(root, without, lambda: False)
        self.files.begin()

    def told(self) -> dict[str, tuple[str | None, str | None]]:
        return {change.what.removeprefix("~/"): (change.before, change.after) for change in self.files.changes()}


def test_what_went_back_to_where_it_was_is_no_change(tmp_path, watch):
    (tmp_path / "a").write_text("one")
    watched = watch()
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "c").mkdir()
    assert set(watched.told()) == {"a", "c"}
    (tmp_path / "b").rename(tmp_path / "a")
    (tmp_path / "c").rmdir()
    assert watched.told() == {}


def test_a_file_saved_by_way_of_another_is_changed_and_the_other_is_not_told(tmp_path, watch):
    (tmp_path / "a").write_text("one")
    watched = watch()
    (tmp_path / ".goutputstream-X1").write_text("three")
    (tmp_path / ".goutputstream-X1").rename(tmp_path / "a")
    assert watched.told() == {"a": ("3 bytes", "5 bytes")}


def test_a_folder_that_moved_is_told_once_and_what_changed_in_it_besides(tmp_path, watch):
    (tmp_path / "a/b").mkdir(parents=True)
    for name in ("a/one", "a/b/two", "a/b/three"):
        (tmp_path / name).write_text(name)
    watched = watch()
    (tmp_path / "a").rename(tmp_path / "z")
    (tmp_path / "z/b/two").write_text("longer than it was")
    (tmp_path / "z/b/three").unlink()
    (tmp_path / "z/b/four").write_text("4")
    assert watched.told() == {
        "a": ("a folder", "moved to ~/z"),
        "z/b/two": ("7 bytes", "18 bytes"),
        "a/b/three": ("9 bytes", None),
        "z/b/four": (None, "1 byte"),
    }


def test_a_file_that_got_the_number_of_a_deleted_one_is_not_taken_for_it(tmp_path, watch):
    (tmp_path / "a").write_text("one")
    watched = watch()
    (tmp_path / "a").unlink()
    (tmp_path / "b").write_text("two")
    assert watched.told() == {"a": ("3 bytes", None), "b": (None, "3 bytes")}


def test_hidden_folders_of_programs_are_left_out_and_a_persons_hidden_files_are_told(tmp_path, watch):
    for name in (".mozilla", ".cache", ".config/autostart", ".config/Thunar", ".local/share/applications"):
        (tmp_path / name).mkdir(parents=True)
    watched = watch()
    for name in (
        ".mozilla/x",
        ".cache/x",
        ".config/Thunar/uca.xml",
        ".local/share/recently-used.xbel",
        ".xsession-errors",
    ):
        (tmp_path / name).write_text("x")
    for name in (".bashrc", ".config/autostart/x.desktop", ".config/app.json", ".local/share/applications/y.desktop"):
        (tmp_path / name).write_text("x")
    (tmp_path / ".config/new").mkdir()
    (tmp_path / ".config/new/app.conf").write_text("x")
    assert set(watched.told()) == {
        ".bashrc",
        ".config/autostart/x.desktop",
        ".config/app.json",
        ".local/share/applications/y.desktop",
        ".config/new/app.conf",
    }


def test_the_folder_that_the_run_is_recorded_in_does_not_count(tmp_path, watch):
    (tmp_path / "runs/one").mkdir(parents=True)
    watched = watch(tmp_path / "runs/one")
    (tmp_path / "runs/one/steps.jsonl").write_text("{}")
    (tmp_path / "runs/two").write_text("x")
    assert set(watched.told()) == {"runs/two"}


def test_links_are_not_followed(tmp_path, watch):
    (tmp_path / "far").symlink_to("/")
    (tmp_path / "here").symlink_to("a")
    watched = watch()
    (tmp_path / "here").unlink()
    (tmp_path / "here").symlink_to("b")
    (tmp_path / "new").symlink_to("/etc")
    assert watched.told() == {"here": ("a link (sha256 ca978112)", "a link (sha256 3e23e816)"), "new": (None, "a link")}


def test_where_there_is_too_much_to_remember_it_is_still_told_what_happened(tmp_path, watch, monkeypatch):
    monkeypatch.setattr(homes, "_MOST_ENTRIES", 4)
    (tmp_path / "deep").mkdir()
    for name in ("changed", "moved", "deleted", "other", "more"):
        (tmp_path / "deep" / name).write_text(name)
    watched = watch()
    (tmp_path / "deep/changed").write_text("x")
    (tmp_path / "deep/moved").rename(tmp_path / "away")
    (tmp_path / "deep/deleted").unlink()
    (tmp_path / "deep/made").write_text("x")
    assert watched.told() == {
        "deep/changed": ("a file", "1 byte"),
        "deep/moved": ("5 bytes", "moved to ~/away"),
        "deep/deleted": ("a file", None),
        "deep/made": (None, "1 byte"),
    }
    (tmp_path / "deep").rename(tmp_path / "elsewhere")
    assert "elsewhere/other" not in watched.told()


def test_more_changes_than_a_receipt_holds_are_counted(tmp_path, watch):
    watched = watch()
    for number in range(2020):
        (tmp_path / f"{number}").write_text("x")
    changes = watched.files.changes()
    assert len(changes) == 2001
    assert changes[-1].after == "20 more files changed; they are not listed and cannot be undone"


def test_when_the_kernel_could_not_keep_up_everything_is_looked_at(tmp_path, watch, monkeypatch):
    (tmp_path / "a").write_text("one")
    watched = watch()
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit // 2 + 10):
        (tmp_path / f"x{number % 2}").touch()
        (tmp_path / f"x{number % 2}").unlink()
    (tmp_path / "b").write_text("late")
    (tmp_path / "a").unlink()
    assert watched.told() == {"a": ("3 bytes", None), "b": (None, "4 bytes")}


def test_a_system_that_lets_nobody_watch_is_told_and_costs_nothing_else(tmp_path, watch, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(homes.INotify, "add_watch", refuse)
    watched = watch()
    assert "max_user_watches" in watched.files.remark
    assert watched.told() == {}


def test_names_that_are_no_text_are_told(tmp_path, watch):
    watched = watch()
    name = os.fsdecode(b"na\x1b[31mme\n\xe2\x80\xae\xff")
    (tmp_path / name).write_text("x")
    assert set(watched.told()) == {name}
