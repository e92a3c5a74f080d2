"""How many desktops a server carries, and what holds them up: on paper, and in a simulation of up to a thousand.

    python scripts/bench/saturation.py [--slots 32] [--answer 3.0] [--own 0.5] [--work 0.3] [--cores 16]

A step of an agent is its own part (`--own` seconds, of which `--work` keep one processor busy), then an answer, which
takes `--answer` seconds in one of the server's `--slots`. Both vary from step to step (exponentially, as a worst case).
Processors and slots are shared by all; who finds none free waits in line. On paper, the server is full from
slots * (1 + own / answer) desktops on, and no number of desktops gets more than slots / answer or cores / work steps a
second. How far below both the simulation stays is what waiting in line costs.

The defaults: `scripts/bench/fleet.py` with one agent took 0.5 s a step beside the answer, of which the agent's process
used 0.15 s; as much again is reckoned for its desktop. Slots and seconds of an answer are an assumption.
"""

import argparse
import heapq
import random
from collections import deque
from dataclasses import dataclass, field

#: Simulated seconds: enough for some hundred steps of each desktop.
SECONDS = 600.0


@dataclass
class Line:
    """Places that only so many can have at once; the others wait in the order in which they came."""

    free: int
    waiting: deque[int] = field(default_factory=deque)
    waited: float = 0.0  # seconds, of all
    since: dict[int, float] = field(default_factory=dict)

    def take(self, desktop: int, now: float) -> bool:
        """Take a place, or a place in the line. Return whether it was free."""
        if self.free:
            self.free -= 1
            return True
        self.waiting.append(desktop)
        self.since[desktop] = now
        return False

    def give_back(self, now: float) -> int | None:
        """Give a place back. Return who has it now."""
        if not self.waiting:
            self.free += 1
            return None
        desktop = self.waiting.popleft()
        self.waited += now - self.since.pop(desktop)
        return desktop


def simulate(desktops: int, options: argparse.Namespace) -> tuple[float, float, float]:
    """Return the steps a second, and the seconds a step waits for a processor and for the server."""
    chance = random.Random(desktops)
    cores, slots = Line(options.cores), Line(options.slots)
    events: list[tuple[float, int, str]] = []
    steps = 0

    def soon(now: float, mean: float, desktop: int, what: str) -> None:
        heapq.heappush(events, (now + chance.expovariate(1 / mean), desktop, what))

    for desktop in range(desktops):
        soon(0.0, options.own + options.answer, desktop, "looked")  # they do not begin together
    while events and events[0][0] < SECONDS:
        now, desktop, what = heapq.heappop(events)
        match what:
            case "looked":  # the part of it that needs no processor is over
                if cores.take(desktop, now):
                    soon(now, options.work, desktop, "worked")
            case "worked":
                if (other := cores.give_back(now)) is not None:
                    soon(now, options.work, other, "worked")
                if slots.take(desktop, now):
                    soon(now, options.answer, desktop, "answered")
            case "answered":
                steps += 1
                if (other := slots.give_back(now)) is not None:
                    soon(now, options.answer, other, "answered")
                soon(now, max(options.own - options.work, 0.001), desktop, "looked")
    return steps / SECONDS, cores.waited / max(steps, 1), slots.waited / max(steps, 1)


def main() -> None:
    """Print what paper says, and a line for each number of desktops."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=32, help="answers that the server gives at once (default 32)")
    parser.add_argument("--answer", type=float, default=3.0, help="seconds of one (default 3.0)")
    parser.add_argument("--own", type=float, default=0.5, help="seconds of a step without its answer (default 0.5)")
    parser.add_argument("--work", type=float, default=0.3, help="of these, seconds of one processor (default 0.3)")
    parser.add_argument("--cores", type=int, default=16, help="processors of all machines (default 16)")
    parser.add_argument("--most", type=int, default=1024, help="desktops (default 1024)")
    options = parser.parse_args()
    server, machines = options.slots / options.answer, options.cores / options.work
    full = options.slots * (1 + options.own / options.answer)
    most = min(server, machines)
    print(f"on paper: {most:.1f} steps a second at most ({server:.1f} by the server, {machines:.1f} by processors); "
          f"the server is full from {full:.0f} desktops on")  # fmt: skip
    print("desktops  steps/s  of the most  waits for a processor  for the server  a step takes")
    desktops = 1
    while desktops <= options.most:
        rate, processor, slot = simulate(desktops, options)
        print(f"{desktops:8}  {rate:7.2f}  {rate / most:11.0%}  {processor:19.2f} s  {slot:12.2f} s  "
              f"{desktops / rate:10.1f} s")  # fmt: skip
        desktops *= 2


if __name__ == "__main__":
    main()
