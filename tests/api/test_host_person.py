"""A question that an MCP host shows: its person may allow more than once, but only in the scope that was shown."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from agent.core.actions import Click
from agent.core.geometry import DesktopPoint
from agent.core.notes import Note, read_notes
from agent.mcp.asking import Call, HostPerson
from agent.mcp.server import DesktopTools
from agent.options import RunOptions
from agent.safety.policy import Approval, Question
from agent.settings import Settings

CLICK = Click(DesktopPoint(10, 20))
SCOPE = "actions asked for the same reason in this window of Thunar, for the rest of the run"


class Host:
    """A call whose host answers every question the same."""

    can_ask = rounds_left = True

    def __init__(self, **content: Any) -> None:
        self.content = content
        self.titles: dict[str, str] = {}

    async def ask(self, _message: str, _kind: str, **titles: str) -> dict[str, Any]:
        self.titles = titles
        return self.content


@pytest.mark.parametrize(
    ("scope", "content", "allowed", "always"),
    [
        (SCOPE, {"allow": True, "for_the_run": True}, True, True),
        (SCOPE, {"allow": True}, True, False),
        (SCOPE, {"allow": True, "for_the_run": "yes"}, True, False),
        (SCOPE, {"for_the_run": True}, False, False),
        (SCOPE, {}, False, False),
        ("", {"allow": True, "for_the_run": True}, True, False),
    ],
)
async def test_a_yes_for_the_rest_of_the_run_is_a_second_box_that_names_its_scope(
    scope: str, content: dict[str, Any], allowed: bool, always: bool
) -> None:
    host = Host(**content)
    answer = await HostPerson(host).approve(CLICK, Question("it deletes", scope))  # type: ignore[arg-type]
    assert answer == Approval(allowed, "you", always=always)
    assert host.titles.get("for_the_run", "") == (f"Also allow {scope}" if scope else "")


@pytest.mark.parametrize(("left", "why"), [(True, "the host cannot ask one"), (False, "this call asked 10 times")])
async def test_why_nobody_was_asked_reaches_the_engine_whole(left: bool, why: str) -> None:
    host = Host()
    host.can_ask, host.rounds_left = False, left
    answer = await HostPerson(host).approve(CLICK, Question("it deletes", ""))  # type: ignore[arg-type]
    [note] = read_notes(str(Note("failed", answer.note)))
    assert not answer.allowed
    assert "needs a person's approval (it deletes)" in note.detail
    assert why in note.detail
    assert note.detail.endswith("`mai-agent` in a terminal")


@pytest.mark.parametrize("failure", [MCPError(-32601, "Method not found"), TimeoutError(), "malformed"])
async def test_a_host_that_answers_a_question_with_an_error_agrees_to_nothing(failure: Exception | str) -> None:
    async def elicit_form(*_: Any, **__: Any) -> Any:
        if isinstance(failure, str):
            ElicitResult.model_validate({"action": "ACCEPT"})
        raise failure  # type: ignore[misc]

    context = SimpleNamespace(
        protocol_version="2025-06-18", request_id=1, session=SimpleNamespace(elicit_form=elicit_form),
        client_capabilities=SimpleNamespace(elicitation=True),
    )  # fmt: skip
    answer = await HostPerson(Call(context)).approve(CLICK, Question("it deletes", ""))  # type: ignore[arg-type]
    assert not answer.allowed


async def test_a_folder_where_the_host_started_it_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/run.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    tools = DesktopTools(RunOptions(settings=Settings(), runs=tmp_path / "runs"))
    for read in (tools.run, tools.report):
        with pytest.raises(ResourceNotFoundError, match="There is no run"):
            read("x")
