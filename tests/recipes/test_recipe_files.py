"""Recipes as files: what is read, what is refused and where, and what values come to."""

import re
from pathlib import Path

import pytest

from agent.commands.recipes import main as recipes_main
from agent.literal.goals import Click, Close, Expected, Open, Part, Press, Repeat, Scroll, Target, Toggle, Type, Wait
from agent.recipes.files import keep_recipe, load_recipe, offer, read_recipe, recipe_names
from foundation.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs/recipes.md"
NOTE = """\
version: 1
instruction: write {title}
parameters:
  title: Bread
steps:
- open: mousepad
- type: {text: "{title} {brackets}", into: {role: text, in: "* - Mousepad"}, replace: true}
- press: {keys: ctrl+s, in: "* - Mousepad"}
- type: "{title}.txt"
- press: enter
- click: {name: Save, role: push button, in: Save As}
- click: {name: No, role: check box, to: on}
- click: Files
- scroll: down
- wait: 1.5
- close: Save As
expect:
- {file: "~/{title}.txt", becomes: written}
- {setting: xfconf xsettings /Net/ThemeName, becomes: no}
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MAI_AGENT_DATA", str(tmp_path))
    return tmp_path / "recipes"


def test_every_kind_of_step_becomes_a_goal():
    instruction, goal = read_recipe(NOTE, "note").with_values({"title": "Milk"})
    assert instruction == "write Milk"
    assert goal == Repeat(
        (
            Part(Open("mousepad")),
            Part(Type("Milk {brackets}", Target(role="text", inside="* - Mousepad"), replace=True)),
            Part(Press(("ctrl", "s")), "* - Mousepad"),
            Part(Type("Milk.txt")),
            Part(Press(("enter",))),
            Part(Click(Target("Save", "push button", inside="Save As"))),
            Part(Toggle(Target("No", "check box"), on=True)),
            Part(Click(Target("Files"))),
            Part(Scroll("down")),
            Part(Wait(1.5)),
            Part(Close("Save As"), "Save As"),
        ),
        (
            Expected("file", "~/Milk.txt", "written"),
            Expected("setting", "xfconf xsettings /Net/ThemeName", "no"),
        ),
    )


def test_what_is_written_reads_the_same():
    recipe = read_recipe(NOTE, "note")
    assert read_recipe(recipe.text, "again") == recipe
    assert "\n- press: enter\n" in recipe.text


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ("- press: enter", "- pres: enter", r"line 10, step 5: there is no 'pres' here"),
        ("- press: enter", "- press: entr", r"line 10, step 5: 'entr' is not a key"),
        ("- press: enter", "- {press: enter, wait: 1}", "line 10, step 5: a step is exactly one of open, click"),
        ("role: push button, in", "rule: push button, in", r"line 11, step 6: there is no 'rule' here"),
        ("name: Save, role: push button, ", "", "line 11, step 6: a target needs a name"),
        ("role: push button, in", "role: pushbuton, in", "line 11, step 6: there is no role 'pushbuton'"),
        ("wait: 1.5", "wait: long", "line 15, step 10: wait cannot be 'long'"),
        ("becomes: written", "becomes: new", "line 18: `becomes` must be written or gone"),
        ("- open: mousepad\n", "- open: mousepad\n  open: thunar\n", "line 7: 'open' occurs twice"),
        ("  title: Bread", "  title: Bread\n  other: x", r"line 1: no step uses the parameter {other}"),
        ("  title: Bread", "  title: {secret: true, default: x}", "line 4: a secret has no default"),
        ("instruction: write {title}\n", "", "line 1: 'instruction' is missing"),
        ("- press: enter", "- press: [", "line 1[0-9]: "),
        ("- press: enter", "- press: &a enter\n- press: *a", "line 10: an alias"),
        ("version: 1", "version: 2", "made by a newer mai-agent"),
        (NOTE, "", "is empty"),
        (NOTE, "- 1\n", "line 1: "),
        (NOTE, "\0", "is not YAML"),
        (NOTE, "x" * 300_000, "too long"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_step(was, now, words):
    assert was in NOTE
    with pytest.raises(UsageError, match=words.replace("{", r"\{")):
        read_recipe(NOTE.replace(was, now, 1), "note")


def test_several_mistakes_are_told_at_once():
    with pytest.raises(UsageError) as told:
        read_recipe(NOTE.replace("- press: enter", "- pres: enter").replace("instruction: ", "instructions: "), "note")
    for words in ("there is no 'pres' here", "there is no 'instructions' here", "'instruction' is missing"):
        assert words in told.value.what


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"titel": "x"}, "no parameter 'titel'"),
        ({}, "needs a value for 'title'"),
    ],
)
def test_wrong_values_are_refused(values, words):
    recipe = read_recipe(NOTE.replace("title: Bread", "title:"), "note")
    with pytest.raises(UsageError, match=words):
        recipe.with_values(values)


def test_a_value_is_never_read_as_part_of_the_file():
    _, goal = read_recipe(NOTE, "note").with_values({"title": '"}, {in: x'})
    assert goal.parts[3].goal == Type('"}, {in: x.txt')


def test_the_check_names_braces_that_are_no_parameter(folder, capsys):
    keep_recipe(read_recipe(NOTE, "note"), "note")
    assert recipes_main(["check", "note"]) == 0
    assert "{brackets} is no parameter of it" in capsys.readouterr().out


def test_recipes_are_kept_by_their_names(folder):
    recipe = read_recipe(NOTE, "note")
    path = keep_recipe(recipe, "note")
    assert path == folder / "note.yaml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_recipe("note") == load_recipe(str(path)) == recipe
    assert recipe_names() == ["note"]
    with pytest.raises(UsageError, match="There is a recipe 'note' already"):
        keep_recipe(recipe, "note")
    with pytest.raises(UsageError, match=r"ends in \.yaml, and 'a/b' does not"):
        keep_recipe(recipe, "a/b")
    keep_recipe(recipe, "note", replace=True)
    with pytest.raises(UsageError, match=r"There is no recipe 'nota'.*Did you mean note"):
        load_recipe("nota")
    with pytest.raises(UsageError, match="cannot be called"):
        keep_recipe(recipe, "..")


def test_the_example_of_the_page_is_a_recipe():
    [example] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(read_recipe(example, "example").steps) == 5


@pytest.mark.parametrize(
    ("instruction", "told"),
    [
        ("write Milk", "mai-agent do note title=Milk"),
        ("Write  two words", "mai-agent do note 'title=two words'"),
        ("write", ""),
        ("do not write Milk", ""),
    ],
)
def test_a_recipe_is_offered_for_its_instruction(folder, instruction, told):
    keep_recipe(read_recipe(NOTE, "note"), "note")
    (folder / "broken.yaml").write_text("version: 3")
    assert offer(instruction).removeprefix("A recipe does this without a model: ") == told


def test_new_names_of_targets_change_only_their_steps():
    text = """version: 1
instruction: add {title}
parameters:
  title: ''
steps:
- type:
    text: '{title}'
    into: {name: Title, role: text, in: Notes}
- click: {name: Add, role: push button, in: Notes, near: [Notes]}
- press: enter
"""
    recipe = read_recipe(text, "here")
    found = {1: Target("Heading", "text", inside="Notes"), 2: Target("Keep", "push button", inside="My notes")}
    repaired = read_recipe(recipe.repaired(found).text, "here")
    assert repaired.steps[0].type is not None and repaired.steps[0].type.text == "{title}"
    assert repaired.text == recipe.text.replace("name: Title", "name: Heading").replace(
        "name: Add", "name: Keep"
    ).replace("role: push button\n    in: Notes", "role: push button\n    in: My notes")


def test_a_name_with_a_parameter_is_not_replaced_by_that_of_one_value():
    text = """version: 1
instruction: open {note}
parameters:
  note: ''
steps:
- click: {name: '{note}', role: list item, in: Notes}
- click: {name: Open, role: push button, in: '{note} - Notes'}
"""
    recipe = read_recipe(text, "here")
    found = {1: Target("Milk", "list item", inside="Notes"), 2: Target("Show", "push button", inside="Bread - Notes")}
    assert recipe.repaired(found).text == recipe.text.replace("name: Open", "name: Show")


def test_a_secret_stands_neither_in_the_instruction_nor_in_the_file():
    text = NOTE.replace("title: Bread", "title: {secret: true}")
    recipe = read_recipe(text, "note")
    instruction, goal = recipe.with_values({"title": "hunter2-x"})
    assert instruction == "write {title}"
    assert goal.parts[3].goal == Type("hunter2-x.txt")
    assert recipe.secrets({"title": "hunter2-x"}) == ["hunter2-x"]
    assert read_recipe(recipe.text, "again") == recipe
