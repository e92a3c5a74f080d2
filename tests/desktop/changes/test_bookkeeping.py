"""What a menu or a switch toggles is a change; sizes, places, orders and what was used last are bookkeeping."""

from pathlib import PurePosixPath

import pytest

from agent.desktop.changes.bookkeeping import is_file_left_out, is_neutral, is_setting_of_programs, matches


@pytest.mark.parametrize(
    "what",
    [
        "xfconf thunar /last-side-pane",
        "xfconf thunar /last-view",
        "xfconf thunar /last-show-hidden",
        "xfconf thunar /last-location-bar",
        "xfconf thunar /last-statusbar-visible",
        "xfconf thunar /last-menubar-visible",
        "xfconf ristretto /window/toolbar/show",
        "xfconf displays /Default/HDMI-1/Primary",
        "xfconf displays /Default/HDMI-1/RefreshRate",
        "xfconf xfwm4 /general/workspace_names",
        "xfconf xfce4-panel /plugins/plugin-1/recent-items-max",
        "dconf /org/mate/caja/window-state/start-with-status-bar",
        "dconf /org/nemo/window-state/start-with-menu-bar",
        "dconf /org/nemo/window-state/side-pane-view",
        "dconf /org/gnome/nautilus/window-state/start-with-sidebar",
        "dconf /org/xfce/mousepad/state/search/match-case",
        "dconf /org/xfce/mousepad/preferences/window/statusbar-visible",
        "kde katerc/MainWindow/MenuBar",
        "kde dolphinrc/MainWindow/StatusBar",
        "kde kdeglobals/KFileDialog Settings/Show hidden files",
        "kde katerc/UiSettings/ColorScheme",
        "kde ksmserverrc/General/confirmLogout",
        "kde baloofilerc/Basic Settings/Indexing-Enabled",
        "kde kded5rc/Module-touchpad/autoload",
        "kde dolphinrc/DetailsMode/ExpandableFolders",
    ],
)
def test_what_a_person_switches_is_told(what: str) -> None:
    assert not is_setting_of_programs(what)


@pytest.mark.parametrize(
    "what",
    [
        "xfconf thunar /last-window-width",
        "xfconf thunar /last-window-maximized",
        "xfconf thunar /last-separator-position",
        "xfconf thunar /last-details-view-column-widths",
        "xfconf thunar /last-sort-column",
        "xfconf ristretto /window/width",
        "xfconf xfce4-session /sessions/Failsafe/Client0_Command",
        "dconf /org/mate/caja/window-state/geometry",
        "dconf /org/nemo/window-state/sidebar-width",
        "dconf /org/gnome/nautilus/window-state/initial-size",
        "dconf /org/gnome/nautilus/window-state/maximized",
        "dconf /org/gnome/control-center/window-state",
        "dconf /org/xfce/mousepad/state/window/height",
        "kde katerc/MainWindow/State",
        "kde katerc/MainWindow/Height 1080",
        "kde dolphinrc/DetailsMode/ColumnWidths",
        "kde kdeglobals/KFileDialog Settings/Sort by",
    ],
)
def test_what_programs_note_for_themselves_is_not(what: str) -> None:
    assert is_setting_of_programs(what)


def test_what_a_program_writes_down_at_its_first_start_says_nothing() -> None:
    assert is_neutral("xfconf thunar /last-view", "ThunarIconView")
    assert not is_neutral("xfconf thunar /last-view", "ThunarDetailsView")
    assert is_neutral("xfconf displays /Default/screen/Primary", "true")
    assert is_neutral("kde dolphinrc/MainWindow/MenuBar", "Disabled")
    assert not is_neutral("kde katerc/MainWindow/MenuBar", "Disabled")


@pytest.mark.parametrize(
    ("what", "starting"),
    [
        ("xfconf xfce4-panel /plugins/plugin-17/items", True),
        ("dconf /org/mate/panel/toplevels/bottom/y-bottom", True),
        ("xfconf xfce4-panel /panels/panel-1/position-locked", False),
        ("xfconf xfce4-panel /panels/panel-1/autohide-behavior", False),
        ("dconf /org/mate/panel/toplevels/bottom/auto-hide", False),
    ],
)
def test_of_a_panel_only_what_it_writes_by_itself_counts_as_its_start(what: str, starting: bool) -> None:
    assert matches("settings", "starting", what) is starting


def test_a_file_in_an_application_s_own_folder_is_told_whatever_its_name() -> None:
    assert not is_file_left_out(PurePosixPath(".config/xfce4/terminal/terminalrc"))
    assert is_file_left_out(PurePosixPath(".config/kwinrc"))  # told key by key
    assert is_file_left_out(PurePosixPath(".config/kdedefaults/kwinrc"))


@pytest.mark.parametrize("path", ["Documents/a.log", "notes.tmp", ".local/share/Trash/files/a.log", "plan.new"])
def test_a_person_s_file_is_told_whatever_its_ending(path: str) -> None:
    assert not is_file_left_out(PurePosixPath(path))


@pytest.mark.parametrize("path", [".config/app/a.log", ".config/app/settings.new", ".local/share/themes/x.tmp"])
def test_what_programs_write_beside_their_own_files_is_left_out(path: str) -> None:
    assert is_file_left_out(PurePosixPath(path))
