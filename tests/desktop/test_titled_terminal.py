"""The terminal that runs us, on a desktop that tells the titles of windows and nothing else of them."""

import ast
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.benches import ROOT
from stubs.display import wait_until
from stubs.sway import PlainSway

from agent.desktop.guard.own_windows import titled_window
from agent.desktop.wayland.desktop import Pointer
from agent.desktop.wayland.wire import socket_of
from agent.desktop.wlroots.windows import ToplevelWindows

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

OPENED = """
import os, sys
from agent.core.actions import Click, TypeText
from agent.desktop.factory import open_desktop
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.guard.desktop import GuardedDesktop
from agent.safety.stop import StopSwitch

def tell(*what):
    open(sys.argv[1] + ".new", "w").write(repr(what))
    os.rename(sys.argv[1] + ".new", sys.argv[1])

desktop = open_desktop(StopSwitch())
safe = GuardedDesktop(desktop)
try:
    said = safe.hand.perform(TypeText("rm -rf"))
except ActionFailedError as error:
    said = str(error)
tell([desktop.open_windows().window(one).title for one in safe.reach.own], safe._remark, said)
safe.screen.grab()
input()
"""
HELD = """
import os, sys, time
from agent.desktop.guard.own_windows import marked
with marked(os.ttyname(0)):
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(100)
"""


@pytest.fixture
def sway() -> Iterator[PlainSway]:
    with PlainSway() as found:
        yield found


def in_foot(sway: PlainSway, tmp_path: Path, text: str) -> Path:
    """Run a program in a terminal, which is told nothing of sway's own socket; the file that it tells something in."""
    told, program = tmp_path / "told", tmp_path / "inside.py"
    program.write_text(text)
    command = (
        f"cd {shlex.quote(str(ROOT))}; PYTHONPATH=. {sys.executable} {program} {told} 2> {tmp_path}/errors; sleep 9"
    )
    sway.start("env", "-u", "SWAYSOCK", "foot", "--title=our terminal", "sh", "-c", command)
    wait_until(lambda: told.exists() and told.stat().st_size, f"it tells: {tmp_path}/errors", 30)
    return told


def titles(sway: PlainSway) -> list[str]:
    return [str(one["name"]) for one in leaves(sway.tree())]


def leaves(node: dict[str, list[dict[str, object]]]) -> Iterator[dict[str, object]]:
    if "pid" in node:
        yield node  # type: ignore[misc]
    for child in node.get("nodes", []):
        yield from leaves(child)  # type: ignore[arg-type]


def test_our_own_terminal_is_found_by_its_title_and_nothing_typed_into_it(sway: PlainSway, tmp_path: Path) -> None:
    sway.start("foot", "--title=another terminal")
    wait_until(lambda: titles(sway) == ["another terminal"], "another terminal is there")
    own, remark, _ = ast.literal_eval(in_foot(sway, tmp_path, OPENED).read_text())
    assert own == ["our terminal"]
    assert "keep it off the screen" in remark
    focused = [str(one["name"]) for one in leaves(sway.tree()) if one["focused"]]
    assert focused == ["another terminal"], "what was typed went there"
    assert sorted(titles(sway)) == ["another terminal", "our terminal"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_title_is_given_back_however_we_end(sway: PlainSway, tmp_path: Path, how: signal.Signals) -> None:
    pid = int(in_foot(sway, tmp_path, HELD).read_text())
    wait_until(lambda: titles(sway)[0].startswith("mai-agent "), "the title is ours")
    os.kill(pid, how)
    wait_until(lambda: titles(sway) == ["our terminal"], "it is as it was")


def test_a_terminal_that_is_not_on_the_desktop_is_not_found(sway: PlainSway) -> None:
    windows = ToplevelWindows(socket_of(sway.environ), Pointer((0, 0)))
    mine, terminal = os.openpty()
    assert titled_window(os.ttyname(terminal), windows) == frozenset()
    assert titled_window("/no/such/terminal", windows) == frozenset()
    written: list[bytes] = []

    def gets_its_title_back() -> bool:
        written.append(os.read(mine, 1000))
        return b"".join(written).endswith(b"\033]2;\033\\\033[23;2t")

    wait_until(gets_its_title_back, "it gets its title back")
    windows.close()
