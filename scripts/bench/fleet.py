"""What a fleet gets out of a server, against raw clients that send the same requests again without a pause.

    python scripts/bench/fleet.py [--agents 8] [--slots 4] [--answer 2.0] [--steps 8]

The server is a stand-in that answers `--slots` requests at a time in `--answer` seconds while the others wait, as a
vLLM on one full card does; it takes nothing from the agents' processors. Counted is while all clients are at work: from
the moment when each has its first answer until one has its last.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
from common import ROOT, arguments
from stubs.endpoint import Behaviour, Exchange, FakeEndpoint, act, say


class Server:
    """Answers with a click each time, and notes when each client got an answer."""

    def __init__(self, slots: int, seconds: float) -> None:
        self._slots, self._seconds = threading.Semaphore(slots), seconds
        self.answered: list[tuple[float, str]] = []

    def behaviour(self, number: int) -> Behaviour:
        """Click on another place of the bare desktop at each request."""
        click = say(act("click", coordinate=[300 + 37 * number % 400, 300 + 53 * number % 400]))

        def behave(exchange: Exchange) -> None:
            with self._slots:
                time.sleep(self._seconds)
            click(exchange)
            client = re.search(r"client \d+", json.dumps(exchange.body["messages"]))
            self.answered.append((time.monotonic(), client[0] if client else "none"))

        return behave

    def rate(self) -> float:
        """Answers a second while all clients are at work."""
        times: dict[str, list[float]] = {}
        for at, client in self.answered:
            times.setdefault(client, []).append(at)
        began, ended = max(each[0] for each in times.values()), min(each[-1] for each in times.values())
        return sum(began < at <= ended for at, _ in self.answered) / (ended - began)


def main() -> None:
    parser = arguments(__doc__, agents=8, slots=4, steps=8)
    parser.add_argument("--answer", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fleet, requests = by_fleet(options.agents, options.steps, Server(options.slots, options.answer), Path(folder))
    raw = by_hand(requests, Server(options.slots, options.answer))
    print(f"{options.agents} agents, {options.slots} requests at a time, {options.answer:g} s each")
    print(f"fleet {fleet:.2f} answers a second, raw clients {raw:.2f}: ratio {fleet / raw:.2f}")


def by_fleet(agents: int, steps: int, server: Server, folder: Path) -> tuple[float, dict[str, list[Any]]]:
    """The rate of a fleet's agents, and each one's requests."""
    tasks = folder / "tasks.jsonl"
    words = [f"look around as client {number}" for number in range(agents)]
    tasks.write_text("".join(json.dumps({"id": str(n), "instruction": each}) + "\n" for n, each in enumerate(words)))
    command = [sys.executable, "-m", "agent", "fleet", str(tasks), "--calibrate", "off", "--sandbox-size", "1280x800"]
    with FakeEndpoint(server.behaviour) as endpoint:
        more = ("--parallel", str(agents), "--max-steps", str(steps), "--endpoint", endpoint.url)
        done = subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=False)
        if len(endpoint.requests) < agents * steps:
            sys.exit(f"{len(endpoint.requests)} requests came\n{done.stdout}{done.stderr}")
        requests: dict[str, list[Any]] = {}
        for body in endpoint.requests:
            client = re.search(r"client \d+", json.dumps(body["messages"]))
            requests.setdefault(client[0] if client else "none", []).append(body)
    return server.rate(), requests


def by_hand(requests: dict[str, list[Any]], server: Server) -> float:
    """The rate of clients that send these, each its own one after the other."""
    with FakeEndpoint(server.behaviour) as endpoint, ExitStack() as clients:

        def send(client: httpx2.Client, bodies: Iterator[Any]) -> None:
            for body in bodies:
                client.post(f"{endpoint.url}/v1/chat/completions", json=body, timeout=300)

        threads = [
            threading.Thread(target=send, args=(clients.enter_context(httpx2.Client()), iter(bodies)))
            for bodies in requests.values()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return server.rate()


if __name__ == "__main__":
    main()
