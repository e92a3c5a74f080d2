"""What a batch sends, and what it writes of what comes."""

from base64 import b64decode
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from batches import answers, ask_for, ok_ids, picture, run, write
from stubs.token_server import MODEL, Refuse, Say, TokenServer, Traits, images, texts

from foundation.errors import ExitStatus, MaiError, UsageError
from serverctl.commands.load.batch import main
from serverctl.load.batch import lines
from serverctl.load.batch.lines import index_requests
from serverctl.load.batch.run import AnswersFile


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


def test_images_are_read_when_their_turn_comes_and_never_more_than_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture(tmp_path / "a.png")
    path = write(tmp_path / "requests.jsonl", *ask_for(40, image="a.png"))
    read: list[int] = []
    real = lines.data_url

    def counting(data: bytes) -> str:
        read.append(len(server.chats))
        return real(data)

    monkeypatch.setattr(lines, "data_url", counting)
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
    assert len(index) == 20_000
    assert index[12_346] == "r12345"


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


@pytest.mark.parametrize("counted", [True, False])
def test_answers_hold_text_usage_and_time_and_null_for_what_is_not_counted(
    requests: Path, out: Path, counted: bool
) -> None:
    with TokenServer(lambda _n, _b: Say("Grüße 你好", tokens=3), traits=Traits(details=counted)) as server:
        assert run(server, requests) == ExitStatus.DONE
    for line in answers(out):
        assert line["text"] == "Grüße 你好"
        assert line["finish_reason"] == "stop"
        assert line["usage"]["completion_tokens"] == 3
        assert (line["usage"]["cached_tokens"] is not None) is counted
        assert line["seconds"] >= 0
    assert "你好" in out.read_text(encoding="utf-8")


def test_answers_come_in_the_order_in_which_they_are_done(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *[{**one, "max_tokens": tokens} for one, tokens in zip(
        ask_for(3), (30, 1, 10), strict=True)])  # fmt: skip
    with TokenServer(traits=Traits(gap_s=0.03)) as server:
        assert run(server, path, "--concurrency", "3") == ExitStatus.DONE
    assert [line["id"] for line in answers(out)] == ["r1", "r2", "r0"]


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


def test_a_full_disk_ends_the_batch_with_one_sentence(requests: Path) -> None:
    with TokenServer() as server, pytest.raises((MaiError, UsageError)) as raised:
        run(server, requests, "--out", "/dev/full")
    assert "/dev/full" in str(raised.value)
