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
from agent.literal.do import repeating
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


@pytest.fixture
def hasty(monkeypatch):
    """Recipes wait less for what is missing, because the application is there before each run."""
    for name, short in (("_WAIT", 0.3), ("_MOST_WAITS", 2), ("_MOST_LATE", 3)):
        monkeypatch.setattr(repeating, name, short)


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
        assert "these expected changes are missing" in result.message
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


BUTTONS = '("Add", self.add_note), '
PLACED = "right.pack_start(child, grows, grows, 0)"
MENU = """right.pack_start(child, grows, grows, 0)
        bar, top, items = Gtk.MenuBar(), Gtk.MenuItem(label="Note"), Gtk.Menu()
        item = Gtk.MenuItem(label="Add")
        item.connect("activate", lambda _: self.add_note())
        items.append(item)
        top.set_submenu(items)
        bar.append(top)
        right.pack_start(bar, False, False, 0)"""
#: Each a change of the application, and the step at which the recipe has to stop.
CHANGES = {
    "the button is gone": (BUTTONS, "", 3),
    "the button is renamed": ('("Add", self', '("Append", self', 3),
    "the button is greyed out": ("buttons.add(button)", 'button.set_sensitive(label != "Add"); buttons.add(button)', 3),
    "there are two such buttons": (BUTTONS, BUTTONS * 2, 3),
    "the button became a menu item": (f"{BUTTONS}|{PLACED}", f"|{MENU}", 3),
    "the button became a switch": ("button = Gtk.Button(", "button = Gtk.ToggleButton(", 3),
    "the button became words": ("button = Gtk.Button(label=label)",
        'button = Gtk.Button(label=label) if label != "Add" else Gtk.EventBox(); label == "Add" and button.add('
        'Gtk.Label(label=label)); label == "Add" and buttons.add(button)\n            if label == "Add": continue', 3),
    "the button is folded away": ("whole.pack_start(both", 'whole.pack_start(Gtk.Expander(label="More"), False, False, '
        '0); buttons.get_parent().remove(buttons); whole.get_children()[0].add(buttons); whole.pack_start(both', 3),
    "the button is in another window": ("whole.pack_start(both", 'self.tools = Gtk.Window(title="Tools"); '
        "buttons.get_parent().remove(buttons); self.tools.add(buttons); self.tools.show_all(); "
        "whole.pack_start(both", 3),
    "the field is renamed": ('set_name("Title")', 'set_name("Heading")', 1),
    "the field is read-only": ('self.title_field.get_acc', 'self.title_field.set_editable(False)\n'
        '        self.title_field.get_acc', 1),
    "the field changes what is typed": ('self.title_field.get_acc', 'self.title_field.set_max_length(2)\n'
        '        self.title_field.get_acc', 1),
    "there are two such fields": ('set_name("Search")', 'set_name("Title")', 1),
    "the window is renamed": ('title="Notes"', 'title="Notebook"', 1),
    "the switch became another kind": ("Gtk.CheckButton", "Gtk.ToggleButton", 2),
    "the switch springs back": ('self.status = ', 'self.pinned.connect("toggled", lambda one: one.set_active(False))'
        "\n        self.status = ", 2),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_application_changed_on_purpose_stops_it_at_the_step_that_it_changes(tmp_path, hasty):
    inside = {"in": "Notes"}
    steps = [{"type": {"text": "Bread", "into": {"name": "Title", "role": "text", **inside}}},
             {"click": {"name": "Pinned", "role": "check box", "to": "on", **inside}},
             {"click": {"name": "Add", "role": "push button", **inside}}]  # fmt: skip
    expect = [{"file": "~/notes.json", "becomes": "written"}]
    data = {"version": 1, "instruction": "add a note", "steps": steps, "expect": expect}
    keep_recipe(Recipe.model_validate(data), "note")
    ends = {}
    with sandbox(tmp_path) as desk:
        for change, (old, new, _) in CHANGES.items():
            source = NOTES.read_text()
            for one, other in zip(old.split("|"), new.split("|"), strict=True):
                assert source.count(one) == 1, change
                source = source.replace(one, other)
            home = Path(desk.sandbox.environ["HOME"])
            (home / "notes.py").write_text(source)
            program = desk.sandbox.start("/usr/bin/python3", str(home / "notes.py"))
            desk.expect("Delete", within=20) if "folded" not in change else desk.expect("More", within=20)
            result = desk.repeat("note")
            ends[change] = (result.outcome, result.message[:12], (home / "notes.json").exists())
            program.signal(signal.SIGKILL)
            (home / "notes.json").unlink(missing_ok=True)
            desk.expect_gone("Search", within=20)
    assert ends == {change: ("gave_up", f"Step {step} of 3,", False) for change, (_, _, step) in CHANGES.items()}


@pytest.mark.slow
def test_a_drawn_thing_is_found_again_by_what_it_looks_like(tmp_path, hasty):
    with sandbox(tmp_path) as desk:
        home = Path(desk.sandbox.environ["HOME"])
        (home / "signs.py").write_text(SIGNS)
        desk.sandbox.start("/usr/bin/python3", str(home / "signs.py"), "ring,cross,bars")
        box = window_of(desk, there=True).box
        shown = Demonstration(desk, tmp_path, "ring", "press the ring")
        shown.xdotool("mousemove", str(round(box.middle.x - 150)), str(round(box.middle.y)))
        time.sleep(1)
        shown.xdotool("click", "1")
        time.sleep(1)
        recipe, err = shown.end()
        assert (home / "signs.txt").read_text() == "ring"
    assert [[*step["click"]] for step in recipe["steps"]] == [["in", "picture"]], err
    with sandbox(tmp_path, size="1024x768") as desk:
        home = Path(desk.sandbox.environ["HOME"])
        (home / "signs.py").write_text(SIGNS)
        for order, pressed in (("bars,cross,ring", True), ("bars,cross,cross", False), ("ring,cross,ring", False)):
            (home / "signs.txt").unlink(missing_ok=True)
            program = desk.sandbox.start("/usr/bin/python3", str(home / "signs.py"), order)
            window_of(desk, there=True)
            result = desk.repeat("ring")
            assert (home / "signs.txt").exists() is pressed, (order, result.message)
            assert result.outcome == ("done" if pressed else "gave_up"), (order, result.message)
            program.signal(signal.SIGKILL)
            window_of(desk, there=False)


def window_of(desk, *, there):
    """The window of the signs, once it is there, or None, once it is gone."""
    end = time.monotonic() + 30
    while True:
        found = next((one for one in desk.look().windows if one.title.startswith("Signs")), None)
        if (found is not None) is there:
            return found
        assert time.monotonic() < end
        time.sleep(0.3)


SIGNS = """
import sys, tkinter
root = tkinter.Tk(className="Signs")
root.title("Signs")
canvas = tkinter.Canvas(root, width=480, height=160, bg="gray75")
canvas.pack()
for at, sign in enumerate(sys.argv[1].split(",")):
    x, y = 90 + 150 * at, 80
    if sign == "ring":
        canvas.create_oval(x - 14, y - 14, x + 14, y + 14, width=5)
    elif sign == "cross":
        canvas.create_line(x - 14, y - 14, x + 14, y + 14, width=5)
        canvas.create_line(x - 14, y + 14, x + 14, y - 14, width=5)
    else:
        for down in (-10, 0, 10):
            canvas.create_line(x - 14, y + down, x + 14, y + down, width=5)
def press(event):
    sign = sys.argv[1].split(",")[(event.x - 15) // 150]
    open("signs.txt", "w").write(sign)
    root.title("Signs: " + sign)
canvas.bind("<Button-1>", press)
root.mainloop()
"""


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


@pytest.mark.slow
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
