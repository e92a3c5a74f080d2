import subprocess
import time
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import numpy as np
import psutil
import pytest

from agent.core.geometry import Size
from agent.desktop.factory import open_desktop
from agent.desktop.programs import marked
from agent.safety.stop import StopSwitch
from agent.sandbox import sessions
from agent.sandbox.desktop import SandboxSpec, start_sandbox
from agent.sandbox.sessions import Session, load_session, session_names
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

pytestmark = pytest.mark.slow

#: An application of each kind, and what its window is called in two languages.
APPLICATIONS = {
    "bare": (["mousepad"], "Untitled 1 - Mousepad", "Unbenannt 1 - Mousepad"),
    "cinnamon": (["nemo"], "Home", "Persönlicher Ordner"),
    "gnome": (["gnome-control-center"], "Settings", "Einstellungen"),
    "gnome-shell": (["gnome-calculator"], "Calculator", "Taschenrechner"),
    "kde": (["systemsettings"], "System Settings", "Systemeinstellungen"),
    "sway": (["mousepad"], "Untitled 1 - Mousepad", "Unbenannt 1 - Mousepad"),
    "mate": (["mate-control-center"], "Control Center", "Steuerzentrale"),
    "xfce": (["xfce4-appearance-settings"], "Appearance", "Erscheinungsbild"),
}


@pytest.fixture(params=["C.UTF-8", "de_DE.UTF-8"])
def language(request, monkeypatch, tmp_path_factory):
    """The locale to ask for, with one folder for all that are made."""
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path_factory.getbasetemp() / "state-of-locales"))
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("LANGUAGE", raising=False)
    return request.param


def titles(seconds, wanted, desktop):
    """The titles of the windows, as soon as the wanted one is there."""
    windows = desktop.open_windows()
    try:
        deadline = time.monotonic() + seconds
        while wanted not in (found := [window.title for window in windows.windows()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found
    finally:
        windows.close()


def of_colour(colour, desktop):
    """The share of the screen that has a colour."""
    wanted = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    pixels = np.asarray(desktop.screen.grab().image)
    return float((abs(pixels.astype(int) - wanted).max(axis=2) <= 1).mean())


@pytest.mark.e2e
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", session_names())
def test_each_kind_shows_its_applications_in_the_language_asked_for(name, language):
    command, english, german = APPLICATIONS[name]
    locale, title = (language, german) if language.startswith("de") else (None, english)
    sandbox = start_sandbox(SandboxSpec(Size(1280, 800), session=name, locale=locale))
    try:
        sandbox.applied()
        deadline = time.monotonic() + 10  # a desktop draws its background a moment after its window is there
        desktop = open_desktop(StopSwitch(), None, sandbox.environ)
        with closing(desktop), closing(desktop.screen):
            while (share := of_colour(load_session(name).wallpaper, desktop)) < 0.8 and time.monotonic() < deadline:
                time.sleep(0.1)
            assert share >= 0.8
            sandbox.start(*command)
            assert title in titles(30, title, desktop)
        processes = marked(sandbox.name)
    finally:
        sandbox.close()
    assert [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
    assert marked(sandbox.name) == []
    assert not sandbox.folder.exists()


@pytest.mark.e2e
def test_files_go_to_the_trash_of_its_own_home():
    sandbox = start_sandbox(SandboxSpec(session="bare"))
    try:
        home = sandbox.folder / "home"
        (home / "Documents/note.txt").write_text("x")
        subprocess.run(["gio", "trash", str(home / "Documents/note.txt")], env=sandbox.environ, check=True, timeout=20)
        assert [path.name for path in (home / ".local/share/Trash/files").iterdir()] == ["note.txt"]
    finally:
        sandbox.close()


@pytest.mark.parametrize("name", session_names())
def test_each_file_of_a_kind_says_only_what_is_read(name):
    known = {field.name for field in fields(Session)} - {"name"}
    assert set(load_config(f"sandbox/{name}.toml")) <= known
    assert set(load_config("sandbox.toml")) - {"settings", "isolation"} <= known
    session = load_session(name)
    started = {command[0] for command in session.start}
    assert started <= session.programs.keys(), "every program that is started is asked for before"


@pytest.mark.parametrize("name", session_names())
def test_the_scripts_install_what_each_kind_needs(name):
    session = load_session(name)
    said = f'. scripts/setup.sh; wanted_packages "--sandbox --sandbox-session {name}"'
    asked = subprocess.check_output(["bash", "-euc", said], cwd=Path(__file__).parents[2], text=True)
    large = {"dolphin", "cinnamon"}  # a hundred packages each
    wanted = {*session.programs.values(), *session.applications.values(), *session.libraries} - large
    assert wanted <= set(asked.split())


def without(monkeypatch, *absent):
    monkeypatch.setattr(sessions.shutil, "which", lambda program: None if program in absent else f"/bin/{program}")


def test_a_missing_application_is_told_and_no_obstacle(monkeypatch):
    without(monkeypatch, "gnome-calculator")
    session = load_session("gnome")
    assert session.can_start()
    assert session.missing_applications() == ["gnome-calculator"]


def test_a_kind_without_any_of_its_applications_does_not_start(monkeypatch):
    session = load_session("kde")
    without(monkeypatch, *session.applications)
    assert not session.can_start()
    with pytest.raises(EnvironmentLacksError, match=r"applications of KDE .*apt-get install .*kwrite"):
        session.check_installed()


def test_a_missing_program_is_named_with_its_package_and_the_libraries(monkeypatch):
    without(monkeypatch, "marco")
    with pytest.raises(EnvironmentLacksError, match=r"\(MATE\) needs .*apt-get install .* marco .*at-spi2-core"):
        load_session("mate").check_installed()
