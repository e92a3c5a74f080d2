"""Recorded runs done again as recipes, in other throw-away desktops."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stubs.display import forget_pyautogui
from stubs.endpoint import FakeEndpoint, say

import mai_agent
from agent.recipes.files import keep_recipe
from agent.recipes.recipe import Recipe
from agent.recipes.saving import recipe_of
from agent.record.read import read_bundle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
ROOT = Path(__file__).parents[2]
NOTES = ROOT / "examples/gtk-notes/notes.py"


@pytest.fixture(autouse=True)
def data(monkeypatch, tmp_path):
    forget_pyautogui()
    monkeypatch.setenv("MAI_AGENT_DATA", str(tmp_path / "data"))


def start(desk, source, button="Add"):
    home = Path(desk.sandbox.environ["HOME"])
    (home / "notes.py").write_text(source)
    desk.sandbox.start("/usr/bin/python3", str(home / "notes.py"))
    desk.expect(button, role="button", within=20)
    return home / "notes.json"


def sandbox(tmp_path, **options):
    return mai_agent.sandbox(engine="literal", runs=tmp_path / "runs", approve="never", **options)


@pytest.mark.slow
def test_dark_mode_is_done_again_on_a_smaller_screen(command, kept, tmp_path):
    first = command("--sandbox", "open settings and enable dark mode")
    assert first.status == 0, first.out + first.err
    data = {"MAI_AGENT_DATA": str(tmp_path / "data")}
    saved = command("save", "last", "dark", "--json", environ=data)
    assert [list(step) for step in json.loads(saved.out)["recipe"]["steps"]] == [["open"], ["open"], ["click"]]
    first.bundle.rename(tmp_path / "first")
    again = command("do", "dark", "--sandbox", "--keep", "--sandbox-size", "1024x768", environ=data)
    kept(again)
    assert again.status == 0, again.out + again.err
    theme = again.inside("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName")
    assert theme.stdout.strip() == "Adwaita-dark"
    assert again.meta["verified"] is True


@pytest.mark.slow
def test_a_note_is_typed_again_with_another_text_and_a_changed_application_stops_it(tmp_path):
    source = NOTES.read_text()
    with sandbox(tmp_path) as desk:
        start(desk, source)
        run = desk.do("type 'Bread' into Title and click Add").check()
    assert run.bundle is not None
    keep_recipe(recipe_of(read_bundle(run.bundle), {"title": "Bread"}), "note")
    with sandbox(tmp_path, size="1024x768") as desk:
        kept = start(desk, source.replace("default_width=720", "default_width=500"))
        desk.open("mousepad")  # stands in the way
        assert desk.repeat("note", title="Milk").check().verified
        assert [note["title"] for note in json.loads(kept.read_text())] == ["Milk"]
    with sandbox(tmp_path, size="1024x768") as desk:
        kept = start(desk, source.replace('("Add", self.add_note)', '("Add", self.tell), ("Add note", self.add_note)'))
        result = desk.repeat("note")
        assert result.outcome == "unverified"
        assert "nothing shows what they were to change" in result.message
        assert not kept.exists()


@pytest.mark.slow
def test_a_button_that_is_gone_ends_it_with_the_steps_number(tmp_path):
    source = NOTES.read_text()
    steps = [{"type": {"text": "Bread", "into": {"name": "Title", "role": "text", "in": "Notes"}}},
             {"click": {"name": "Add", "role": "push button", "in": "Notes"}}]  # fmt: skip
    keep_recipe(Recipe.model_validate({"version": 1, "instruction": "add a note", "steps": steps}), "note")
    with sandbox(tmp_path) as desk:
        kept = start(desk, source.replace('("Add", self.add_note)', '("Add a note", self.add_note)'), "Add a note")
        result = desk.repeat("note")
        assert result.outcome == "gave_up"
        assert result.message.startswith(
            "Step 2 of 2, click “Add” in “Notes”: there is no push button “Add” in “Notes”"
        )
        assert not any(step.action.startswith("click “Add") for step in result.steps)
        assert not kept.exists()
    with FakeEndpoint([say('{"same": "Add a note"}')]) as endpoint, sandbox(tmp_path, endpoint=endpoint.url) as desk:
        kept = start(desk, source.replace('("Add", self.add_note)', '("Add a note", self.add_note)'), "Add a note")
        assert desk.repeat("note").outcome == "done"
        assert [note["title"] for note in json.loads(kept.read_text())] == ["Bread"]


class Demonstration:
    """`mai-agent record` in a sandbox, and a person's mouse and keyboard there."""

    def __init__(self, desk, tmp_path, *arguments):
        self.desk = desk
        self.environ = {**desk.sandbox.environ, "PYTHONPATH": str(ROOT), "MAI_AGENT_DATA": str(tmp_path / "data")}
        command = [sys.executable, "-m", "agent", "record", *arguments, "--json", "--runs", str(tmp_path / "shown")]
        self.program = subprocess.Popen(
            command,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert "Do the task now" in self.program.stderr.readline()

    def xdotool(self, *arguments):
        subprocess.run(["xdotool", *arguments], env=self.environ, check=True, timeout=30)

    def click(self, name, role=""):
        box = self.desk.find(name, role=role).box
        self.xdotool("mousemove", str(box.left + box.width // 2), str(box.top + box.height // 2))
        time.sleep(0.5)  # as a hand, which looks before it clicks
        self.xdotool("click", "1")

    def end(self):
        self.program.send_signal(signal.SIGINT)
        out, err = self.program.communicate(timeout=60)
        assert self.program.returncode == 0, err
        return json.loads(out)["recipe"], err


def test_a_demonstration_becomes_a_recipe_that_is_done_again(tmp_path):
    source = NOTES.read_text()
    with sandbox(tmp_path) as desk:
        kept = start(desk, source)
        shown = Demonstration(desk, tmp_path, "note", "add the note {title}", "--param", "title=Rye bread")
        shown.click("Title")
        shown.xdotool("type", "--delay", "30", "Rye bready")
        shown.xdotool("key", "BackSpace")
        shown.click("Add", "button")
        desk.expect("Rye bread", within=10)
        recipe, err = shown.end()
        assert [note["title"] for note in json.loads(kept.read_text())] == ["Rye bread"]
    assert [list(step) for step in recipe["steps"]] == [["type"], ["click"]], err
    assert recipe["steps"][0]["type"]["text"] == "{title}"
    with sandbox(tmp_path, size="1024x768") as desk:
        kept = start(desk, source)
        assert desk.repeat("note", title="Milk").check().verified
        assert [note["title"] for note in json.loads(kept.read_text())] == ["Milk"]


@pytest.mark.slow
def test_a_password_of_a_demonstration_is_kept_nowhere(tmp_path):
    with sandbox(tmp_path) as desk:
        desk.sandbox.start("/usr/bin/zenity", "--password", "--title", "Sign in")
        desk.expect("OK", role="button", within=20)
        shown = Demonstration(desk, tmp_path, "sign-in")
        time.sleep(1)
        shown.xdotool("type", "--delay", "30", "correct horse")
        time.sleep(1)
        shown.click("OK", "button")
        time.sleep(1)
        recipe, err = shown.end()
    assert recipe["parameters"] == {"secret": {"secret": True}}
    assert "correct" not in err
    for file in (path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".png"):
        assert b"correct" not in file.read_bytes(), file
