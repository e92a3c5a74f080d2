"""What is on disk about a server: its state, damaged files, and what was asked for."""

import pytest

from foundation.errors import MaiError
from foundation.processes import identity_of
from serverctl.plan.goal import Goal
from serverctl.process.request import ServerRequest, read_request
from serverctl.process.state import Folder, State, made_key


def test_a_state_comes_back_as_it_was_written(folder: Folder) -> None:
    me = identity_of(1)
    state = State(phase="starting", supervisor=me, limits={"images": 3}, stage_at={"LAUNCHED": 1.5})
    state.note(2.0, "Going on.")
    folder.write(state)
    assert folder.read() == state


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '{"phase": 7}',
        '{"phase": "rea"}',
        "\x00",
        "[" * 100_000,
    ],
)
def test_what_is_no_state_is_none(folder: Folder, text: str) -> None:
    folder.state_file.write_text(text)
    assert folder.read() is None


def test_a_request_comes_back_as_it_was_written(folder: Folder) -> None:
    goal = Goal(
        "MAI-UI-2B", "latency", {"max_num_seqs": 4}, ("--seed", "0"), (1280, 720), {"x": None}, {"x": "y"}, True
    )
    request = ServerRequest(goal, "/x/python", 8123, "gui", ("GPU-1",), processor=False)
    folder.request_file.write_text(request.to_json())
    assert read_request(folder.request_file) == request


@pytest.mark.parametrize("text", ["", "{}", '{"goal": 1}', '{"goal": {}, "vllm_python": 1}'])
def test_a_damaged_request_is_a_sentence(folder: Folder, text: str) -> None:
    folder.request_file.write_text(text)
    with pytest.raises(MaiError, match="cannot be read"):
        read_request(folder.request_file)


def test_a_request_with_an_unknown_setting_is_refused_by_name(folder: Folder) -> None:
    request = ServerRequest(Goal(overrides={"no_such_knob": 1}), "/x/python")
    folder.request_file.write_text(request.to_json())
    with pytest.raises(MaiError, match="no_such_knob"):
        read_request(folder.request_file)


def test_a_key_can_stand_after_an_option_because_it_has_no_dash() -> None:
    assert all(len(key) >= 32 and key.isalnum() for key in (made_key() for _ in range(100)))
