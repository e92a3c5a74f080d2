"""What can be undone, and in which order; how things stand is made up here."""

import os
import stat
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.changes import CannotPutBackError, Change
from agent.desktop.changes.entries import Entry
from agent.desktop.changes.files import compare
from agent.evidence.undo import plan, relocated


def changed(how, path, after, folder=False, **more):
    undo = {"store": "file", "how": how, "path": quote(os.fsencode(path)), "folder": folder} | more
    return Change("file", path, None if how == "made" else "3 bytes", after, undo)


def made(path, folder=False):
    return changed("made", path, "a folder" if folder else "3 bytes", folder, state={})


def moved(path, to, folder=False):
    return changed("moved", path, f"moved to {to}", folder, to=quote(os.fsencode(to)))


def gone(path, folder=False, content=None):
    return changed("gone", path, None, folder, content=content)


ONE = {"type": "i", "value": 1}
SETTING = Change("setting", "dconf /a/b", "1", "2", {"store": "dconf", "key": "/a/b", "before": ONE, "after": None})
WINDOW = Change("window", "Firefox", None, "a page")


def order(changes, standing=lambda undo: "as_left"):
    return [item.change.what for item in plan(changes, standing) if item.verdict == "undo"]


@pytest.mark.parametrize(
    ("change", "stands", "verdict", "leaves"),
    [
        (SETTING, "as_left", "undo", False),
        (SETTING, "as_before", "nothing_to_do", False),
        (SETTING, "otherwise", "changed_since", True),
        (WINDOW, "as_left", "cannot", False),
    ],
)
def test_what_is_done_follows_from_how_a_thing_stands(change, stands, verdict, leaves):
    [item] = plan([change], lambda undo: stands)
    assert (item.verdict, item.leaves_something) == (verdict, leaves)
    assert item.words == "set to 1" or verdict != "undo"


def test_settings_that_xfces_daemon_copies_are_put_back_before_their_copies():
    undo = {"store": "xfconf", "key": ["xsettings", "/Net/ThemeName"], "before": ONE, "after": None}
    theme = Change("setting", "xfconf xsettings /Net/ThemeName", "1", "2", undo)
    assert order([SETTING, theme]) == [theme.what, SETTING.what]


def test_one_that_cannot_be_told_does_not_hold_up_the_others():
    def standing(undo):
        if undo["store"] == "dconf":
            raise CannotPutBackError("no bus")
        return "as_left"

    items = plan([SETTING, made("/h/a")], standing)
    assert [(item.verdict, item.change.kind) for item in items] == [("undo", "file"), ("cannot", "setting")]


NEW, INSIDE = made("/h/a", folder=True), moved("/h/x", "/h/a/x")


@pytest.mark.parametrize(
    ("changes", "changed_since", "undone"),
    [
        ([NEW, made("/h/a/b"), made("/h/c")], "", ["/h/a", "/h/c"]),  # with what is in it
        ([NEW, made("/h/a/b"), made("/h/a/c")], "/h/a/b", ["/h/a/c"]),  # something in it is another's by now
        ([NEW, INSIDE], "/h/x", []),  # it holds what cannot be moved back
        ([NEW, INSIDE, made("/h/a/b")], "/h/x", ["/h/a/b"]),  # and the rest of it goes by itself
        ([NEW, INSIDE], "", ["/h/x", "/h/a"]),  # what was moved into it comes out before it goes
        (
            [gone("/h/a/b/c", content="x"), moved("/h/a/d", "/h/d"), gone("/h/a/b", True), gone("/h/a", True)], "",
            ["/h/a", "/h/a/b", "/h/a/d", "/h/a/b/c"],  # a folder is made again before what was in it
        ),
    ],
)  # fmt: skip
def test_a_folder_goes_and_comes_with_what_is_in_it(changes, changed_since, undone):
    assert order(changes, lambda undo: "otherwise" if undo["path"] == changed_since else "as_left") == undone


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
