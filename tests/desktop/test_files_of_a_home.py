"""Files and folders by the names people use, in homes of any language."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.actions import OpenApp
from agent.desktop.apps.files import find_file, is_path, may_start_something, shown_path
from agent.desktop.apps.launcher import Launcher
from agent.desktop.apps.linux import chosen_for, types_of
from agent.desktop.protocol.desktop import Opens
from agent.desktop.protocol.hand import ActionFailedError
from agent.safety.policy import Policy
from agent.safety.situation import Situation
from agent.safety.stop import StopSwitch


@pytest.fixture
def home(tmp_path):
    """A German home, whose folders were never called anything else."""
    home = tmp_path / "home"
    for folder in ("Dokumente", "Downloads", "Bilder", "Projekte/alt/tief", ".config", ".versteckt"):
        (home / folder).mkdir(parents=True)
    (home / ".config/user-dirs.dirs").write_text(
        'XDG_DOCUMENTS_DIR="$HOME/Dokumente"\nXDG_PICTURES_DIR="$HOME/Bilder"\nXDG_MUSIC_DIR="/etc"\n'
    )
    (home / "Dokumente/report.txt").write_text("numbers\n")
    (home / "Projekte/alt/plan.md").write_text("# plan\n")
    return home


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Documents/", "Dokumente"),
        ("./Dokumente/", "Dokumente"),
        ("pictures", "Bilder"),
        ("report.txt", "Dokumente/report.txt"),
        ("./Report.TXT", "Dokumente/report.txt"),
        ("report", "Dokumente/report.txt"),
        ("Documents/report.txt", "Dokumente/report.txt"),
        ("~/Dokumente/report.txt", "Dokumente/report.txt"),
        ("plan.md", "Projekte/alt/plan.md"),
        ("alt/", "Projekte/alt"),
        ("~", ""),
        ("home folder", ""),
    ],
)
def test_names_and_paths_find_what_is_meant(home, name, path):
    assert find_file(name, home, {}) == home / path


@pytest.mark.parametrize(
    "name", ["", "nothing.txt", "~/nothing", "report.txt/", ".versteckt", "file://elsewhere/home", "\0", "x" * 5000]
)
def test_what_is_not_there_is_not_found(home, name):
    assert find_file(name, home, {}) is None


def test_a_file_url_is_a_path(home):
    (home / "Bilder/ein bild.png").touch()
    assert find_file(f"file://{home}/Bilder/ein%20bild.png", home, {}) == home / "Bilder/ein bild.png"


@pytest.mark.parametrize("name", ["/etc/passwd", "~/../..", "../..", "file:///etc/passwd", "./Bilder/../../../.."])
def test_what_lies_outside_of_the_home_is_refused(home, name):
    with pytest.raises(ActionFailedError, match="not in your home"):
        find_file(name, home, {})


def test_a_link_leads_to_nothing_outside_of_the_home(home):
    (home / "out.txt").symlink_to("/etc/passwd")
    assert find_file("out.txt", home, {}) is None


def test_several_of_that_name_are_told_and_none_is_taken(home):
    (home / "Downloads/report.txt").touch()
    with pytest.raises(ActionFailedError, match=r"~/Dokumente/report.txt, ~/Downloads/report.txt"):
        find_file("report.txt", home, {})


def test_the_folder_that_holds_something_is_found_by_its_name(home):
    home.joinpath("Documents").mkdir(exist_ok=True)
    home.joinpath("Documents/unique.txt").write_text("x")
    assert find_file("./unique.txt/..", home, {}) == home / "Documents"
    assert find_file("./not there/..", home, {}) is None


def test_what_is_near_comes_before_what_is_far(home):
    (home / "Projekte/alt/report.txt").touch()
    assert find_file("report.txt", home, {}) == home / "Dokumente/report.txt"


@given(st.text(max_size=40))
def test_no_name_leads_out_of_the_home_or_breaks_the_search(tmp_path_factory, name):
    home = tmp_path_factory.getbasetemp() / "empty-home"
    home.mkdir(exist_ok=True)
    try:
        found = find_file(name, home, {})
    except ActionFailedError:
        return
    assert found is None or found.resolve().is_relative_to(home.resolve())


@pytest.mark.parametrize(("name", "told"), [("~/a", True), ("/a", True), ("a/", True), ("./a", True), ("a.txt", False)])
def test_some_names_can_be_no_applications(name, told):
    assert is_path(name) is told


# Programs


@pytest.mark.parametrize("name", ["x.desktop", "x.sh", "X.PY", "x.AppImage", "x.exe"])
def test_scripts_and_desktop_files_may_start_something(tmp_path, name):
    (tmp_path / name).touch()
    assert may_start_something(tmp_path / name)


def test_what_is_marked_as_a_program_or_no_plain_file_may_start_something(tmp_path):
    (tmp_path / "tool").touch(mode=0o755)
    os.mkfifo(tmp_path / "pipe.txt")
    assert may_start_something(tmp_path / "tool")
    assert may_start_something(tmp_path / "pipe.txt")
    (tmp_path / "a.txt").touch(mode=0o644)
    assert not may_start_something(tmp_path / "a.txt")
    assert not may_start_something(tmp_path)


# Types, and who opens them


def test_types_come_from_names_and_else_from_what_is_in_a_file(tmp_path):
    (tmp_path / "README").write_text("Grüße\n", encoding="utf-8")
    (tmp_path / "blob").write_bytes(b"\0\1\2\xff")
    (tmp_path / "a.md").touch()
    assert types_of(tmp_path) == ["inode/directory"]
    assert types_of(tmp_path / "README") == ["text/plain"]
    assert types_of(tmp_path / "a.md")[-1] == "text/plain"
    assert types_of(tmp_path / "blob") == ["application/octet-stream"]
    assert types_of(tmp_path / "picture.png") == ["image/png"]


def test_the_persons_choice_comes_first(tmp_path):
    config, shared = tmp_path / "config", tmp_path / "data/applications"
    config.mkdir()
    shared.mkdir(parents=True)
    (config / "mimeapps.list").write_text("[Default Applications]\ntext/plain=mine.desktop;\n")
    (shared / "xfce-mimeapps.list").write_text("[Default Applications]\ntext/plain=theirs.desktop\n")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(config), "XDG_DATA_DIRS": str(tmp_path / "data"),
               "XDG_CURRENT_DESKTOP": "XFCE"}  # fmt: skip
    assert chosen_for(["text/plain"], environ)[:2] == ["mine", "theirs"]


@pytest.fixture
def launcher(home, tmp_path, monkeypatch):
    """A system with an editor called Editor, which writes down what it is started with."""
    programs, shared = tmp_path / "bin", tmp_path / "usr/applications"
    programs.mkdir()
    shared.mkdir(parents=True)
    program = programs / "editor"
    program.write_text(f'#!/bin/sh\n/bin/echo "$@" > {tmp_path}/started\n/bin/sleep 0.1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    (shared / "org.xfce.mousepad.desktop").write_text(
        "[Desktop Entry]\nType=Application\nName=Mousepad\nExec=editor %F\nMimeType=text/plain;\n"
    )
    environ = {"HOME": str(home), "PATH": str(programs), "XDG_DATA_DIRS": str(tmp_path / "usr"),
               "XDG_CURRENT_DESKTOP": "XFCE"}  # fmt: skip
    return Launcher(environ, lambda: None)


def test_a_path_is_told_from_the_home_where_it_is_in_it(home):
    assert shown_path(home, home) == "~"
    assert shown_path(home, home / "Dokumente/report.txt") == "~/Dokumente/report.txt"
    assert shown_path(home, home.parent / "homely/x") == f"{home.parent}/homely/x"


def test_a_file_is_opened_with_the_application_for_it(launcher, home, tmp_path):
    told = launcher.open("report.txt", StopSwitch())
    assert "~/Dokumente/report.txt with Mousepad" in told and str(home) not in told
    assert (tmp_path / "started").read_text() == f"{home}/Dokumente/report.txt\n"
    assert launcher.identify("report.txt").names == ("Mousepad", "org.xfce.mousepad", "editor")


def test_a_program_is_not_opened_by_itself_and_asked_about_with_an_application(launcher, home):
    (home / "x.sh").touch(mode=0o755)
    (home / "tool").touch(mode=0o755)
    policy = Policy.load("risky")
    with pytest.raises(ActionFailedError, match="may be a program"):
        launcher.open("x.sh", StopSwitch())
    for name in ("x.sh", "tool"):
        assert launcher.identify(name) == Opens()  # nothing would be opened, so nobody is asked
        opens = launcher.identify(name, "mousepad").names
        question = policy.question(OpenApp(name, "mousepad"), Situation(opens=opens))
        assert question is not None
    opens = launcher.identify("report.txt").names
    assert policy.question(OpenApp("report.txt"), Situation(opens=opens)) is None


def test_what_no_application_opens_is_said(launcher, home):
    (home / "picture.png").touch()
    with pytest.raises(ActionFailedError, match=r"no application is known to open picture.png \(image/png\)"):
        launcher.open("picture.png", StopSwitch())
    with pytest.raises(ActionFailedError, match="no installed application, file or folder is called 'nothing'"):
        launcher.open("nothing", StopSwitch())


@pytest.mark.parametrize(
    ("shown", "starts"),
    [
        ("x.sh", True),
        ("X.SH", True),
        ("Holiday photos", True),  # as the desktop file calls itself
        ("Holiday", True),  # the first line of it
        ("photos", True),
        ("evil.desktop", True),
        ("tool", True),
        ("report.txt", False),
        ("Documents", False),
        ("", False),
        ("...", False),
    ],
)
def test_what_is_shown_is_known_for_a_program_by_its_file(launcher, home, shown, starts):
    desktop = home / "Desktop"
    desktop.mkdir(exist_ok=True)
    (home / "x.sh").touch()
    (desktop / "tool").touch(mode=0o755)
    (desktop / "evil.desktop").write_text("[Desktop Entry]\nName=Holiday photos\nExec=x\n", encoding="utf-8")
    assert ("may be a program" in launcher.starting([shown], None, opened=True)) is starts
    assert launcher.starting([shown], None, opened=False) == frozenset()


@pytest.mark.parametrize("title", ["", "Desktop - Thunar", "/home/ann/Desktop", "DESKTOP"])
def test_an_icon_that_cannot_be_read_may_be_the_program_beside_it(launcher, home, title):
    desktop = home / "Desktop"
    desktop.mkdir(exist_ok=True)
    (desktop / "notes.txt").touch()
    assert "beside programs" not in launcher.starting(["6"], title, opened=True)
    (desktop / "tool").touch(mode=0o755)
    assert "beside programs" in launcher.starting(["6"], title, opened=True)
    assert "beside programs" in launcher.starting([], title, opened=True)
    assert "beside programs" not in launcher.starting(["notes.txt"], title, opened=True)


def test_in_a_folder_that_is_not_known_only_what_cannot_be_read_may_be_a_program(launcher):
    assert "beside programs" in launcher.starting(["6"], "somewhere - Thunar", opened=True)
    assert "beside programs" not in launcher.starting(["photo.jpg"], "somewhere - Thunar", opened=True)


def test_an_entry_in_the_menus_that_somebody_else_put_there_is_known_by_its_name(launcher, home):
    entries = home / ".local/share/applications"
    entries.mkdir(parents=True)
    (entries / "a.desktop").write_text("[Desktop Entry]\nName=Calculator\nName[de]=Rechner\nExec=x\n", encoding="utf-8")
    assert launcher.starting(["Calculator"], None, opened=False) == {"not the system's"}
    assert launcher.starting(["rechner"], None, opened=False) == {"not the system's"}
    assert launcher.starting(["Files"], None, opened=False) == frozenset()
