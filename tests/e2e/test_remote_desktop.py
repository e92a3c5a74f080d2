"""A run works on another machine's desktop through that machine's server, and needs no display of its own.

Judged by what a window there got.
"""

import json
import subprocess
import sys
import time

import pytest
from stubs.endpoint import DONE, FakeEndpoint, act, say
from stubs.machine import MachineStub

from agent.desktop.x11.windows import X11Windows

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]

WINDOW = """
import json, sys, tkinter as tk
root = tk.Tk(className="Probe")
root.geometry("800x500+100+100")
text = tk.Text(root, height=5)
text.pack(fill="x")
board = tk.Canvas(root, background="white")
board.pack(fill="both", expand=True)
pressed = []
board.bind("<ButtonPress-1>", lambda event: pressed.append(["down", event.x_root, event.y_root]))
board.bind("<ButtonRelease-1>", lambda event: pressed.append(["up", event.x_root, event.y_root]))
board.bind("<Button-5>", lambda event: pressed.append(["wheel"]))
def keep():
    with open(sys.argv[1], "w") as file:
        json.dump({"text": text.get("1.0", "end-1c"), "pressed": pressed}, file)
    root.after(50, keep)
keep()
root.mainloop()
"""


class Probe:
    """The window on that machine, and what it got."""

    def __init__(self, sandbox, file):
        self._file = file
        self.window = subprocess.Popen([sys.executable, "-c", WINDOW, str(file)], env=sandbox.environ)
        windows, deadline = X11Windows(), time.monotonic() + 30
        while (now := windows.active()) is None or now.app != "Probe":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        windows.close()

    def comes_to(self, name, wanted):
        """Whether the window writes that down in the end: a busy one is several keys behind."""
        deadline = time.monotonic() + 20
        while (now := self.got(name)) != wanted and time.monotonic() < deadline:
            pass
        return now == wanted, now

    def got(self, name):
        """The text, or what was pressed, once the window has written it down."""
        before = self._file.stat().st_mtime_ns
        deadline = time.monotonic() + 10
        while self._file.stat().st_mtime_ns == before or not (told := self._file.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return json.loads(told)[name]


@pytest.fixture
def probe(sandbox, tmp_path):
    probe = Probe(sandbox, tmp_path / "got.json")
    yield probe
    probe.window.kill()
    probe.window.wait()


@pytest.fixture
def machine(sandbox):
    machine = MachineStub(sandbox.environ)
    yield machine
    machine.close()


def per_mille(x, y, sandbox):
    """A point of the desktop as MAI-UI writes it."""
    size = sandbox.spec.size
    return [round(x * 1000 / size.width), round(y * 1000 / size.height)]


def drive(command, machine, steps, *arguments):
    """How a run on that machine ends, whose model takes these steps; it has no display of its own."""
    with FakeEndpoint([say(step) for step in [*steps, DONE]]) as endpoint:
        asked = ("--remote", machine.url, "--approve", "never", "--endpoint", endpoint.url, *arguments)
        return command(*asked, "write it")


def test_text_arrives_as_it_was_written_and_each_action_is_one_request(sandbox, probe, machine, command):
    written = "a < b; $HOME `x` \\n 'q' \"r\"\n"
    steps = [
        act("click", coordinate=per_mille(400, 150, sandbox)),
        act("type", text=written),
        act("type", text="grüße €"),
        act("key", keys="shift+home"),
        act("key", keys="delete"),
        act("type", text="ä"),
    ]
    outcome = drive(command, machine, steps)
    assert outcome.status == 0, outcome.out + outcome.err
    assert probe.comes_to("text", f"{written}ä") == (True, f"{written}ä")
    assert f"live, on {machine.url}" in outcome.out
    assert len(machine.commands) == len(steps)


def test_a_drag_and_the_wheel_arrive_where_they_are_meant(sandbox, probe, machine, command):
    begin, end = per_mille(304, 304, sandbox), per_mille(496, 400, sandbox)
    steps = [
        act("drag", start_coordinate=begin, end_coordinate=end),
        act("scroll", coordinate=end, direction="down"),
    ]
    outcome = drive(command, machine, steps)
    assert outcome.status == 0, outcome.out + outcome.err
    pressed = probe.got("pressed")
    assert [what for what, *_ in pressed[:2]] == ["down", "up"]
    for (_, *at), meant in zip(pressed[:2], ((304, 304), (496, 400)), strict=True):
        assert at == pytest.approx(meant, abs=2)
    assert {what for what, *_ in pressed[2:]} == {"wheel"}


def test_what_cannot_be_done_there_is_told_to_the_model(machine, command):
    outcome = drive(command, machine, [act("open", text="Mousepad")])
    assert "nothing can be opened by name on another machine" in outcome.out
    assert machine.commands == []
