"""A control is found in the settings dialog whose own description of its window has the label."""

import pytest

from agent.literal.goals import Target, Toggle
from agent.literal.language.grammar import read_instruction
from agent.literal.language.sentences import NotUnderstoodError
from agent.literal.vocabulary import descriptions
from agent.literal.vocabulary.descriptions import described_places
from agent.screen.outline import ShownWindow
from tests.literal.made_up import WINDOW, element, ending, follow, screen, setting

DIALOG = """<?xml version="1.0"?><interface>
 <object class="GtkDialog" id="small"><child>
  <object class="GtkLabel"><property name="label">Really?</property></object></child></object>
 <object class="XfceTitledDialog" id="main"><property name="title">Gadgets</property>
  <child><object class="GtkNotebook">
   <child><object class="GtkBox"><child><object class="GtkCheckButton">
     <property name="label" translatable="yes">Sp_in the wheel</property></object></child></object></child>
   <child type="tab"><object class="GtkLabel"><property name="label">_Wheels</property></object></child>
   <child><object class="GtkBox"><child><object class="GtkLabel">
     <property name="label">&lt;b&gt;Oil _level:&lt;/b&gt;</property></object></child></object></child>
   <child type="tab"><object class="GtkLabel"><property name="label">Oi_l</property></object></child>
  </object></child>
 </object></interface>"""
PANELS = """<interface><template class="CcMousePanel" parent="CcPanel"><child><object class="AdwActionRow">
 <property name="title">Mouse _Speed</property></object></child></template></interface>
 <interface><template class="CcSharingPanel" parent="CcPanel"><child><object class="AdwActionRow">
 <property name="title">Share the wheel</property></object></child></template></interface>"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs made-up settings programs, and nothing else."""
    (tmp_path / "share/applications").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def install(identifier, name, command, described, categories="Settings;"):
        program = tmp_path / "bin" / command.split()[0]
        program.write_bytes(b"\x7fELF\x00\xff" + described.encode() + b"\x00<interface>broken</interface>\xfe")
        program.chmod(0o755)
        entry = f"[Desktop Entry]\nType=Application\nName={name}\nExec={command}\nCategories={categories}\n"
        (tmp_path / f"share/applications/{identifier}.desktop").write_text(entry)
        descriptions._dialogs.cache_clear()
        descriptions._windows.cache_clear()

    yield install
    descriptions._dialogs.cache_clear()
    descriptions._windows.cache_clear()


def where(label, desktop="xfce"):
    return [(place.app, place.desktop_file, place.path) for place in described_places(label, desktop)]


def test_a_label_is_found_with_its_tab_whatever_its_mnemonic_markup_and_colon(installed):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG)
    assert where("Spin the wheel") == [("Gadgets", "gadgets", ("Wheels",))]
    assert where("oil level") == [("Gadgets", "gadgets", ("Oil",))]


def test_labels_of_a_programs_smaller_windows_and_of_other_programs_are_not_counted(installed):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG)
    installed("game", "Game", "game", DIALOG.replace("Spin", "Turn"), categories="Game;")
    assert where("Really?") == where("Turn the wheel") == where("wheel") == []


def test_the_panels_of_gnomes_settings_are_told_by_the_command_that_opens_them(installed):
    installed("gnome-mouse-panel", "Mouse", "gnome-control-center mouse", PANELS)
    installed("gnome-sharing-panel", "Sharing", "gnome-control-center sharing", PANELS)
    assert where("Mouse Speed", "gnome") == [("Settings", "gnome-mouse-panel", ("Mouse & Touchpad",))]
    assert where("Share the wheel", "gnome") == [("Sharing", "gnome-sharing-panel", ("Sharing",))]


XFCE = {"XDG_CURRENT_DESKTOP": "XFCE"}
NOTHING = screen(windows=(), environ=XFCE)


def gadgets(*elements, **values):
    return screen(
        element("page tab", "Oil", y=110, window="Gadgets", app="gadget-settings", states=("selected",)),
        element("page tab", "Wheels", x=320, y=110, window="Gadgets", app="gadget-settings"), *elements,
        windows=(ShownWindow("Gadgets", "gadget-settings", WINDOW.box, active=True),), environ=XFCE, **values,
    )  # fmt: skip


def box(*states):
    return element("check box", "Spin the wheel", window="Gadgets", app="gadget-settings", states=states)


def test_a_switch_that_no_window_shows_is_switched_in_the_dialog_that_describes_it(installed):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG)
    spun = gadgets(box("checked"), changes=(setting("xfconf gadgets /spin", "false", "true"),))
    replies = follow("turn on Spin the wheel", NOTHING, gadgets(), gadgets(box()), spun)
    calls = [reply.arguments.get("text") or reply.arguments["action"] for reply in replies]
    assert calls[:3] == ["gadgets", "click", "click"]
    assert replies[1].arguments["coordinate"] == [370, 120]  # the tab that the description names
    assert ending(replies[-1]) == ("success", True)


def test_a_click_names_what_is_visible_and_opens_no_dialog(installed):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG)
    replies = follow("click Spin the wheel", NOTHING, NOTHING, NOTHING)
    assert ending(replies[-1])[0] == "fail"
    assert "gadgets" not in [reply.arguments.get("text") for reply in replies]


def test_a_label_of_two_dialogs_is_asked_back_for(installed):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG)
    installed("others", "Others", "other-settings", DIALOG)
    replies = follow("turn on Spin the wheel", NOTHING, NOTHING, NOTHING)
    assert ending(replies[-1])[0] == "fail"
    assert "is in “Gadgets > Wheels” and in “Others > Wheels”" in replies[-1].arguments["text"]


def test_a_label_on_two_tabs_of_one_dialog_is_asked_back_for(installed):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG.replace("Oil _level", "Spin the wheel"))
    replies = follow("turn on Spin the wheel", NOTHING, NOTHING, NOTHING)
    assert ending(replies[-1])[0] == "fail"
    assert "is in “Gadgets > Oil” and in “Gadgets > Wheels”" in replies[-1].arguments["text"]


def test_a_label_with_words_of_the_grammar_needs_no_quotation_marks_where_a_dialog_has_it(installed):
    sentence = "turn on Wrap wheels when the first or the last oil is reached"
    with pytest.raises(NotUnderstoodError):
        read_instruction(sentence)
    described = DIALOG.replace("Sp_in the wheel", "_Wrap wheels when the first or the last oil is reached")
    installed("gadgets", "Gadgets", "gadget-settings", described)
    assert read_instruction(sentence) == [Toggle(Target(sentence.removeprefix("turn on ")), on=True)]


def test_a_label_that_ends_like_a_place_is_looked_for_as_a_whole(installed):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG.replace("the wheel", "the wheel in new windows"))
    assert follow("turn on Spin the wheel in new windows", NOTHING)[0].arguments["text"] == "gadgets"


@pytest.mark.parametrize(
    "sentence", ["turn on Spin the wheel in the Mousepad preferences", "open Mousepad and turn on Spin the wheel"]
)
def test_a_control_of_a_named_place_is_looked_for_in_no_other_dialog(installed, sentence):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG)
    window = ShownWindow("Mousepad Preferences", "mousepad", WINDOW.box, active=True)
    part = element("check box", "Show status bar", window="Mousepad Preferences", app="mousepad")
    replies = follow(sentence, NOTHING, *[screen(part, windows=(window,), environ=XFCE)] * 20)
    assert ending(replies[-1])[0] == "fail"
    assert "gadgets" not in [reply.arguments.get("text") for reply in replies]


def test_a_page_that_another_page_describes_the_control_of_is_not_left(installed):
    installed("gnome-mouse-panel", "Mouse", "gnome-control-center mouse", PANELS)
    rows = [
        element("list item", name, x=119, y=147 + 50 * at, w=271, h=42, states=("selected",) if not at else ())
        for at, name in enumerate(("Notifications", "Mouse & Touchpad"))
    ]
    page = screen(*rows, element("label", "Notifications", x=700, y=110), environ={"XDG_CURRENT_DESKTOP": "GNOME"})
    replies = follow("set Mouse Speed to 5 in Notifications", *[page] * 20)
    clicks = [reply.arguments.get("coordinate") for reply in replies if reply.arguments["action"] == "click"]
    assert ending(replies[-1])[0] == "fail"
    assert [254, 218] not in clicks


def test_a_label_with_a_place_of_its_own_stays_in_the_place_that_is_named(installed):
    installed("gadgets", "Gadgets", "gadget-settings", DIALOG.replace("the wheel", "the wheel under popup windows"))
    installed("others", "Others", "other-settings", DIALOG)
    replies = follow("turn on Spin the wheel under popup windows in the Others settings", *[NOTHING] * 8)
    assert "gadgets" not in [reply.arguments.get("text") for reply in replies]


def test_a_program_that_cannot_be_read_has_no_labels(monkeypatch):
    def refused(_):
        raise PermissionError

    monkeypatch.setattr(descriptions.Path, "read_bytes", refused)
    assert descriptions._windows.__wrapped__(__file__) == {}
