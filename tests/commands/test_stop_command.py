"""`mai-agent stop`: which runs, what it says, and its exit status."""

import json
from pathlib import Path

import pytest

from agent.commands import stop as command
from agent.safety.stop import Running
from foundation.processes import ProcessIdentity


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Two runs under way; what was signalled, and which of them do not end."""
    told: dict[str, list[str]] = {"term": [], "kill": [], "stuck": []}
    names = ["20261121-100000-mail-1a2b", "20261121-110000-web-3c4d"]
    process = ProcessIdentity(1, "b")
    entries = [Running(name, f"do {name[16:-5]}", "now", process, Path()) for name in names]

    def send(entry: Running, *, hard: bool = False) -> bool:
        told["kill" if hard else "term"].append(entry.run)
        if hard:
            told["stuck"].remove(entry.run)
        return True

    monkeypatch.setattr(command, "find_running", lambda: list(entries))
    monkeypatch.setattr(command, "send_stop", send)
    monkeypatch.setattr(command, "wait_ended", lambda those, _: [one for one in those if one.run in told["stuck"]])
    return told


def test_without_a_name_everything_stops(mai, runs) -> None:
    done = mai("stop")
    assert done.status == 0
    assert len(runs["term"]) == 2
    assert done.out.splitlines()[0] == "stopped 20261121-100000-mail-1a2b (do mail)"


def test_with_a_name_or_its_beginning_only_that_run_stops(mai, runs) -> None:
    assert mai("stop", "20261121-11").status == 0
    assert runs["term"] == ["20261121-110000-web-3c4d"]


def test_a_beginning_of_several_and_a_name_of_none_are_errors(mai, runs) -> None:
    assert mai("stop", "20261121").status == 2
    assert mai("stop", "nonsense").status == 1
    assert runs["term"] == []


def test_when_nothing_is_running_it_says_so(mai, monkeypatch) -> None:
    monkeypatch.setattr(command, "find_running", lambda: [])
    done = mai("stop")
    assert (done.status, done.out) == (1, "Nothing is running.\n")
    assert mai("stop", "--json").out == ""


def test_a_run_that_does_not_end_is_told_and_ended_only_on_request(mai, runs) -> None:
    runs["stuck"].append("20261121-110000-web-3c4d")
    done = mai("stop")
    assert done.status == 1
    assert "process 1 has not ended" in done.out
    assert runs["kill"] == []
    done = mai("stop", "--kill", "--json")
    assert done.status == 0
    assert [json.loads(line)["killed"] for line in done.out.splitlines()] == [False, True]
