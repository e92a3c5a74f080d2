"""Hostile text, fed to whatever prints what strangers wrote: not one character of it steers, hides or turns round."""

import io
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from record.bundles import a_bundle, a_step
from stubs.endpoint import FakeEndpoint, act, say
from stubs.events import finished, printed, started, step
from stubs.hostile import FORBIDDEN, HOSTILE
from textual.app import App

from agent.cli import main as mai_agent
from agent.console.printers import JsonPrinter, PlainPrinter
from agent.core.actions import CallTool, TypeText
from agent.core.changes import Change
from agent.events.run_events import (
    Acted,
    ApprovalAsked,
    ApprovalGiven,
    Decided,
    Event,
    ModelDelta,
    Paused,
    PersonSaid,
    Receipt,
    StepFinished,
    UserActed,
    Warned,
)
from agent.options import RunOptions
from agent.record.report.page import write_report
from agent.settings import Settings
from foundation.processes import identity_of
from serverctl.cli import main as mai_server

#: What one of the marked pieces of the text is known by where it is shown.
MARKS = [f"M{number}" for number in range(1, 10)]
APPROVAL = {"reason": HOSTILE, "scope": HOSTILE, "allowed": True, "by": HOSTILE, "note": HOSTILE, "always": True,
            "instead": {"type": "type", "text": HOSTILE}, "instead_reason": HOSTILE, "answer": "changed"}  # fmt: skip
REFUSED = APPROVAL | {"allowed": False, "instead": None, "answer": "told"}
RECEIPT = {"changes": [{"kind": "file", "what": HOSTILE, "before": HOSTILE, "after": HOSTILE,
                        "undo": {"action": HOSTILE}}], "remarks": [HOSTILE], "watched": True}  # fmt: skip


def a_hostile_step(number: int, **changes: Any) -> dict[str, Any]:
    element = {"role": HOSTILE, "name": HOSTILE, "states": [HOSTILE], "window": HOSTILE, "words": HOSTILE,
               "box": {"left": 0, "top": 0, "width": 9, "height": 9}}  # fmt: skip
    action = {
        "target": {"type": "type", "text": HOSTILE}, "action": {"type": "type", "text": HOSTILE},
        "call": {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}, "approval": APPROVAL, "executed": True,
        "detail": HOSTILE, "error": None, "elements": [element], "aim": {"names": [HOSTILE], "window": HOSTILE},
    } | changes  # fmt: skip
    answers = [{"raw": HOSTILE, "failure": {"kind": HOSTILE, "message": HOSTILE}}, {"raw": HOSTILE}]
    before = [{"event": "PersonSaid", "text": HOSTILE}, {"event": "UserActed", "what": HOSTILE},
              {"event": "Paused", "reason": HOSTILE}]  # fmt: skip
    return a_step(
        number, thought=HOSTILE, note=HOSTILE, reply=HOSTILE, error=action["error"], answers=answers, before=before,
        actions=[action, action | {"approval": REFUSED, "executed": False}],
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recorded run in which every text is hostile."""
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path / "state"))
    steps = [a_hostile_step(1), a_hostile_step(2, error=HOSTILE), a_hostile_step(3, target={"type": HOSTILE})]
    told = dict.fromkeys(("id", "instruction", "message", "model", "engine", "family", "version", "started"), HOSTILE)
    undone = [{"kind": HOSTILE, "what": HOSTILE, "at": HOSTILE, "done": False, "words": HOSTILE}]
    runs = tmp_path / "runs\x1b]0;x\x07\u202e"
    return a_bundle(
        runs / "20261121-080405-a-7b81", steps, warnings=[HOSTILE], evidence=[HOSTILE], receipt=RECEIPT,
        undone=undone, outcome="done", **told,
    ).path  # fmt: skip


def checked(text: str, *, shows: bool = True) -> str:
    assert not FORBIDDEN.search(text), FORBIDDEN.findall(text)
    assert "\nforged" not in text
    assert not shows or "M1" in text
    return text


@pytest.mark.parametrize(
    "command",
    [
        lambda run: ["show", str(run)],
        lambda run: ["show", str(run), "--json"],
        lambda run: ["runs", "--runs", str(run.parent)],
        lambda run: ["runs", "--runs", str(run.parent), "--json"],
        lambda run: ["report", str(run)],
        lambda run: ["report", str(run), "--json"],
        lambda run: ["replay", str(run)],
        lambda run: ["replay", str(run), "--json"],
        lambda run: ["undo", str(run), "--dry-run"],
        lambda run: ["undo", str(run), "--dry-run", "--json"],
        lambda run: ["show", f"{run}-{HOSTILE}"],
        lambda run: ["show", HOSTILE.replace("\x00", "")],
        lambda _: ["show", "x", f"--{HOSTILE}"],
        lambda _: ["look", "--monitor", HOSTILE],
        lambda _: ["run", "--approve", HOSTILE, "x"],
        lambda _: ["run", "--sandbox-size", HOSTILE, "x"],
        lambda _: ["run", "--policy", HOSTILE.replace("\x00", ""), "--no-tui", "x"],
        lambda _: ["fit", "--family", HOSTILE, "10x10"],
        lambda _: ["act", "--image", HOSTILE.replace("\x00", ""), "x"],
        lambda _: ["stop", HOSTILE],
        lambda _: ["sandbox", "stop", HOSTILE],
        lambda _: ["parse", "--family", HOSTILE],
        lambda _: ["prompt", "--family", "mai-ui", "--request", HOSTILE.replace("\x00", "")],
    ],
)
def test_no_command_of_the_agent_lets_it_through(
    run: Path, command: Callable[[Path], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    mai_agent(command(run))
    told = capsys.readouterr()
    checked(told.out + told.err, shows=False)
    assert (told.out + told.err).strip()


def test_show_spells_all_of_it_out(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mai_agent(["show", str(run)])
    shown = checked(capsys.readouterr().out)
    assert [mark for mark in MARKS if mark not in shown] == []
    assert "\\x1b]52" in shown
    assert "\\u202egnp.exe" in shown
    assert "[link=https://x.example]here" in shown


def test_the_report_spells_it_out_too(run: Path) -> None:
    page = write_report(run).path.read_text(encoding="utf-8")
    checked(page)
    assert "u202egnp.exe" in page


@pytest.mark.parametrize("as_json", [False, True])
def test_a_stopped_run_with_a_hostile_instruction_is_told_harmlessly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        me = identity_of(process.pid)
        assert me is not None
        (tmp_path / "running").mkdir()
        entry = {"run": f"r-{HOSTILE}", "instruction": HOSTILE, "started": "x", **me.to_json(), "host": platform.node()}
        (tmp_path / "running" / "x.json").write_text(json.dumps(entry))
        try:
            mai_agent(["stop", "--kill", *(["--json"] if as_json else [])])
        finally:
            process.kill()
    told = capsys.readouterr()
    checked(told.out + told.err)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "answer", [act("type", HOSTILE, text=HOSTILE), act(HOSTILE, HOSTILE), f"{HOSTILE} {act('wait')}"]
)
def test_act_prints_hostile_answers_harmlessly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: str, as_json: bool
) -> None:
    Image.new("RGB", (320, 200), "white").save(tmp_path / "screen.png")
    with FakeEndpoint([say(answer)]) as endpoint:
        more = ["--json"] if as_json else []
        mai_agent(["act", "--endpoint", endpoint.url, "--image", str(tmp_path / "screen.png"), *more, "x"])
    told = capsys.readouterr()
    checked(told.out + told.err, shows=as_json)


def test_parse_answers_in_ascii(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"id": HOSTILE, "text": text, "width": 10, "height": 10} for text in (HOSTILE, act("type", text=HOSTILE))]
    read = io.TextIOWrapper(io.BytesIO("\n".join(map(json.dumps, [*lines, HOSTILE])).encode()))
    monkeypatch.setattr("sys.stdin", read)
    mai_agent(["parse", "--family", "mai-ui"])
    checked(capsys.readouterr().out)


def events() -> Iterator[Event]:
    target = TypeText(HOSTILE)
    yield started(HOSTILE)
    for event in step(1):
        match event:
            case ModelDelta():
                yield replace(event, text=HOSTILE)
            case Decided():
                yield replace(event, raw=HOSTILE, thought=HOSTILE, targets=(target, CallTool(HOSTILE, {HOSTILE: 1})))
                yield ApprovalAsked(1, target, HOSTILE, HOSTILE)
                yield ApprovalGiven(1, True, HOSTILE, HOSTILE, instead=target, answer="changed", instead_reason=HOSTILE)
            case Acted():
                yield replace(event, target=target, detail=HOSTILE)
                yield replace(event, target=target, error=HOSTILE, index=1)
            case StepFinished():
                yield replace(event, note=HOSTILE, reply=HOSTILE)
            case _:
                yield event
    yield from (Paused(2, HOSTILE), UserActed(2, HOSTILE), PersonSaid(2, HOSTILE), Warned(HOSTILE))
    yield Receipt((Change("file", HOSTILE, HOSTILE, HOSTILE),), (HOSTILE,))
    yield replace(finished(HOSTILE), evidence=(HOSTILE,))


@pytest.mark.parametrize("printer", [PlainPrinter, JsonPrinter])
def test_a_run_is_printed_harmlessly(printer: Any) -> None:
    out = printed(printer, events())
    checked(out)


def screen_of(app: App[Any]) -> str:
    """What is on the screen, and every link or action that a text on it would carry."""
    strips = app.screen._compositor.render_strips()
    segments = [segment for strip in strips for segment in strip]
    assert not [segment.text for segment in segments if segment.style and segment.style.link]
    actions = {str(segment.style.meta) for segment in segments if segment.style and segment.style.meta}
    assert not [action for action in actions if "x.example" in action]
    return "\n".join(strip.text for strip in strips)


async def test_the_application_lets_nothing_through_that_a_widget_forgot(tmp_path: Path) -> None:
    from textual.content import Content
    from textual.widgets import Static

    from agent.tui.app import MaiApp

    app = MaiApp(RunOptions(settings=Settings(), runs=tmp_path))
    async with app.run_test(size=(100, 20)) as pilot:
        for words in (Content(HOSTILE), "[link='https://x.example']M1[/link]"):
            shown = Static(words)
            shown.styles.dock = "top"
            shown.styles.height = 3
            await app.screen.mount(shown)
        await pilot.pause(0.3)
        checked(screen_of(app))


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 12)])
async def test_the_application_shows_a_hostile_run_harmlessly(run: Path, size: tuple[int, int]) -> None:
    from agent.tui.app import MaiApp
    from agent.tui.screens.recorded import RecordedScreen
    from agent.tui.screens.runs import RunsScreen

    app = MaiApp(RunOptions(settings=Settings(), runs=run.parent))
    seen = ""
    async with app.run_test(size=size) as pilot:
        await app.push_screen(RunsScreen(run.parent, lambda _: None))
        await pilot.pause(0.5)
        seen += screen_of(app)
        await app.push_screen(RecordedScreen(run))
        await pilot.pause(0.5)
        for key in ("v", "v", "v", "down", "v", "v", "v", "down", "down", "v", "enter", "v"):
            await pilot.press(key)
            await pilot.pause()
            seen += screen_of(app)
        app.screen.notify(HOSTILE, title="hostile")
        await pilot.pause(0.3)
        seen += screen_of(app)
    checked(seen)


@pytest.mark.parametrize(
    "command",
    [
        ["logs"], ["logs", "--json"], ["diagnose"], ["diagnose", "--json"], ["status"], ["status", "--json"],
        ["diagnose", HOSTILE.replace("\x00", "")], ["logs", "--name", HOSTILE], [HOSTILE], ["up", f"--{HOSTILE}"],
        ["plan", "--gpu", HOSTILE], ["plan", "--gpu", "L4", "--model", HOSTILE.replace("\x00", "")],
        ["plan", "--gpu", "L4", "--model", "MAI-UI-8B", "--set", f"x={HOSTILE}"], ["export", HOSTILE],
    ],
)  # fmt: skip
def test_no_command_of_the_server_lets_it_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    from serverctl.process.state import Folder

    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path))
    monkeypatch.setattr("serverctl.process.state.servers_root", lambda: tmp_path)
    folder = Folder("default")
    folder.make()
    log = f"2026-11-21T08:04:05.540Z (APIServer pid=1) INFO {HOSTILE}\n2026-11-21T08:04:05.540Z vLLM 0.33.0 {HOSTILE}\n"
    error = f"2026-11-21T08:04:06.540Z torch.OutOfMemoryError: CUDA out of memory. {HOSTILE}\n"
    folder.log_file.write_bytes((log + error).encode("utf-8", "replace"))
    state = {"name": "default", "phase": "failed", "message": HOSTILE, "model": HOSTILE,
             "failure": {"title": HOSTILE, "cause": HOSTILE, "evidence": HOSTILE, "remedy": HOSTILE}}  # fmt: skip
    folder.state_file.write_text(json.dumps(state))
    status = mai_server(command)
    told = capsys.readouterr()
    checked(told.out + told.err, shows=False)
    assert (told.out + told.err).strip(), status
