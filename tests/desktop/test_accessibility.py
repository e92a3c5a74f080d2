"""The switch of a person's session: turned after asking, and given back, also after a crash."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.accessible import Status, accessibility_bus

from agent.desktop.trees.switch import LentAccessibility, buses, give_back_left_over, is_switched_on, session_bus


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return tmp_path / "accessibility.json"


@pytest.fixture
def session() -> Iterator[tuple[str, Status]]:
    with accessibility_bus() as bus:
        status = Status(bus.address, on=False)
        yield bus.address, status
        status.close()


def lend(address: str, wish: str, answer: bool | None, told: list[str] | None = None) -> LentAccessibility:
    ask = None if answer is None else lambda _: answer
    said = [] if told is None else told
    return LentAccessibility({"DBUS_SESSION_BUS_ADDRESS": address}, wish, ask, said.append)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wish", "answer", "on"),
    [("ask", True, True), ("ask", False, False), ("ask", None, False), ("on", None, True), ("off", True, False)],
)
def test_it_is_switched_on_only_where_the_person_agrees(
    state: Path, session: tuple[str, Status], wish: str, answer: bool | None, on: bool
) -> None:
    address, status = session
    lent = lend(address, wish, answer)
    assert status.on is on
    assert state.exists() is on
    lent.give_back()
    assert status.on is False
    assert not state.exists()


def test_without_anybody_to_ask_the_person_is_told_how(state: Path, session: tuple[str, Status]) -> None:
    told: list[str] = []
    lend(session[0], "ask", None, told)
    assert len(told) == 1 and 'accessibility = "on"' in told[0]


def test_what_was_on_before_stays_on(state: Path, session: tuple[str, Status]) -> None:
    address, status = session
    status.on = True
    asked: list[str] = []
    lent = LentAccessibility({"DBUS_SESSION_BUS_ADDRESS": address}, "ask", lambda q: not asked.append(q), asked.append)
    lent.give_back()
    assert (status.on, asked) == (True, [])


def test_after_a_crash_the_next_start_gives_it_back(state: Path, session: tuple[str, Status]) -> None:
    address, status = session
    lend(address, "on", None)  # and never given back
    assert not give_back_left_over()  # while that process lives
    state.write_text(json.dumps(json.loads(state.read_text()) | {"pid": 2**22 + 1}))
    lend(address, "off", None)
    assert status.on is False
    assert not state.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"session": 5}', '{"session": "unix:path=/nowhere"}'])
def test_a_broken_marker_does_no_harm(state: Path, text: str) -> None:
    state.write_text(text)
    assert not give_back_left_over()


def test_a_session_without_a_bus_is_left_alone(state: Path) -> None:
    told: list[str] = []
    LentAccessibility({}, "on", None, told.append).give_back()
    assert told == []
    assert is_switched_on("unix:path=/nowhere") is None
    assert session_bus({"XDG_RUNTIME_DIR": "/nowhere"}) == ""


def test_the_bus_that_a_display_tells_comes_first(session: tuple[str, Status]) -> None:
    assert list(buses(session[0], "unix:path=/told")) == ["unix:path=/told", "unix:path=/nowhere"]
    assert list(buses("", "")) == []
