"""The gate in vLLM: every path needs the key."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from stubs.controlled import Machine

from serverctl.load.client import OURS
from serverctl.process import in_vllm
from serverctl.process.in_vllm.mai_gate import KEY, Gate

SECRET = "s3cret"
WITH_KEY = (b"authorization", f"Bearer {SECRET}".encode())
NO_KEY = (b"host", b"127.0.0.1")


class Server:
    """vLLM behind a gate: it answers 200, and counts who came to it."""

    def __init__(self) -> None:
        self.came = 0
        self.gate = Gate(self._serve)

    async def _serve(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.came += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def ask(
        self, path: str, method: str, *headers: tuple[bytes, bytes], **scope: Any
    ) -> tuple[int, dict[bytes, bytes], Any]:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.gate({"type": "http", "path": path, "method": method, "headers": [*headers], **scope}, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SECRET)


@pytest.mark.parametrize(
    ("path", "method", "header"),
    [
        *((path, "POST", NO_KEY) for path in ("/invocations", "/tokenize", "/v1/chat/completions", "/health", "/x")),
        *((path, "GET", NO_KEY) for path in ("/version", "/v1/models", "/metrics/x", "/health/", "//health")),
        ("/v1/models", "OPTIONS", NO_KEY),
        ("/tokenize", "POST", (OURS.encode(), b"1")),
        *(
            ("/tokenize", "POST", (b"authorization", value))
            for value in (b"Bearer wrong", b"Bearer ", b"Bearer", b"Basic " + SECRET.encode(), SECRET.encode(), b"")
        ),
    ],
)
def test_every_path_known_or_not_needs_the_key(path: str, method: str, header: Any) -> None:
    server = Server()
    status, headers, body = asyncio.run(server.ask(path, method, header))
    assert (status, headers[b"www-authenticate"], server.came) == (401, b"Bearer", 0)
    assert "needs its key" in body["error"]["message"]
    assert asyncio.run(server.ask(path, method, WITH_KEY))[0] == 200


def test_two_authorizations_are_none() -> None:
    assert asyncio.run(Server().ask("/tokenize", "POST", WITH_KEY, (b"authorization", b"Bearer wrong")))[0] == 401


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_probers_need_no_key_also_below_a_prefix(path: str) -> None:
    assert asyncio.run(Server().ask(path, "GET", NO_KEY))[0] == 200
    assert asyncio.run(Server().ask(f"/gui{path}", "GET", NO_KEY, root_path="/gui"))[0] == 200
    assert asyncio.run(Server().ask(f"/gui{path}", "GET", NO_KEY))[0] == 401


def test_a_server_that_was_given_no_key_answers_probers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY)
    for header in (NO_KEY, (b"authorization", b"Bearer "), WITH_KEY):
        assert asyncio.run(Server().ask("/v1/models", "GET", header))[0] == 401
    assert asyncio.run(Server().ask("/health", "GET", NO_KEY))[0] == 200


def test_a_websocket_needs_the_key() -> None:
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


def test_every_server_gets_a_gate_and_nothing_else_of_ours_or_the_persons_on_its_path(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/the/person")
    machine.up()
    assert machine.flags()["--middleware"] == "mai_gate.Gate"
    environ = machine.starts[0]["environ"]
    assert environ["PYTHONPATH"] == str(Path(in_vllm.__file__).parent)
    assert {path.name for path in Path(environ["PYTHONPATH"]).glob("*.py")} == {"__init__.py", "mai_gate.py"}
