import stat

import pytest

from agent.desktop.apps import linux
from agent.desktop.apps.linux import installed_apps, is_foreign, start_command


@pytest.fixture
def environ(tmp_path):
    """A system with one folder of programs and two of desktop files."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("paint", "writer", "hidden", "tui", "gnome-only"):
        program = programs / name
        program.write_text("#!/bin/sh\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "home/.local/share/applications").mkdir(parents=True)
    (tmp_path / "usr/applications").mkdir(parents=True)
    return {
        "PATH": str(programs),
        "HOME": str(tmp_path / "home"),
        "XDG_DATA_DIRS": str(tmp_path / "usr"),
        "XDG_CURRENT_DESKTOP": "XFCE",
        "LANG": "de_AT.UTF-8",
    }


@pytest.fixture
def add(tmp_path, environ, monkeypatch):
    monkeypatch.setenv("PATH", environ["PATH"])

    def entry(name, text, folder="usr/applications"):
        (tmp_path / folder / f"{name}.desktop").write_text(
            "[Desktop Entry]\nType=Application\n" + text, encoding="utf-8"
        )

    return entry


def apps(environ):
    return {app.id: app for app in installed_apps(environ)}


def test_names_come_in_the_persons_language(environ, add):
    add(
        "paint",
        "Name=Paint\nName[de]=Malen\nGenericName=Drawing\nExec=paint %U\n",
    )
    app = apps(environ)["paint"]
    assert app.name == "Malen"
    assert app.other_names == ("Paint", "Drawing")


def test_a_desktop_file_is_read_again_when_it_changed(environ, add):
    for command in ("paint", "writer"):
        add("paint", f"Name=Paint\nExec={command}\n")
        assert apps(environ)["paint"].program == command


@pytest.mark.parametrize(
    ("entry", "ordinary"),
    [("Categories=GTK;Game;", True), ("Categories=Office;", True), ("Categories=Utility;", False), ("", False),
     ("Categories=Game;Network;", False), ("Categories=Utility;TextEditor;\nTerminal=true", False)],
)  # fmt: skip
def test_its_categories_say_whether_opening_an_application_does_nothing_yet(environ, add, entry, ordinary):
    add("paint", f"Name=Paint\nExec=paint\n{entry}\n")
    assert apps(environ)["paint"].ordinary is ordinary


def test_field_codes_are_left_out_of_the_command(environ, add):
    add("writer", 'Name=Writer\nExec=env LANG=C writer --title "A %% b" %F\n')
    assert apps(environ)["writer"].command == ("env", "LANG=C", "writer", "--title", "A % b")


@pytest.mark.parametrize(
    "line",
    [
        *("NoDisplay=true", "Hidden=true", "OnlyShowIn=GNOME;", "NotShowIn=XFCE;", "TryExec=not-installed"),
        *("Type=Link", "Exec=not-installed"),
    ],
)
def test_what_the_desktop_would_not_show_is_left_out(environ, add, line):
    add("hidden", f"Name=Hidden\nExec=hidden\n{line}\n")
    assert apps(environ) == {}


def test_the_persons_own_file_hides_the_systems(environ, add):
    add("paint", "Name=System Paint\nExec=paint\n")
    add("paint", "Name=My Paint\nExec=paint\n", folder="home/.local/share/applications")
    assert apps(environ)["paint"].name == "My Paint"


@pytest.mark.parametrize("text", ["", "Name=x\nExec='unclosed\n", "\0\0\0", "[[[", "Name=x\nExec=\n", "Exec=%f\n"])
def test_broken_files_do_no_harm(environ, add, text):
    add("writer", "Name=Writer\nExec=writer\n")
    add("broken", text)
    assert set(apps(environ)) == {"writer"}


def test_terminal_programs_are_started_in_a_terminal(environ, add, tmp_path):
    terminal = tmp_path / "bin/xterm"
    terminal.write_text("#!/bin/sh\n")
    terminal.chmod(0o755)
    add("tui", "Name=Tui\nExec=tui --fast\nTerminal=true\n")
    assert start_command(apps(environ)["tui"]) == ["xterm", "-e", "tui", "--fast"]


def test_windows_start_menu_entries_are_read():
    from agent.desktop.apps.launcher import parse_start_apps

    text = '[{"Name":"Settings","AppID":"windows.immersive!x"},{"Name":"","AppID":"y"}]'
    [app] = parse_start_apps(text)
    assert app.command == ("explorer.exe", "shell:AppsFolder\\windows.immersive!x")
    assert [app.name for app in parse_start_apps('{"Name":"One","AppID":"1"}')] == ["One"]
    assert list(parse_start_apps("no json")) == []


def test_macos_bundles_are_opened_by_path(tmp_path):
    from agent.desktop.apps.launcher import macos_apps as bundles

    (tmp_path / "Calculator.app").mkdir()
    [app] = bundles((str(tmp_path),))
    assert (app.name, app.command) == ("Calculator", ("open", "-a", str(tmp_path / "Calculator.app")))


LATER = 4e9  # seconds since 1970, long after any file was made


@pytest.fixture
def as_root(monkeypatch):
    """The folders of these tests count as the system's: they lie where anybody may write."""
    monkeypatch.setattr(linux, "_EVERYBODYS", ())
    monkeypatch.setattr("os.geteuid", lambda: 0)


PAINT = "Name=Paint\nExec=paint %U\n"


@pytest.mark.usefixtures("as_root")
def test_an_application_is_foreign_that_is_the_persons_own_or_came_since_the_run_began(environ, add):
    add("paint", PAINT)
    assert not is_foreign(apps(environ)["paint"], environ, LATER)
    assert is_foreign(apps(environ)["paint"], environ, 0.0)
    add("paint", PAINT, "home/.local/share/applications")
    assert is_foreign(apps(environ)["paint"], environ, LATER)


@pytest.mark.usefixtures("as_root")
def test_a_program_in_the_home_is_foreign_also_where_the_system_has_one_of_that_name(environ, add, tmp_path):
    add("paint", PAINT)
    own = tmp_path / "home/bin"
    own.mkdir()
    (own / "paint").write_text("#!/bin/sh\n")
    (own / "paint").chmod(0o755)
    there = environ | {"PATH": f"{own}:{environ['PATH']}"}
    assert is_foreign(apps(environ)["paint"], there, LATER)


@pytest.mark.usefixtures("as_root")
def test_a_link_from_the_system_into_the_home_is_foreign(environ, add, tmp_path):
    add("x", "Name=Paint\nExec=paint\n", "home")
    (tmp_path / "usr/applications/paint.desktop").symlink_to(tmp_path / "home/x.desktop")
    assert is_foreign(apps(environ)["paint"], environ, LATER)


def test_what_lies_where_anybody_may_write_is_foreign(environ, add):
    add("paint", PAINT)
    assert is_foreign(apps(environ)["paint"], environ, LATER)
