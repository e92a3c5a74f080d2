"""Files that are replaced whole."""

import os
import stat
from pathlib import Path

import pytest

from foundation.errors import EnvironmentLacksError
from foundation.files import read_json_object, write_atomically, write_file


def test_a_file_is_replaced_whole_and_is_its_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("old")
    path.chmod(0o644)
    write_atomically(path, "new: ü")
    assert path.read_text(encoding="utf-8") == "new: ü"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_a_person_names_may_be_a_link_or_a_pipe_and_stays_one(tmp_path: Path) -> None:
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("far")
    write_file(link, "new")
    assert (tmp_path / "far").read_text() == "new"
    assert link.is_symlink()
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "new")
    assert os.read(reading, 10) == b"new"
    os.close(reading)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(EnvironmentLacksError, match="is a folder"):
        write_file(Path(), "new")


def test_what_cannot_be_written_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.mkdir()
    with pytest.raises(OSError):
        write_atomically(path, b"new")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "state.json", b"new")


def test_a_draft_that_a_killed_writer_left_is_written_over(tmp_path: Path) -> None:
    (tmp_path / f".state.json.{os.getpid()}").write_text("half of something longer than the new one")
    write_atomically(tmp_path / "state.json", "new")
    assert (tmp_path / "state.json").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_in_the_drafts_place_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("somebody's")
    (tmp_path / f".state.json.{os.getpid()}").symlink_to(other)
    with pytest.raises(OSError):
        write_atomically(tmp_path / "state.json", "new")
    assert other.read_text() == "somebody's"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"a": 1'])
def test_what_holds_no_json_object_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    assert read_json_object(tmp_path / "x.json") == {}
    assert read_json_object(tmp_path / "missing.json") == {}


def test_a_json_object_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": [1]}')
    assert read_json_object(tmp_path / "x.json") == {"a": [1]}
