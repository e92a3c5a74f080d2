"""What is put back in the home of a sandbox goes nowhere else, whatever links its programs lay there."""

import os
from pathlib import Path

import pytest

from agent.core.changes import CannotPutBackError
from agent.desktop.changes import put_back as module
from agent.desktop.changes.put_back import confined_path, move_to_trash, put_back, standing
from agent.desktop.programs import MARK


@pytest.fixture
def person(tmp_path):
    """A folder of the person's, outside of the sandbox's home."""
    folder = tmp_path / "person"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(tmp_path):
    home = tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    (home / "Documents").mkdir()
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), MARK: "a-test"}


def gone(path, content="evil\n"):
    return {"store": "file", "how": "gone", "path": str(path), "folder": False, "content": content}


def test_a_deleted_file_is_not_written_where_a_link_leads(environ, person):
    documents = Path(environ["HOME"], "Documents")
    documents.rmdir()
    documents.symlink_to(person)
    with pytest.raises(CannotPutBackError):
        put_back(environ, gone(documents / "autostart.desktop"))
    assert list(person.iterdir()) == []


def test_a_file_outside_of_the_home_is_not_written(environ, person):
    for path in (person / "evil", f"{environ['HOME']}/../person/evil"):
        with pytest.raises(CannotPutBackError):
            put_back(environ, gone(path))
    assert list(person.iterdir()) == []


def test_a_folder_is_not_made_nor_anything_moved_where_a_link_leads(environ, person):
    home = Path(environ["HOME"])
    (home / "link").symlink_to(person)
    with pytest.raises(CannotPutBackError):
        put_back(environ, {"store": "file", "how": "gone", "path": f"{home}/link/new", "folder": True})
    (home / "Documents/a").write_text("a")
    with pytest.raises(CannotPutBackError):
        moved = {"store": "file", "how": "moved", "path": f"{home}/link/a", "to": f"{home}/Documents/a"}
        put_back(environ, moved | {"folder": False, "inode": 1})
    assert list(person.iterdir()) == []


@pytest.mark.parametrize("planted", [".local", ".local/share/Trash", ".local/share/Trash/files"])
def test_a_trash_that_leads_elsewhere_gets_nothing(environ, person, planted):
    home = Path(environ["HOME"])
    (home / planted).parent.mkdir(parents=True, exist_ok=True)
    (home / planted).symlink_to(person)
    (home / "evil.desktop").write_text("evil")
    with pytest.raises(OSError):
        move_to_trash(environ, str(home / "evil.desktop"))
    assert [path.name for path in person.rglob("evil*")] == []
    assert (home / "evil.desktop").exists()


def test_a_settings_file_of_kde_is_not_written_where_a_link_leads(environ, person):
    home = Path(environ["HOME"])
    (home / ".config").rmdir()
    (home / ".config").symlink_to(person)
    (person / "kdeglobals").write_text("[General]\nKey=mine\n")
    undo = {"store": "kde", "key": ["kdeglobals", ["General"], "Key"], "before": "theirs", "after": "mine"}
    with pytest.raises(CannotPutBackError):
        put_back(environ, undo)
    assert "mine" in (person / "kdeglobals").read_text()


def test_a_persons_file_is_not_copied_into_the_sandbox(environ, person):
    (person / "secret").write_text("password=hunter2\n")
    (Path(environ["HOME"]) / ".config/kdeglobals").symlink_to(person / "secret")
    undo = {"store": "kde", "key": ["kdeglobals", ["General"], "Key"], "before": "a", "after": None}
    with pytest.raises(CannotPutBackError, match="link"):
        put_back(environ, undo)
    assert (Path(environ["HOME"]) / ".config/kdeglobals").is_symlink()


def test_what_no_link_is_in_the_way_of_is_put_back(environ):
    home = Path(environ["HOME"])
    assert standing(environ, gone(home / "Documents/a.txt", "a\n")) == "as_left"
    put_back(environ, gone(home / "Documents/a.txt", "a\n"))
    assert (home / "Documents/a.txt").read_text() == "a\n"
    assert standing(environ, gone(home / "Documents/a.txt", "a\n")) == "as_before"
    where = move_to_trash(environ, str(home / "Documents/a.txt"))
    assert where == f"{home}/.local/share/Trash/files/a.txt"
    assert Path(where).read_text() == "a\n"
    assert f"Path={home}/Documents/a.txt" in (home / ".local/share/Trash/info/a.txt.trashinfo").read_text()


def test_in_a_persons_own_home_links_are_followed_as_they_are(environ, person):
    own = {name: value for name, value in environ.items() if name != MARK}
    link = Path(own["HOME"], "link")
    link.symlink_to(person)
    put_back(own, gone(link / "a.txt", "a\n"))
    assert (person / "a.txt").read_text() == "a\n"


def test_a_link_that_comes_later_does_not_lead_away(environ, person):
    documents = Path(environ["HOME"], "Documents")
    with confined_path(environ, str(documents / "a")) as place:
        documents.rename(documents.with_name("Elsewhere"))
        documents.symlink_to(person)
        Path(place).write_text("a")
    assert list(person.iterdir()) == []
    assert [path.name for path in documents.with_name("Elsewhere").iterdir()] == ["a"]


def test_a_link_that_comes_at_the_last_moment_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        module._at(str(tmp_path / "link"), os.O_WRONLY | os.O_TRUNC, lambda number: os.write(number, b"lost"))
    assert (tmp_path / "secret").read_text() == "kept"
