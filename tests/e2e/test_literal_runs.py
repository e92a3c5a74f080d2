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
@pytest.mark.parametrize("session", ["gnome", "gnome-shell"])
def test_the_same_sentence_makes_gnome_dark_also_in_its_own_shell_on_wayland(command, kept, session):
    outcome = command("--sandbox", "--keep", "--sandbox-session", session, "open settings and enable dark mode")
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


TYPED = "Grüße, 日本 🙂 <x> $HOME"
#: Sentences, a program that tells what came of them, and what it tells then.
DONE = {
    "text in any script is typed into a terminal": (
        f"open the terminal, type \"cat > ~/typed\" and press enter, type '{TYPED}' and press enter and press ctrl+d",
        ("sh", "-c", 'cat "$HOME/typed"'),
        TYPED,
    ),
    "the calculator calculates": (
        "open galculator, click 7, click +, click 5 and click =, press ctrl+c",
        ("xclip", "-o", "-selection", "clipboard"),
        "12",
    ),
    "a check box is switched and the setting follows": (
        "open settings, click Window Manager Tweaks and enable Raise windows while cycling",
        ("xfconf-query", "-c", "xfwm4", "-p", "/general/cycle_raise"),
        "true",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("sentence", "program", "tells"), DONE.values(), ids=DONE.keys())
def test_what_a_sentence_says_is_done(command, kept, sentence, program, tells):
    outcome = command("--sandbox", "--keep", sentence)
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    assert outcome.inside(*program).stdout.strip() == tells


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
