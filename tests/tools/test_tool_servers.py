"""MCP servers whose tools a model may call: hosts' files are read, and a server that misbehaves does no harm."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from mcp_types import Tool
from stubs.display import PlainDisplay
from stubs.endpoint import DONE, FakeEndpoint, say, texts
from stubs.program import Program, environ_without_display

from agent.record.read import list_bundles
from agent.run.loop.context import ToolAnswer, ToolFailedError
from agent.tools import connections
from agent.tools.connections import ServerTools, open_tools
from agent.tools.servers import ToolServer, read_tool_servers
from foundation.errors import UsageError

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[1] / "stubs/tool_server.py"


def stdio(how: str = "stdio", **more: Any) -> ToolServer:
    return ToolServer(command=sys.executable, args=(str(SERVER), how), **more)


def using(work: Callable[[ServerTools], Awaitable[None]], **servers: ToolServer) -> None:
    async def main() -> None:
        async with open_tools(servers) as tools:
            await work(tools)

    asyncio.run(main())
    assert not [one for one in psutil.Process().children(recursive=True) if str(SERVER) in one.cmdline()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude.json", '{"mcpServers": {"notes": {"type": "stdio", "command": "python", "args": ["-m", "n"]}}}'),
        ("mcp.json", '{// of VS Code\n"servers": {"notes": {"command": "python", "args": ["-m", "n"]}}}'),
        ("zed.json", '\ufeff{"context_servers": {"notes": {"command": "python", "args": ["-m", "n"]},},}'),
        ("opencode.json", '{"mcp": {"notes": {"type": "local", "command": ["python", "-m", "n"], "enabled": true}}}'),
        ("goose.yaml", "extensions:\n  notes: {type: stdio, cmd: python, args: [-m, n], enabled: true, envs: {A: b}}"),
        ("codex.toml", '[mcp_servers.notes]\ncommand = "python"\nargs = ["-m", "${WHICH}"]'),
        ("with-a-url.json", '{"mcpServers": {"notes": {"command": "python", "args": ["-m", "n"], "env": {"U": "http://x"}}}}'),
    ],
)  # fmt: skip
def test_the_files_of_hosts_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv("WHICH", "n")
    file = tmp_path / name
    file.write_text(text)
    server = read_tool_servers(file)["notes"]
    assert (server.command, server.args) == ("python", ("-m", "n"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ("[]", "lists no MCP servers"),
        ('{"mcpServers": []}', "lists no MCP servers"),
        ('{"mcpServers": {"a": {}}}', "needs a command or a url"),
        ('{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}', "needs a command or a url"),
        ('{"mcpServers": {"a": {"command": 5}}}', "a.command"),
        ('{"mcpServers": {"a": 5}}', "a: "),
        ('{"mcpServers": {"a": {"command": "x", "timeout": 0}}}', "a.timeout"),
    ],
)
def test_a_file_that_is_wrong_is_said(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "servers.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=says):
        read_tool_servers(file)


def test_a_server_that_is_switched_off_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    for text in (
        '{"mcpServers": {"a": {"command": "x", "disabled": true}}}',
        '{"mcp": {"a": {"command": ["x"], "enabled": false}}}',
        '{"extensions": {"a": {"type": "builtin", "name": "a", "enabled": true}}}',
    ):
        file.write_text(text)
        assert read_tool_servers(file) == {}


def test_the_reference_servers_of_the_protocol_are_used(tmp_path: Path) -> None:
    for words in (
        ["init", "-q"],
        ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "first", "--allow-empty"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)

    async def work(tools: ServerTools) -> None:
        assert tools.remarks == []
        times = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        converted = json.loads((await tools.call("time__convert_time", times)).text)
        assert converted["time_difference"] in ("+7.0h", "+8.0h")
        assert "first" in (await tools.call("git__git_log", {"repo_path": str(tmp_path)})).text
        with pytest.raises(ToolFailedError):
            await tools.call("git__git_log", {"repo_path": str(tmp_path / "nothing")})

    servers = {
        name: ToolServer(command=sys.executable, args=("-m", f"mcp_server_{name}", *more))
        for name, more in (("time", ()), ("git", ("--repository", str(tmp_path))))
    }
    using(work, **servers)


def test_tools_are_named_after_their_server_and_called(tmp_path: Path) -> None:
    async def work(tools: ServerTools) -> None:
        assert tools.remarks == []
        (add,) = [one for one in tools.definitions if one["name"] == "notes__add"]
        assert add["description"] == "Add a note."
        assert add["parameters"]["required"] == ["text"]
        added = await tools.call("notes__add", {"text": "milk"})
        assert added == ToolAnswer(r"The notes have 4 letters more.\x1b[31m")
        assert len((await tools.call("notes__flood", {})).text) < 10_000
        pictured = await tools.call("notes__picture", {})
        assert pictured.text == "a picture:\n[picture 1]"
        assert pictured.pictures[0].startswith(b"\x89PNG")

    using(work, notes=stdio(env={"NOTES": str(tmp_path / "notes")}))
    assert (tmp_path / "notes").read_text() == "milk\n"


def test_what_fails_or_hangs_or_dies_is_said_and_the_others_work_on(tmp_path: Path) -> None:
    async def work(tools: ServerTools) -> None:
        for call, says in {
            ("notes__fail", "fail failed: "),
            ("hung__hang", "did not answer within 0.5 s"),
            ("notes__add", "text"),  # its argument is missing
            ("frozen__freeze", "did not answer within 0.5 s"),
            ("dead__die", "failed|ended"),
            ("dead__add", "failed|ended"),
        }:
            with pytest.raises(ToolFailedError, match=says):
                await tools.call(call, {})
        assert await tools.call("notes__add", {"text": "x"})

    notes = tmp_path / "notes"
    using(
        work,
        notes=stdio(env={"NOTES": str(notes)}),
        hung=stdio(env={"NOTES": str(notes)}, timeout=0.5),
        frozen=stdio(timeout=0.5),
        dead=stdio(timeout=5),
    )
    assert "cancelled" in notes.read_text()


def test_a_server_that_does_not_start_costs_its_tools_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_START", 12.0)

    async def work(tools: ServerTools) -> None:
        assert {name.split("__")[0] for name in tools.names} == {"notes"}
        broken, missing, silent, refused = sorted(tools.remarks)[:4]
        assert "broken does not work; its tools are not offered: no module named notes" in broken
        assert "missing does not work" in missing
        assert "refused does not work" in silent
        assert "silent did not start within 12 s" in refused

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    using(work, notes=stdio(), broken=stdio("broken"), missing=ToolServer(command="/no/such/program"),
          silent=stdio("silent"), refused=ToolServer(url=nobody))  # fmt: skip


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    with subprocess.Popen([sys.executable, str(SERVER), str(number)], stderr=subprocess.DEVNULL) as process:
        for _ in range(300):
            if process.poll() is None and socket.socket().connect_ex(("127.0.0.1", number)) == 0:
                break
            psutil.Process().cpu_percent(0.1)
        yield number
        process.kill()


def test_a_server_is_asked_over_http(port: int) -> None:
    async def work(tools: ServerTools) -> None:
        assert tools.remarks == []
        assert "letters more" in (await tools.call("notes__add", {"text": "milk"})).text

    asyncio.run(_over(work, ToolServer(url=f"http://127.0.0.1:{port}/mcp")))


async def _over(work: Callable[[ServerTools], Awaitable[None]], server: ToolServer) -> None:
    async with open_tools({"notes": server}) as tools:
        await work(tools)


_ARGUMENTS = {"name": "notes__add", "arguments": {"text": "milk"}}
CALL = f"<thinking>\nI note it.\n</thinking>\n<tool_call>\n{json.dumps(_ARGUMENTS)}\n</tool_call>"


@pytest.mark.e2e
def test_a_file_that_is_missing_is_said_before_anything_is_started(tmp_path: Path) -> None:
    words = ("--sandbox", "--engine", "literal", "--tools", str(tmp_path / "none.json"), "x")
    with Program(tmp_path / "home", environ_without_display(), *words) as program:
        assert program.wait() == 2
        assert "cannot be read" in program.err
        assert "starting" not in program.err
        assert list_bundles(program.runs) == []


@pytest.mark.e2e
@pytest.mark.parametrize("approve", ["never", "risky"])
def test_a_model_is_told_the_tools_and_calls_one_if_it_may(tmp_path: Path, approve: str) -> None:
    file, notes = tmp_path / "servers.json", tmp_path / "notes"
    entry = {"command": sys.executable, "args": [str(SERVER), "stdio"], "env": {"NOTES": str(notes)}}
    file.write_text(json.dumps({"mcpServers": {"notes": entry}}))
    with PlainDisplay() as display, FakeEndpoint([say(CALL), say(DONE)]) as endpoint:
        words = ("--endpoint", endpoint.url, "--approve", approve, "--tools", str(file), "note that I need milk")
        with Program(tmp_path / "home", display.environ, *words) as program:
            program.wait()
            told = program.out + program.err
            assert program.left_over() == []
        asked = "\n".join(texts(endpoint.requests[0]))
        assert "notes__add" in asked
        assert "Add a note." in asked
        if approve == "never":
            assert notes.read_text() == "milk\n"
            assert "letters more" in "\n".join(texts(endpoint.requests[1]))
        else:  # nobody is there to ask
            assert not notes.exists()
            assert "tools act outside of the desktop" in told


def test_a_server_with_many_tools_leaves_places_for_the_others() -> None:
    def connection(name: str, count: int) -> Any:
        tools = [Tool(name=f"tool{at}", input_schema={"type": "object"}) for at in range(count)]
        return SimpleNamespace(name=name, tools=tools, remark="")

    found = ServerTools([connection("many", 300), connection("few", 3)])
    assert {f"few__tool{at}" for at in range(3)} < set(found.names)
    assert len(found.names) == 40
    assert "263 tools are not offered" in found.remarks[0]
