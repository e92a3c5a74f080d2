"""What the terminal application costs: the first paint, opening a long run, and a step's way to the screen.

    python scripts/bench/terminal.py [--rounds 7]

The first paint is timed in a pseudo-terminal, from the start of the process to the line that asks what to do, in turns
with the smallest Textual application there is (one word on the screen): the ratio says what is ours. The other two are
measured inside one process, beside a run of two steps.
"""

import asyncio
import os
import pty
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from common import ROOT, Times, arguments

SMALLEST = (
    "from textual.app import App\nfrom textual.widgets import Static\n"
    "class A(App):\n    def compose(self):\n        yield Static('smallest')\nA().run()\n"
)
PATIENCE = 30.0


def first_paint(times: Times, name: str, words: Sequence[str], awaited: bytes) -> None:
    """Times a program from its start to some words on its terminal."""
    began = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="36")
        os.environ.pop("TMUX", None)
        os.execv(sys.executable, [sys.executable, *words])
    seen = b""
    try:
        while awaited not in seen:
            ready, _, _ = select.select([terminal], [], [], PATIENCE)
            if not ready:
                raise SystemExit(f"{words} never showed {awaited!r}: {seen[-500:]!r}")
            seen += os.read(terminal, 65536)
        times.since(began, name)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


async def until(true: Callable[[], bool], what: str) -> None:
    """Wait, without giving the event loop a rest, as its rest is part of what is measured."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"never happened: {what}")
        await asyncio.sleep(0)


async def inside(rounds: int, folder: Path, times: Times) -> None:
    """Opening runs, and a step's way to the screen."""
    from stubs.terminal import (  # not before the first paints: what is loaded makes starting slower
        Bench,
        shown,
        write_run,
    )

    from agent.core.actions import Click
    from agent.core.geometry import DesktopPoint
    from agent.tui.screens.recorded import RecordedScreen

    runs = {f"open {steps:,} steps": (write_run(folder, str(steps), steps), steps) for steps in (2, 2000)}
    bench = Bench(folder / "bench")
    async with bench.app().run_test(size=(120, 36)) as pilot:
        for _ in range(rounds):
            for name, (path, last) in runs.items():
                with times.of(name):
                    screen = RecordedScreen(path)
                    pilot.app.push_screen(screen)
                    await until(lambda screen=screen, last=last: len(screen.view.rows) == last, f"{last} rows")
                    await pilot.pause()
                await pilot.press("escape")
        await bench.feed(pilot, *bench.begins())
        for number in range(1, rounds * 4):
            click = Click(DesktopPoint(number, 233))
            with times.of("step on screen"):
                for report in (*bench.sees(number), *bench.decides(number, click, thought=f"Thought {number}.")):
                    bench.report(pilot, report)
                await until(lambda number=number: f"Thought {number}." in shown(pilot), f"step {number} is shown")
            await bench.feed(pilot, *bench.does(number, click))


def main() -> None:
    options = arguments(__doc__, rounds=7).parse_args()
    times = Times()
    with tempfile.TemporaryDirectory() as where:
        os.environ["MAI_AGENT_STATE"] = where
        os.environ["MAI_AGENT_IMAGES"] = "blocks"  # no terminal answers here what it can draw
        for _ in range(options.rounds):
            first_paint(times, "smallest application", ["-c", SMALLEST], b"smallest")
            first_paint(times, "mai-agent", ["-m", "agent", "--sandbox", "--runs", where], b"shall I do?")
        asyncio.run(inside(options.rounds, Path(where), times))
    against = {"mai-agent": "smallest application", "open 2,000 steps": "open 2 steps"}
    for name in times.taken:
        ratio = f"   {times.ratio(name, against[name]):.2f} x" if name in against else ""
        print(f"{name:22}{times.median(name):8.0f} ms   worst {times.worst(name):6.0f}{ratio}")


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
