"""Batches: what a line may be, what is sent, and that nothing is lost whatever happens in the middle."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64decode
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from stubs.token_server import KEY, MODEL, Die, Hang, Refuse, Say, TokenServer, Traits, images, texts

from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError, UsageError
from serverctl.batch import ask, prepare, progress
from serverctl.batch.answers import Answer, AnswersFile
from serverctl.batch.lines import LineError, index_requests, parse_request
from serverctl.commands import batch as command
from serverctl.commands.batch import main

ROOT = Path(__file__).resolve().parents[2]
STUB_VLLM = ROOT / "tests" / "stubs" / "offline_vllm"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAI_AGENT_API_KEY", KEY)
    monkeypatch.setattr(ask, "_BACKOFF_S", 0.01)


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def ask_for(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"r{number}", "instruction": f"request {number}", **more} for number in range(count)]


def answers(path: Path) -> list[dict[str, Any]]:
    """Every line; each must be whole."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ok_ids(path: Path) -> list[str]:
    return sorted(line["id"] for line in answers(path) if line["ok"])


def picture(path: Path, width: int = 64, height: int = 48) -> Path:
    Image.new("RGB", (width, height), (9, 99, 200)).save(path)
    return path


def run(server: TokenServer, requests: Path, *more: str) -> int:
    return main([str(requests), "--endpoint", server.url, *more])


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    return write(tmp_path / "requests.jsonl", *ask_for(5))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "requests.answers.jsonl"


def test_help_loads_neither_a_validation_library_nor_anything_else_that_is_heavy() -> None:
    heavy = "[m for m in ('pydantic', 'openai', 'PIL', 'rich', 'numpy') if m in sys.modules]"
    program = f"import sys; import serverctl.commands.batch as batch; batch._parser().format_help(); print({heavy})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------------------------------------------------- lines


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
    ],
)
def test_a_line_that_is_no_request_says_why(line: str, says: str) -> None:
    with pytest.raises(LineError, match=says):
        parse_request(line.encode(), 1)


def test_bytes_that_are_no_text_are_no_request() -> None:
    with pytest.raises(LineError, match="UTF-8"):
        parse_request(b'{"instruction": "\xff"}', 1)


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
    assert [(entry.id, entry.line) for entry in index.entries] == [("1", 1), ("4", 4)]


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
    assert "--keep-going" in raised.value.remedy


def test_many_broken_lines_are_counted_and_not_all_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="and 95 more"):
        index_requests(write(tmp_path / "r.jsonl", *["{"] * 100))


def test_keep_going_records_broken_lines_and_answers_the_others(tmp_path: Path, out: Path) -> None:
    lines = [
        {"id": "a", "instruction": "x"},
        "{broken",
        {"id": "a", "instruction": "y"},
        {"id": "b", "instruction": "z"},
    ]
    path = write(tmp_path / "requests.jsonl", *lines)
    with TokenServer() as server:
        assert run(server, path, "--keep-going") == ExitStatus.NOT_DONE
        assert ok_ids(out) == ["a", "b"]
        failed = {line["id"]: line["error"] for line in answers(out) if not line["ok"]}
        assert set(failed) == {"line 2", "line 3"}
        assert {error["kind"] for error in failed.values()} == {"line"}
        # Mended, nothing is left of the failures.
        lines[1], lines[2] = {"id": "c", "instruction": "x"}, {"id": "d", "instruction": "y"}
        write(path, *lines)
        assert run(server, path) == ExitStatus.DONE
    assert ok_ids(out) == ["a", "b", "c", "d"]
    assert len(answers(out)) == 4


def test_a_broken_line_is_recorded_under_its_own_id_where_it_has_one(tmp_path: Path, out: Path) -> None:
    lines = [
        {"id": "a", "instruction": "x"},
        '{"id": "cut", "instruction": "y", "image": ["/home',
        {"id": 7, "max_tokens": 5},
        {"id": "later", "instruction": 5},
        {"id": "later", "instruction": "z"},
        {"id": "twice", "instruction": 5},
        {"id": "twice", "instruction": 6},
        '{"id": "one", "id": "two"',
        '{"id": "", "instruction": "x"}',
    ]
    path = write(tmp_path / "requests.jsonl", *lines)
    with TokenServer() as server:
        assert run(server, path, "--keep-going") == ExitStatus.NOT_DONE
        assert run(server, path, "--keep-going") == ExitStatus.NOT_DONE, "each is recorded once, also the second time"
    assert ok_ids(out) == ["a", "later"]
    failed = [(line["id"], line["error"]["message"]) for line in answers(out) if not line["ok"]]
    assert [name for name, _ in failed] == ["cut", "7", "line 4", "twice", "line 7", "line 8", "line 9"]
    assert [message.split(":")[0] for _, message in failed] == [f"line {number}" for number in (2, 3, 4, 6, 7, 8, 9)]


def test_a_line_that_broke_after_it_was_answered_keeps_its_answer(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", {"id": "a", "instruction": "x"})
    with TokenServer() as server:
        assert run(server, path) == ExitStatus.DONE
        write(path, {"id": "a", "instruction": 5}, {"id": "b", "instruction": "x"})
        assert run(server, path, "--keep-going") == ExitStatus.NOT_DONE
    assert [(line["id"], line["ok"]) for line in answers(out)] == [("a", True), ("line 1", False), ("b", True)]


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_a_file_without_requests_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match="no requests"):
        index_requests(path)
    with pytest.raises(UsageError, match="cannot be read"):
        index_requests(tmp_path / "none.jsonl")


# ------------------------------------------------------------------------------------------------------- requests


def test_what_is_sent_is_what_the_line_says(tmp_path: Path) -> None:
    data = picture(tmp_path / "a.png").read_bytes()
    (tmp_path / "sub").mkdir()
    picture(tmp_path / "sub" / "b.png", 32, 32)
    schema = {"type": "object"}
    path = write(
        tmp_path / "r.jsonl",
        {"instruction": "one", "image": "a.png", "system": "be brief", "max_tokens": 7, "temperature": 0.5},
        {"instruction": "two", "image": ["a.png", str(tmp_path / "sub" / "b.png")], "schema": schema},
        {"instruction": "three", "image": "data:image/png;base64,AAAA", "regex": "[0-9]+"},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "four"},
                                                   {"type": "image_url", "image_url": {"url": "sub/b.png"}}]}]},
    )  # fmt: skip
    with TokenServer() as server:
        assert run(server, path, "--concurrency", "1", "--max-tokens", "99", "--system", "be long") == ExitStatus.DONE
    one, two, three, four = server.chats
    assert texts(one) == ["be brief", "one"]
    assert (one["max_tokens"], one["temperature"], one["model"]) == (7, 0.5, MODEL)
    assert [b64decode(url.partition(",")[2]) for url in images(one)] == [data]
    assert texts(two) == ["be long", "two"]
    assert (two["max_tokens"], two["temperature"]) == (99, 0)
    assert len(images(two)) == 2
    assert two["response_format"]["json_schema"]["schema"] == schema
    assert images(three) == ["data:image/png;base64,AAAA"]
    assert three["structured_outputs"] == {"regex": "[0-9]+"}
    assert texts(four) == ["four"]
    assert images(four)[0].startswith("data:image/png;base64,")
    assert "response_format" not in one
    assert "structured_outputs" not in one


def test_images_are_made_to_fit_the_familys_grid(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", 1000, 700)
    path = write(tmp_path / "r.jsonl", {"instruction": "x", "image": "a.png"})
    sizes = []
    for more in (("--max-pixels", "200000"), ("--max-pixels", "200000", "--family", "qwen2.5-vl"), ()):
        with TokenServer() as server:
            assert run(server, path, "--out", str(tmp_path / f"{len(sizes)}.jsonl"), *more) == ExitStatus.DONE
        with Image.open(io.BytesIO(b64decode(images(server.chats[0])[0].partition(",")[2]))) as image:
            sizes.append(image.size)
    assert all(side % 32 == 0 for side in sizes[0])
    assert all(side % 28 == 0 for side in sizes[1])
    assert max(width * height for width, height in sizes[:2]) <= 200_000
    assert sizes[2] == (1000, 700)


def test_a_grid_that_nobody_knows_must_be_named(requests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "detect_family", lambda _model: None)
    with TokenServer() as server, pytest.raises(UsageError, match="grid") as raised:
        run(server, requests, "--max-pixels", "200000")
    assert "--family" in raised.value.remedy


def test_images_are_read_when_their_turn_comes_and_never_more_than_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture(tmp_path / "a.png")
    path = write(tmp_path / "requests.jsonl", *ask_for(40, image="a.png"))
    read: list[int] = []
    real = prepare.data_url

    def counting(data: bytes) -> str:
        read.append(len(server.chats))
        return real(data)

    monkeypatch.setattr(prepare, "data_url", counting)
    with TokenServer(traits=Traits(ttft_s=0.01)) as server:
        assert run(server, path, "--concurrency", "3") == ExitStatus.DONE
    assert len(read) == 40
    # When an image is read, all but the two others under way have been sent.
    assert all(number - sent <= 3 for number, sent in enumerate(read))
    assert server.seen.most_in_flight <= 3


def test_a_large_file_is_checked_without_opening_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture(tmp_path / "a.png")
    path = write(tmp_path / "r.jsonl", *ask_for(20_000, image="a.png"))
    monkeypatch.setattr(Path, "read_bytes", lambda _self: pytest.fail("an image was opened"))
    index = index_requests(path)
    assert len(index.entries) == 20_000
    with path.open("rb") as file:
        file.seek(index.entries[12_345].offset)
        assert json.loads(file.readline())["id"] == "r12345"


def test_an_image_that_is_none_fails_its_own_request_only(tmp_path: Path, out: Path) -> None:
    (tmp_path / "bad.png").write_text("no image")
    path = write(tmp_path / "requests.jsonl", *ask_for(2), {"id": "bad", "instruction": "x", "image": "bad.png"})
    with TokenServer() as server:
        assert run(server, path) == ExitStatus.NOT_DONE
    (bad,) = [line for line in answers(out) if not line["ok"]]
    assert bad["id"] == "bad"
    assert bad["error"]["kind"] == "image"
    assert "bad.png" in bad["error"]["message"]
    assert ok_ids(out) == ["r0", "r1"]


# -------------------------------------------------------------------------------------------------------- answers


def test_answers_hold_text_usage_and_time(requests: Path, out: Path) -> None:
    with TokenServer(lambda _n, _b: Say("Grüße 你好", tokens=3)) as server:
        assert run(server, requests) == ExitStatus.DONE
    for line in answers(out):
        assert line["text"] == "Grüße 你好"
        assert line["finish_reason"] == "stop"
        assert line["usage"]["completion_tokens"] == 3
        assert line["usage"]["cached_tokens"] is not None
        assert line["seconds"] >= 0
    assert "你好" in out.read_text(encoding="utf-8")


def test_what_usage_does_not_tell_is_null(requests: Path, out: Path) -> None:
    with TokenServer(traits=Traits(details=False)) as server:
        assert run(server, requests) == ExitStatus.DONE
    assert {line["usage"]["cached_tokens"] for line in answers(out)} == {None}


def test_answers_come_in_the_order_in_which_they_are_done(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *[{**one, "max_tokens": tokens} for one, tokens in zip(
        ask_for(3), (30, 1, 10), strict=True)])  # fmt: skip
    with TokenServer(traits=Traits(gap_s=0.03)) as server:
        assert run(server, path, "--concurrency", "3") == ExitStatus.DONE
    assert [line["id"] for line in answers(out)] == ["r1", "r2", "r0"]


def test_half_a_character_in_an_answer_is_written_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with AnswersFile(path) as file:
        file.write(Answer("1", text="\ud83d"))
    assert answers(path)[0]["text"] == "\ud83d"


def test_what_has_an_answer_is_not_asked_again(requests: Path, out: Path) -> None:
    with TokenServer() as server:
        assert run(server, requests) == ExitStatus.DONE
        before = out.read_bytes()
        assert run(server, requests) == ExitStatus.DONE
        assert len(server.chats) == 5
    assert out.read_bytes() == before
    # Nobody is needed for nothing.
    assert main([str(requests), "--endpoint", "127.0.0.1:9"]) == ExitStatus.DONE


def test_failures_are_tried_again_and_leave_one_line_for_each_request(requests: Path, out: Path) -> None:
    def behave(_number: int, body: dict[str, Any]) -> Any:
        return Refuse(400, "maximum context length is 5 tokens") if broken and "request 3" in texts(body)[0] else None

    broken = True
    with TokenServer(behave) as server:
        assert run(server, requests) == ExitStatus.NOT_DONE
        (failed,) = [line for line in answers(out) if not line["ok"]]
        assert (failed["id"], failed["error"]["kind"]) == ("r3", "context_too_long")
        assert run(server, requests) == ExitStatus.NOT_DONE
        assert Counter(line["id"] for line in answers(out)) == Counter(f"r{number}" for number in range(5))
        broken = False
        assert run(server, requests) == ExitStatus.DONE
    assert len(server.chats) == 5 + 1 + 1
    assert ok_ids(out) == [f"r{number}" for number in range(5)]
    assert len(answers(out)) == 5


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 400), st.booleans())
def test_a_file_cut_off_anywhere_keeps_every_whole_line(tmp_path: Path, missing: int, zeros: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.unlink(missing_ok=True)
    with AnswersFile(path) as file:
        for number in range(4):
            file.write(Answer(f"r{number}", text=f'"quoted" and\nbroken {number}', usage={"prompt_tokens": 1}))
    whole = path.read_bytes()
    kept = whole[: max(0, len(whole) - missing)]
    path.write_bytes(kept + (b"\0" * 7 if zeros and missing and not kept.endswith(b"\n") else b""))
    complete = {json.loads(line)["id"] for line in kept.split(b"\n")[:-1]}
    with AnswersFile(path) as file:
        assert complete <= file.answered
        assert len(file.answered - complete) <= 1  # the last line, if only its end is missing
        file.write(Answer("next", text="x"))
        expected = file.answered
    assert {line["id"] for line in answers(path)} == expected


@pytest.mark.parametrize("content", ["hello\nworld\n", "just text", '{"a": 1}\n', '{"id": 5, "ok": true}\n', "[1]"])
def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "precious.txt"
    path.write_text(content)
    with pytest.raises(UsageError, match="not an answer"):
        AnswersFile(path)
    assert path.read_text() == content


def test_answers_never_go_over_the_requests(requests: Path) -> None:
    before = requests.read_text()
    with pytest.raises(UsageError, match="--out"):
        main([str(requests), "--out", str(requests), "--endpoint", "127.0.0.1:9"])
    assert requests.read_text() == before


def test_two_batches_never_write_to_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with AnswersFile(path) as first:
        with pytest.raises(UsageError, match="Another batch"):
            AnswersFile(path)
        first.write(Answer("1", kind="refused", message="no"))
        first.forget_failures(["1"])  # replaces the file: it is still held
        with pytest.raises(UsageError, match="Another batch"):
            AnswersFile(path)
    AnswersFile(path)


def test_a_full_disk_ends_the_batch_with_one_sentence(requests: Path) -> None:
    with TokenServer() as server, pytest.raises((MaiError, UsageError)) as raised:
        run(server, requests, "--out", "/dev/full")
    assert "/dev/full" in str(raised.value)


# -------------------------------------------------------------------------------------------------------- trouble


def test_what_passes_is_tried_again(requests: Path, out: Path) -> None:
    def behave(number: int, _body: dict[str, Any]) -> Any:
        return {0: Refuse(503, "full"), 1: Refuse(429, "slow down"), 3: Refuse(500, "oops")}.get(number)

    with TokenServer(behave) as server:
        assert run(server, requests, "--concurrency", "1") == ExitStatus.DONE
    assert len(server.chats) == 5 + 3
    assert len(ok_ids(out)) == 5


def test_what_does_not_pass_is_tried_so_often_and_then_a_failure(requests: Path, out: Path) -> None:
    def behave(_number: int, body: dict[str, Any]) -> Any:
        return Refuse(500, "oops") if "request 2" in texts(body)[0] else None

    with TokenServer(behave) as server:
        assert run(server, requests, "--retries", "2") == ExitStatus.NOT_DONE
    assert sum("request 2" in texts(chat)[0] for chat in server.chats) == 3
    (failed,) = [line for line in answers(out) if not line["ok"]]
    assert failed["error"]["kind"] == "server_error"


def test_a_request_that_cannot_be_right_is_asked_once(requests: Path) -> None:
    with TokenServer(lambda _n, _b: Refuse(400, "no")) as server:
        assert run(server, requests) == ExitStatus.NOT_DONE
    assert len(server.chats) == 5


def test_no_server_and_a_wrong_key_are_said_before_anything_else(
    requests: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EnvironmentLacksError, match="no server"):
        main([str(requests), "--endpoint", "127.0.0.1:9"])
    monkeypatch.setenv("MAI_AGENT_API_KEY", "wrong")
    with TokenServer() as server, pytest.raises(EnvironmentLacksError, match="key"):
        run(server, requests)
    assert answers(out) == []


def test_a_server_that_dies_ends_the_batch_and_the_next_one_goes_on(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(30))
    server = TokenServer(lambda number, _b: Die() if number == 12 else None)
    with server, pytest.raises(EnvironmentLacksError, match="gone") as raised:
        run(server, path, "--concurrency", "4", "--retries", "1")
    assert "goes on where it stopped" in raised.value.remedy
    kept = ok_ids(out)
    assert 8 <= len(kept) <= 12  # up to three others were under way
    assert len(answers(out)) == len(kept)  # what was not asked has not failed
    assert f"{len(kept)} of 30" in capsys.readouterr().err
    with TokenServer() as server:
        assert run(server, path) == ExitStatus.DONE
        assert len(server.chats) == 30 - len(kept)
    assert len(ok_ids(out)) == len(answers(out)) == 30


def test_a_dead_engine_ends_the_batch_too(requests: Path, out: Path) -> None:
    server = TokenServer(lambda _n, _b: Refuse(500, "EngineCore encountered an issue"), Traits(dead_engine=True))
    with server, pytest.raises(EnvironmentLacksError, match="gone"):
        run(server, requests, "--retries", "1")
    assert answers(out) == []


def test_a_request_file_that_changes_meanwhile_is_noticed(requests: Path, out: Path) -> None:
    lines = ask_for(5, note="x" * 100_000)  # more than is read ahead
    write(requests, *lines)

    def behave(number: int, _body: dict[str, Any]) -> None:
        if number == 1:
            write(requests, *reversed(lines))

    with TokenServer(behave) as server, pytest.raises(UsageError, match="changed"):
        run(server, requests, "--concurrency", "1")
    assert set(ok_ids(out)) < {f"r{number}" for number in range(5)}


@pytest.mark.parametrize(
    "wrong",
    [
        ("--concurrency", "0"),
        ("--max-tokens", "0"),
        ("--temperature", "9"),
        ("--family", "qwen3-vl"),
        ("--python", "/x"),
        ("--engine", "{}x"),
        ("--offline", "--endpoint", "127.0.0.1:1"),
        ("--offline", "--model", "m", "--engine", "[]"),
        ("--offline", "--engine", '{"max_model_len": 5}'),
        ("--max-pixels", "5", "--family", "qwen3-vl", "--offline", "--model", "m"),
    ],
)
def test_a_wrong_command_line_is_refused_with_a_remedy(requests: Path, wrong: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as raised:
        main([str(requests), *wrong])
    assert raised.value.remedy


def test_the_summary_is_json_and_the_key_is_nowhere(
    requests: Path, out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAI_AGENT_API_KEY")
    with TokenServer(lambda number, _b: Refuse(400, "no") if number == 1 else None) as server:
        assert run(server, requests, "--json", "--api-key", KEY) == ExitStatus.NOT_DONE
    printed = capsys.readouterr()
    summary = json.loads(printed.out)
    assert (summary["requests"], summary["answered"], summary["failed"], summary["errors"]) == (5, 4, 1, {"refused": 1})
    assert "1 of 5 failed (1 refused)" in printed.err
    assert KEY not in printed.out + printed.err + out.read_text()


def test_without_a_terminal_progress_is_an_occasional_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    lines = progress.Progress()
    lines.start(4, 1)
    lines.step(ok=True)
    lines.step(ok=False)
    told = capsys.readouterr().err.splitlines()
    assert "4 requests, 1 of them answered before" in told[0]
    assert "3 of 4, 1 failed" in told[2]
    assert "a second" in told[2]
    assert "left" in told[2]


def test_on_a_terminal_progress_is_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    bar = progress.BarProgress()
    bar.start(2, 0)
    for ok in (True, False):
        bar.step(ok=ok)
    bar.say("a word")
    bar.close()
    told = capsys.readouterr().err
    assert "a word" in told
    assert "2/2" in told


# ----------------------------------------------------------------------------------------------- stopped and killed


class Running:
    """A real `mai-server batch`."""

    def __init__(self, *arguments: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "serverctl", "batch", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), "MAI_AGENT_API_KEY": KEY, **environ},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_for(self, happened: Any) -> None:
        """Wait until something has happened; the test's own limit ends what never does."""
        while not happened():
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.01)

    def end(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        assert "Traceback" not in err
        return self.process.returncode, err


def test_ctrl_c_finishes_what_is_under_way_and_says_how_to_go_on(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(200))
    with TokenServer(traits=Traits(ttft_s=0.2)) as server:
        with Running(str(path), "--endpoint", server.url, "--concurrency", "4") as running:
            running.wait_for(lambda: server.seen.finished >= 8)
            status, err = running.end(signal.SIGINT)
        assert status == ExitStatus.STOPPED
        sent = len(server.chats)
        assert len(ok_ids(out)) == sent < 200  # what was under way was finished
        assert f"Stopped: {sent} of 200" in err
        assert f"To go on: mai-server batch {path}" in err
        server.traits.ttft_s = 0
        assert run(server, path) == ExitStatus.DONE
        assert len(server.chats) == 200
    assert len(ok_ids(out)) == len(answers(out)) == 200


def test_a_second_ctrl_c_gives_up_what_is_under_way(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(20))
    server = TokenServer(lambda number, _b: Hang() if number >= 2 else None)
    with server, Running(str(path), "--endpoint", server.url, "--concurrency", "2") as running:
        running.wait_for(lambda: server.seen.in_flight == 2 and server.seen.finished == 2)
        running.process.send_signal(signal.SIGINT)
        assert running.process.stderr is not None
        while "Stopping" not in running.process.stderr.readline():
            pass
        status, err = running.end(signal.SIGINT)
    assert status == ExitStatus.STOPPED
    assert "2 of 20" in err
    assert len(answers(out)) == 2


def test_a_closed_terminal_ends_a_batch_unless_nohup_says_otherwise(tmp_path: Path) -> None:
    for number, ignored in enumerate((False, True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = write(folder / "requests.jsonl", *ask_for(40))
        with TokenServer(traits=Traits(ttft_s=0.05)) as server:
            before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
            try:
                running = Running(str(path), "--endpoint", server.url, "--concurrency", "2")
            finally:
                signal.signal(signal.SIGHUP, before)
            with running:
                running.wait_for(lambda: server.seen.finished >= 2)
                status, _ = running.end(signal.SIGHUP)
        assert status == (ExitStatus.DONE if ignored else ExitStatus.STOPPED)


def test_a_batch_that_is_killed_loses_nothing_that_was_answered(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(60))
    with TokenServer(traits=Traits(ttft_s=0.05)) as server:
        with Running(str(path), "--endpoint", server.url, "--concurrency", "5") as running:
            running.wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") >= 10)
            running.process.kill()
            running.process.wait()
        with out.open("ab") as file:
            file.write(b'{"id": "r59", "ok": tr')  # and it was just writing
        kept = {line for line in out.read_text().splitlines() if line.endswith("}")}
        before = len(server.chats)
        assert run(server, path) == ExitStatus.DONE
        assert len(server.chats) - before == 60 - len(kept)
    assert ok_ids(out) == sorted(f"r{number}" for number in range(60))
    assert kept <= set(out.read_text().splitlines())


# -------------------------------------------------------------------------------------------------------- offline


def offline(requests: Path, *more: str) -> list[str]:
    return [str(requests), "--offline", "--python", sys.executable, "--model", "m", *more]


@pytest.fixture
def stub_vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A vLLM that is none, and the file with the ids of its processes."""
    pids = tmp_path / "pids"
    monkeypatch.setenv("PYTHONPATH", str(STUB_VLLM))
    monkeypatch.setenv("STUB_VLLM_PIDS", str(pids))
    return pids


def gone(pids: Path) -> bool:
    """Whether all processes of the engine have ended, or will within moments."""
    processes = [psutil.Process(int(pid)) for pid in pids.read_text().split() if psutil.pid_exists(int(pid))]
    living = [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    return not psutil.wait_procs(living, timeout=20)[1]


def test_the_engine_answers_in_chunks_without_a_server(tmp_path: Path, out: Path, stub_vllm: Path) -> None:
    picture(tmp_path / "a.png")
    lines = [
        *ask_for(9),
        {"id": "i", "instruction": "x", "image": "a.png"},
        {"id": "e", "instruction": "x", "regex": "[0-9]"},
    ]
    path = write(tmp_path / "requests.jsonl", *lines)
    assert main(offline(path, "--chunk", "4")) == ExitStatus.DONE
    by_id = {line["id"]: line for line in answers(out)}
    assert set(by_id) == {line["id"] for line in lines}
    assert by_id["e"]["text"] == "[0-9]"
    assert int(by_id["i"]["text"].split()[0]) > len("data:image/png;base64,")
    assert by_id["r0"]["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "cached_tokens": 5}
    log = (tmp_path / "requests.engine.log").read_text()
    assert "and so do its workers" in log
    assert max(int(line.split()[1]) for line in log.splitlines() if line.startswith("CHUNK")) <= 4
    assert gone(stub_vllm)


def test_what_the_engine_refuses_fails_alone(tmp_path: Path, out: Path, stub_vllm: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(7), {"id": "long", "instruction": "refuse me"})
    assert main(offline(path)) == ExitStatus.NOT_DONE
    (failed,) = [line for line in answers(out) if not line["ok"]]
    assert failed["id"] == "long"
    assert failed["error"]["kind"] == "context_too_long"
    assert len(ok_ids(out)) == 7


def test_an_engine_that_dies_keeps_what_was_answered_and_the_next_one_goes_on(
    tmp_path: Path, out: Path, stub_vllm: Path
) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(8), {"id": "bad", "instruction": "crash now"}, *ask_for(0))
    with pytest.raises(EnvironmentLacksError, match="The engine died") as raised:
        main(offline(path, "--chunk", "2"))
    assert "engine.log" in raised.value.remedy
    assert len(answers(out)) == len(ok_ids(out)) == 8
    assert gone(stub_vllm)
    write(path, *ask_for(8), {"id": "bad", "instruction": "go on"})
    assert main(offline(path)) == ExitStatus.DONE
    assert len(answers(out)) == 9


def test_an_engine_that_does_not_start_says_why(requests: Path, stub_vllm: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="Invalid repository ID"):
        main([*offline(requests)[:-1], "missing"])
    with pytest.raises(EnvironmentLacksError, match="cannot be started"):
        main([str(requests), "--offline", "--python", "/no/such/python", "--model", "m"])


def test_ctrl_c_ends_the_engine_with_all_its_processes(tmp_path: Path, out: Path, stub_vllm: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(4), {"id": "bad", "instruction": "hang here"})
    with Running(*offline(path, "--chunk", "2"), PYTHONPATH=f"{ROOT}:{STUB_VLLM}") as running:
        running.wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") == 4)
        status, err = running.end(signal.SIGINT)
    assert status == ExitStatus.STOPPED
    assert "4 of 5" in err
    assert gone(stub_vllm)


@pytest.mark.parametrize("last", ["hang here", "an answer"])  # killed while the engine works, and while it waits
def test_an_engine_whose_batch_is_killed_ends_too(tmp_path: Path, out: Path, stub_vllm: Path, last: str) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(2), {"id": "bad", "instruction": last})
    with Running(*offline(path, "--chunk", "1"), PYTHONPATH=f"{ROOT}:{STUB_VLLM}") as running:
        running.wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") >= 2)
        running.process.kill()
        assert gone(stub_vllm)


def test_the_real_engine_answers_a_batch(
    tmp_path: Path, out: Path, vllm_python: Path, tiny_model: Path, vllm_environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in vllm_environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")  # a person's: with it, vLLM's attention on the processor hangs
    picture(tmp_path / "a.png", 320, 256)
    path = write(
        tmp_path / "requests.jsonl",
        *ask_for(3, image="a.png", max_tokens=8),
        {"id": "exact", "instruction": "a number", "regex": "[0-9]{3}"},
        {"id": "long", "instruction": "far too long " * 4000, "max_tokens": 8},
    )
    engine = {
        "max_model_len": 2048, "max_num_seqs": 2, "enforce_eager": True, "kv_cache_memory_bytes": 1 << 27,
        "limit_mm_per_prompt": {"image": 1, "video": 0},
    }  # fmt: skip
    arguments = ["--python", str(vllm_python), "--model", str(tiny_model), "--engine", json.dumps(engine)]
    status = main([str(path), "--offline", "--max-pixels", "131072", "--family", "qwen3-vl", *arguments])
    assert status == ExitStatus.NOT_DONE, (tmp_path / "requests.engine.log").read_text()
    by_id = {line["id"]: line for line in answers(out)}
    assert by_id["long"]["error"]["kind"] == "context_too_long"
    assert by_id["exact"]["text"].isdigit()
    for number in range(3):
        usage = by_id[f"r{number}"]["usage"]
        assert usage["completion_tokens"] == 8
        assert usage["prompt_tokens"] > 10 * 8  # 320x256 are 10 x 8 tokens, and some text


def test_the_offline_script_needs_nothing_of_this_project(tmp_path: Path) -> None:
    script = ROOT / "serverctl" / "batch_offline.py"
    line = json.dumps({"id": "1", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "temperature": 0})
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), "--engine", '{"model": "m"}'], cwd=tmp_path, text=True,
            env={"PYTHONPATH": str(STUB_VLLM), "PATH": os.environ["PATH"]}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        printed, _ = process.communicate(f"{line}\n")
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the engine's worker, which this script leaves to who started it
    assert process.returncode == 0
    ready, answer = map(json.loads, printed.splitlines())
    assert ready == {"ready": {"vllm": "0.0-stub"}}
    assert (answer["id"], answer["ok"], answer["finish_reason"]) == ("1", True, "stop")


async def test_nobody_waits_for_an_engine_that_has_ended(tmp_path: Path) -> None:
    from serverctl.batch.offline import OfflineAsker
    from serverctl.chat import ServerGoneError

    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    async with OfflineAsker(python, {"model": "m"}, tmp_path / "log") as asker:
        request = prepare.Prepared("1", [], 5, 0.0)
        for _ in range(2):
            with pytest.raises(ServerGoneError, match="status 3"):
                await asyncio.wait_for(asker.ask(request), 30)
