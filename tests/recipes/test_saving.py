"""Recorded runs become recipes: what is kept, joined, left out and refused."""

from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from agent.core.geometry import Region, Size
from agent.recipes.files import read_recipe
from agent.recipes.saving import _is_blank, recipe_of, window_name
from agent.record.read import Bundle
from agent.record.run_record import RunRecord
from agent.record.step_record import StepRecord
from agent.screen.picture_search import places_of
from foundation.errors import UsageError

FIELD = {"left": 100, "top": 50, "width": 200, "height": 30}


#: A field of several lines.
LINES = {"left": 100, "top": 20, "width": 400, "height": 200}


def element(role, name="", window="Notes", states=(), box=FIELD):
    return {"role": role, "name": name, "window": window, "states": list(states), "box": box, "words": role}


def act(target, *elements, names=(), window="Notes", app="Notes.py", field=None, **more):
    aim = {"names": list(names), "window": window, "app": app, "field": field}
    return {"target": target, "elements": list(elements), "aim": aim, "executed": True, "fate": "done"} | more


def described(role, name="", app="Notes.py", source="both", **more):
    return element(role, name) | {"app": app, "source": source} | more


def click(*elements, point=(200, 60), **more):
    return act({"type": "click", "point": list(point), "button": "left", "count": 1}, *elements, **more)


def twice(*elements, count):
    return act({"type": "click", "point": [200, 60], "button": "left", "count": count}, *elements)


def typing(text, *elements, **more):
    return act({"type": "type", "text": text}, *elements, **more)


def key(*keys, **more):
    return act({"type": "key", "keys": list(keys)}, **more)


def ended(**more):
    return act({"type": "finish", "success": True, "message": ""} | more) | {"executed": False}


def bundle(*actions, outcome="done", changes=(), **more):
    run = {"instruction": "do it", "outcome": outcome, "receipt": {"changes": list(changes), "watched": True}} | more
    steps = [StepRecord.model_validate({"step": number, "actions": [one]}) for number, one in enumerate(actions, 1)]
    return Bundle(Path("run"), RunRecord.model_validate(run), tuple(steps))


def steps_of(*actions, parameters=None):
    recipe = recipe_of(bundle(*actions), parameters or {})
    return recipe.model_dump(by_alias=True, exclude_unset=True)["steps"]


DRAG = {"type": "drag", "start": [1, 1], "point": [2, 2], "seconds": 0.5, "button": "left"}
BUTTON = element("push button", "Add")
INTO = {"role": "text", "in": "Notes"}


@pytest.mark.parametrize(
    ("actions", "steps"),
    [
        ([act({"type": "open", "name": "mousepad"})], [{"open": "mousepad"}]),
        ([click(BUTTON)], [{"click": {"name": "Add", "role": "push button", "in": "Notes"}}]),
        # The hit test only knows the list, the outline knows the row.
        (
            [click(element("tree"), described=described("table cell", "Adwaita-dark"))],
            [{"click": {"name": "Adwaita-dark", "role": "table cell", "in": "Notes"}}],
        ),
        (
            [click(described=described("label", "Adwaita-dark", source="words"))],
            [{"click": {"name": "Adwaita-dark", "in": "Notes"}}],
        ),
        (
            [click(described=described("check box", "A long na…"))],
            [{"click": {"name": "A long na*", "role": "check box", "in": "Notes", "to": "on"}}],
        ),
        (
            [click(described=described("combo box", "None", label="Icon type"))],
            [{"click": {"name": "Icon type", "role": "combo box", "in": "Notes"}}],
        ),
        (
            [click(described=described("label", "Home", source="words", window="", app=""), window="Desktop")],
            [{"click": {"name": "Home", "in": "desktop"}}],
        ),
        # What tells it from others of its name is kept.
        (
            [click(BUTTON, described=described("push button", "Add", alike=2, near=["Bread"]))],
            [{"click": {"name": "Add", "role": "push button", "in": "Notes", "near": ["Bread"]}}],
        ),
        (
            [click(element("check box", "Dark", states=["focusable"]))],
            [{"click": {"name": "Dark", "role": "check box", "in": "Notes", "to": "on"}}],
        ),
        (
            [click(element("check box", "Dark", states=["checked"]))],
            [{"click": {"name": "Dark", "role": "check box", "in": "Notes", "to": "off"}}],
        ),
        # A click into a field has no name of its own; the typing after it tells which field it was.
        (
            [click(names=[""]), typing("Bread", element("text", "Title"), field=FIELD)],
            [{"type": {"text": "Bread", "into": {"name": "Title", **INTO}}}],
        ),
        ([click(names=[""]), typing("Bread", field=FIELD, names=[""])], [{"type": {"text": "Bread", "in": "Notes"}}]),
        (
            [click(element("text", "Title")), key("ctrl", "a"), typing("Bread", element("text", "Title"))],
            [{"type": {"text": "Bread", "into": {"name": "Title", **INTO}, "replace": True}}],
        ),
        # A click on a button over the field, and a third click into a field of one line.
        (
            [click(BUTTON, window="Go To"), typing("Bread", element("text", "Title"))],
            [
                {"click": {"name": "Add", "role": "push button", "in": "Notes"}},
                {"type": {"text": "Bread", "into": {"name": "Title", **INTO}}},
            ],
        ),
        (
            [twice(element("text", "Title"), count=3), typing("Bread", element("text", "Title"))],
            [{"type": {"text": "Bread", "into": {"name": "Title", **INTO}, "replace": True}}],
        ),
        # The literal engine empties a field before it types.
        (
            [
                click(element("spin button", "Rows")),
                key("ctrl", "a"),
                key("backspace"),
                typing("40", element("spin button", "Rows")),
                key("tab"),
            ],
            [
                {
                    "type": {
                        "text": "40",
                        "into": {"name": "Rows", "role": "spin button", "in": "Notes"},
                        "replace": True,
                    }
                },
                {"press": {"keys": "tab", "in": "Notes"}},
            ],
        ),
        # The place of the cursor does not matter where keys move it, nor in a terminal.
        (
            [click(element("text", "Note", box=LINES)), key("ctrl", "end")],
            [{"click": {"name": "Note", **INTO}}, {"press": {"keys": "ctrl+end", "in": "Notes"}}],
        ),
        (
            [click(element("terminal", box=LINES)), typing("ls", element("terminal", box=LINES))],
            [{"type": {"text": "ls", "into": {"role": "terminal", "in": "Notes"}}}],
        ),
        # A click elsewhere stays a step of its own.
        (
            [click(BUTTON, point=(900, 60)), typing("Bread", element("text", "Title"))],
            [
                {"click": {"name": "Add", "role": "push button", "in": "Notes"}},
                {"type": {"text": "Bread", "into": {"name": "Title", **INTO}}},
            ],
        ),
        # Waiting and scrolling to what is clicked are left out; a scroll at the end is not.
        (
            [
                act({"type": "wait", "seconds": 1.0}),
                act({"type": "scroll", "point": None, "dx": 0, "dy": 5}),
                click(BUTTON),
                act({"type": "scroll", "point": None, "dx": 0, "dy": -3}),
            ],
            [
                {"click": {"name": "Add", "role": "push button", "in": "Notes"}},
                {"scroll": {"direction": "up", "notches": 3, "in": "Notes"}},
            ],
        ),
        ([key("enter"), click(BUTTON, executed=False)], [{"press": {"keys": "enter", "in": "Notes"}}]),
    ],
)
def test_what_was_done_becomes_steps(actions, steps):
    assert steps_of(*actions) == steps


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            bundle(click(BUTTON), ended(already=["enable “Dark”"])),
            "The recipe would not enable “Dark”: it was set already",
        ),
        (bundle(click(names=[""])), "Step 1 of the run cannot be saved: it clicks something that has no name"),
        (bundle(click(described=described("push button", "Add", alike=2))), "one of 2 controls with the same name"),
        (bundle(click(names=["“Words”"])), "Step 1 .* clicks something that has no name"),
        (bundle(click(element("slider", "Delay"))), "Step 1 .* clicks a part of a control"),
        (bundle(click(element("spin button", "Rows"))), "Step 1 .* clicks a part of a control"),
        (bundle(twice(element("text", "Note", box=LINES), count=2), typing("x", element("text", box=LINES))),
         "Step 1 .* selects a part of a text"),
        (bundle(click(element("text", "Note", box=LINES)), typing("x", element("text", box=LINES))),
         "Step 1 .* puts the cursor into a text"),
        (bundle(twice(element("push button", "Add"), count=3)), "Step 1 .* is no step of a recipe"),
        (bundle(click(element("panel", "x"))), "Step 1 .* clicks something that has no name"),
        (bundle(key("enter"), act(DRAG)), "Step 2 .* is no step of a recipe"),
        (bundle(key("enter"), outcome="gave_up"), "was not done"),
        (bundle(key("enter"), dry_run=True), "dry run"),
        (bundle(key("enter"), recorded=2), "damaged: 1 of its 2 steps can be read"),
        (bundle(), "did nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_again_is_refused(run, words):
    with pytest.raises(UsageError, match=words):
        recipe_of(run, {})


def screenshot(folder, *places):
    """A bundle's screenshot of 400 x 300 desktop units, sent at half that size, with a ring at each place."""
    image = Image.new("RGB", (200, 150), "gray")
    for x, y in places:
        ImageDraw.Draw(image).ellipse((x / 2 - 6, y / 2 - 6, x / 2 + 6, y / 2 + 6), "white", "black", 2)
    (folder / "screens").mkdir()
    image.save(folder / "screens/0001.png")
    view = {"left": 0, "top": 0, "width": 400, "height": 300, "captured_width": 400, "captured_height": 300}
    return {"image": {"file": "screens/0001.png", "width": 200, "height": 150}, "viewport": view}


@pytest.mark.parametrize(
    ("element", "role"),
    [((), {}), ((element("push button", box=FIELD),), {"role": "push button"}), ((element("panel"),), {})],
)
def test_what_has_no_name_is_kept_as_a_picture(tmp_path, element, role):
    seen = screenshot(tmp_path, (200, 65))
    run = bundle(click(*element))
    step = StepRecord.model_validate(run.steps[0].model_dump(exclude_unset=True) | seen)
    recipe = recipe_of(Bundle(tmp_path, run.run, (step,)), {})
    [saved] = recipe.model_dump(by_alias=True, exclude_unset=True)["steps"]
    picture = saved["click"].pop("picture")
    assert saved == {"click": {**role, "in": "Notes"}}
    [place] = places_of(picture, Image.open(tmp_path / "screens/0001.png"), Size(400, 300))
    assert (abs(place.middle.x - 200) <= 1) and (abs(place.middle.y - 65) <= 5)
    assert read_recipe(recipe.text, "again") == recipe


def test_what_the_screen_shows_twice_is_told_apart_by_the_words_at_it(tmp_path):
    seen = screenshot(tmp_path, (200, 60), (60, 250))
    run = bundle(click(element("panel"), names=["“alpha”"]))
    step = StepRecord.model_validate(run.steps[0].model_dump(exclude_unset=True) | seen)
    [saved] = recipe_of(Bundle(tmp_path, run.run, (step,)), {}).model_dump(by_alias=True, exclude_unset=True)["steps"]
    assert [*saved["click"]] == ["name", "in", "picture"]


@pytest.mark.parametrize("place", [(-300, 10, 200, 90), (395, 10, 200, 90), (10, 10, 6, 90), (10, 400, 200, 90)])
def test_a_field_that_is_not_on_the_screen_is_not_known_to_be_empty(place):
    assert not _is_blank(Image.new("RGB", (395, 300)), Size(395, 300), Region(*place))


@pytest.mark.parametrize("text", ["", "one two"])
def test_a_click_into_an_empty_text_only_gives_it_the_focus(tmp_path, text):
    image = Image.new("RGB", (400, 300), "white")
    ImageDraw.Draw(image).rectangle((106, 30, 107, 48), "black")  # the caret
    ImageDraw.Draw(image).text((110, 30), text, "black")
    (tmp_path / "screens").mkdir()
    image.save(tmp_path / "screens/0001.png")
    view = {"left": 0, "top": 0, "width": 400, "height": 300, "captured_width": 400, "captured_height": 300}
    seen = {"image": {"file": "screens/0001.png", "width": 400, "height": 300}, "viewport": view}
    field = element("text", box=LINES)
    run = bundle(click(field), typing("Bread", field))
    steps = tuple(StepRecord.model_validate(step.model_dump(exclude_unset=True) | seen) for step in run.steps)
    if text:
        with pytest.raises(UsageError, match="puts the cursor into a text"):
            recipe_of(Bundle(tmp_path, run.run, steps), {})
    else:
        [step] = recipe_of(Bundle(tmp_path, run.run, steps), {}).model_dump(by_alias=True, exclude_unset=True)["steps"]
        assert step == {"type": {"text": "Bread", "into": INTO, "empty": True}}


def test_a_picture_that_the_screen_shows_twice_is_not_kept(tmp_path):
    seen = screenshot(tmp_path, (200, 60), (60, 250))
    run = bundle(click())
    step = StepRecord.model_validate(run.steps[0].model_dump(exclude_unset=True) | seen)
    with pytest.raises(UsageError, match="no picture of its own"):
        recipe_of(Bundle(tmp_path, run.run, (step,)), {})


def test_typed_texts_become_parameters_everywhere():
    changes = [
        {"kind": "file", "what": "~/Bread.txt", "before": None, "after": "5 bytes"},
        {"kind": "setting", "what": "dconf /a", "before": "1", "after": "2"},
        {"kind": "window", "what": "Notes", "before": None, "after": "Notes"},
    ]
    run = bundle(typing("Bread"), click(element("list item", "Bread")), changes=changes, instruction="add 'Bread'")
    recipe = recipe_of(run, {"title": "Bread"})
    assert recipe.instruction == "add '{title}'"
    assert recipe.parameters["title"].default == "Bread"
    assert recipe.steps[1].click is not None
    assert recipe.steps[1].click.name == "{title}"
    assert [one.expected.what for one in recipe.expect] == ["~/{title}.txt", "dconf /a"]
    for text in ("Milk", ""):
        with pytest.raises(UsageError, match=f"No step of the run has the text '{text}'"):
            recipe_of(run, {"title": text})
    with pytest.raises(UsageError, match="cannot be called 'a b'"):
        recipe_of(run, {"a b": "Bread"})


def test_words_of_a_name_become_a_parameter_too():
    changes = [
        {"kind": "file", "what": "~/old.txt", "before": "5 bytes", "after": None},
        {"kind": "file", "what": "~/new.txt", "before": None, "after": "5 bytes"},
    ]
    run = bundle(click(element("list item", "old.txt")), typing("new"), changes=changes, instruction="rename it")
    recipe = recipe_of(run, {"from": "old", "to": "new"})
    assert recipe.steps[0].click is not None
    assert recipe.steps[0].click.name == "{from}.txt"
    assert [(one.file, one.becomes) for one in recipe.expect] == [("~/{from}.txt", "gone"), ("~/{to}.txt", "written")]


def test_a_parameter_replaces_words_and_no_letters_of_names_keys_and_other_values():
    changes = [{"kind": "setting", "what": "dconf /names", "before": "1", "after": "[Workspace 1, Workspace 6]"}]
    run = bundle(
        click(element("push button", "Save 6")), typing("6 of e"), key("ctrl", "e"),
        changes=changes, instruction="give me 6 workspaces",
    )  # fmt: skip
    recipe = recipe_of(run, {"n": "6", "letter": "e"})
    data = recipe.model_dump(by_alias=True, exclude_unset=True)
    assert data["steps"][0]["click"]["name"] == "Save {n}"
    assert data["steps"][0]["click"]["role"] == "push button"
    assert data["steps"][1]["type"]["text"] == "{n} of {letter}"
    assert data["steps"][2]["press"]["keys"] == "ctrl+e"
    assert data["expect"] == [{"setting": "dconf /names", "becomes": "[Workspace 1, Workspace 6]"}]
    assert data["instruction"] == "give me {n} workspaces"


def test_a_setting_that_follows_from_a_number_is_not_expected_with_another_number():
    changes = [
        {"kind": "setting", "what": "xfconf xfwm4 /general/workspace_names", "before": "[1]", "after": "[1, 2]"},
        {"kind": "setting", "what": "xfconf xfwm4 /general/workspace_count", "before": "1", "after": "2"},
    ]
    recipe = recipe_of(bundle(typing("2"), changes=changes), {"n": "2"})
    assert [one.expected.what for one in recipe.expect] == ["xfconf xfwm4 /general/workspace_count"]
    assert len(recipe_of(bundle(typing("2"), changes=changes), {}).expect) == 2


def test_a_masked_text_is_asked_for_each_time():
    recipe = recipe_of(bundle(typing("[redacted 9 chars]", element("password text", "Password"))), {})
    assert recipe.steps[0].type is not None
    assert recipe.steps[0].type.text == "{secret}"
    assert recipe.parameters["secret"].secret
    assert "redacted" not in recipe.text
    with pytest.raises(UsageError, match="needs a value for 'secret'"):
        recipe.with_values({})


@pytest.mark.parametrize(
    ("title", "app", "name"),
    [
        ("Untitled 1 - Mousepad", "Mousepad", "* - Mousepad"),
        ("*~/a - b.txt - Mousepad", "Mousepad", "* - Mousepad"),
        ("Terminal - root@x: ~", "Xfce4-terminal", "Terminal -*"),
        ("Terminal -", "Xfce4-terminal", "Terminal -*"),
        ("Page — Chromium", "chromium", "* — Chromium"),
        ("Appearance", "Xfce4-appearance-settings", "Appearance"),
        ("one - two", "Other", "one - two"),
        ("", "App", "App"),
    ],
)
def test_a_window_is_named_without_its_document(title, app, name):
    assert window_name(title, app) == name
