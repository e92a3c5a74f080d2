"""Throw-away desktops with GNOME's shell."""

import os
from contextlib import ExitStack

import psutil
import pytest
from stubs.benches import GnomeBench
from stubs.display import wait_until
from stubs.gnome import PlainGnome

from agent.core.actions import Click, KeyDown
from agent.core.geometry import DesktopPoint
from agent.desktop.factory import open_desktop
from agent.desktop.linux.bus import BusError
from agent.safety.stop import StopSwitch
from agent.sandbox import start
from agent.sandbox.desktop import find_sandboxes
from foundation.errors import EnvironmentLacksError, StoppedError

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]


def test_three_of_them_run_at_once_and_do_not_meet() -> None:
    with ExitStack() as stack:
        shells = [stack.enter_context(PlainGnome()) for _ in range(3)]
        benches = [GnomeBench(shell) for shell in shells]
        for bench in benches:
            [there] = [one for one in bench.all_events() if one["kind"] == "there"]
            assert (there["width"], there["height"]) == (1280, 800), "nothing of the shell's lies beside the window"
        benches[1].person_presses("a")
        benches[1].wait(lambda: benches[1].text() == "a", "the key arrives: no overview takes it")
        assert [bench.text() for bench in benches] == ["", "a", ""]
        assert len({shell.environ["WAYLAND_DISPLAY"] for shell in shells}) == 3
    assert not {shell.folder.parent for shell in shells} & {found.folder for found in find_sandboxes()}


def test_whoever_root_is_inside_has_an_account_of_the_sandboxs_own() -> None:
    with PlainGnome() as shell:
        _, _, number, _, _, home, _ = shell.run("sh", "-c", "getent passwd $(id -u)").strip().split(":")
        assert int(number) == (os.getuid() or 1000)
        assert os.getuid() or home == str(shell.folder)


def test_a_shell_that_is_killed_leaves_nothing_behind() -> None:
    with PlainGnome() as shell:
        shell.kill()
        inside = [int(pid) for pid in shell.run("pgrep", "-x", "gnome-shell").split()]
        assert inside == []
    assert not shell.folder.exists()
    assert not [one for one in psutil.process_iter(["environ"]) if shell.folder.parent.name in str(one.info)]


def test_a_shell_that_dies_in_mid_run_is_one_sentence_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with PlainGnome() as shell:
        for name, value in shell.variables.items():
            monkeypatch.setenv(name, value)
        stop = StopSwitch()
        desktop = open_desktop(stop, None, shell.environ)
        screen, hand = desktop.screen, desktop.hand
        desktop.watch("none", None)
        hand.perform(KeyDown(("shift",)))
        shell.kill()
        wait_until(lambda: stop.stopped, "the run is ended")
        with pytest.raises(EnvironmentLacksError, match="went away"):
            stop.check()
        with pytest.raises((StoppedError, EnvironmentLacksError)):
            hand.perform(Click(DesktopPoint(300, 300)))
        hand.close()
        screen.close()
        desktop.close()
    assert not shell.folder.exists()


class BusyShell:
    """A shell that closes its overview when it is told to, and answers too late."""

    def __init__(self) -> None:
        self.open = True

    def __call__(self, environ: dict[str, str], seconds: float) -> "BusyShell":
        return self

    def __enter__(self) -> "BusyShell":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def property(self, address: object, name: str) -> bool:
        return self.open

    def call(self, *_: object) -> None:
        self.open = False
        raise BusError("no answer")


def test_an_overview_that_was_closed_without_an_answer_in_time_is_known_to_be_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start, "Bus", BusyShell())
    overview = start.Overview({})
    assert [overview.closed(), overview.closed()] == [False, True]


def test_an_overview_that_was_not_seen_yet_may_still_open(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = BusyShell()
    monkeypatch.setattr(start, "Bus", shell)
    shell.open = False
    assert not start.Overview({}).closed()
