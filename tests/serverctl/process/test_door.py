"""A server's door: clients keep their address while engines come and go; what runs ends, what comes waits."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx2
import pytest
from stubs.controlled import TIMEOUT, Machine, tiny_model

from serverctl import endpoint
from serverctl.load.client import OURS, on_loopback
from serverctl.process import control, probe
from serverctl.process.probe import INSIDE
from serverctl.process.request import ServerRequest, read_request
from serverctl.process.state import Folder
from serverctl.process.supervisor import door as doors
from serverctl.process.supervisor.door import Door

pytestmark = pytest.mark.slow

KEY = "s3cret"
CHAT = "/v1/chat/completions"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    made = Folder("default")
    made.make()
    return made


class Engine:
    """An HTTP server that tells what it got, in pieces, as soon as it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.left = 0  # clients that went before their answer
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        sizes = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(int(sizes[0]) if sizes else 0))
        leaving = asyncio.create_task(reader.read(1))
        waiting = asyncio.create_task(self.may.wait())
        await asyncio.wait((leaving, waiting), return_when=asyncio.FIRST_COMPLETED)
        self.left += leaving.done()
        if not leaving.done():
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")
            for piece in (b"one ", b"two"):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        leaving.cancel()
        writer.close()


@asynccontextmanager
async def behind(folder: Folder, hold: float = 20.0) -> AsyncIterator[tuple[Door, Engine, httpx2.AsyncClient]]:
    door, engine = Door(folder, hold), Engine()
    server = await asyncio.start_server(engine.answer, "127.0.0.1", 0)
    engine.port = server.sockets[0].getsockname()[1]
    port = await door.listen(None, KEY)
    door.connect(engine.port)
    try:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as client:
            yield door, engine, client
    finally:
        await door.close()
        server.close()


async def until(condition: Any) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not condition():
            await asyncio.sleep(0.01)


async def inside(client: httpx2.AsyncClient) -> Any:
    return (await client.get(INSIDE)).json()


async def test_a_request_and_its_answer_pass_unchanged(folder: Folder) -> None:
    async with behind(folder) as (_, engine, client):
        body = bytes(range(256)) * 20_000
        answer = await client.post(f"{CHAT}?a=b", content=body, headers={"X-Own": "Yes"})
        assert (answer.status_code, answer.text, engine.bodies) == (200, "one two", [body])
        head = engine.heads[0]
        assert head.startswith(b"POST /v1/chat/completions?a=b HTTP/1.1\r\n")
        assert b"X-Own: Yes" in head
        assert head.lower().count(b"connection:") == 1


async def test_without_the_key_nobody_waits_at_the_door_and_probers_need_none(folder: Folder) -> None:
    async with behind(folder) as (door, engine, client):
        client.headers.pop("Authorization")
        assert (await client.get("/health")).status_code == 200
        door.disconnect()
        refused = await client.post(CHAT, content=b"x" * 3_000_000)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await client.get("/health")).status_code == 503, "a prober is told the truth"
        assert (await client.post(CHAT, headers={OURS: "1"})).status_code == 401
        assert len(engine.heads) == 1


async def test_requests_wait_while_the_engine_is_away_and_go_to_the_next_one(folder: Folder) -> None:
    async with behind(folder) as (door, engine, client):
        door.disconnect()
        asked = [asyncio.create_task(client.post(CHAT, content=b"x")) for _ in range(5)]
        await until(lambda: door.held == 5)
        assert await inside(client) == {"inside": 0, "held": 5}
        door.connect(engine.port)
        assert [(await each).status_code for each in asked] == [200] * 5


async def test_an_engine_that_went_unnoticed_refuses_nobody(folder: Folder) -> None:
    async with behind(folder) as (door, engine, client):
        door.connect(probe.free_port())
        asked = asyncio.create_task(client.post(CHAT, content=b"x"))
        await asyncio.sleep(0.3)
        door.connect(engine.port)
        assert (await asked).status_code == 200


async def test_beyond_the_limits_of_waiting_clients_are_asked_to_come_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "MOST_HELD", 1)
    async with behind(folder, hold=0.5) as (door, _, client):
        door.disconnect()
        first = asyncio.create_task(client.post(CHAT, content=b"x" * 3_000_000))
        await until(lambda: door.held == 1)
        for answer in (await client.post(CHAT, content=b"x"), await first):
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
            assert "try again in 10 s" in answer.json()["error"]["message"]


async def test_draining_lets_what_runs_end_and_holds_what_comes(folder: Folder) -> None:
    async with behind(folder) as (door, engine, client):
        engine.may.clear()
        runs = asyncio.create_task(client.post(CHAT, content=b"runs"))
        await until(lambda: engine.bodies)
        drained = asyncio.create_task(door.drain(TIMEOUT))
        await asyncio.sleep(0)
        comes = asyncio.create_task(client.post(CHAT, content=b"comes"))
        await until(lambda: door.held == 1)
        assert not drained.done()
        engine.may.set()
        await drained
        assert (await runs).status_code == 200
        assert engine.bodies == [b"runs"]
        door.connect(engine.port)
        assert (await comes).status_code == 200


async def test_a_server_that_leaves_asks_to_come_again_also_those_that_wait(folder: Folder) -> None:
    async with behind(folder) as (door, _, client):
        door.disconnect()
        waits = asyncio.create_task(client.post(CHAT, content=b"x"))
        await until(lambda: door.held == 1)
        await door.drain(5.0, leaving=True)
        assert (await waits).status_code == 503
        assert (await client.post(CHAT, content=b"x")).status_code == 503


async def test_a_closed_gate_holds_clients_and_lets_the_controller_and_questions_in(folder: Folder) -> None:
    async with behind(folder) as (door, engine, client):
        folder.gate_file.touch()
        waits = asyncio.create_task(client.post(CHAT, content=b"x"))
        await until(lambda: door.held == 1)
        assert (await client.post(CHAT, content=b"ours", headers={OURS: "1"})).status_code == 200
        assert (await client.get("/v1/models")).status_code == 200
        assert engine.bodies == [b"ours", b""]
        folder.open_gate()
        door.look()
        assert (await waits).status_code == 200


async def test_what_nobody_waits_for_any_more_is_broken_off(folder: Folder) -> None:
    async with behind(folder) as (door, engine, client):
        engine.may.clear()
        asked = asyncio.create_task(client.post(CHAT, content=b"x"))
        await until(lambda: door.inside == 1 and engine.bodies)
        asked.cancel()
        await until(lambda: engine.left == 1 and door.inside == 0)


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n"])
async def test_what_is_no_http_is_told_so(folder: Folder, sent: bytes) -> None:
    async with behind(folder) as (_, engine, client):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(sent)
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()
        assert not engine.heads


# With the whole controller


class Clients:
    """Clients that ask without a pause, until the end of a block."""

    def __init__(self, machine: Machine, count: int = 4) -> None:
        state, self.came = machine.state(), list[Any]()
        root, key = f"{state.url}/chat/completions", Folder("default").key()
        self._over = Event()

        def ask() -> None:
            with httpx2.Client(headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
                while not self._over.is_set():
                    try:
                        asked = {"model": state.model, "messages": [], "fake_seconds": 0.05}
                        self.came.append(client.post(root, json=asked).status_code)
                    except httpx2.HTTPError as error:
                        self.came.append(repr(error))

        self._threads = [Thread(target=ask) for _ in range(count)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def slots(request: ServerRequest, value: Any) -> ServerRequest:
    return replace(request, goal=replace(request.goal, overrides={**request.goal.overrides, "max_num_seqs": value}))


def test_no_client_notices_that_the_engine_is_replaced_with_other_settings(machine: Machine) -> None:
    before = machine.up()
    with Clients(machine) as clients:
        assert control.change("default", slots(read_request(Folder("default").request_file), 3))
        after = control.wait_ready("default")
    assert (after.phase, after.attempt, after.refused) == ("ready", 2, None)
    assert (after.port, after.supervisor) == (before.port, before.supervisor)
    assert machine.flags()["--max-num-seqs"] == "3"
    assert set(clients.came) == {200}
    assert read_request(Folder("default").request_file).goal.overrides["max_num_seqs"] == 3


def test_clients_wait_for_an_engine_that_crashed(machine: Machine) -> None:
    go = machine.folder / "go"
    machine.scenario({"serving": [["wait", str(go)], ["exit", 1]]}, {})
    machine.up()
    with Clients(machine, count=1) as clients:
        go.touch()
        machine.wait("default", "ready", attempt=2)
    assert clients.came[-1] == 200
    assert set(clients.came) <= {200, 503}, "503 for the request that the engine died with"
    assert clients.came.count(503) <= 1


def test_settings_that_do_not_start_are_taken_back_while_clients_wait(machine: Machine) -> None:
    machine.scenario({}, {"before": {"LOADING": [["fail", "CUDA"]]}}, {"before": {"LOADING": [["fail", "CUDA"]]}}, {})
    machine.up()
    with Clients(machine) as clients:
        control.change("default", slots(read_request(Folder("default").request_file), 3))
        state = control.wait_ready("default")
    assert state.phase == "ready", state.message
    assert state.refused is not None
    assert state.refused["kind"] == "CUDA"
    assert machine.flags(1)["--max-num-seqs"] == "3"
    assert machine.flags()["--max-num-seqs"] != "3"
    assert set(clients.came) == {200}


def test_a_change_of_a_server_that_does_not_run_starts_it(machine: Machine) -> None:
    machine.up()
    machine.down()
    assert not control.change("default", slots(read_request(Folder("default").request_file), 3))
    assert control.wait_ready("default").phase == "ready"
    assert machine.flags()["--max-num-seqs"] == "3"


def test_down_ends_a_change_that_waits_for_a_long_request(machine: Machine) -> None:
    machine.up()
    state, key = machine.state(), Folder("default").key()
    assert state.port is not None
    asked = {"model": state.model, "messages": [], "fake_seconds": 30}
    thread = Thread(
        target=httpx2.post,
        args=(f"{state.url}/chat/completions",),
        kwargs={"json": asked, "headers": {"Authorization": f"Bearer {key}"}, "timeout": 60},
    )
    thread.daemon = True
    thread.start()
    end = time.monotonic() + TIMEOUT
    while probe.inside(on_loopback(state.port, key)) != 1 and time.monotonic() < end:
        time.sleep(0.02)
    control.change("default", slots(read_request(Folder("default").request_file), 3), wait=60)
    assert machine.state().phase == "restarting"
    began = time.monotonic()
    machine.down()
    assert time.monotonic() - began < 25
    machine.assert_nothing_left()


def test_a_gate_that_a_killed_program_left_shut_is_opened_again(machine: Machine) -> None:
    machine.up()
    folder = Folder("default")
    folder.gate_file.touch()
    end = time.monotonic() + TIMEOUT
    while folder.gate_file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.gate_file.exists()


def test_a_gate_opens_with_the_end_of_a_restart_and_not_before(folder: Folder) -> None:
    with folder.restarting():
        folder.open_gate()
        assert folder.gate_file.exists()
    assert not folder.gate_file.exists()


def test_up_restart_changes_what_it_names_and_keeps_the_rest(machine: Machine) -> None:
    done = machine.run("up", *machine.small, "--set", "images=2", "--json")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    with Clients(machine) as clients:
        changed = machine.run("up", "--restart", "--set", "max_num_seqs=3", "--json", "--", "--seed", "7")
    assert changed.returncode == 0, changed.stderr
    second = json.loads(changed.stdout)
    assert set(clients.came) == {200}
    assert [second[part] == first[part] for part in ("endpoint", "api_key", "model")] == [True] * 3
    before, after = machine.flags(0), machine.flags(1)
    differ = {flag for flag in before.keys() | after.keys() if before.get(flag) != after.get(flag)}
    assert differ == {"--max-num-seqs", "--seed", "--port"}
    assert (after["--max-num-seqs"], after["--seed"]) == ("3", "7")


def test_what_cannot_be_changed_so_is_refused_before_anything_is_touched(machine: Machine) -> None:
    assert "does not run" in machine.run("up", "--restart").stderr
    machine.up()
    for words, status, told in (
        (("--port", "1"), 2, "--port cannot be changed by --restart"),
        (("--cpu",), 2, "--cpu cannot be changed"),
        (("--set", "max_num_seqs=none at all"), 2, "max_num_seqs"),
        (("--preset", "quick"), 2, "quick"),
        (("--", "--no-such-flag"), 2, "--no-such-flag"),
    ):
        done = machine.run("up", "--restart", *words)
        assert (done.returncode, told in done.stderr) == (status, True), done.stderr
    assert len(machine.starts) == 1
    assert machine.state().is_ready


def test_a_change_that_does_not_start_is_told_with_its_reason(machine: Machine) -> None:
    failing = {"before": {"LOADING": [["fail", "CUDA"]]}}
    machine.scenario({}, failing, failing, {})
    machine.up()
    done = machine.run("up", "--restart", "--set", "max_num_seqs=3")
    assert done.returncode == 1
    assert "runs as before: The card reported an error" in done.stderr
    assert machine.state().is_ready


# Several models at one door


async def named(client: httpx2.AsyncClient, model: str) -> int:
    answer: httpx2.Response = await client.post(CHAT, json={"model": model})
    return answer.status_code


async def test_a_request_waits_for_the_model_that_it_names(folder: Folder) -> None:
    async with behind(folder) as (door, engine, client):
        door.models = {"A": {"max_model_len": 8192}, "B": {}}
        door.connect(engine.port, "A")
        listed = (await client.get("/v1/models")).json()["data"]
        assert [(each["id"], each.get("max_model_len")) for each in listed] == [("A", 8192), ("B", None)]
        unknown = await client.post(CHAT, json={"model": "C"})
        assert unknown.status_code == 404
        assert unknown.json()["error"]["message"] == "The model 'C' is not served here. These are: A, B."
        assert await named(client, "A") == 200
        assert door.wanted() == ""
        waits = asyncio.create_task(named(client, "B"))
        await until(lambda: door.held == 1)
        assert door.wanted() == "B"
        door.connect(engine.port, "B")
        assert await waits == 200
        assert len(engine.bodies) == 2


async def test_a_model_that_is_busy_keeps_the_engine_for_its_turn(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind(folder) as (door, engine, client):
        door.models = {"A": {}, "B": {}}
        door.connect(engine.port, "A")
        engine.may.clear()
        runs = asyncio.create_task(named(client, "A"))
        await until(lambda: door.inside == 1)
        waits = asyncio.create_task(named(client, "B"))
        await until(lambda: door.held == 1)
        assert door.wanted() == ""
        monkeypatch.setattr(doors, "TURN_S", 0.0)
        assert door.wanted() == "B"
        engine.may.set()
        assert await runs == 200
        door.connect(engine.port, "B")
        assert await waits == 200


async def test_requests_for_a_model_that_does_not_start_are_told_why(folder: Folder) -> None:
    async with behind(folder) as (door, engine, client):
        door.models = {"A": {}, "B": {}}
        door.connect(engine.port, "A")
        waits = asyncio.create_task(client.post(CHAT, json={"model": "B"}))
        await until(lambda: door.held == 1)
        door.give_up("B", "Too little memory")
        for answer in (await waits, await client.post(CHAT, json={"model": "B"})):
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "60")
            assert "Too little memory" in answer.json()["error"]["message"]
        assert door.wanted() == ""
        assert await named(client, "A") == 200


def two(machine: Machine) -> tuple[str, ...]:
    tiny_model(machine.folder / "other")
    return (*machine.small, "--swap", str(machine.folder / "other"))


def ask(server: dict[str, Any], model: str) -> int:
    return httpx2.post(
        f"{server['endpoint']}/chat/completions", json={"model": model, "messages": []}, timeout=60,
        headers={"Authorization": f"Bearer {server['api_key']}"},
    ).status_code  # fmt: skip


def test_the_model_that_a_client_names_is_swapped_in(machine: Machine) -> None:
    done = machine.run("up", *two(machine), "--json")
    assert done.returncode == 0, done.stderr
    server = json.loads(done.stdout)
    served: list[str] = []
    for model, starts in (("tiny", 1), ("other", 2), ("other", 2), ("tiny", 3)):
        assert ask(server, model) == 200
        assert len(machine.starts) == starts
        served.append(machine.starts[-1]["argv"][1])
    assert served == [str(machine.folder / name) for name in ("tiny", "other", "other", "tiny")]
    assert ask(server, "third") == 404
    assert endpoint.ready_server(str(machine.folder / "other")).model == "other", "the agent asks for one, too"
    changed = machine.run("up", "--restart", "--model", "tiny", "--json")
    assert json.loads(changed.stdout)["model"] == "tiny"


def test_a_swap_that_fails_leaves_the_model_before(machine: Machine) -> None:
    failing = {"before": {"LOADING": [["fail", "CUDA"]]}}
    machine.scenario({}, failing, failing, {})
    server = json.loads(machine.run("up", *two(machine), "--json").stdout)
    assert ask(server, "other") == 503
    assert ask(server, "tiny") == 200
    assert len(machine.starts) <= 4
