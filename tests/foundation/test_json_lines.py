"""Files of JSON objects: what a kill leaves, what is not ours, and who may write."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import JsonLines


def opened(path: Path, there: list[str] | None = None) -> JsonLines:
    there = [] if there is None else there
    return JsonLines(path, "an answer", lambda line: there.append(line["id"]), "batch")


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_bytes().splitlines()]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 400), st.booleans())
def test_a_file_cut_off_anywhere_keeps_every_whole_line_and_takes_more(
    tmp_path: Path, missing: int, zeros: bool
) -> None:
    path = tmp_path / "a.jsonl"
    path.unlink(missing_ok=True)
    with opened(path) as file:
        for number in range(4):
            file.append({"id": f"r{number}", "text": f'"quoted" and\nbroken ä {number}', "more": {"n": 1}})
    whole = path.read_bytes()
    kept = whole[: max(0, len(whole) - missing)]
    path.write_bytes(kept + (b"\0" * 7 if zeros and missing and not kept.endswith(b"\n") else b""))
    complete = [json.loads(line)["id"] for line in kept.split(b"\n")[:-1]]
    there: list[str] = []
    with opened(path, there) as file:
        assert there[: len(complete)] == complete
        assert len(there) <= len(complete) + 1  # the last line, if only its end is missing
        file.append({"id": "next"})
    assert ids(path) == [*there, "next"]


@pytest.mark.parametrize("newline", [False, True])
def test_a_line_that_was_cut_off_inside_of_a_file_is_named(tmp_path: Path, newline: bool) -> None:
    line = '{"id": "a", "text": "{}"}\n'
    path = tmp_path / "a.jsonl"
    path.write_text(line + line[:-5] + "\n" * newline + line + line)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="line 2 is not an answer"):
        opened(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["hello\nworld\n", "just text", '{"a": 1}\n', "[1]", '{"id": "a"}\n5\n'])
def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "precious.txt"
    path.write_text(content)
    number = content.count("\n") if "id" in content else 1
    with pytest.raises(UsageError, match=f"line {number} is not an answer"):
        opened(path)
    assert path.read_text() == content


def test_only_one_writes_to_a_file_also_after_lines_were_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with opened(path) as first:
        with pytest.raises(UsageError, match="Another batch"):
            opened(path)
        first.append({"id": "1"})
        first.append({"id": "2"})
        first.drop(lambda line: line["id"] == "1")  # replaces the file: it is still held
        with pytest.raises(UsageError, match="Another batch"):
            opened(path)
        first.append({"id": "3"})
    assert ids(path) == ["2", "3"]
    opened(path).close()


def test_half_a_character_is_written_all_the_same(tmp_path: Path) -> None:
    with opened(tmp_path / "a.jsonl") as file:
        file.append({"id": "1", "text": "\ud83d"})
    line: dict[str, Any] = json.loads((tmp_path / "a.jsonl").read_bytes())
    assert line["text"] == "\ud83d"


@pytest.mark.parametrize(("name", "what"), [("/dev/full", UsageError), ("no/folder/a.jsonl", EnvironmentLacksError)])
def test_what_cannot_be_a_file_is_said(tmp_path: Path, name: str, what: type[Exception]) -> None:
    with pytest.raises(what, match=r"is not a file|There is no folder"):
        opened(tmp_path / name)
