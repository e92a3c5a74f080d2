"""What can be undone, and in which order; how things stand is made up here."""

import os
import stat
from pathlib import Path
from urllib.parse import quote, unquote

from hypothesis import given
from hypothesis import strategies as st

from agent.core.changes import Change
from agent.desktop.changes.entries import Entry
from agent.desktop.changes.files import compare
from agent.evidence.undo_plan import NotKnownError, leaves_something, plan, relocated


def quoted(path):
    return quote(os.fsencode(path))


def made(path, folder=False):
    undo = {"store": "file", "how": "made", "path": quoted(path), "folder": folder, "state": {}}
    return Change("file", path, None, "a folder" if folder else "3 bytes", undo)


def moved(path, to, folder=False):
    undo = {
        "store": "file",
        "how": "moved",
        "path": quoted(path),
        "folder": folder,
        "to": quote(os.fsencode(to)),
    }
    return Change("file", path, "3 bytes", f"moved to {to}", undo)


def gone(path, folder=False, content=None):
    undo = {"store": "file", "how": "gone", "path": quoted(path), "folder": folder, "content": content}
    return Change("file", path, "3 bytes", None, undo)


ONE = {"type": "i", "value": 1}
SETTING = Change("setting", "dconf /a/b", "1", "2", {"store": "dconf", "key": "/a/b", "before": ONE, "after": None})
WINDOW = Change("window", "Firefox", None, "a page")


def order(changes, standing=lambda undo: "as_left"):
    return [item.change.what for item in plan(changes, standing) if item.verdict == "undo"]


def test_what_stands_as_the_run_left_it_is_undone():
    [item] = plan([SETTING], lambda undo: "as_left")
    assert (item.verdict, item.words) == ("undo", "set to 1")


def test_settings_that_xfces_daemon_copies_are_put_back_before_their_copies():
    undo = {"store": "xfconf", "key": ["xsettings", "/Net/ThemeName"], "before": ONE, "after": None}
    theme = Change("setting", "xfconf xsettings /Net/ThemeName", "1", "2", undo)
    assert order([SETTING, theme]) == [theme.what, SETTING.what]


def test_what_is_as_it_was_already_needs_nothing():
    [item] = plan([SETTING], lambda undo: "as_before")
    assert item.verdict == "nothing_to_do"
    assert not leaves_something(item)


def test_what_something_else_changed_since_is_refused():
    [item] = plan([SETTING], lambda undo: "otherwise")
    assert item.verdict == "changed_since"
    assert leaves_something(item)


def test_windows_are_said_to_stay_and_count_as_no_failure():
    [item] = plan([WINDOW], lambda undo: "as_left")
    assert item.verdict == "cannot"
    assert not leaves_something(item)


def test_one_that_cannot_be_told_does_not_hold_up_the_others():
    def standing(undo):
        if undo["store"] == "dconf":
            raise NotKnownError("no bus")
        return "as_left"

    items = plan([SETTING, made("/h/a")], standing)
    assert [(item.verdict, item.change.kind) for item in items] == [("undo", "file"), ("cannot", "setting")]


def test_a_folder_goes_to_the_trash_once_with_what_is_in_it():
    assert order([made("/h/a", folder=True), made("/h/a/b"), made("/h/c")]) == ["/h/a", "/h/c"]


def test_a_folder_stays_when_something_in_it_changed_since():
    def standing(undo):
        return "otherwise" if undo["path"] == "/h/a/b" else "as_left"

    assert order([made("/h/a", folder=True), made("/h/a/b"), made("/h/a/c")], standing) == ["/h/a/c"]


def test_a_folder_stays_that_holds_what_cannot_be_moved_back():
    def standing(undo):
        return "otherwise" if undo["how"] == "moved" else "as_left"

    assert order([made("/h/a", folder=True), moved("/h/x", "/h/a/x")], standing) == []


def test_what_was_moved_into_a_new_folder_comes_out_before_the_folder_goes():
    assert order([made("/h/a", folder=True), moved("/h/x", "/h/a/x")]) == ["/h/x", "/h/a"]


def test_a_folder_is_made_again_before_what_was_in_it():
    changes = [
        gone("/h/a/b/c", content="x"),
        moved("/h/a/d", "/h/d"),
        gone("/h/a/b", folder=True),
        gone("/h/a", folder=True),
    ]
    assert order(changes) == ["/h/a", "/h/a/b", "/h/a/d", "/h/a/b/c"]


TREE = {"a", "a/a", "a/b", "b", "b/a", "b/a/a", "c"}


@given(st.data())
def test_whatever_was_moved_comes_back_to_where_it_was(data):
    """Moves of any nesting, as the witness tells them, are undone in an order that works."""
    before = {path: Entry(stat.S_IFDIR, number, 0, 0) for number, path in enumerate(sorted(TREE))}
    now = dict(before)
    for number in range(data.draw(st.integers(0, 5))):
        source = data.draw(st.sampled_from(sorted(now)))
        parent = data.draw(st.sampled_from(["", *(f"{path}/" for path in sorted(now))]))
        target = f"{parent}{data.draw(st.sampled_from(['x', f'y{number}']))}"
        if target not in now and not f"{target}/".startswith(f"{source}/"):
            now = {rename(path, source, target): entry for path, entry in now.items()}
    differences = compare(before, now, {})
    assert not differences.gone and not differences.made
    changes = [moved(f"/{path}", f"/{to}", folder=True) for path, (to, _) in differences.moved.items()]
    items = plan(changes, lambda undo: "as_left")
    while items:
        first, *items = items
        source, target = unquote(first.undo["to"])[1:], unquote(first.undo["path"])[1:]
        assert source in now and target not in now
        now = {rename(path, source, target): entry for path, entry in now.items()}
        items = relocated(items, first)
    assert now == before


def rename(path, source, target):
    return target + path[len(source) :] if f"{path}/".startswith(f"{source}/") else path


def test_names_that_are_no_text_are_found_again():
    name = os.fsdecode(b"/h/\xff\x1b[31m\n")
    assert order([made(name)]) == [name]
    assert Path(name).name
