"""Undo on a real desktop: what the desktop's own tools tell afterwards is what they told before."""

import subprocess
import time
from pathlib import Path

import pytest
from record.bundles import a_step

from agent.core.changes import CannotPutBackError
from agent.desktop.changes import dconf
from agent.desktop.changes.witness import LinuxWitness
from agent.desktop.protocol.clipboard import ClipboardWatch
from agent.desktop.x11.selections import X11Clipboard
from agent.desktop.x11.windows import open_windows
from agent.record.read import Bundle, read_bundle
from agent.record.run_record import RunRecord
from agent.record.step_record import StepRecord
from agent.record.undo_run import RunUndo
from agent.sandbox.desktop import Sandbox
from foundation.errors import EnvironmentLacksError
from foundation.foreign_text import json_text

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


class Run:
    """What somebody does on a desktop, recorded as if a run had done it."""

    def __init__(self, sandbox: Sandbox, bundle: Path) -> None:
        self.sandbox, self.environ = sandbox, sandbox.environ
        self.home = Path(self.environ["HOME"])
        self._path = bundle

    def shell(self, commands: str) -> str:
        done = subprocess.run(
            ["sh", "-ec", commands],
            env=self.environ,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=30,
            errors="surrogateescape",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def doing(self, commands: str) -> Bundle:
        witness = LinuxWitness(self.environ, open_windows, ClipboardWatch(X11Clipboard()))
        assert witness.changes() == []
        self.shell(commands)
        changes = [change.to_json() for change in witness.changes()]
        witness.close()
        assert changes
        record = {"outcome": "done", "receipt": {"changes": changes, "watched": True}, "sandbox": True}
        record |= {"sandbox_name": self.sandbox.name}
        (self._path / "run.json").write_text(json_text(record))
        return read_bundle(self._path)

    def snapshot(self) -> tuple[str, str, str]:
        """Settings and files, as other tools tell them; without what a trash remembers."""
        channels = 'for c in $(xfconf-query -l | tail -n +2); do echo "# $c"; xfconf-query -c $c -lv | sort; done'
        listing = "find . -path ./.cache -prune -o -path ./.local -prune -o -path ./.config -prune -o"
        files = self.shell(
            f"{listing} -printf '%p %y %m %l\\n' | sort; {listing} -type f -print0 | sort -z | xargs -0 sha256sum"
        )
        return self.shell(channels), self.shell("gsettings list-recursively | sort"), files


def differing(before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    """The lines that only one of two snapshots has."""
    lines = ({line for part in parts for line in part.splitlines()} for parts in (before, after))
    return sorted(set.symmetric_difference(*lines))


@pytest.fixture
def run(own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    for name in ("DISPLAY", "XAUTHORITY"):
        monkeypatch.setenv(name, own_sandbox.environ[name])
    run = Run(own_sandbox, tmp_path)
    run.shell("rm -rf Documents .local/share/Trash; mkdir -p Documents/work/inner")
    run.shell("cd Documents; for n in old moved trashed deleted changed work/a work/inner/b; do echo $n > $n; done")
    return run


EVERYTHING = """
xfconf-query -c xsettings -p /Net/ThemeName -s Adwaita-dark
xfconf-query -c xsettings -p /Made/Up -n -t int -s 5
xfconf-query -c xfwm4 -p /general/title_alignment -s left
gsettings set org.gnome.desktop.interface color-scheme prefer-dark
gsettings set org.gnome.desktop.interface text-scaling-factor 1.37
gsettings set org.gnome.desktop.input-sources sources "[('xkb','us'),('xkb','de')]"
cd Documents
mv old new; mkdir made; mv moved made/; echo hallo > made/note; mkdir -p made/x/y; touch made/x/y/z
gio trash trashed; rm deleted; echo other > changed; mv work ../Desktop/work2; mv ../Desktop/work2/inner/b b2
touch "$(printf 'na\\033[31mme\\n\\342\\200\\256\\377')"
"""


def test_everything_is_as_it_was(run: Run) -> None:
    before = run.snapshot()
    undoing = RunUndo(run.doing(EVERYTHING))
    assert run.snapshot() != before
    assert [
        item.words for item in undoing.items if item.verdict != "undo" and item.words != "goes with its folder"
    ] == []
    results = undoing.carry_out()
    assert [result.words for result in results if not result.done] == []
    assert differing(before, run.snapshot()) == []
    trashed = {path.name for path in (run.home / ".local/share/Trash/files").iterdir()}
    assert trashed == {"made"}, "what is empty is deleted"


@pytest.mark.parametrize(
    "commands",
    [
        "mv old new; echo more >> new",  # the same file, written to at its new place
        "echo more >> old; mv old new",
        "echo more >> old; gio trash old",
        "rm old; mkdir old; echo x > old/x",
        "rm old; ln -s moved old",
        "rm -r work",
        "rm -r work; echo x > work",
        "gio trash old; echo new > old",
        "rm private; rm -r closed",
        "echo more >> linked",
    ],
)
def test_what_was_changed_twice_or_replaced_is_as_it_was(run: Run, commands: str) -> None:
    run.shell("cd Documents; echo 1 > private; mkdir closed; chmod 600 private; chmod 700 closed; ln changed linked")
    *_, before = run.snapshot()  # the files: of settings, a young desktop writes its own
    undoing = RunUndo(run.doing(f"cd Documents; {commands}"))
    results = undoing.carry_out()
    assert [result.words for result in results if not result.done] == []
    *_, after = run.snapshot()
    assert differing((before,), (after,)) == []
    assert (run.home / "Documents/linked").stat().st_nlink == 2
    assert not any(f"moved to {item.change.what}" in str(item.change.after) for item in undoing.items)


def test_a_receipt_that_was_not_found_out_is_not_nothing(run: Run) -> None:
    bundle = run.doing("touch Documents/x")
    record = bundle.run.model_copy(
        update={"receipt": bundle.run.receipt.model_copy(update={"changes": [], "watched": False})}
    )
    assert not RunUndo(Bundle(bundle.path, record, ())).is_known


def test_a_setting_that_a_program_overwrote_at_once_is_put_back_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled = "org.gnome.desktop.interface text-scaling-factor"
    shown = f"gsettings get {scaled}; xfconf-query -c xfwm4 -p /general/title_alignment"
    before = run.shell(shown)
    bundle = run.doing(f"xfconf-query -c xfwm4 -p /general/title_alignment -s left; gsettings set {scaled} 1.37")
    write, tries = dconf.set_again, []

    def overwritten_once(*told: object) -> None:
        tries.append(told)
        if len(tries) == 1:
            raise CannotPutBackError("dconf did not take it: it may be locked")
        write(*told)  # type: ignore[arg-type]

    monkeypatch.setattr(dconf, "set_again", overwritten_once)
    assert [result.words for result in RunUndo(bundle).carry_out() if not result.done] == []
    assert run.shell(shown) == before
    assert tries.count(tries[0]) == 2


def test_what_a_program_sets_along_with_a_setting_is_as_it_was_too(run: Run) -> None:
    dump = "dconf dump /org/gnome/desktop/interface/"
    before = run.shell(dump)
    copies = ["xfce4-appearance-settings"]  # copies the theme there whenever it changes
    program = subprocess.Popen(copies, env=run.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        bundle = run.doing("xfconf-query -c xsettings -p /Net/ThemeName -s Adwaita-dark; sleep 1")
        assert run.shell(dump) != before

        assert [result.words for result in RunUndo(bundle).carry_out() if not result.done] == []

        time.sleep(1)
    finally:
        program.kill()  # it would go on copying in the tests that follow
        program.wait()
    assert run.shell(dump) == before


def test_the_second_time_nothing_is_done_even_where_somebody_did_it_again(run: Run) -> None:
    bundle = run.doing("xfconf-query -c xsettings -p /Net/ThemeName -s Adwaita-dark")
    assert len(RunUndo(bundle).carry_out()) == 1
    run.shell("xfconf-query -c xsettings -p /Net/ThemeName -s Adwaita-dark")
    again = RunUndo(read_bundle(bundle.path))
    assert again.able == []
    assert "was undone already" in again.items[0].words
    run.shell("xfconf-query -c xsettings -p /Net/ThemeName -s Adwaita")


def test_what_changed_since_is_left_alone(run: Run) -> None:
    bundle = run.doing(
        "xfconf-query -c xsettings -p /Net/ThemeName -s Adwaita-dark\n"
        "gsettings set org.gnome.desktop.interface cursor-size 32\n"
        "cd Documents; mv old new; mv moved other; mkdir made; echo 1 > made/one; echo 1 > two\n"
        "gio trash trashed; echo x > changed"
    )
    run.shell(
        "xfconf-query -c xsettings -p /Net/ThemeName -s HighContrast\n"
        "gsettings set org.gnome.desktop.interface cursor-size 48\n"
        "cd Documents; echo mine > mine; mv mine other\n"
        "for file in old made/one made/mine two trashed changed; do echo mine > $file; done"
    )
    before = run.snapshot()
    undoing = RunUndo(bundle)
    assert undoing.able == []
    assert undoing.leaves_something
    assert undoing.carry_out() == []
    assert run.snapshot() == before
    run.shell(
        "xfconf-query -c xsettings -p /Net/ThemeName -s Adwaita\n"
        "gsettings reset org.gnome.desktop.interface cursor-size"
    )


def test_a_file_that_is_gone_for_good_is_said_to_be(run: Run) -> None:
    (run.home / "Documents/large").write_bytes(bytes(200_000))
    undoing = RunUndo(run.doing("rm Documents/large"))
    assert [(item.verdict, item.words) for item in undoing.items] == [("cannot", "what it held is not known any more")]
    assert undoing.leaves_something


def test_text_that_was_typed_is_named_as_what_is_not_taken_back(tmp_path: Path) -> None:
    typed = [
        a_step(number, target={"type": "type", "text": text}, aim={"window": window}, executed=executed)
        for number, (text, window, executed) in enumerate(
            [("Dear ", "Letter", True), ("Ada", "Letter", True), ("b", "Find", True), ("no", "Find", False)], 1
        )
    ]
    record = RunRecord.model_validate({"outcome": "done", "receipt": {"changes": [], "watched": True}})
    steps = tuple(map(StepRecord.model_validate, typed))
    items = RunUndo(Bundle(tmp_path, record, steps)).items
    assert [(item.verdict, str(item.change)) for item in items] == [
        ("cannot", "text Letter: “Dear Ada” (new)"),
        ("cannot", "text Find: “b” (new)"),
    ]
    assert not items[0].leaves_something


def test_a_masked_value_is_not_written_back(run: Run) -> None:
    bundle = run.doing("xfconf-query -c xsettings -p /Made/Password -n -t string -s '[redacted 8 chars]'")
    assert [item.verdict for item in RunUndo(bundle).items] == ["cannot"]
    run.shell("xfconf-query -c xsettings -p /Made/Password -r")


def test_a_desktop_that_is_gone_is_said_to_be(run: Run) -> None:
    bundle = run.doing("touch Documents/x")
    bundle.run.sandbox_name = "longgone"
    with pytest.raises(EnvironmentLacksError, match="is gone"):
        RunUndo(bundle)
