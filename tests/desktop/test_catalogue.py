import pytest

from agent.desktop.apps.catalogue import App, Catalogue, plain

APPS = [
    App("xfce-settings-manager", "Settings Manager", command=("xfce4-settings-manager",)),
    App("xfce4-settings-editor", "Settings Editor", command=("xfce4-settings-editor",)),
    App("org.xfce.mousepad", "Mousepad", ("Text Editor",), command=("mousepad",)),
    App("vim", "Vim", ("Text Editor",), command=("vim",), terminal=True),
    App("galculator", "Galculator", command=("galculator",)),
    App("thunar", "Thunar File Manager", ("File Manager",), command=("thunar",)),
    App("firefox-esr", "Firefox ESR", ("Web Browser",), command=("/usr/lib/firefox-esr/firefox-esr",)),
    App("xfce4-terminal", "Xfce Terminal", ("Terminal Emulator",), command=("xfce4-terminal",)),
    App("xfce-wm-settings", "Window Manager", command=("xfwm4-settings",)),
    App("xfce-keyboard-settings", "Keyboard", command=("xfce4-keyboard-settings",)),
    App("org.gnome.gedit", "Éditeur de texte", ("Text Editor",), command=("gedit",)),
]


@pytest.fixture
def catalogue():
    return Catalogue(APPS)


@pytest.mark.parametrize(
    ("query", "identifier"),
    [
        ("settings", "xfce-settings-manager"),
        ("Settings Manager", "xfce-settings-manager"),
        ("the settings app", "xfce-settings-manager"),
        ("MOUSEPAD", "org.xfce.mousepad"),
        ("calculator", "galculator"),
        ("Galculater", "galculator"),
        ("terminal", "xfce4-terminal"),
        ("file manager", "thunar"),
        ("explorer", "thunar"),
        ("folders", "thunar"),
        ("keyboard settings", "xfce-keyboard-settings"),
        ("firefox", "firefox-esr"),
        ("browser", "firefox-esr"),
        ("xfce4-terminal", "xfce4-terminal"),
        ("editeur de texte", "org.gnome.gedit"),
    ],
)
def test_the_words_people_use_find_the_application(catalogue, query, identifier):
    assert catalogue.find(query).id == identifier


def test_an_adjective_of_what_a_program_is_names_no_program():
    kate = Catalogue([App("org.kde.kate", "Kate", command=("kate",), other_names=("Advanced Text Editor",))], {"XFCE"})
    assert kate.find("advanced") is None
    assert kate.find("advanced editor").id == kate.find("kate").id == "org.kde.kate"


@pytest.mark.parametrize("query", ["", "   ", "photoshop", "set", "rm -rf /", "nothing like it"])
def test_it_never_guesses_weakly(catalogue, query):
    assert catalogue.find(query) is None


def test_similar_names_are_offered(catalogue):
    assert "Galculator" in catalogue.similar("calculator pro")


def test_accents_case_and_filler_words_do_not_matter():
    assert plain("The Éditeur App") == "editeur"
    assert plain("App") == "app"


def test_the_desktops_own_application_comes_before_one_that_is_called_just_so():
    editors = [*APPS, App("org.gnome.TextEditor", "Text Editor", command=("gnome-text-editor",), files=("text/plain",))]
    assert Catalogue(editors, {"XFCE"}).find("text editor").id == "org.xfce.mousepad"
    assert Catalogue(editors, {"GNOME"}).find("text editor").id == "org.gnome.TextEditor"
    assert Catalogue(editors, {"XFCE"}).opener(["text/plain"]).id == "org.xfce.mousepad"
    assert Catalogue(editors, {"XFCE"}).opener(["text/plain"], ["gone", "org.gnome.TextEditor"]).name == "Text Editor"


@pytest.mark.parametrize(
    ("query", "identifier"), [("keyboard settings", "a"), ("touchpad settings", "b"), ("display settings", "c")]
)
def test_a_translated_panel_is_found_by_its_english_name(query, identifier):
    panels = [
        App("a", "Tastatur", ("Keyboard",), command=("a",)),
        App("b", "Maus und Tastfeld", ("Mouse & Touchpad",), command=("b",), in_menus=False),
        App("c", "Bildschirme", ("Displays",), command=("c",), in_menus=False),
    ]
    assert Catalogue(panels).find(query).id == identifier
