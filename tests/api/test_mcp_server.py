"""The MCP server, driven by the SDK's own client: tasks, progress, approvals, cancellation, the token."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from agent.recipes.files import keep_recipe
from agent.recipes.recipe import Recipe
from agent.record.read import list_bundles
from agent.sandbox.desktop import find_sandboxes

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(240)]
PASSED = ("PATH", "HOME", "TMPDIR", "MAI_AGENT_CONFIG", "MAI_AGENT_DATA")
ELICIT = "elicitation_callback"


def environ() -> dict[str, str]:
    kept = {name: os.environ[name] for name in PASSED if name in os.environ}
    return kept | {"PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}


@asynccontextmanager
async def a_client(
    runs: Path, *options: str, mode: str = "auto", more: dict[str, str] | None = None, **callbacks: Any
) -> AsyncIterator[Client]:
    words = ["-m", "agent", "mcp", "--sandbox", "--engine", "literal", "--runs", str(runs), *options]
    server = StdioServerParameters(command=sys.executable, args=words, env=environ() | (more or {}))
    async with Client(stdio_client(server), mode=mode, **callbacks) as client:
        yield client


def answering(asked: list[str], **content: Any) -> dict[str, Any]:
    async def answer(_: Any, question: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(question.message)
        return types.ElicitResult(action="accept" if content else "decline", content=content or None)

    return {ELICIT: answer}


def told(result: types.CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    (text,) = result.content
    assert isinstance(text, types.TextContent)
    answer: dict[str, Any] = json.loads(text.text)
    return answer


def test_a_recipe_is_listed_and_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAI_AGENT_DATA", str(tmp_path / "data"))
    steps = [{"open": "mousepad"}, {"type": {"text": "{text}", "in": "* - Mousepad"}}]
    data = {"version": 1, "instruction": "write {text}", "parameters": {"text": "hello"}, "steps": steps}
    keep_recipe(Recipe.model_validate(data), "write")

    async def main() -> None:
        async with a_client(tmp_path / "runs", "--sandbox-size", "1280x800") as client:
            listed = (await client.call_tool("recipes", {})).content[0].text
            assert json.loads(listed) == [
                {"name": "write", "instruction": "write {text}", "parameters": {"text": "hello"}}
            ]
            done = told(await client.call_tool("repeat", {"name": "write", "values": {"text": "good morning"}}))
            assert done["done"], done
            assert "good morning" in done["message"]
            path = await client.call_tool("repeat", {"name": str(tmp_path / "data/recipes/write.yaml")})
            assert path.is_error

    asyncio.run(main())


def test_a_task_is_done_with_progress_and_its_record_can_be_read(tmp_path: Path) -> None:
    steps: list[str] = []

    async def progress(_: float, __: float | None, message: str | None) -> None:
        steps.append(message or "")

    async def main() -> None:
        async with a_client(tmp_path) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"do", "repeat", "recipes", "act", "look", "ask", "undo"}
            assert tools["do"].annotations.destructive_hint
            assert tools["look"].annotations.read_only_hint
            call = client.call_tool(
                "do", {"instruction": "open settings and enable dark mode"}, progress_callback=progress
            )
            done = told(await call)
            assert done["done"], done
            assert any("Adwaita-dark" in change for change in done["changes"])
            listed = json.loads((await client.read_resource("mai-agent://runs")).contents[0].text)
            assert [one["run"] for one in listed] == [done["run"]]
            run = json.loads((await client.read_resource(f"mai-agent://runs/{done['run']}")).contents[0].text)
            assert run["outcome"] == "done"
            report = (await client.read_resource(f"mai-agent://runs/{done['run']}/report")).contents[0].text
            assert "<html" in report
            seen = await client.call_tool("look", {"picture": True})
            assert [type(part).__name__ for part in seen.content] == ["TextContent", "ImageContent"]
            pictured = await client.call_tool("do", {"instruction": "press f10", "picture": True})
            assert [type(part).__name__ for part in pictured.content] == ["TextContent", "ImageContent"]
            missing = await client.call_tool("act", {"action": "press", "text": "no such key"})
            assert missing.is_error

    asyncio.run(main())
    assert any("Settings" in step for step in steps), steps
    assert not list(find_sandboxes())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_person_decides_and_never_the_calling_model(tmp_path: Path, mode: str) -> None:
    async def main(**callbacks: Any) -> dict[str, Any]:
        async with a_client(tmp_path, "--approve", "risky", mode=mode, **callbacks) as client:
            await client.call_tool("act", {"action": "open", "text": "mousepad"})
            return told(await client.call_tool("act", {"action": "press", "text": "ctrl+q"}))

    asked: list[str] = []
    refused = asyncio.run(main(**answering(asked)))
    assert not refused["done"]
    assert not any(step["executed"] for step in refused["steps"])
    assert "ctrl+q" in asked[0]
    assert asyncio.run(main(**answering(asked, allow=True)))["done"]
    if mode == "auto":
        nobody = asyncio.run(main())
        assert not nobody["done"]
        assert "needs a person's approval" in nobody["message"]


#: In place of a browser: opens the page, keeps what the page shows, and gives the answer of its second argument.
BROWSER = """
import json, sys, time
import httpx2 as httpx
link, answer, kept = sys.argv[-1], sys.argv[1], sys.argv[2]
with httpx.Client(follow_redirects=True) as browser:
    page = browser.get(link)
    while (seen := browser.get(page.url.join("/data")).json())["live"]["question"] is None:
        time.sleep(0.05)
    open(kept, "w").write(json.dumps({"link": link, "live": seen["live"], "steps": len(seen["steps"])}))
    said = {"question": seen["live"]["question"]["id"], "answer": answer, "text": ""}
    origin = str(page.url.join("/")).rstrip("/")
    browser.post(page.url.join("/decide"), json=said, headers={"Origin": origin}).raise_for_status()
"""


@pytest.mark.parametrize("answer", ["allow", "refuse"])
def test_where_the_host_cannot_ask_a_page_opens_in_the_persons_browser(tmp_path: Path, answer: str) -> None:
    kept, program = tmp_path / "kept.json", tmp_path / "browser"
    program.with_suffix(".py").write_text(BROWSER)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {program}.py {answer} {kept} "$@"\n')
    program.chmod(0o755)
    messages: list[str] = []

    async def progress(_: float, __: float | None, message: str | None) -> None:
        messages.append(message or "")

    async def main() -> dict[str, Any]:
        more = {"BROWSER": str(program), "DISPLAY": ":no-such"}
        async with a_client(tmp_path / "runs", "--approve", "risky", more=more) as client:
            await client.call_tool("act", {"action": "open", "text": "mousepad"})
            press = {"action": "press", "text": "ctrl+q"}
            return told(await client.call_tool("act", press, progress_callback=progress))

    done = asyncio.run(main())
    assert done["done"] is (answer == "allow")
    shown = json.loads(kept.read_text())
    assert "ctrl+q" in shown["live"]["question"]["what"]
    assert (shown["live"]["state"], shown["live"]["running"], shown["steps"]) == ("IT ASKS YOU", True, 1)
    assert any("in your browser" in message for message in messages)
    assert shown["link"].partition("key=")[2] not in json.dumps([done, messages]), "the model could answer itself"


def test_a_call_that_the_host_cancels_stops_at_once(tmp_path: Path) -> None:
    """Each key press opens a numbered document, so the title counts what still reaches the sandbox."""
    presses = 30

    async def documents(client: Client) -> int:
        (window,) = told(await client.call_tool("look"))["windows"]
        return int(window["title"].removeprefix("Untitled ").removesuffix(" - Mousepad"))

    async def main() -> None:
        second = asyncio.Event()

        async def progress(number: float, _: float | None, __: str | None) -> None:
            if number >= 2:
                second.set()

        async with a_client(tmp_path, mode="legacy") as client:
            await client.call_tool("act", {"action": "open", "text": "mousepad"})
            sentence = ", ".join(["press ctrl+n"] * presses)
            call = asyncio.ensure_future(client.call_tool("do", {"instruction": sentence}, progress_callback=progress))
            await asyncio.wait_for(second.wait(), 60)
            call.cancel()
            await asyncio.sleep(1)  # the document of the last press may open late
            before = await documents(client)  # answers only if the cancelled call has given the desktop back
            await asyncio.sleep(2)
            assert 1 < before == await documents(client) < presses

    asyncio.run(main())
    assert sorted(one.outcome for one in list_bundles(tmp_path)) == ["done", "stopped"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_that_is_cancelled_while_its_question_waits_gives_the_desktop_back(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        asked, never = asyncio.Event(), asyncio.Event()

        async def answer(_: Any, __: types.ElicitRequestParams) -> types.ElicitResult:
            asked.set()
            await never.wait()
            raise AssertionError

        async with a_client(tmp_path, "--approve", "risky", mode=mode, **{ELICIT: answer}) as client:
            await client.call_tool("act", {"action": "open", "text": "mousepad"})
            call = asyncio.ensure_future(client.call_tool("act", {"action": "press", "text": "ctrl+q"}))
            await asyncio.wait_for(asked.wait(), 60)
            call.cancel()
            (window,) = told(await asyncio.wait_for(client.call_tool("look"), 30))["windows"]
            assert "Mousepad" in window["title"]
            press = {"action": "type", "text": "still here"}
            assert told(await asyncio.wait_for(client.call_tool("act", press), 60))["done"]

    asyncio.run(main())
    assert sorted(one.outcome for one in list_bundles(tmp_path)) == ["done", "done", "stopped"]


def test_questions_beyond_what_a_host_answers_in_one_call_are_refused(tmp_path: Path) -> None:
    asked: list[str] = []

    async def main() -> dict[str, Any]:
        async with a_client(tmp_path, "--approve", "ask", **answering(asked, allow=True)) as client:
            await client.call_tool("act", {"action": "open", "text": "mousepad"})
            asked.clear()
            sentence = ", ".join(f"press f{number % 4 + 5}" for number in range(12))
            return told(await client.call_tool("do", {"instruction": sentence}))

    done = asyncio.run(main())
    assert not done["done"]
    assert len(asked) == 10
    assert sum(step["executed"] and step["action"].startswith("press") for step in done["steps"]) == 10, done


@pytest.fixture
def over_http(tmp_path: Path) -> Any:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "agent", "mcp", "--sandbox", "--engine", "literal", "--http", str(port)],
        env=environ() | {"MAI_AGENT_MCP_TOKEN": "sesame"}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stderr is not None
    assert "$MAI_AGENT_MCP_TOKEN" in server.stderr.readline()
    yield f"http://127.0.0.1:{port}/mcp"
    server.send_signal(signal.SIGINT)
    assert server.wait(20) in (0, 130, -signal.SIGINT)


def test_http_is_answered_with_the_token_and_from_this_host_only(over_http: str) -> None:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    accept = {"Accept": "application/json, text/event-stream"}

    def status(**headers: str) -> int:
        for _ in range(100):
            try:
                return httpx.post(over_http, json=hello, headers=accept | headers).status_code
            except httpx.ConnectError:
                time.sleep(0.1)
        raise AssertionError("no server")

    assert status() == 401
    assert status(Authorization="Bearer simsim") == 401
    assert status(Authorization="Bearer sesame") == 200
    assert status(Authorization="Bearer sesame", Origin="http://evil.example") == 403
    assert status(Authorization="Bearer sesame", Host="evil.example") == 421


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("called", [False, True])
def test_a_signal_ends_it_while_its_host_holds_standard_input(tmp_path: Path, number: int, called: bool) -> None:
    words = [sys.executable, "-m", "agent", "mcp", "--sandbox", "--engine", "literal", "--runs", str(tmp_path)]
    server = subprocess.Popen(words, env=environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = {"name": "do", "arguments": {"instruction": "wait 30 seconds"}}
    says = [{"id": 1, "method": "initialize", "params": client}, {"method": "notifications/initialized"}]
    says += [{"id": 2, "method": "tools/call", "params": call}] if called else []
    for one in says:
        print(json.dumps({"jsonrpc": "2.0"} | one), file=server.stdin, flush=True)
    server.stdout.readline()
    end = time.monotonic() + 30
    while called and not list(tmp_path.glob("*/run.json")):
        assert time.monotonic() < end
        time.sleep(0.1)
    server.send_signal(number)
    assert server.wait(20) == 128 + number


def test_a_host_that_has_gone_is_no_mistake_of_the_program(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "agent", "mcp", "--sandbox", "--engine", "literal", "--runs", str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    server = subprocess.Popen(words, env=environ(), text=True, **pipes)  # type: ignore[call-overload]
    server.stdout.close()
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}), file=server.stdin)
    server.stdin.close()
    said = server.stderr.read()
    assert server.wait(20) == 0
    assert said == ""
