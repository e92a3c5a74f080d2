"""How many requests are under way at a time: the number follows what a vLLM says of its load."""

import asyncio
import socket

import pytest
from stubs.http_stub import HttpStub

from agent.evals import pace
from agent.evals.pace import FIRST, MOST, Pace


async def most_at_once(paced: Pace, room: int, seconds: float = 1.5) -> list[int]:
    """Requests under way at a time, one reading after the other, at a server that computes `room` at once."""
    sent, readings = 0, []

    async def work() -> None:
        nonlocal sent
        while True:
            async with paced.turn():
                sent += 1
                SERVER["running"], SERVER["waiting"] = min(sent, room), max(0, sent - room)
                await asyncio.sleep(0.02)
                sent -= 1

    tasks = [asyncio.create_task(work()) for _ in range(paced.most)]
    tasks.append(asyncio.create_task(paced.follow()))
    for _ in range(round(seconds / 0.05)):
        await asyncio.sleep(0.05)
        readings.append(sent)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return readings


SERVER = {"running": 0, "waiting": 0}


@pytest.mark.parametrize("room", [3, 30, 500])
def test_a_server_gets_as_many_as_it_computes_and_a_short_queue(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_EVERY", 0.05)
    monkeypatch.setattr(pace, "_load", lambda _: (float(SERVER["running"]), float(SERVER["waiting"])))
    readings = asyncio.run(most_at_once(Pace(None, "http://there/metrics"), room))
    settled = readings[len(readings) // 2 :]
    expected = min(MOST, room)
    assert expected * 0.9 <= sum(settled) / len(settled) <= expected * 1.6 + 2
    assert max(settled) <= MOST


@pytest.mark.parametrize(("paced", "number"), [(Pace(3, "http://there/metrics"), 3), (Pace(None), FIRST)])
def test_a_number_that_was_named_or_cannot_be_known_stays(paced: Pace, number: int) -> None:
    assert set(asyncio.run(most_at_once(paced, 100, 0.3))) == {number}
    assert paced.most == number


def test_the_load_of_all_engines_is_added_up_and_other_pages_tell_nothing() -> None:
    page = (
        "# TYPE vllm:num_requests_running gauge\n"
        'vllm:num_requests_running{engine="0",model_name="m"} 3.0\nvllm:num_requests_running{engine="1"} 4.0\n'
        'vllm:num_requests_waiting{engine="0"} 2.0\nvllm:num_requests_waiting_by_reason{reason="capacity"} 9.0\n'
    )
    with HttpStub(lambda one: one.respond(page.encode() if one.path == "/metrics" else b"nothing")) as server:
        assert pace._load(f"{server.url}/metrics") == (7.0, 2.0)
        assert pace._load(f"{server.url}/other") is None
        server.shutdown()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert pace._load(f"http://127.0.0.1:{nobody.getsockname()[1]}/metrics") is None
