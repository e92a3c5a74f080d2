"""Batches whose server, disk or lines make trouble: nothing is lost."""

import json
from pathlib import Path
from typing import Any

import pytest
from batches import answers, ask_for, ok_ids, run, write
from stubs.token_server import KEY, Die, Refuse, TokenServer, Traits, texts

from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from serverctl.commands import progress
from serverctl.commands.load.batch import AnswerProgress, main
from serverctl.load.batch.run import Outcome


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
        ("--retries", "101"),
        ("--timeout", "0"),
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


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_a_bar_on_a_terminal_and_an_occasional_line_elsewhere(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PLAIN_EVERY", 0.0)
    monkeypatch.setattr(progress, "is_terminal", lambda _stream: terminal)
    outcome = Outcome(4, before=1)
    with AnswerProgress() as shown:
        for outcome.answered, failed in ((0, 0), (1, 0), (1, 1)):
            outcome.errors.update(refused=failed)
            shown.update(outcome)
        shown.say("a word")
    told = capsys.readouterr().err
    assert "a word" in told
    assert ("3/4" if terminal else "4 requests, 1 of them answered before") in told
    assert terminal or "3 of 4, 1 failed, " in told
    assert terminal or " a second, about 0:00:" in told
