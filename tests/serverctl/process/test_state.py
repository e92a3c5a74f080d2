"""What is on disk about a server: files of earlier versions, damaged ones, and what was asked for."""

import json
from pathlib import Path

import pytest

from foundation.errors import MaiError
from foundation.processes import identity_of, is_alive
from serverctl.plan.goal import Goal
from serverctl.process.request import ServerRequest, read_request
from serverctl.process.state import Folder, State

#: As the version before wrote it: processes by their start in seconds, a number where another entry has a text.
EARLIER = {
    "phase": "ready", "name": "default", "message": "MAI-UI-2B answers on port 45231, 31 s after its start.",
    "stage": "serving", "percent": None, "stage_at": {"LAUNCHED": 1763750000.5, "SERVING": 1763750031.25},
    "supervisor": {"pid": 4242, "started": 1763750000.11}, "guardian": {"pid": 4243, "started": 1763750000.4},
    "server_pid": 4244, "run": "0123456789abcdef", "port": 45231, "model": "MAI-UI-2B",
    "source": "Tongyi-MAI/MAI-UI-2B", "family": "mai-ui", "vllm": "0.33.0",
    "limits": {"images": 6, "context": 32768, "max_pixels": 2097152}, "started": 1763750000.0,
    "ready_at": 1763750031.5, "attempt": 1, "deaths": [], "events": [[1763750000.0, "Looking."], [1763750031.5, "x"]],
    "failure": None, "report": {"version": "0.33.0", "weights": 4600000000, "concurrency": 3.5},
    "download": {"bytes": 1073741824, "total": 4294967296}, "plan": {"preset": "latency"}, "log": "/x/server.log",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    made = Folder("default")
    made.make()
    return made


def test_a_state_of_the_version_before_is_read_whole(folder: Folder) -> None:
    folder.state_file.write_text(json.dumps(EARLIER))
    state = folder.read()
    assert state is not None
    assert state.supervisor is not None
    assert (state.supervisor.pid, state.supervisor.born) == (4242, "1763750000.11")
    assert not is_alive(state.supervisor)
    assert (state.phase, state.url) == ("ready", "http://127.0.0.1:45231/v1")
    assert state.ready_after == 31.0
    assert state.events[1] == (1763750031.5, "x")
    assert state.downloading == "1.0 of 4.0 GiB"
    own = {"supervisor": {"pid": 4242, "born": "1763750000.11"}, "guardian": {"pid": 4243, "born": "1763750000.40"}}
    since = {"heartbeat": None}  # what that version did not have
    same = json.dumps(json.loads(state.model_dump_json())) == json.dumps(EARLIER | own | since)
    assert same, "whole numbers stay whole"


def test_a_state_comes_back_as_it_was_written(folder: Folder) -> None:
    me = identity_of(1)
    state = State(phase="starting", supervisor=me, limits={"images": 3}, stage_at={"LAUNCHED": 1.5})
    state.note(2.0, "Going on.")
    folder.write(state)
    assert folder.read() == state


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("port", "x"), ("port", True), ("percent", 1.5), ("model", 7), ("stage_at", {"LAUNCHED": "soon"}),
        ("supervisor", {"pid": "x"}), ("guardian", 5), ("deaths", ["x"]), ("events", [["x", 1.0]]), ("limits", []),
        ("events", [[1.0]]), ("failure", "x"), ("report", {"weights": "much"}), ("report", {"version": 1}),
        ("download", {"bytes": 1}), ("attempt", None), ("family", 1), ("plan", "x"),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_is_left_out_and_the_rest_believed(folder: Folder, entry: str, value: object) -> None:
    folder.state_file.write_text(json.dumps(EARLIER | {entry: value, "unheard_of": 1}))
    state = folder.read()
    assert state is not None
    assert getattr(state, entry) == getattr(State(), entry)
    assert state.message == EARLIER["message"]


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"phase": 7}', '{"phase": "rea"}', "\x00", "[" * 100_000])
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
