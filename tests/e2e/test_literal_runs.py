"""The literal engine on real desktops, judged by the desktops' own tools."""

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


def test_the_readme_sentence_makes_xfce_dark(command, kept):
    outcome = command("--sandbox", "--keep", "open settings and enable dark mode")
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    theme = outcome.inside("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName")
    assert theme.stdout.strip() == "Adwaita-dark"
    assert outcome.meta["engine"] == "literal"
    assert outcome.meta["outcome"] == "done"
    assert [step["executed"] for step in outcome.steps[:-1]] == [True] * (len(outcome.steps) - 1)
    assert all((outcome.bundle / step["image"]["file"]).stat().st_size for step in outcome.steps)


@pytest.mark.slow
def test_the_same_sentence_makes_gnome_dark(command, kept):
    outcome = command("--sandbox", "--keep", "--sandbox-session", "gnome", "open settings and enable dark mode")
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    scheme = outcome.inside("gsettings", "get", "org.gnome.desktop.interface", "color-scheme")
    assert scheme.stdout.strip() == "'prefer-dark'"


@pytest.mark.slow
def test_the_same_sentence_makes_gnome_dark_in_its_own_shell_on_wayland(command, kept):
    outcome = command("--sandbox", "--keep", "--sandbox-session", "gnome-shell", "open settings and enable dark mode")
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    scheme = outcome.inside("gsettings", "get", "org.gnome.desktop.interface", "color-scheme")
    assert scheme.stdout.strip() == "'prefer-dark'"


def test_a_text_is_typed_and_saved_on_wayland(command, kept):
    sentence = "open mousepad, type 'Grüße, 日本' and press ctrl+s, type 'note.txt' and press enter"
    outcome = command("--sandbox", "--keep", "--sandbox-session", "sway", sentence)
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    assert outcome.in_home("cat note.txt") == "Grüße, 日本"
    assert outcome.in_home("echo ${DISPLAY:-none}") == "none\n"


def test_a_dry_run_touches_nothing(command, kept):
    outcome = command("--sandbox", "--keep", "--dry-run", "open settings and enable dark mode")
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    windows = outcome.inside("wmctrl", "-l")
    assert "Settings" not in windows.stdout
    assert [step["executed"] for step in outcome.steps] == [False] * len(outcome.steps)
    assert "would open “settings”" in outcome.out


@pytest.mark.slow
def test_text_in_any_script_is_typed_into_a_terminal(command, kept):
    text = "Grüße, 日本 🙂 <x> $HOME"
    sentence = (
        f"open the terminal, type \"cat > ~/typed\" and press enter, type '{text}' and press enter and press ctrl+d"
    )
    outcome = command("--sandbox", "--keep", sentence)
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    assert outcome.inside("sh", "-c", 'cat "$HOME/typed"').stdout == text + "\n"


@pytest.mark.slow
def test_the_calculator_calculates(command, kept):
    outcome = command("--sandbox", "--keep", "open galculator, click 7, click +, click 5 and click =, press ctrl+c")
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    assert outcome.inside("xclip", "-o", "-selection", "clipboard").stdout.strip() == "12"


@pytest.mark.slow
def test_a_check_box_is_switched_and_the_setting_follows(command, kept):
    outcome = command(
        "--sandbox", "--keep", "open settings, click Window Manager Tweaks and enable Raise windows while cycling"
    )
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    setting = outcome.inside("xfconf-query", "-c", "xfwm4", "-p", "/general/cycle_raise")
    assert setting.stdout.strip() == "true"


@pytest.mark.slow
def test_what_is_not_there_is_said_and_not_replaced(command, no_sandbox_left):
    outcome = command("--sandbox", "open settings and click Quantum Entanglement")
    assert outcome.status == 1
    assert "could not find “Quantum Entanglement”" in outcome.out
    assert not any((step["target"] or {}).get("type") == "click" for step in outcome.steps)


@pytest.mark.slow
def test_a_style_that_is_not_installed_is_named(command, no_sandbox_left):
    outcome = command("--sandbox", "use the theme UltraNeonDragon9")
    assert outcome.status == 1
    assert "I found no choice “UltraNeonDragon9” for “theme”" in outcome.out
    assert "setting xfconf" not in outcome.out
