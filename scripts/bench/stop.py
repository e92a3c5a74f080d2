"""Stops real runs at random instants, and measures how late the last input event came and what was still held down.

    python scripts/bench/stop.py [--runs 50] [--seed 1] [--only drag,hung] [--details]

Starts a sandbox of its own, in it one run after another (a scripted endpoint, or the literal engine), and stops each in
one of five ways. All input events are recorded by the X server itself (RECORD), with its own time stamps, which are
milliseconds of the monotonic clock: neither the run nor this program can make them earlier or later.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

LIMIT = 100  # milliseconds
TEXT = "the quick brown fox jumps over the lazy dog " * 4
DRAWN = {"start_coordinate": [300, 400], "end_coordinate": [700, 800]}
WAYS = ("SIGINT", "SIGTERM", "command", "corner", "hotkey")
HUNG = ("sleep", "spin", "gil")
SITUATIONS = ("thinking", "typing", "pasting", "drag", "hold", "scroll", "literal", *HUNG)
#: Seconds from the first event to the signal, where they matter: text is typed once nothing took what was pasted.
WHEN = {"typing": (1.7, 3.7), "drag": (0.0, 0.45), "scroll": (0.0, 1.0)} | dict.fromkeys(HUNG, (0.3, 1.0))
#: With the interpreter's lock held only the releasing process can act, and it hears signals only.
HUNG_WAYS = {"gil": ("SIGINT", "SIGTERM", "command")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(SITUATIONS), help="situations")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--details", action="store_true", help="every run on a line")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.child:
        return child(options.child, rest)
    from agent.sandbox.desktop import SandboxSpec, start_sandbox

    sandbox = start_sandbox(SandboxSpec())
    try:
        sandbox.applied()
        os.environ.update({name: sandbox.environ[name] for name in sandbox.environ if name.startswith("XDG_")})
        os.environ["HOME"] = sandbox.environ["HOME"]
        subprocess.Popen(["mousepad"], env=sandbox.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1.5)
        return measure(options, sandbox.environ)
    finally:
        sandbox.close()


def measure(options: argparse.Namespace, environ: dict[str, str]) -> int:
    chance = random.Random(options.seed)
    tape = Tape()
    found: list[Result] = []
    wanted, ways = options.only.split(","), options.ways.split(",")
    for number in range(options.runs):
        situation = wanted[number % len(wanted)]
        possible = [way for way in HUNG_WAYS.get(situation, WAYS) if way in ways] or ["SIGTERM"]
        way = possible[(number // len(wanted)) % len(possible)]
        with tempfile.TemporaryDirectory() as folder:
            result = Trial(situation, way, chance, tape, environ, Path(folder)).run()
        found.append(result)
        if options.details or result.bad:
            print(f"{number:3} {result}", flush=True)
    tape.close()
    return report(found)


@dataclass
class Result:
    situation: str
    way: str
    late: int  # of the last input event after the signal, in milliseconds; 0 if there was none
    events: int  # input events before it
    held: list[str]
    complete: str  # "" or what is wrong with the bundle
    ended: float  # seconds from the signal to the end of the process

    @property
    def bad(self) -> bool:
        return self.late > LIMIT or bool(self.held) or bool(self.complete)

    def __str__(self) -> str:
        return (
            f"{self.situation:9} {self.way:8} last event {self.late:4} ms  {self.events:4} events before  "
            f"ended {self.ended:5.2f} s  {'held: ' + ' '.join(self.held) if self.held else ''} {self.complete}"
        )


def report(found: list[Result]) -> int:
    print(
        f"\n{'situation':10} {'stops':>5} {'median':>7} {'latest':>7} {'held':>5} {'incomplete':>10} {'ended by':>11}"
    )
    for name in [*dict.fromkeys(one.situation for one in found), *dict.fromkeys(one.way for one in found), "all"]:
        these = [one for one in found if name in (one.situation, one.way, "all")]
        lates = [one.late for one in these]
        print(
            f"{name:10} {len(these):5} {statistics.median(lates):4.0f} ms {max(lates):4} ms "
            f"{sum(bool(one.held) for one in these):5} {sum(bool(one.complete) for one in these):10} "
            f"{max(one.ended for one in these):10.2f} s"
        )
    bad = [one for one in found if one.bad]
    print(f"\n{len(found) - len(bad)} of {len(found)} stops: no event after {LIMIT} ms, nothing held, bundle complete")
    return 1 if bad else 0


class Tape:
    """All input events of the display, with the server's time, as they come."""

    def __init__(self) -> None:
        from Xlib import X
        from Xlib.ext import record
        from Xlib.protocol import rq

        from agent.desktop.x11.connection import open_display

        self.events: list[tuple[int, int, int, int, int]] = []  # time, type, detail, x, y
        self.control, data = open_display(), open_display()
        none = (0, 0)
        self._context = context = data.record_create_context(
            0, [record.AllClients],
            [{"core_requests": none, "core_replies": none, "ext_requests": (0, 0, 0, 0), "ext_replies": (0, 0, 0, 0),
              "delivered_events": none, "device_events": (X.KeyPress, X.MotionNotify), "errors": none,
              "client_started": False, "client_died": False}],
        )  # fmt: skip

        def take(reply: Any) -> None:
            rest = reply.data
            while reply.category == record.FromServer and len(rest):
                event, rest = rq.EventField(None).parse_binary_value(rest, data.display, None, None)
                self.events.append((event.time, event.type, event.detail, event.root_x, event.root_y))

        threading.Thread(target=lambda: data.record_enable_context(context, take), daemon=True).start()
        time.sleep(0.3)

    def close(self) -> None:
        self.control.record_disable_context(self._context)
        self.control.sync()

    def held(self) -> list[str]:
        keys = self.control.query_keymap()
        mask = self.control.screen().root.query_pointer().mask
        down = [f"key {code}" for code in range(8, 256) if keys[code // 8] >> code % 8 & 1]
        return down + [f"button {number}" for number in range(1, 6) if mask >> (7 + number) & 1]

    def send(self, *events: tuple[int, int, int, int]) -> None:
        from Xlib.ext import xtest

        for kind, detail, x, y in events:
            xtest.fake_input(self.control, kind, detail, x=x, y=y)
        self.control.sync()


class Trial:
    def __init__(
        self, situation: str, way: str, chance: random.Random, tape: Tape, environ: dict[str, str], folder: Path
    ) -> None:
        self.situation, self.way, self.chance, self.tape, self.folder = situation, way, chance, tape, folder
        self.environ = environ | {"PYTHONPATH": str(ROOT)}

    def run(self) -> Result:
        from stubs.endpoint import FakeEndpoint, act, say, silent
        from Xlib import X

        self.tape.send((X.MotionNotify, 0, 900, 500))
        if self.situation == "literal":  # what the runs before have done is to be done anew
            theme = ["xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName", "-s", "Adwaita"]
            subprocess.run(theme, env=self.environ, check=True)
        scripts: dict[str, Callable[[int], Any]] = {
            "thinking": lambda number: silent() if number else say(act("click", coordinate=[500, 500])),
            "typing": lambda _: say(act("type", text=TEXT)),
            "pasting": lambda _: say(act("type", text="word " * 20_000)),
            "drag": lambda _: say(act("drag", **DRAWN)),
            "hold": lambda _: say(act("hold_key", keys="a", seconds=60)),
            "scroll": lambda number: say(act("swipe", direction="up", coordinate=[500, 400 + number])),
        }
        script = scripts.get(self.situation, scripts[self.chance.choice(("drag", "hold"))])
        if self.situation == "typing":  # a click on the desktop first: nothing there takes what is pasted
            script = lambda number: say(act("type", text=TEXT) if number else act("click", coordinate=[950, 900]))  # noqa: E731
        if self.situation == "pasting":
            script = lambda number: scripts["pasting"](0) if number else say(act("open", text="mousepad"))  # noqa: E731
        with FakeEndpoint(script) as endpoint, (self.folder / "out").open("w+") as out:
            hung = self.situation in HUNG
            program = [str(Path(__file__)), "--child", self.situation, "--"] if hung else ["-m", "agent"]
            engine = ["--engine", "literal"] if self.situation == "literal" else ["--endpoint", endpoint.url]
            process = subprocess.Popen(
                [sys.executable, *program, *engine, "--approve", "never", "--runs", str(self.folder / "runs"),
                 "--max-steps", "200", "open settings and enable dark mode"],
                env=self.environ, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
            try:
                return self._stop(process, endpoint, hung=hung)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()

    def _stop(self, process: "subprocess.Popen[bytes]", endpoint: Any, *, hung: bool) -> Result:
        begin = len(self.tape.events)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            acting = self.tape.held() if hung else len(self.tape.events) > begin + 1
            if acting or (self.situation == "thinking" and len(endpoint.requests) > 1):
                break
            time.sleep(0.005)
        time.sleep(self.chance.uniform(*WHEN.get(self.situation, (0, 2.5))))
        before = len(self.tape.events)
        moment, own = self._signal(process)
        try:
            process.wait(25)
        except subprocess.TimeoutExpired:
            return Result(self.situation, self.way, 0, 0, self.tape.held(), "it never ended", 25.0)
        ended = time.monotonic() - moment
        time.sleep(0.25)
        # The server's milliseconds are cut off: what bears the signal's own one counts as after it, and as 1 ms late.
        began = int(moment * 1000)
        after = [event for event in self.tape.events[begin:] if event[0] >= began and not own(event)]
        late = max((event[0] + 1 - began for event in after), default=0)
        result = Result(
            self.situation, self.way, late, before - begin, self.tape.held(), self._complete(process.returncode), ended
        )
        self._let_go()
        return result

    def _let_go(self) -> None:
        """The next run must not inherit what this one left."""
        from Xlib import X

        for what in self.tape.held():
            kind, number = what.split()
            self.tape.send((X.KeyRelease if kind == "key" else X.ButtonRelease, int(number), 0, 0))

    def _signal(self, process: "subprocess.Popen[bytes]") -> tuple[float, Callable[[tuple[int, ...]], bool]]:
        """Stop it; when that was, and which events are this program's own."""
        from Xlib import XK, X

        if self.way in ("SIGINT", "SIGTERM"):
            moment = time.monotonic()
            process.send_signal(signal.Signals[self.way])
            return moment, lambda _: False
        if self.way == "corner":
            moment = time.monotonic()
            self.tape.send((X.MotionNotify, 0, 0, 0))
            return moment, lambda event: event[1] == X.MotionNotify and event[3:] == (0, 0)
        if self.way == "hotkey":
            names = ("Control_L", "Alt_L", "Shift_L", "Escape")
            codes = [self.tape.control.keysym_to_keycode(XK.string_to_keysym(name)) for name in names]
            self.tape.send(*((X.KeyPress, code, 0, 0) for code in codes[:3]))
            moment = time.monotonic()
            self.tape.send((X.KeyPress, codes[3], 0, 0))
            time.sleep(0.08)  # as long as a person holds a key
            self.tape.send(*((X.KeyRelease, code, 0, 0) for code in reversed(codes)))
            return moment, lambda event: event[1] in (X.KeyPress, X.KeyRelease) and event[2] in codes
        return self._command(), lambda _: False

    def _command(self) -> float:
        """`mai-agent stop` in this process, to know when it signals."""
        from agent.commands import stop

        moments: list[float] = []
        send = stop.send_stop

        def timed(*arguments: Any, **options: Any) -> bool:
            moments.append(time.monotonic())
            return send(*arguments, **options)

        stop.send_stop = timed
        before, sys.stdout = sys.stdout, Path(os.devnull).open("w")  # noqa: SIM115 -- closed with the process
        try:
            stop.main([])
        finally:
            sys.stdout, stop.send_stop = before, send
        return moments[0] if moments else time.monotonic()

    def _complete(self, status: int) -> str:
        folders = list((self.folder / "runs").iterdir()) if (self.folder / "runs").exists() else []
        if len(folders) != 1:
            return f"{len(folders)} bundles, status {status}: {(self.folder / 'out').read_text()[-300:]!r}"
        meta = json.loads((folders[0] / "run.json").read_text())
        lines = [json.loads(line) for line in (folders[0] / "steps.jsonl").read_text().splitlines()]
        ended = (meta["outcome"], status) == ("stopped", 130)
        wrong = [] if ended else [f"{meta['outcome']} ({meta['message']}), {status}"]
        if [line["step"] for line in lines] != list(range(1, len(lines) + 1)):
            wrong.append("steps are missing")
        wrong += [f"no {line['image']['file']}" for line in lines if not (folders[0] / line["image"]["file"]).exists()]
        return "; ".join(wrong)


def child(how: str, arguments: list[str]) -> int:
    """A run whose event loop hangs for some seconds once its hand is at work."""
    import asyncio

    from agent.cli import main as agent_main
    from agent.desktop.input_hand import InputHand
    from agent.run.worker import Worker

    loops: list[asyncio.AbstractEventLoop] = []
    perform, call = InputHand.perform, Worker.call

    def hang() -> None:
        until = time.monotonic() + 5
        if how == "sleep":
            time.sleep(5)  # a call into C that lets other threads run
        elif how == "gil":
            sum(range(200_000_000))  # one that does not
        while time.monotonic() < until:  # pure Python
            pass

    def hanging(self: InputHand, action: Any) -> str:
        threading.Timer(0.15, lambda: loops[0].call_soon_threadsafe(hang)).start()
        return perform(self, action)

    async def noted(self: Worker, *rest: Any) -> Any:
        loops.append(asyncio.get_running_loop())
        return await call(self, *rest)

    InputHand.perform, Worker.call = hanging, noted  # type: ignore[method-assign, assignment]
    return agent_main([argument for argument in arguments if argument != "--"])


if __name__ == "__main__":
    sys.exit(main())
