"""The terminal that runs us, on sway: found by its process, and kept out of sight and reach."""

import ast
import shlex
import sys
from pathlib import Path

import pytest
from stubs.benches import ROOT
from stubs.display import wait_until
from stubs.sway import PlainSway

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

INSIDE = """
import sys
from agent.core.actions import Click
from agent.desktop.factory import open_desktop
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.guard.desktop import GuardedDesktop
from agent.safety.stop import StopSwitch
desktop = open_desktop(StopSwitch())
safe = GuardedDesktop(desktop)
own = [desktop.open_windows().window(one).title for one in safe.reach.own]
try:
    said = safe.hand.perform(Click(desktop.home))
except ActionFailedError as error:
    said = str(error)
colours = {safe.screen.grab().image.getpixel((x, 300)) for x in range(0, 1280, 40)}
open(sys.argv[1] + ".new", "w").write(repr((own, said, len(colours))))
import os
os.rename(sys.argv[1] + ".new", sys.argv[1])
input()
"""


def test_the_terminal_is_known_by_its_process_hidden_and_not_clicked(tmp_path: Path) -> None:
    told, program = tmp_path / "told", tmp_path / "inside.py"
    program.write_text(INSIDE)
    with PlainSway() as sway:
        command = f"cd {shlex.quote(str(ROOT))}; PYTHONPATH=. {sys.executable} {program} {told} 2> {tmp_path}/errors"
        sway.start("foot", "--title=our terminal", "sh", "-c", command)
        wait_until(told.exists, f"it tells: {tmp_path}/errors")
    own, said, colours = ast.literal_eval(told.read_text())
    assert own == ["our terminal"]
    assert "mai-agent's own window" in said
    assert colours == 1
