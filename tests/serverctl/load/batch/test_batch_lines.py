"""What a line of a batch may be."""

from pathlib import Path

import pytest
from batches import run, write
from hypothesis import given
from hypothesis import strategies as st
from stubs.token_server import TokenServer

from foundation.errors import UsageError
from serverctl.load.batch.lines import LineError, index_requests, parse_request


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ('{"instruction": "a"} {"instruction": "b"}', "not JSON"),
        ("[]", "not a JSON object"),
        ('"x"', "not a JSON object"),
        ("{}", "instruction"),
        ('{"image": "a.png"}', "instruction"),
        ('{"instruction": ""}', "instruction"),
        ('{"instruction": 5}', "'instruction' must be a text"),
        ('{"instruction": "a", "id": true}', "id"),
        ('{"instruction": "a", "id": ""}', "id"),
        ('{"instruction": "a", "id": ["x"]}', "id"),
        ('{"instruction": "a", "images": ["x.png"]}', "did you mean 'image'"),
        ('{"instructions": "a"}', "did you mean 'instruction'"),
        ('{"instruction": "a", "max_token": 5}', "did you mean 'max_tokens'"),
        ('{"instruction": "a", "top_p": 0.5}', "'top_p' cannot be set"),
        ('{"instruction": "a", "image": 5}', "'image'"),
        ('{"instruction": "a", "image": [""]}', "'image'"),
        ('{"instruction": "a", "image": "https://example.org/a.png"}', "this machine"),
        ('{"instruction": "a", "max_tokens": 0}', "max_tokens"),
        ('{"instruction": "a", "max_tokens": 1.5}', "max_tokens"),
        ('{"instruction": "a", "temperature": -1}', "temperature"),
        ('{"instruction": "a", "temperature": "hot"}', "temperature"),
        ('{"instruction": "a", "schema": "x"}', "'schema' must be an object"),
        ('{"instruction": "a", "schema": {}, "regex": "x"}', "not both"),
        ('{"messages": []}', "messages"),
        ('{"messages": [{"content": "a"}]}', "role"),
        ('{"messages": [{"role": "user", "content": "a"}], "image": "a.png"}', "beside"),
        ('{"instruction": "\\ud800"}', "half of a character"),
        ('{"instruction": "\udcff"}', "UTF-8"),
    ],
)
def test_a_line_that_is_no_request_says_why(line: str, says: str) -> None:
    with pytest.raises(LineError, match=says):
        parse_request(line.encode("utf-8", "surrogateescape"), 1)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_line_is_a_request_or_a_reason(line: str) -> None:
    try:
        assert parse_request(line.encode("utf-8", "surrogatepass"), 1).id
    except LineError as error:
        assert str(error)


def test_a_line_is_known_by_its_own_id_or_by_its_number() -> None:
    assert parse_request(b'{"instruction": "a"}', 7).id == "7"
    assert parse_request(b'{"instruction": "a", "id": 12}', 7).id == "12"
    assert parse_request(b'{"instruction": "a", "id": "x", "label": {"any": 1}}', 7).id == "x"


def test_blank_lines_windows_line_ends_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"instruction": "a"}\r\n\r\n   \n{"instruction": "b"}')
    index = index_requests(path)
    assert index == {1: "1", 4: "4"}


def test_broken_lines_double_ids_and_missing_images_are_named_before_anything_is_sent(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.jsonl",
        {"id": "a", "instruction": "x"},
        "{broken",
        {"id": "a", "instruction": "y"},
        {"instruction": "z", "image": "missing.png"},
    )
    with TokenServer() as server:
        with pytest.raises(UsageError) as raised:
            run(server, path)
        assert server.chats == []
    assert "line 2: it is not JSON" in raised.value.what
    assert "line 3: the id 'a' is that of line 1 already" in raised.value.what
    assert "line 4: there is no image 'missing.png'" in raised.value.what
    assert raised.value.remedy


def test_many_broken_lines_are_counted_and_not_all_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="and 95 more"):
        index_requests(write(tmp_path / "r.jsonl", *["{"] * 100))


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_a_file_without_requests_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match="no requests"):
        index_requests(path)
    with pytest.raises(UsageError, match="cannot be read"):
        index_requests(tmp_path / "none.jsonl")
