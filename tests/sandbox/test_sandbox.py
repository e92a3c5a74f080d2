import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from agent.core.geometry import Size
from agent.desktop.apps.launcher import Launcher
from agent.desktop.programs import marked
from agent.desktop.x11.windows import open_windows
from agent.safety.stop import StopSwitch
from agent.sandbox import desktop
from agent.sandbox.desktop import SandboxSpec, find_sandboxes, reap_sandboxes, start_sandbox, stop_sandbox
from foundation.errors import EnvironmentLacksError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_it_has_the_wanted_size_and_leaves_nothing_behind():
    sandbox = start_sandbox(SandboxSpec(Size(1280, 720)))
    processes = marked(sandbox.name)
    try:
        assert "1280x720" in sandbox.run("xdpyinfo").stdout.replace("1280x720 pixels", "1280x720")
        assert len(processes) >= 5
    finally:
        sandbox.close()
    assert not sandbox.folder.exists()
    assert [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []


def test_its_display_needs_its_cookie(sandbox):
    without = sandbox.environ | {"XAUTHORITY": "/dev/null"}
    assert sandbox.run("xdpyinfo").returncode == 0
    assert subprocess.run(["xdpyinfo"], env=without, capture_output=True, timeout=20).returncode != 0


def test_several_at_once_do_not_meet():
    first, second = start_sandbox(SandboxSpec()), start_sandbox(SandboxSpec())
    try:
        theme = ["xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName"]
        assert first.environ["DISPLAY"] != second.environ["DISPLAY"]
        first.run(*theme, "-s", "HighContrast")
        assert first.run(*theme).stdout.strip() == "HighContrast"
        assert second.run(*theme).stdout.strip() == "Adwaita"
    finally:
        first.close()
        assert second.run("xdpyinfo").returncode == 0
        second.close()


def test_what_a_killed_owner_left_is_removed_at_the_next_start():
    code = (
        "from agent.sandbox.desktop import *; import time;"
        "s = start_sandbox(SandboxSpec()); print(s.name, flush=True); time.sleep(60)"
    )
    root = Path(__file__).resolve().parents[2]
    owner = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True)
    name = owner.stdout.readline().strip()
    owner.kill()
    owner.wait()
    assert name in reap_sandboxes()
    assert marked(name) == []
    assert name not in {found.name for found in find_sandboxes()}


def test_a_kept_one_stays_until_it_is_stopped():
    sandbox = start_sandbox(SandboxSpec(keep=True))
    sandbox.close()
    reap_sandboxes()
    assert sandbox.run("xdpyinfo").returncode == 0
    assert str(sandbox.folder) in sandbox.how_to_look()
    stop_sandbox(sandbox.name)
    assert marked(sandbox.name) == []


def test_one_in_use_is_not_removed(sandbox):
    assert sandbox.name not in reap_sandboxes()
    assert sandbox.run("xdpyinfo").returncode == 0


def test_a_start_that_is_stopped_leaves_nothing_behind():
    before = {found.name for found in find_sandboxes()}
    began = time.monotonic()

    def stop_soon():
        if time.monotonic() - began > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start_sandbox(SandboxSpec(), check=stop_soon)
    assert {found.name for found in find_sandboxes()} == before


def test_missing_programs_are_named_with_their_packages(monkeypatch):
    monkeypatch.setattr(desktop.shutil, "which", lambda program: None if program == "xfwm4" else "/bin/x")
    with pytest.raises(EnvironmentLacksError, match=r"apt-get install .*xfwm4"):
        start_sandbox(SandboxSpec())


def test_applications_in_it_show_their_accessibility_tree(sandbox):
    bus = ("gdbus", "call", "--session", "--dest", "org.a11y.Bus", "--object-path", "/org/a11y/bus", "--method")
    for property_ in ("IsEnabled", "ScreenReaderEnabled"):
        told = sandbox.run(*bus, "org.freedesktop.DBus.Properties.Get", "org.a11y.Status", property_)
        assert told.stdout.strip() == "(<true>,)"
    assert str(sandbox.folder) in sandbox.run(*bus, "org.a11y.Bus.GetAddress").stdout


def test_settings_set_in_it_are_kept_by_its_own_dconf():
    sandbox = start_sandbox(SandboxSpec(session="bare"))
    try:
        sandbox.run("gsettings", "set", "org.gnome.desktop.interface", "clock-format", "12h")
        assert "clock-format='12h'" in sandbox.run("dconf", "dump", "/org/gnome/desktop/interface/").stdout
    finally:
        sandbox.close()


@pytest.mark.slow
def test_chromium_starts_in_it_though_root_started_it():
    sandbox = start_sandbox(SandboxSpec())
    try:
        flags = sandbox.environ["CHROME_EXTRA_FLAGS"]
        assert ("--no-sandbox" in flags) == (os.geteuid() == 0)
        sandbox.applied()
        assert "Chromium" in Launcher(sandbox.environ, open_windows).open("chromium", StopSwitch())
        assert sandbox.start("chromium", "--headless", "--dump-dom", "about:blank").wait(30) == 0
    finally:
        sandbox.close()
