"""The doctor's trial finds every desktop good on which the same questions are answered right."""

import os
import threading

import pytest
from stubs.benches import Bench, WlrootsBench

from agent.desktop.self_test.checks import SelfTest, window_environ
from agent.safety.stop import StopSwitch

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]

DONE = ["left button", "middle button", "right button", "drag", "wheel down", "wheel up", "wheel right", "wheel left"]
DONE += ["text, Latin", "text, Cyrillic", "text, Chinese", "chord", "clipboard", "released"]


def test_all_that_is_done_in_the_window_is_seen_to_arrive_and_the_clipboard_is_put_back(bench: Bench) -> None:
    bench.makes_room()
    stop, over = StopSwitch(), threading.Event()
    desktop = bench.open(stop)
    environ = window_environ(desktop, os.environ)
    assert environ is not None
    with bench.person_copied("mine, and mine alone") as told:
        serving = threading.Thread(target=lambda: [told() for _ in iter(over.is_set, True)])
        # Its person hands over what they copied only while they are asked.
        if isinstance(bench, WlrootsBench) and "clipboard" not in bench.lacks:
            serving.start()
        try:
            found = list(SelfTest(desktop, environ, stop, "ctrl+alt+shift+escape").run())
        finally:
            over.set()
            if serving.is_alive():
                serving.join()
        assert [one for one in found if one.ok is False] == []
        assert {one.name for one in found if one.ok is None} == bench.lacks & {"windows", "clipboard"}
        assert [one.name for one in found] == ["capture", "windows", "pointer", *DONE]
        bench.wait(lambda: told() == "mine, and mine alone", "the clipboard is as it was")
    desktop.screen.close()
    desktop.close()
