"""A server's gate: new requests are asked to come again before their server goes away; those inside finish."""

import asyncio
import base64
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from stubs.controlled import PATIENCE, Machine

from serverctl.load.tune.seen import noting
from serverctl.process import api_key_gate as gate
from serverctl.process import in_vllm
from serverctl.process.in_vllm.mai_gate import FILE, INSIDE, KEY, OURS, Gate, picture_size
from serverctl.process.state import Folder

SECRET = "s3cret"
WITH_KEY = (b"authorization", f"Bearer {SECRET}".encode())


class Server:
    """vLLM behind a gate: it answers 200 as soon as it may, and counts who came to it."""

    def __init__(self, reads: bool = False) -> None:
        self.reads = reads
        self.may = asyncio.Event()
        self.may.set()
        self.came = 0
        self.gate = Gate(self._serve)

    async def _serve(self, _scope: Any, receive: Any, send: Any) -> None:
        self.came += 1
        while self.reads and (await receive()).get("more_body"):
            pass
        await self.may.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def ask(
        self, path: str = "/v1/chat/completions", method: str = "POST", *headers: tuple[bytes, bytes], **scope: Any
    ) -> tuple[int, dict[bytes, bytes], Any]:
        """Ask with the key, unless headers are given."""
        body = scope.pop("body", b"")
        pieces = (body[:9], body[9:], b"")
        parts = iter([{"type": "http.request", "body": piece, "more_body": bool(piece)} for piece in pieces])
        if not body:
            parts = iter([{"more_body": True}, {"more_body": True}, {"more_body": False}])
        self.read = 0
        sent: list[Any] = []

        async def receive() -> Any:
            self.read += 1
            return next(parts)

        async def send(message: Any) -> None:
            sent.append(message)

        known = {"type": "http", "path": path, "method": method, "headers": [*(headers or [WITH_KEY])], **scope}
        await self.gate(known, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    made = Folder("default")
    made.make()
    monkeypatch.setenv(FILE, str(made.gate_file))
    monkeypatch.setenv(KEY, SECRET)
    return made


def png(width: int, height: int) -> str:
    data = io.BytesIO()
    Image.new("RGB", (width, height)).save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def test_shapes_are_noted_only_while_somebody_looks_and_hold_no_content(folder: Folder) -> None:
    shown = [{"type": "text", "text": "My password"}, {"type": "image_url", "image_url": {"url": png(64, 48)}}]
    history = [{"role": "system", "content": "word " * 200}, {"role": "user", "content": shown}]
    body = json.dumps({"messages": history}).encode()

    async def scenario() -> list[Any]:
        server = Server(reads=True)
        await server.ask(body=body)
        with noting(folder.look_file, folder.seen_file) as shapes:
            assert not folder.seen_file.exists()
            assert [(await server.ask(body=body))[0] for _ in range(2)] == [200, 200]
            await server.ask("/v1/chat/completions", "POST", WITH_KEY, (OURS.encode(), b"1"), body=body)
            await server.ask(body=b"no JSON")
            assert "password" not in folder.seen_file.read_text()
        return shapes

    first, second = asyncio.run(scenario())
    assert first == second
    (system, texts), (user, pieces) = first
    assert (system, user) == ("system", "user")
    assert [length for _, length in texts] == [512, 488]
    assert (pieces[0][1], pieces[1][1:]) == (11, [64, 48])
    assert not folder.look_file.exists()
    assert not folder.seen_file.exists()


@pytest.mark.parametrize(("form", "options"), [("PNG", {}), ("JPEG", {}), ("WEBP", {}), ("WEBP", {"lossless": True})])
def test_the_size_of_a_picture_is_read_from_its_first_bytes(form: str, options: dict[str, Any]) -> None:
    data = io.BytesIO()
    Image.new("RGB", (301, 77)).save(data, form, **options)
    assert picture_size(data.getvalue()) == (301, 77)


NO_KEY = (b"host", b"127.0.0.1")


@pytest.mark.parametrize(
    ("path", "method", "header"),
    [
        *((path, "POST", NO_KEY) for path in ("/invocations", "/tokenize", "/v1/chat/completions", "/health", "/x")),
        *((path, "GET", NO_KEY) for path in ("/version", "/v1/models", INSIDE, "/metrics/x", "/health/", "//health")),
        ("/v1/models", "OPTIONS", NO_KEY),
        ("/tokenize", "POST", (OURS.encode(), b"1")),
        *(
            ("/tokenize", "POST", (b"authorization", value))
            for value in (b"Bearer wrong", b"Bearer ", b"Bearer", b"Basic " + SECRET.encode(), SECRET.encode(), b"")
        ),
    ],
)
def test_every_path_known_or_not_needs_the_key(folder: Folder, path: str, method: str, header: Any) -> None:
    server = Server()
    status, headers, body = asyncio.run(server.ask(path, method, header))
    assert (status, headers[b"www-authenticate"], server.came) == (401, b"Bearer", 0)
    assert "needs its key" in body["error"]["message"]


def test_two_authorizations_are_none(folder: Folder) -> None:
    assert asyncio.run(Server().ask("/tokenize", "POST", WITH_KEY, (b"authorization", b"Bearer wrong")))[0] == 401


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_probers_need_no_key_also_below_a_prefix(folder: Folder, path: str) -> None:
    assert asyncio.run(Server().ask(path, "GET", NO_KEY))[0] == 200
    assert asyncio.run(Server().ask(f"/gui{path}", "GET", NO_KEY, root_path="/gui"))[0] == 200
    assert asyncio.run(Server().ask(f"/gui{path}", "GET", NO_KEY))[0] == 401


def test_a_server_that_was_given_no_key_answers_probers_only(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY)
    for header in (NO_KEY, (b"authorization", b"Bearer "), WITH_KEY):
        assert asyncio.run(Server().ask("/v1/models", "GET", header))[0] == 401
    assert asyncio.run(Server().ask("/health", "GET", NO_KEY))[0] == 200


def test_a_websocket_needs_the_key(folder: Folder) -> None:
    async def play(header: tuple[bytes, bytes]) -> tuple[list[Any], int]:
        sent: list[Any] = []
        came: list[Any] = []

        async def serve(scope: Any, _receive: Any, _send: Any) -> None:
            came.append(scope)

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {}

        await Gate(serve)({"type": "websocket", "path": "/v1/realtime", "headers": [header]}, receive, send)
        return sent, len(came)

    assert asyncio.run(play(NO_KEY)) == ([{"type": "websocket.close", "code": 1008}], 0)
    assert asyncio.run(play(WITH_KEY)) == ([], 1)


def test_a_shut_gate_asks_clients_to_come_again_and_lets_the_controller_and_looks_in(folder: Folder) -> None:
    async def play() -> None:
        server = Server()
        assert (await server.ask())[0] == 200
        folder.shut_gate()
        status, headers, body = await server.ask()
        assert (status, headers[b"retry-after"]) == (503, b"10")
        assert headers[b"connection"] == b"close", "a kept one would break under the next request"
        assert "try again in 10 s" in body["error"]["message"]
        assert server.read == 3, "who still sends pictures would see a broken pipe instead of the answer"
        assert server.came == 1
        assert (await server.ask("/metrics", "GET"))[0] == 200
        assert (await server.ask("/v1/chat/completions", "POST", (OURS.encode(), b"1"), WITH_KEY))[0] == 200
        folder.open_gate()
        assert (await server.ask())[0] == 200

    asyncio.run(play())


def test_a_gate_tells_how_many_requests_are_inside_until_they_have_their_answers(folder: Folder) -> None:
    async def play() -> None:
        server = Server()
        server.may.clear()
        asked = [asyncio.create_task(server.ask()) for _ in range(3)]
        await asyncio.sleep(0)
        folder.shut_gate()
        assert (await server.ask(INSIDE, "GET"))[2] == {"inside": 3}
        server.may.set()
        assert [status for status, *_ in await asyncio.gather(*asked)] == [200, 200, 200]
        assert (await server.ask(INSIDE, "GET"))[2] == {"inside": 0}

    asyncio.run(play())


def test_a_gate_opens_with_the_end_of_a_restart_and_not_before(folder: Folder) -> None:
    with folder.restarting():
        folder.open_gate()
        assert folder.gate_file.exists()
    assert not folder.gate_file.exists()


def test_every_server_gets_a_gate_and_nothing_else_of_ours_or_the_persons_on_its_path(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/the/person")
    machine.up()
    assert machine.flags()["--middleware"] == "mai_gate.Gate"
    environ = machine.starts[0]["environ"]
    assert environ["PYTHONPATH"] == str(Path(in_vllm.__file__).parent)
    assert {path.name for path in Path(environ["PYTHONPATH"]).glob("*.py")} == {"__init__.py", "mai_gate.py"}
    assert environ[FILE] == str(Folder("default").gate_file)
    port = machine.state().port
    assert port is not None
    assert gate.inside(port, Folder("default").key()) is None, "a server without one is taken for what it is"


def test_a_gate_that_a_killed_program_left_shut_is_opened_again(machine: Machine) -> None:
    machine.up()
    folder = Folder("default")
    folder.shut_gate()
    end = time.monotonic() + PATIENCE
    while folder.gate_file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.gate_file.exists()
