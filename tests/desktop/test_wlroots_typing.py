"""What becomes of a text on Wayland when another window takes the focus while it is typed."""

import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from stubs.benches import Bench, bench_of
from stubs.sway import PlainSway

from agent.core.actions import Click, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.factory import has_stop_key
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.wlroots import input as wlroots_input

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_nothing_more_is_typed_once_another_window_has_the_focus(tmp_path: Path) -> None:
    with bench_of("sway", tmp_path) as bench:
        desktop = bench.open()
        desktop.hand.perform(Click(DesktopPoint(400, 30)))
        others: list[Bench] = []
        intruder = threading.Thread(target=lambda: others.append(Bench(bench.server, tmp_path)))
        intruder.start()
        text = "abcdefghij" * 300
        with pytest.raises(ActionFailedError, match=r"focus went to .* rest was not typed"):
            desktop.hand.perform(TypeText(text))
        intruder.join()
        arrived = bench.text()
        assert arrived and len(arrived) < len(text) and text.startswith(arrived)
        assert len(others[0].text()) <= 8  # what was on its way
        desktop.hand.close()
        desktop.screen.close()


def test_the_first_key_reaches_an_application_that_is_slow_to_learn_of_the_keyboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of("sway", tmp_path) as bench:
        assert isinstance(bench.server, PlainSway)
        window = bench.server.programs[-1]
        waits = time.sleep

        def wait(_: float) -> None:
            window.send_signal(signal.SIGCONT)
            waits(1)

        monkeypatch.setattr(wlroots_input, "time", SimpleNamespace(monotonic=time.monotonic, sleep=wait))
        desktop = bench.open()
        window.send_signal(signal.SIGSTOP)
        desktop.hand.perform(PressKeys(("f5",)))  # the first of this seat: there was no keyboard before
        bench.wait(lambda: [one["name"] for one in bench.events("key")] == ["F5"], "the key arrives")
        desktop.hand.close()
        desktop.screen.close()
        desktop.close()


def test_a_stop_key_is_told_of_only_where_there_is_one() -> None:
    assert has_stop_key({"DISPLAY": ":0"})
    assert has_stop_key({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-1", "SWAYSOCK": "/run/sway"})
    assert not has_stop_key({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-1"})
