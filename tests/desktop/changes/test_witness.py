"""What the witness tells, against what the desktop's own tools tell, on a real desktop."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import is_neutral
from agent.desktop.changes.put_back import standing
from agent.desktop.changes.witness import LinuxWitness
from agent.desktop.programs import MARK, marked
from agent.desktop.protocol.clipboard import ClipboardWatch
from agent.desktop.x11.selections import X11Clipboard
from agent.desktop.x11.windows import open_windows
from agent.sandbox.desktop import Sandbox


class Scene:
    """A desktop of its own, a witness of it, and a hand on its tools."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.environ = sandbox.environ
        self.home = Path(self.environ["HOME"])
        self.watch()

    def watch(self) -> None:
        """Begin a watch, in place of one that there was."""
        if hasattr(self, "witness"):
            self.witness.close()
        self.witness = LinuxWitness(self.environ, open_windows, ClipboardWatch(X11Clipboard()))
        self.wait_for(lambda _: not any("looked through" in remark for remark in self.witness.remarks))

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environ, cwd=self.home, capture_output=True, text=True, timeout=20, check=True
        )
        return done.stdout

    def settings(self) -> dict[str, str]:
        """All settings, as dconf's and XFCE's own tools tell them."""
        found: dict[str, str] = {}
        folder = ""
        for line in self.run("dconf", "dump", "/").splitlines():
            if line.startswith("["):
                folder = line.strip("[]")
            elif "=" in line:
                key, value = line.split("=", 1)
                found[f"dconf /{folder}/{key}".replace("//", "/")] = value
        for channel in [*self.run("xfconf-query", "-l").splitlines()[1:], "made-up"]:
            for line in self.run("xfconf-query", "-c", channel.strip(), "-lv").splitlines():
                name, _, value = line.partition("  ")
                if "UNSUPPORTED" not in value:
                    found[f"xfconf {channel.strip()} {name.strip()}"] = value.strip()
        return found

    def told(self, *kinds: str) -> dict[str, tuple[str | None, str | None]]:
        return {
            change.what.removeprefix("~/"): (change.before, change.after)
            for change in self.witness.changes()
            if change.kind in kinds
        }

    def wait_for(self, wanted: Callable[[list[Change]], bool]) -> list[Change]:
        deadline = time.monotonic() + 20
        while not wanted(found := self.witness.changes()):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found


@pytest.fixture
def scene(own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    for name in ("DISPLAY", "XAUTHORITY"):
        monkeypatch.setenv(name, own_sandbox.environ[name])
    scene = Scene(own_sandbox)
    yield scene
    scene.witness.close()


def test_nothing_is_told_where_nothing_changed(scene: Scene) -> None:
    assert scene.witness.changes() == []
    assert scene.witness.remarks == []


def test_a_theme_that_xfconf_sets_is_told_until_it_is_put_back(scene: Scene) -> None:
    scene.run("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName", "-s", "Adwaita-dark")
    assert scene.told("setting") == {"xfconf xsettings /Net/ThemeName": ("Adwaita", "Adwaita-dark")}
    scene.run("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName", "-s", "Adwaita")
    assert scene.told("setting") == {}


def test_a_setting_of_gnome_is_told_with_its_default(scene: Scene) -> None:
    scene.run("gsettings", "set", "org.gnome.desktop.interface", "color-scheme", "prefer-dark")
    assert scene.told("setting") == {"dconf /org/gnome/desktop/interface/color-scheme": ("'default'", "'prefer-dark'")}
    scene.run("gsettings", "set", "org.gnome.desktop.interface", "color-scheme", "default")
    assert scene.told("setting") == {}


def test_files_are_told_as_made_changed_moved_trashed_and_deleted(scene: Scene) -> None:
    for name in ("changed", "renamed", "moved", "trashed", "deleted", "same"):
        (scene.home / name).write_text(name)
    scene.watch()
    assert scene.witness.changes() == []
    scene.run("sh", "-c", "echo longer > changed; mv renamed 'new name'; mv moved Documents/; rm deleted; echo > made")
    scene.run("sh", "-c", "printf same > same.new; mv same.new same; mkdir -p a/b; touch a/b/c; touch x; rm x")
    scene.run("gio", "trash", "trashed")
    assert scene.told("file") == {
        "changed": ("7 bytes (sha256 d67e2e94)", "7 bytes (sha256 e1a95bdf)"),
        "renamed": ("7 bytes", "moved to ~/new name"),
        "moved": ("5 bytes", "moved to ~/Documents/moved"),
        "trashed": ("7 bytes", "in the trash, as ~/.local/share/Trash/files/trashed"),
        "deleted": ("7 bytes", None),
        "made": (None, "1 byte"),
        "a": (None, "a folder"),
        "a/b": (None, "a folder"),
        "a/b/c": (None, "0 bytes"),
    }


def test_windows_applications_and_the_clipboard_are_told(scene: Scene) -> None:
    xterm = ["mousepad", "--disable-server"]
    program = subprocess.Popen(xterm, env=scene.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        scene.wait_for(lambda found: any(change.kind == "window" for change in found))
        assert scene.told("app") == {"Mousepad": (None, "Untitled 1 - Mousepad")}
        assert scene.told("window") == {"Mousepad": (None, "Untitled 1 - Mousepad")}
    finally:
        program.terminate()
        program.wait(10)
    scene.wait_for(lambda found: not found)
    owner = subprocess.Popen(["xclip", "-selection", "clipboard", "-quiet"], stdin=subprocess.PIPE, env=scene.environ)
    try:
        assert owner.stdin is not None
        owner.stdin.write(b"a text of more than forty characters, which is not told whole")
        owner.stdin.close()
        scene.wait_for(bool)
        assert scene.told("clipboard") == {
            "clipboard": (None, "61 characters: a text of more than forty characters, …")
        }
    finally:
        owner.terminate()
        owner.wait(10)


def test_a_hung_holder_of_the_clipboard_is_no_change(scene: Scene) -> None:
    owner = subprocess.Popen(["xclip", "-selection", "clipboard", "-quiet"], stdin=subprocess.PIPE, env=scene.environ)
    try:
        assert owner.stdin is not None
        owner.stdin.write(b"kept")
        owner.stdin.close()
        before = scene.wait_for(bool)
        owner.send_signal(signal.SIGSTOP)
        assert scene.witness.changes() == before
        assert any("clipboard" in remark for remark in scene.witness.remarks)
    finally:
        owner.kill()
        owner.wait(10)
    scene.wait_for(lambda found: not found)


SCHEMAS = (
    *("org.gnome.desktop.interface", "org.gnome.desktop.peripherals.mouse", "org.gnome.desktop.wm.preferences"),
    *("org.gnome.desktop.sound", "org.gnome.desktop.privacy", "org.gnome.desktop.a11y.keyboard"),
)


def test_every_setting_is_told_that_other_tools_tell_and_no_other(scene: Scene) -> None:
    before = scene.settings()
    for schema in SCHEMAS:
        for line in scene.run("gsettings", "list-recursively", schema).splitlines():
            _, key, value = line.split(" ", 2)
            if value in ("true", "false"):
                scene.run("gsettings", "set", schema, key, "false" if value == "true" else "true")
    profile = "org.gnome.desktop.app-folders.folder:/org/test/folder/"  # a schema without a place of its own
    scene.run("gsettings", "set", profile, "name", "it's\n\u202e new")
    for kind, value in (("int", "5"), ("uint", "7"), ("double", "1.5"), ("bool", "true"), ("string", "a b")):
        scene.run("xfconf-query", "-c", "made-up", "-p", f"/a/{kind}", "-n", "-t", kind, "-s", value)
    scene.run("xfconf-query", "-c", "xfwm4", "-p", "/general/title_alignment", "-s", "right")
    after = scene.settings()
    scene.wait_for(lambda found: any("title_alignment" in change.what for change in found))  # the last one set
    assert {what: new for what, (_, new) in scene.told("setting").items()} == {
        what: value
        for what, value in after.items()
        # A desktop that starts slowly writes its defaults meanwhile.
        if before.get(what) != value and (what in before or not is_neutral(what, value))
    }
    for schema in SCHEMAS:
        scene.run("gsettings", "reset-recursively", schema)
    scene.run("gsettings", "set", "org.gnome.desktop.interface", "toolkit-accessibility", "true")  # the sandbox's
    scene.run("gsettings", "reset", profile, "name")
    scene.run("xfconf-query", "-c", "made-up", "-p", "/a", "-r", "-R")
    scene.run("xfconf-query", "-c", "xfwm4", "-p", "/general/title_alignment", "-s", "center")
    assert scene.told("setting") == {}


def test_a_hung_settings_daemon_costs_little_and_is_told(scene: Scene) -> None:
    daemon = next(one for one in marked(scene.environ[MARK]) if one.name() == "xfconfd")
    scene.run("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName", "-s", "Adwaita-dark")
    assert len(scene.witness.changes()) == 1
    daemon.suspend()
    try:
        scene.run("gsettings", "set", "org.gnome.desktop.interface", "cursor-size", "48")
        assert set(scene.told("setting")) == {
            "dconf /org/gnome/desktop/interface/cursor-size",
            "xfconf xsettings /Net/ThemeName",
        }
        assert any("xfconfd" in remark for remark in scene.witness.remarks)
    finally:
        daemon.resume()
    scene.run("gsettings", "reset", "org.gnome.desktop.interface", "cursor-size")
    scene.run("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName", "-s", "Adwaita")
    scene.wait_for(lambda found: not found)
    assert scene.witness.remarks == []


def test_kdes_settings_are_told_by_key(scene: Scene) -> None:
    config = scene.home / ".config"
    (config / "kdeglobals").write_text("[General]\nColorScheme=BreezeLight\n")
    scene.watch()
    (config / "kdeglobals").write_text("[General]\nColorScheme=BreezeDark\n[KDE]\nSingleClick=false\n")
    (config / "newrc").write_text("[General]\n" + "".join(f"Default{number}=1\n" for number in range(9)))
    assert scene.told("setting", "file") == {
        "kde kdeglobals/General/ColorScheme": ("BreezeLight", "BreezeDark"),
        "kde kdeglobals/KDE/SingleClick": (None, "false"),
    }
    (config / "newrc").write_text((config / "newrc").read_text().replace("Default3=1", "Default3=2"))
    assert scene.told("setting")["kde newrc/General/Default3"] == ("1", "2")
    for name in ("kdeglobals", "newrc"):
        (config / name).unlink()


def test_a_channel_that_xfce_does_not_list_yet_is_told(scene: Scene) -> None:
    for channel, name in (("accessibility", "/StickyKeys"), ("nobody-knows-it", "/a")):
        assert channel not in scene.run("xfconf-query", "-l").split()
        scene.run("xfconf-query", "-c", channel, "-p", name, "-n", "-t", "bool", "-s", "true")
        scene.wait_for(bool)
        assert scene.told("setting") == {f"xfconf {channel} {name}": (None, "true")}
        scene.run("xfconf-query", "-c", channel, "-p", name, "-r")
        assert scene.told("setting") == {}


def test_a_setting_that_was_set_without_being_listed_is_told_with_what_it_was(scene: Scene) -> None:
    scene.run("xfconf-query", "-c", "keyboards", "-p", "/Default/KeyRepeat/Rate", "-n", "-t", "int", "-s", "20")
    scene.watch()
    assert scene.witness.changes() == []
    scene.run("xfconf-query", "-c", "keyboards", "-p", "/Default/KeyRepeat/Rate", "-s", "30")
    assert scene.told("setting") == {"xfconf keyboards /Default/KeyRepeat/Rate": ("20", "30")}
    scene.run("xfconf-query", "-c", "keyboards", "-p", "/Default/KeyRepeat/Rate", "-r")


@pytest.mark.parametrize(
    "command",
    [
        ("gsettings", "set", "org.gnome.desktop.privacy", "hide-identity", "true"),
        ("gsettings", "reset", "org.gnome.desktop.privacy", "hide-identity"),
        ("xfconf-query", "-c", "pointers", "-p", "/a", "-n", "-t", "int", "-s", "5"),
        ("xfconf-query", "-c", "pointers", "-p", "/a", "-r"),
        ("sh", "-c", "echo '[A]' > .config/kdeglobals"),
        ("rm", ".config/kdeglobals"),
    ],
)
def test_every_writing_of_settings_is_news(scene: Scene, command: tuple[str, ...]) -> None:
    before = scene.witness._mark()
    assert scene.witness._mark() == before
    scene.run(*command)
    deadline = time.monotonic() + 20
    while scene.witness._mark() == before:  # XFCE's daemon tells of it when it has nothing else to do
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_file_that_was_made_and_trashed_is_told(scene: Scene) -> None:
    # The first file ever thrown away makes the trash, which cannot be watched before.
    scene.run("mkdir", "-p", ".local/share/Trash/files", ".local/share/Trash/info")
    scene.watch()
    scene.run("sh", "-c", "echo > made-now")
    scene.witness.changes()
    scene.run("gio", "trash", "made-now")
    trashed = "~/.local/share/Trash/files/made-now"
    assert scene.told("file") == {"made-now": (None, f"made, and then in the trash, as {trashed}")}
    change = next(change for change in scene.witness.changes() if change.kind == "file")
    assert change.undo is not None
    assert standing(scene.environ, change.undo) == "as_before"


def test_a_daemon_of_settings_that_starts_only_later_does_not_make_its_defaults_changes(scene: Scene) -> None:
    next(one for one in marked(scene.environ[MARK]) if one.name() == "xfconfd").kill()
    scene.watch()
    assert scene.witness.changes() == []
    scene.run("xfconf-query", "-c", "xfce4-keyboard-shortcuts", "-p", "/a", "-n", "-t", "int", "-s", "1")
    listed = scene.run("xfconf-query", "-c", "xfce4-keyboard-shortcuts", "-l")
    assert listed.count("/") > 1  # the system's defaults, besides
    scene.wait_for(lambda found: len(found) == 1)
    assert scene.told("setting") == {"xfconf xfce4-keyboard-shortcuts /a": (None, "1")}
    scene.run("xfconf-query", "-c", "xfce4-keyboard-shortcuts", "-p", "/a", "-r")
    assert scene.told("setting") == {}


def test_a_daemon_of_settings_that_was_busy_when_the_watch_began_does_not_make_its_defaults_changes(
    scene: Scene,
) -> None:
    scene.run("xfconf-query", "-c", "xfce4-keyboard-shortcuts", "-l")  # the daemon is there
    daemon = next(one for one in marked(scene.environ[MARK]) if one.name() == "xfconfd")
    daemon.send_signal(signal.SIGSTOP)
    try:
        scene.watch()
        assert any("xfconfd" in remark for remark in scene.witness.remarks)
    finally:
        daemon.send_signal(signal.SIGCONT)
    assert scene.wait_for(lambda _: not scene.witness.remarks) == []
    scene.run("xfconf-query", "-c", "xfce4-keyboard-shortcuts", "-p", "/a", "-n", "-t", "int", "-s", "1")
    scene.wait_for(lambda found: len(found) == 1)
    assert scene.told("setting") == {"xfconf xfce4-keyboard-shortcuts /a": (None, "1")}
    scene.run("xfconf-query", "-c", "xfce4-keyboard-shortcuts", "-p", "/a", "-r")
