"""Sentences about opening, clicking, keys and scrolling, as many people say them, and the goals that they come to."""

import pytest

from agent.literal.goals import (
    ArrangeWindow,
    Calculate,
    Click,
    Close,
    Open,
    Press,
    SaveAs,
    Scroll,
    SetValue,
    Target,
    Toggle,
    Type,
    Wait,
)
from agent.literal.language.grammar import read_instruction

_TABLE = [
    ("open settings and enable dark mode", [Open("settings"), Toggle(Target("dark mode"), on=True)]),
    ("Could you please open the Documents folder?", [Open("Documents", "folder")]),
    ("start mousepad, then thunar and the calculator", [Open("mousepad"), Open("thunar"), Open("calculator")]),
    (
        "click the Fonts tab of Appearance",
        [Click(Target("Fonts", "page tab", inside="Appearance", whole="Fonts tab of Appearance"))],
    ),
    ("click Browse under Wallpaper", [Click(Target("Browse", under="Wallpaper", whole="Browse under Wallpaper"))]),
    ("select the Fonts tab", [Click(Target("Fonts", "page tab"))]),
    ("choose Save in the File menu", [Click(Target("Save", inside="File", whole="Save in the File menu"))]),
    (
        "in Appearance, go to the Style tab and pick Adwaita-dark",
        [Click(Target("Style", "page tab", inside="Appearance")), Click(Target("Adwaita-dark", inside="Appearance"))],
    ),
    ("click the third icon", [Click(Target(role="icon", ordinal=3))]),
    ("click the last tab", [Click(Target(role="page tab", ordinal=-1))]),
    ("click the second one", [Click(Target(ordinal=2))]),
    ("click the second Browse button", [Click(Target("Browse", "push button", 2))]),
    ("open report.txt", [Open("report.txt", "file")]),
    ("open ~/notes/a.md with the text editor", [Open("~/notes/a.md", "file", "text editor")]),
    ("open my Downloads", [Open("Downloads")]),
    ("open the folder Pictures", [Open("Pictures", "folder")]),
    ("click Don't Save", [Click(Target("Don't Save"))]),
    ("click Cut and paste", [Click(Target("Cut and paste"))]),
    (
        "zoom in",
        [
            Press(
                (
                    "ctrl",
                    "+",
                )
            )
        ],
    ),
    ("click „Schrift“", [Click(Target("Schrift"))]),
    ("click Erscheinungsbild", [Click(Target("Erscheinungsbild"))]),
    ("bring up the calculator", [Open("calculator")]),
    ("get me the file manager", [Open("file manager")]),
    ("open mousepad and maximize it", [Open("mousepad"), ArrangeWindow("maximize", "mousepad")]),
    ("double-click the Home icon", [Click(Target("Home", "icon"), count=2)]),
    ("right-click the desktop and choose Properties", [Click(Target("desktop"), "right"), Click(Target("Properties"))]),
    (
        "press ctrl+s",
        [
            Press(
                (
                    "ctrl",
                    "s",
                )
            )
        ],
    ),
    (
        "press Alt and F4",
        [
            Press(
                (
                    "alt",
                    "f4",
                )
            )
        ],
    ),
    ("press the 7 button", [Click(Target("7", "push button"))]),
    ("click 1, 2, + and 3", [Click(Target("1")), Click(Target("2")), Click(Target("+")), Click(Target("3"))]),
    ("would you mind opening the terminal?", [Open("terminal")]),
    ("please start by opening Thunar", [Open("Thunar")]),
    ("open the mouse settings", [Open("mouse", "settings")]),
    ("open settings for the keyboard", [Open("keyboard", "settings")]),
    ("go to Appearance", [Click(Target("Appearance"), or_open=True)]),
    ("open the File menu", [Click(Target("File", "menu"))]),
    ("show me the settings", [Open("settings")]),
    ("I need a calculator", [Open("calculator")]),
    ("open the calculator and calculate 5 plus 6", [Open("calculator"), Calculate("5+6")]),
    ("scroll to the bottom", [Scroll("down", 10, to_end=True)]),
    ("scroll down 3 times", [Scroll("down", 15)]),
    ("wait two seconds", [Wait(2)]),
    ("Open the calculator please.", [Open("calculator")]),
    ("please open mousepad for me", [Open("mousepad")]),
    ("hey, can you start the terminal?", [Open("terminal")]),
    ("I want you to launch Thunar", [Open("Thunar")]),
    ("Would you be so kind as to open the file manager?", [Open("file manager")]),
    ("I would like to open the text editor", [Open("text editor")]),
    ("launch firefox and go to example.org", [Open("firefox"), Click(Target("example.org"), or_open=True)]),
    ("open the Appearance settings", [Open("Appearance", "settings")]),
    ("open Appearance", [Open("Appearance")]),
    ("open Mouse and Touchpad", [Open("Mouse and Touchpad")]),
    ("open the display settings in GNOME Settings", [Open("display", "settings", "GNOME Settings")]),
    ("open Documents in the file manager", [Open("Documents", inside="file manager")]),
    ('open "My Report.pdf"', [Open("My Report.pdf", "file")]),
    ("open the file notes.txt in Mousepad", [Open("notes.txt", "file", "Mousepad")]),
    ("open notes.txt in Documents with Mousepad", [Open("Documents/notes.txt", "file", "Mousepad")]),
    ("open the trash", [Open("trash")]),
    ("open my home folder", [Open("home", "folder")]),
    ("open /etc/hosts", [Open("/etc/hosts", "file")]),
    ("open the third tab", [Click(Target(role="page tab", ordinal=3))]),
    ("open the Style tab", [Click(Target("Style", "page tab"))]),
    ("open the View menu and choose Zoom In", [Click(Target("View", "menu")), Click(Target("Zoom In"))]),
    (
        "open the View menu and click Show Hidden Files",
        [Click(Target("View", "menu")), Click(Target("Show Hidden Files"))],
    ),
    ("run mousepad", [Open("mousepad")]),
    ("open a terminal and type 'ls'", [Open("terminal"), Type("ls")]),
    ("start A, then B and C", [Open("A"), Open("B"), Open("C")]),
    (
        "start the calculator, the text editor and the terminal",
        [Open("calculator"), Open("text editor"), Open("terminal")],
    ),
    (
        "open settings, go to Power and turn off Dim Screen",
        [Open("settings"), Click(Target("Power"), or_open=True), Toggle(Target("Dim Screen"), on=False)],
    ),
    (
        "go to the Power page and set Screen Blank to 10 minutes",
        [Click(Target("Power", whole="Power page"), or_open=True), SetValue(Target("Screen Blank"), 10, "minutes")],
    ),
    ("choose Never", [Click(Target("Never"))]),
    ("choose never", [Click(Target("never"))]),
    ("in settings open Appearance", [Open("Appearance", inside="settings")]),
    ("toggle the sidebar", [Click(Target("sidebar"))]),
    ("click Apply", [Click(Target("Apply"))]),
    ("click on the Apply button", [Click(Target("Apply", "push button"))]),
    ("click the button labelled Apply", [Click(Target("Apply", "push button"))]),
    ('click the "Apply" button of the Displays window', [Click(Target("Apply", "push button", inside="Displays"))]),
    ("click the link Learn more", [Click(Target("Learn more", "link", whole="link Learn more"))]),
    ("click on 'Keyboard' and then on 'Layout'", [Click(Target("Keyboard")), Click(Target("Layout"))]),
    ("click File, then Save As", [Click(Target("File")), Click(Target("Save As"))]),
    ("click File > Save As", [Click(Target("File")), Click(Target("Save As"))]),
    ("click Save and close the window", [Click(Target("Save")), Close()]),
    ("click OK and then press Enter", [Click(Target("OK")), Press(("enter",))]),
    ("click Help three times", [Click(Target("Help")), Click(Target("Help")), Click(Target("Help"))]),
    ("click the icon Home", [Click(Target("Home", "icon", whole="icon Home"))]),
    ("double click on the folder Pictures", [Click(Target("Pictures", whole="folder Pictures"), count=2)]),
    ("double-click report.txt", [Click(Target("report.txt"), count=2)]),
    (
        "right click the file report.txt and select Rename",
        [Click(Target("report.txt", whole="file report.txt"), "right"), Click(Target("Rename"))],
    ),
    ("left click on Cancel", [Click(Target("Cancel"))]),
    ("middle-click the tab", [Click(Target(role="page tab", whole="tab"), "middle")]),
    ("click the second icon from the right", [Click(Target(role="icon", ordinal=-2))]),
    ("click the first item in the list", [Click(Target(role="list item", ordinal=1, whole="first item in the list"))]),
    ("select the third row", [Click(Target(role="list item", ordinal=3))]),
    ("select the last entry", [Click(Target(role="list item", ordinal=-1))]),
    ("select the second file", [Click(Target(ordinal=2, whole="second file"))]),
    ("tap the plus button", [Click(Target("plus", "push button"))]),
    ("choose the option Large", [Click(Target("Large", whole="option Large"))]),
    ("pick Adwaita-dark from the list", [Click(Target("Adwaita-dark", whole="Adwaita-dark from the list"))]),
    (
        "paste",
        [
            Press(
                (
                    "ctrl",
                    "v",
                )
            )
        ],
    ),
    (
        "copy",
        [
            Press(
                (
                    "ctrl",
                    "c",
                )
            )
        ],
    ),
    (
        "undo",
        [
            Press(
                (
                    "ctrl",
                    "z",
                )
            )
        ],
    ),
    (
        "press control c",
        [
            Press(
                (
                    "ctrl",
                    "c",
                )
            )
        ],
    ),
    (
        "press Ctrl and S",
        [
            Press(
                (
                    "ctrl",
                    "s",
                )
            )
        ],
    ),
    (
        "press ctrl + alt + t",
        [
            Press(
                (
                    "ctrl",
                    "alt",
                    "t",
                )
            )
        ],
    ),
    ("press the Escape key", [Press(("escape",))]),
    ("press F5 twice", [Press(("f5",)), Press(("f5",))]),
    ("press tab five times", [Press(("tab",)), Press(("tab",)), Press(("tab",)), Press(("tab",)), Press(("tab",))]),
    ("press page down", [Press(("page_down",))]),
    ("hit enter", [Press(("enter",))]),
    ("press up, up, down", [Press(("up",)), Press(("up",)), Press(("down",))]),
    ("scroll down a bit", [Scroll("down", 2)]),
    ("scroll down in the list", [Scroll("down")]),
    ("scroll the page down", [Scroll("down")]),
    ("scroll up by 10 lines", [Scroll("up", 10)]),
    ("scroll to the end of the page", [Scroll("down", 10, to_end=True)]),
    ("scroll to the top", [Scroll("up", 10, to_end=True)]),
    ("wait a moment", [Wait(1)]),
    ("wait for 2.5 seconds", [Wait(2.5)]),
    ("wait 1 minute", [Wait(60)]),
    (
        "zoom out twice",
        [
            Press(
                (
                    "ctrl",
                    "-",
                )
            ),
            Press(
                (
                    "ctrl",
                    "-",
                )
            ),
        ],
    ),
    (
        "go back",
        [
            Press(
                (
                    "alt",
                    "left",
                )
            )
        ],
    ),
    (
        "open a new tab",
        [
            Press(
                (
                    "ctrl",
                    "t",
                )
            )
        ],
    ),
    (
        "close the tab",
        [
            Press(
                (
                    "ctrl",
                    "w",
                )
            )
        ],
    ),
    (
        "undo that",
        [
            Press(
                (
                    "ctrl",
                    "z",
                )
            )
        ],
    ),
    ("Please could you open mousepad?", [Open("mousepad")]),
    ("I'd like you to open the calculator", [Open("calculator")]),
    ("Let's open the terminal", [Open("terminal")]),
    ("Just open Mousepad, please", [Open("Mousepad")]),
    ("Open Mousepad now", [Open("Mousepad")]),
    ("okay, open Mousepad", [Open("Mousepad")]),
    ("can you please show me the settings", [Open("settings")]),
    ("let me do some maths", [Open("calculator")]),
    ("I want to write a note", [Open("text editor")]),
    ("where are my files?", [Open("file manager")]),
    ("show me my files", [Open("file manager")]),
    ("take me to the Downloads folder", [Click(Target("Downloads"), or_open=True)]),
    ("I need a terminal", [Open("terminal")]),
    ("I need the command line", [Open("terminal")]),
    ("I'd like to browse the web", [Open("web browser")]),
    ("open „Bilder“", [Open("Bilder")]),
    ("click “OK”", [Click(Target("OK"))]),
    ("click ‚Abbrechen‘", [Click(Target("Abbrechen"))]),
    ("click «Fermer»", [Click(Target("Fermer"))]),
    ("click Don't ask again", [Click(Target("Don't ask again"))]),
    ("select Hide title of windows when maximized", [Click(Target("Hide title of windows when maximized"))]),
    ("click All Settings", [Click(Target("All Settings"))]),
    ("select Sort folders before files", [Click(Target("Sort folders before files"))]),
    ("click Save to disk", [Click(Target("Save to disk"))]),
    ("click Log in", [Click(Target("Log in"))]),
    ("click Sign out", [Click(Target("Sign out"))]),
    ("click Turn off", [Click(Target("Turn off"))]),
    ("click Set up", [Click(Target("Set up"))]),
    ("click Back to top", [Click(Target("Back to top"))]),
    ("open Date & Time", [Open("Date & Time")]),
    ("open Region & Language", [Open("Region & Language")]),
    ("open Removable Drives and Media", [Open("Removable Drives and Media")]),
    ("go to Date and Time", [Click(Target("Date and Time"), or_open=True)]),
    ("open settings then Appearance", [Open("settings"), Open("Appearance")]),
    ("open Settings > Power", [Open("Settings"), Click(Target("Power"))]),
    (
        "go to Settings > Appearance > Style",
        [Click(Target("Settings"), or_open=True), Click(Target("Appearance")), Click(Target("Style"))],
    ),
    ("open the Displays panel in Settings", [Open("Displays", "settings", "Settings")]),
    ("open the Style tab in Appearance", [Click(Target("Style", "page tab", inside="Appearance"))]),
    (
        "click the Style tab in the Appearance window",
        [Click(Target("Style", "page tab", inside="Appearance", whole="Style tab in the Appearance window"))],
    ),
    (
        "click the Close button of the Displays window",
        [Click(Target("Close", "push button", inside="Displays", whole="Close button of the Displays window"))],
    ),
    (
        "click the Add button under Keyboard layout",
        [Click(Target("Add", "push button", under="Keyboard layout", whole="Add button under Keyboard layout"))],
    ),
    (
        "click the button next to Default Font",
        [Click(Target(role="push button", under="Default Font", whole="button next to Default Font"))],
    ),
    (
        "click Edit next to 'xfce4-terminal'",
        [Click(Target("Edit", under="xfce4-terminal", whole="Edit next to xfce4-terminal"))],
    ),
    (
        "click the switch next to Bluetooth",
        [Click(Target(role="switch", under="Bluetooth", whole="switch next to Bluetooth"))],
    ),
    (
        "click on the second tab in Keyboard",
        [Click(Target(role="page tab", ordinal=2, inside="Keyboard", whole="second tab in Keyboard"))],
    ),
    ("choose the third option", [Click(Target(ordinal=3))]),
    ("choose the first theme in the list", [Click(Target(ordinal=1, whole="first theme in the list"))]),
    (
        "choose Large from the Cursor size list",
        [Click(Target("Large", inside="Cursor size", whole="Large from the Cursor size list"))],
    ),
    ("pick 100 % from the Scale menu", [Click(Target("100 %", inside="Scale", whole="100 % from the Scale menu"))]),
    ("open Thunar and then minimize it", [Open("Thunar"), ArrangeWindow("minimize", "Thunar")]),
    ("open mousepad, type 'abc', and close it", [Open("mousepad"), Type("abc"), Close()]),
    ("open mousepad, then open thunar, then close mousepad", [Open("mousepad"), Open("thunar"), Close("mousepad")]),
    ("click Bluetooth and switch it off", [Click(Target("Bluetooth")), Toggle(Target("Bluetooth"), on=False)]),
    ("in the file manager, open Documents", [Open("Documents", inside="file manager")]),
    ("in the terminal, type 'ls' and press Enter", [Open("terminal"), Type("ls"), Press(("enter",))]),
    ("in the calculator, click 7", [Click(Target("7", inside="calculator"))]),
    (
        "in Settings, go to Power and turn off Dim Screen",
        [
            Click(Target("Power", inside="Settings"), or_open=True),
            Toggle(Target("Dim Screen", inside="Settings"), on=False),
        ],
    ),
    (
        "press Ctrl+Shift+T",
        [
            Press(
                (
                    "ctrl",
                    "shift",
                    "t",
                )
            )
        ],
    ),
    (
        "press ctrl-c",
        [
            Press(
                (
                    "ctrl",
                    "c",
                )
            )
        ],
    ),
    ("press the Enter key", [Press(("enter",))]),
    ("press Super", [Press(("super",))]),
    (
        "press Alt+Tab twice",
        [
            Press(
                (
                    "alt",
                    "tab",
                )
            ),
            Press(
                (
                    "alt",
                    "tab",
                )
            ),
        ],
    ),
    ("press the down arrow 3 times", [Press(("down",)), Press(("down",)), Press(("down",))]),
    ("press escape and then enter", [Press(("escape",)), Press(("enter",))]),
    ("press the space bar", [Press(("space",))]),
    ("press a, b and c", [Press(("a",)), Press(("b",)), Press(("c",))]),
    ("press OK", [Click(Target("OK"))]),
    ('press the "Apply" button', [Click(Target("Apply", "push button"))]),
    ("double-click on notes.txt", [Click(Target("notes.txt"), count=2)]),
    ("right-click on the panel", [Click(Target("panel"), "right")]),
    (
        "right click the Trash icon and choose Empty Trash",
        [Click(Target("Trash", "icon"), "right"), Click(Target("Empty Trash"))],
    ),
    ("click on Apply twice", [Click(Target("Apply")), Click(Target("Apply"))]),
    ("click the 3rd button", [Click(Target(role="push button", ordinal=3))]),
    ("click the 2nd tab", [Click(Target(role="page tab", ordinal=2))]),
    ("scroll up a little", [Scroll("up", 2)]),
    ("scroll right", [Scroll("right")]),
    ("scroll down in the sidebar", [Scroll("down", inside="sidebar")]),
    ("scroll all the way down", [Scroll("down", 10, to_end=True)]),
    ("scroll to the very bottom", [Scroll("down", 10, to_end=True)]),
    ("scroll down two pages", [Scroll("down", 10)]),
    ("wait 500 ms", [Wait(0.5)]),
    ("wait three seconds and press enter", [Wait(3), Press(("enter",))]),
    ("pause for 2 seconds", [Wait(2)]),
    (
        "zoom in three times",
        [
            Press(
                (
                    "ctrl",
                    "+",
                )
            ),
            Press(
                (
                    "ctrl",
                    "+",
                )
            ),
            Press(
                (
                    "ctrl",
                    "+",
                )
            ),
        ],
    ),
    (
        "go to the next tab",
        [
            Press(
                (
                    "ctrl",
                    "page_down",
                )
            )
        ],
    ),
    (
        "redo",
        [
            Press(
                (
                    "ctrl",
                    "shift",
                    "z",
                )
            )
        ],
    ),
    (
        "select all text",
        [
            Press(
                (
                    "ctrl",
                    "a",
                )
            )
        ],
    ),
    (
        "copy the text and paste it",
        [
            Press(
                (
                    "ctrl",
                    "c",
                )
            ),
            Press(
                (
                    "ctrl",
                    "v",
                )
            ),
        ],
    ),
    (
        "open a new window",
        [
            Press(
                (
                    "ctrl",
                    "n",
                )
            )
        ],
    ),
    ("maybe open the settings", [Open("settings")]),
    ("In the Style tab choose Daloa", [Click(Target("Daloa", inside="Style"))]),
    (
        "Go to the Fonts tab of the Appearance settings and enable anti-aliasing",
        [
            Click(Target("Fonts", "page tab", inside="Appearance", whole="Fonts tab of the Appearance settings")),
            Toggle(Target("anti-aliasing"), on=True),
        ],
    ),
    (
        "Open the keyboard settings and disable key repeat",
        [Open("keyboard", "settings"), Toggle(Target("key repeat"), on=False)],
    ),
    (
        "Open keyboard settings, go to Behavior, and set Repeat delay to 400",
        [Open("keyboard", "settings"), Click(Target("Behavior"), or_open=True), SetValue(Target("Repeat delay"), 400)],
    ),
    ("open calculator and compute 25 * 4", [Open("calculator"), Calculate("25*4")]),
    (
        "open the text editor, type 'Hello' and save the file as hello.txt",
        [Open("text editor"), Type("Hello"), SaveAs("hello.txt")],
    ),
    (
        'Open Mousepad, write "abc def", then save it as test.txt in the Documents folder',
        [Open("Mousepad"), Type("abc def"), SaveAs("Documents/test.txt")],
    ),
    ("open Documents", [Open("Documents")]),
    ("open the Documents folder in Thunar", [Open("Documents", "folder", "Thunar")]),
    ("go to the Documents folder", [Click(Target("Documents"), or_open=True)]),
    ("show the Documents folder", [Open("Documents", "folder")]),
    ("open the file manager and go to Pictures", [Open("file manager"), Click(Target("Pictures"), or_open=True)]),
    ("open report.txt in the Documents folder", [Open("Documents/report.txt", "file")]),
    ("double click report.txt", [Click(Target("report.txt"), count=2)]),
    ("open the first file", [Click(Target(ordinal=1, whole="first file"), count=2)]),
    ("in the file manager, switch to list view", [Click(Target("list view", inside="file manager"))]),
    ("click on the search icon", [Click(Target("search", "icon"))]),
    ("click the gear icon", [Click(Target("gear", "icon"))]),
    ("click the three dots", [Click(Target("three dots"))]),
    ("click the hamburger menu", [Click(Target("hamburger", "menu"))]),
    ("click the x", [Click(Target("x"))]),
    ("click on the big red button", [Click(Target("big red", "push button"))]),
    ("click the blue circle", [Click(Target("blue circle"))]),
]


@pytest.mark.parametrize(("sentence", "goals"), _TABLE)
def test_sentences_about_things_become_goals(sentence, goals):
    assert read_instruction(sentence) == goals
