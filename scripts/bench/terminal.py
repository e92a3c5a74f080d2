"""What the terminal application costs: the first paint, opening a long run, and a step's way to the screen.

    python scripts/bench/terminal.py [--rounds 7]

The first paint is timed in a pseudo-terminal, from the start of the process to the line that asks what to do, in turns
with the smallest Textual application there is (one word on the screen): the ratio says what is ours. The other two are
measured inside one process, beside a run of two steps.
"""

import argparse
import asyncio
import json
import os
import pty
import select
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
SMALLEST = (
    "from textual.app import App\nfrom textual.widgets import Static\n"
    "class A(App):\n    def compose(self):\n        yield Static('smallest')\nA().run()\n"
)
PATIENCE = 30.0


def first_paint(words: list[str], awaited: bytes) -> float:
    """Milliseconds from the start of a program to some words on its terminal."""
    began = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="36")
        os.environ.pop("TMUX", None)
        os.execv(words[0], words)
    seen = b""
    try:
        while awaited not in seen:
            ready, _, _ = select.select([terminal], [], [], PATIENCE)
            if not ready:
                raise SystemExit(f"{words} never showed {awaited!r}: {seen[-500:]!r}")
            seen += os.read(terminal, 65536)
        return (time.perf_counter() - began) * 1000
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def write_run(folder: Path, steps: int) -> Path:
    """A bundle of so many steps."""
    from stubs.terminal import VIEWPORT

    from agent.run.events import to_json  # noqa: F401 -- imported here so that no measurement pays for it

    (folder / "screens").mkdir(parents=True)
    meta = {"instruction": "long", "outcome": "done", "status": 0, "steps": steps}
    (folder / "run.json").write_text(json.dumps(meta))
    region = VIEWPORT.region
    line = {
        "viewport": {"left": 0, "top": 0, "width": region.width, "height": region.height,
                     "captured_width": region.width, "captured_height": region.height},
        "answers": [{"raw": "x" * 600, "failure": None}], "thought": "y" * 400, "executed": True,
        "target": {"type": "click", "point": [3, 4], "button": "left", "count": 1}, "milliseconds": {"model": 400.0},
    }  # fmt: skip
    with (folder / "steps.jsonl").open("w") as file:
        for number in range(1, steps + 1):
            file.write(json.dumps({"step": number, "at": number * 1.0, **line}) + "\n")
    return folder


async def inside(rounds: int) -> dict[str, list[float]]:
    """Milliseconds of opening runs and of a step's way to the screen."""
    from stubs.terminal import Bench, shown

    from agent.actions import Click
    from agent.geometry import DesktopPoint
    from agent.tui.screens.recorded import RecordedScreen

    times: dict[str, list[float]] = {"open 2 steps": [], "open 2,000 steps": [], "step on screen": []}
    with tempfile.TemporaryDirectory() as where:
        os.environ["MAI_AGENT_STATE"] = where
        short, long = (write_run(Path(where) / str(steps), steps) for steps in (2, 2000))
        bench = Bench(Path(where) / "bench")
        async with bench.app().run_test(size=(120, 36)) as pilot:
            for _ in range(rounds):
                for name, path, last in (("open 2 steps", short, 2), ("open 2,000 steps", long, 2000)):
                    began = time.perf_counter()
                    screen = RecordedScreen(path)
                    pilot.app.push_screen(screen)
                    while len(screen.view.rows) != last:
                        await asyncio.sleep(0)
                    await pilot.pause()
                    times[name].append((time.perf_counter() - began) * 1000)
                    await pilot.press("escape")
            await bench.feed(pilot, *bench.begins())
            for number in range(1, rounds * 4):
                began = time.perf_counter()
                for report in (*bench.sees(number), *bench.decides(number, Click(DesktopPoint(number, 233)))):
                    pilot.app.report(report)
                while f"click at {number},233" not in shown(pilot):
                    await asyncio.sleep(0)
                times["step on screen"].append((time.perf_counter() - began) * 1000)
                await bench.feed(pilot, *bench.does(number, Click(DesktopPoint(number, 233))))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    times: dict[str, list[float]] = {"smallest application": [], "mai-agent": []}
    with tempfile.TemporaryDirectory() as where:
        os.environ["MAI_AGENT_STATE"] = where
        os.environ["MAI_AGENT_IMAGES"] = "blocks"  # no terminal answers here what it can draw
        for _ in range(options.rounds):
            times["smallest application"].append(first_paint([sys.executable, "-c", SMALLEST], b"smallest"))
            command = [sys.executable, "-m", "agent", "--sandbox", "--runs", where]
            times["mai-agent"].append(first_paint(command, b"What shall I do?"))
    times |= asyncio.run(inside(options.rounds))
    base = SimpleNamespace(paint=statistics.median(times["smallest application"]))
    base.open = statistics.median(times["open 2 steps"])
    for name, values in times.items():
        middle = statistics.median(values)
        against = base.paint if name == "mai-agent" else base.open if name == "open 2,000 steps" else None
        ratio = f"   {middle / against:.2f} x" if against else ""
        print(f"{name:22}{middle:8.0f} ms   worst {max(values):6.0f}{ratio}")


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
