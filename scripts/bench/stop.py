"""Stops real runs at random instants, and measures how late the last input event came and what was still held down.

    python scripts/bench/stop.py [--runs 50] [--seed 1] [--only drag,hung] [--details]

Starts a sandbox of its own, in it one run after another (a scripted endpoint, or the literal engine), and stops each in
one of six ways; by Esc Esc in the application, in a terminal that this program holds. All input events are recorded by
the X server itself (RECORD), with its own time stamps, which are milliseconds of the monotonic clock: neither the run
nor this program can make them earlier or later.
"""

import argparse
import asyncio
import io
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from common import arguments, desktop
from stubs.display import pressed
from stubs.endpoint import Behaviour, FakeEndpoint, act, say, silent

LIMIT = 60  # milliseconds
TEXT = "the quick brown fox jumps over the lazy dog " * 4
WAYS = ("SIGINT", "SIGTERM", "command", "corner", "hotkey", "escape")
HUNG = ("sleep", "spin", "gil")
#: What the endpoint answers to the request of a number. Typing begins with a click on the desktop: nothing there takes
#: what is pasted.
SCRIPTS: dict[str, Callable[[int], Behaviour]] = {
    "thinking": lambda number: silent() if number else say(act("click", coordinate=[500, 500])),
    "typing": lambda number: say(act("type", text=TEXT) if number else act("click", coordinate=[950, 900])),
    "pasting": lambda number: say(act("type", text="word " * 20_000) if number else act("open", text="mousepad")),
    "drag": lambda _: say(act("drag", start_coordinate=[300, 400], end_coordinate=[700, 800])),
    "hold": lambda _: say(act("hold_key", keys="a", seconds=60)),
    "scroll": lambda number: say(act("swipe", direction="up", coordinate=[500, 400 + number])),
}
SITUATIONS = (*SCRIPTS, "literal", *HUNG)
#: Seconds from the first event to the signal, where they matter: text is typed once nothing took what was pasted.
WHEN = {"typing": (1.7, 3.7), "drag": (0.0, 0.45), "scroll": (0.0, 1.0)} | dict.fromkeys(HUNG, (0.3, 1.0))
#: With the interpreter's lock held only the releasing process can act, and it hears signals only.
HUNG_WAYS = {"gil": ("SIGINT", "SIGTERM", "command")}


def main() -> int:
    parser = arguments(__doc__, runs=50, seed=1, only=",".join(SITUATIONS), ways=",".join(WAYS))
    parser.add_argument("--details", action="store_true", help="every run on a line")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.child:
        return child(options.child, rest)
    with desktop(["mousepad"]) as environ:
        # `mai-agent stop` looks in these for what runs
        os.environ.update({name: environ[name] for name in environ if name == "HOME" or name.startswith("XDG_")})
        return measure(options, environ)


def measure(options: argparse.Namespace, environ: dict[str, str]) -> int:
    chance = random.Random(options.seed)
    tape = Tape()
    found: list[Result] = []
    wanted, ways = options.only.split(","), options.ways.split(",")
    for number in range(options.runs):
        situation = wanted[number % len(wanted)]
        possible = [way for way in HUNG_WAYS.get(situation, WAYS) if way in ways] or ["SIGTERM"]
        way = possible[(number + number // len(wanted)) % len(possible)]
        with tempfile.TemporaryDirectory() as folder:
            result = SelfTest(situation, way, chance, tape, environ, Path(folder)).run()
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
    wrong: str  # "" or what is wrong with the bundle
    ended: float  # seconds from the signal to the end of the process

    @property
    def bad(self) -> bool:
        return self.late > LIMIT or bool(self.held) or bool(self.wrong)

    def __str__(self) -> str:
        return (
            f"{self.situation:9} {self.way:8} last event {self.late:4} ms  {self.events:4} events before  "
            f"ended {self.ended:5.2f} s  {'held: ' + ' '.join(self.held) if self.held else ''} {self.wrong}"
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
            f"{sum(bool(one.held) for one in these):5} {sum(bool(one.wrong) for one in these):10} "
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
        return pressed(self.control)

    def send(self, *events: tuple[int, int, int, int]) -> None:
        from Xlib.ext import xtest

        for kind, detail, x, y in events:
            xtest.fake_input(self.control, kind, detail, x=x, y=y)
        self.control.sync()


class SelfTest:
    def __init__(
        self, situation: str, way: str, chance: random.Random, tape: Tape, environ: dict[str, str], folder: Path
    ) -> None:
        self.situation, self.way, self.chance, self.tape, self.folder = situation, way, chance, tape, folder
        self.environ = environ

    def run(self) -> Result:
        from Xlib import X

        self.tape.send((X.MotionNotify, 0, 900, 500))
        if self.situation == "literal":  # what the runs before have done is to be done anew
            theme = ["xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName", "-s", "Adwaita"]
            subprocess.run(theme, env=self.environ, check=True)
        script = SCRIPTS.get(self.situation, SCRIPTS[self.chance.choice(("drag", "hold"))])
        with FakeEndpoint(script) as endpoint, (self.folder / "out").open("w+") as out:
            hung = self.situation in HUNG
            program = [str(Path(__file__)), "--child", self.situation, "--"] if hung else ["-m", "agent"]
            engine = (
                ["--engine", "literal"]
                if self.situation == "literal"
                else ["--endpoint", endpoint.url, "--calibrate", "off"]
            )
            process = subprocess.Popen(
                [sys.executable, *program, *engine, "--approve", "never", "--runs", str(self.folder / "runs"),
                 "--max-steps", "200", "open settings and enable dark mode"],
                env=self.environ | {"TERM": "xterm-256color"}, cwd=self.folder, start_new_session=True,
                **self._files(out),
            )  # fmt: skip
            try:
                return self._stop(process, endpoint, hung=hung)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()

    def _files(self, out: Any) -> dict[str, Any]:
        """Where the run reads and writes: nowhere and a file, or a terminal."""
        if self.way != "escape":
            return {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        self.terminal, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (40, 140))
        threading.Thread(target=self._swallow, args=(self.terminal,), daemon=True).start()
        return dict.fromkeys(("stdin", "stdout", "stderr"), theirs)

    @staticmethod
    def _swallow(terminal: int) -> None:
        with suppress(OSError):
            while os.read(terminal, 65536):
                pass

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
            if self.way == "escape":  # the application stays, to show what was done
                self._leave(process, moment)
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
            self.situation, self.way, late, before - begin, self.tape.held(), self._wrong(process.returncode), ended
        )
        self._let_go()
        return result

    def _leave(self, process: "subprocess.Popen[bytes]", moment: float) -> None:
        while time.monotonic() < moment + 25 and process.poll() is None:
            if b'"running"' not in b"".join(one.read_bytes() for one in self.folder.glob("runs/*/run.json")):
                os.write(self.terminal, b"\x11")  # ctrl+q
                return
            time.sleep(0.02)

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
        if self.way == "escape":
            os.write(self.terminal, b"\x1b")
            time.sleep(self.chance.uniform(0.05, 0.4))
            moment = time.monotonic()
            os.write(self.terminal, b"\x1b")
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

        with patch.object(stop, "send_stop", timed), redirect_stdout(io.StringIO()):
            stop.main([])
        return moments[0] if moments else time.monotonic()

    def _wrong(self, status: int) -> str:
        from agent.record.read import list_bundles

        bundles = list_bundles(self.folder / "runs")
        if len(bundles) != 1:
            return f"{len(bundles)} bundles, status {status}: {(self.folder / 'out').read_text()[-300:]!r}"
        [bundle] = bundles
        ended = (bundle.run.outcome, status) == ("stopped", 130)
        wrong = [] if ended else [f"{bundle.run.outcome} ({bundle.run.message}), {status}"]
        if [step.step for step in bundle.steps] != list(range(1, bundle.step_count + 1)):
            wrong.append("steps are missing")
        images = [image.file for step in bundle.steps for image in step.images]
        return "; ".join(wrong + [f"no {image}" for image in images if not (bundle.path / image).is_file()])


def child(how: str, arguments: list[str]) -> int:
    """A run whose event loop hangs for some seconds once its hand is at work."""
    from agent.cli import main as agent_main
    from agent.desktop.input.hand import InputHand
    from agent.run.control import Worker

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
