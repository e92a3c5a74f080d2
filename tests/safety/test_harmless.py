"""What nobody listed as harmless asks: buttons, chords and commands; what the person's own sentence names does not."""

import pytest
from stubs.judging import SHIPPED, Judge, asked, hit

from agent.core.actions import Action, Click, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.safety.commands import after_prompt, is_harmless
from agent.safety.input_history import InputHistory
from agent.safety.situation import Place, Situation
from agent.safety.targets import facts_of_focus
from agent.safety.words import WordList

ENTER = PressKeys(("enter",))
PRESS = Click(DesktopPoint(100, 100))
PLACE = Place("Thunar", "me - Thunar")
SHELL = Place("Xfce4-terminal", "me@host: ~")


@pytest.mark.parametrize("role", ["push button", "toggle button", "menu item", "check box", "switch", "radio button"])
def test_a_button_that_nobody_listed_asks_and_says_so_in_one_sentence(role: str) -> None:
    question = asked(PRESS, PLACE, hit(role, "Defragment"))
    assert question is not None
    assert question.reason.startswith(
        "“Defragment” is not on the list of harmless buttons, and nothing in your sentence was found to order it"
    )


@pytest.mark.parametrize("role", ["link", "list item", "page tab", "table cell", "icon", "entry"])
def test_what_is_no_button_does_not_ask_by_a_name_that_nobody_listed(role: str) -> None:
    assert asked(PRESS, PLACE, hit(role, "Defragment")) is None


@pytest.mark.parametrize(
    "name",
    ["Cancel", "_Close", "Show all 12 files…", "7", "1280x1024", "×", "Copy Ctrl+C", "Back: Home",
     "Today, 4 pm (Tuesday)", "Zurück", "Rechercher un contact", "查看全部", "Далее"],
)  # fmt: skip
def test_a_listed_button_does_not_ask_however_it_is_written(name: str) -> None:
    assert asked(PRESS, PLACE, hit("push button", name)) is None


@pytest.mark.parametrize(
    "name",
    ["Next patient", "P-101", "X+", "Z-", "+10",
     "Show & write", "Close (all notes go)", "Back – publish", "Rate 5", "Open, 3 left: buy", "Today, 50 €",
     "Back ($50)", "Month – 4,99", "Close (500)", "Close 12", "Users: add", "Home: add", "Save, close"],
)  # fmt: skip
def test_a_caption_is_listed_only_if_all_of_its_parts_are(name: str) -> None:
    assert asked(PRESS, PLACE, hit("push button", name)) is not None


@pytest.mark.parametrize(("role", "asks"), [("switch", True), ("check box", False), ("push button", False)])
def test_a_number_is_no_name_of_a_switch(role: str, asks: bool) -> None:
    assert (asked(PRESS, PLACE, hit(role, "2")) is not None) is asks


@pytest.mark.parametrize("name", ["$20", "4 €", "20zł", "$.99", "0.0.0.0/0"])
def test_a_price_and_an_address_are_no_mere_numbers(name: str) -> None:
    assert asked(PRESS, PLACE, hit("push button", name)) is not None


def test_a_listed_word_beside_others_is_not_listed_and_a_risky_word_asks_within_a_listed_phrase() -> None:
    assert asked(PRESS, PLACE, hit("push button", "Close account")) is not None
    assert asked(PRESS, PLACE, hit("push button", "Show password")) is not None


def test_a_button_that_nothing_names_asks_and_a_picture_does_not() -> None:
    assert asked(PRESS, PLACE, hit("push button")) is not None
    assert asked(PRESS, PLACE, hit("push button", "🗑")) is not None
    assert asked(PRESS, PLACE, hit("canvas")) is None
    assert asked(PRESS, PLACE) is None


def test_without_elements_what_is_drawn_as_a_button_is_judged_by_what_is_read_there() -> None:
    assert asked(PRESS, PLACE, words="Defragment", facts={"drawn as a button"}) is not None
    assert asked(PRESS, PLACE, words="Cancel", facts={"drawn as a button"}) is None
    assert asked(PRESS, PLACE, words="Defragment") is None


def test_enter_and_space_press_the_button_that_has_the_focus() -> None:
    for key in ("enter", "space"):
        assert asked(PressKeys((key,)), PLACE, hit("push button", "Defragment")) is not None
        assert asked(PressKeys((key,)), PLACE, hit("push button", "Cancel")) is None


@pytest.mark.parametrize("keys", ["ctrl+alt+p", "ctrl+shift+y", "f9", "super+x", "ctrl+m"])
def test_a_chord_that_nobody_listed_asks(keys: str) -> None:
    question = asked(PressKeys(tuple(keys.split("+"))), PLACE)
    assert question is not None
    assert f"{keys} is not on the list of harmless keys" in question.reason
    assert asked(PressKeys(tuple(keys.split("+"))), PLACE, sentence=f"press {keys} once") is None


@pytest.mark.parametrize("keys", ["ctrl+c", "alt+tab", "page_down", "ctrl+shift+t", "escape", "a", "shift+a"])
def test_a_listed_chord_and_plain_characters_do_not_ask(keys: str) -> None:
    assert asked(PressKeys(tuple(keys.split("+"))), PLACE) is None


@pytest.mark.parametrize(
    ("sentence", "name", "covered"),
    [
        ("defragment the disk", "Defragment", True),
        ("defragment the disk", "Defragment all", False),
        ("press the button “Purge cache”", "Purge cache", False),  # "purge" is risky by its word
        ("press the button “Tidy up”", "Tidy up", True),
        ("tidy the list, but do not defragment anything", "Defragment", False),
        ("Wähle die Kacheln im Menü", "Kacheln", True),
        ("把文件整理一下", "整理", True),
        ("look at the photo", "Defragment", False),
        ("open the tool and, please, defragment the disk", "Defragment", True),
        ("find the slow disk and defragment it", "Defragment", True),
        ("tell me how to defragment the disk", "Defragment", False),
        ("write down who may defragment disks, then close it", "Defragment", False),
        ("defragment the disk if it is slow", "Defragment", False),
        ("ask me before you press 'Defragment'", "Defragment", False),
        ("defragment nothing", "Defragment", False),
        ("I would like you to defragment the disk", "Defragment", True),
        ("Ich möchte die Kacheln ordnen", "Kacheln", False),
        ("Napisz list i zdefragmentuj dysk", "Zdefragmentuj", True),
        ("read about fonts on example.com and defragment", "Defragment", False),
        ("find the slow disk, then close it; Ann may defragment it", "Defragment", False),
        ("do press alt+n and defragment the disk", "Defragment", True),
        ("look at the disk, defragmenting is my job", "Defragment", False),
        ("Abra o menu no painel. Kacheln as janelas e não feche", "Kacheln", False),
        ("Kacheln as opções no menu com três linhas", "Kacheln", True),
        ("l'ami dort, ouvre l'heure et kacheln", "Kacheln", True),
    ],
)
def test_what_the_sentence_names_by_all_of_its_words_does_not_ask(sentence: str, name: str, covered: bool) -> None:
    assert (asked(PRESS, PLACE, hit("push button", name), sentence=sentence) is None) is covered


def test_what_the_sentence_says_once_is_covered_once() -> None:
    run, button = Judge("defragment the disk"), hit("push button", "Defragment")
    assert run.asks(PRESS, PLACE, button) is None
    run.sentence.did(PRESS, Situation(PLACE, PLACE, "", (button,)))
    assert run.asks(PRESS, PLACE, button) is not None


def test_a_mail_that_the_sentence_sends_is_sent_unasked_where_a_mail_is_seen_and_nowhere_else() -> None:
    send = hit("push button", "Send")
    for title, app, asks in (("Write: Lunch", "Thunderbird", False), ("Transfer", "Firefox", True)):
        question = asked(PRESS, Place(app, title), send, sentence="send the mail to Ann")
        assert (question is not None) is asks


def test_a_sentence_takes_away_no_question_about_what_cannot_be_taken_back() -> None:
    for name, sentence in (("Delete", "delete the file"), ("Pay now", "pay now"), ("Log out", "log out")):
        assert asked(PRESS, PLACE, hit("push button", name), sentence=sentence) is not None


@pytest.mark.parametrize(
    "line",
    ["ls", "ls -la ~/Documents", "cd ..", "cat notes.txt | grep -i milk | wc -l", "pwd && ls", "git status",
     "git log -n 3 -- README.md",
     "find . -name '*.txt'", "ls *", "cat *.txt", "less notes*",
     "date +%F", "sort -n", "du -sh *\ndf -h",
     "top", "docker ps -a", "docker compose ps", "docker logs -f --tail 20 web", "git branch -a", "git remote -v",
     "ip addr show", "systemctl --user status ssh", "journalctl -u ssh --since=today", "pip list",
     "apt search vim", "dpkg -l", "kubectl get pods -n web", "python3 --version", "ss -tulpn",
     "ps aux", "ps -ef", "ps -p 12 -o pid,cmd"],
)  # fmt: skip
def test_lines_that_only_look_are_entered_into_a_terminal_unasked(line: str) -> None:
    assert is_harmless(line)
    assert asked(TypeText(f"{line}\n"), SHELL, read=True) is None


@pytest.mark.parametrize(
    "line",
    ["rm x", "ls; rm x", "ls > x", "ls `rm x`", "ls $(rm x)", "cat x | sh", "ls & rm x", "find . -delete",
     "find . -exec rm {} +",
     "sort -o x y", "date -s 12:00",
     "git push", "git pwn.sh", "git 5", "git", "git -c core.pager=x log", "make", "alias ls=rm", "./ls", "ls\nrm x",
     "cat ~/.ssh/id_rsa",
     "cat /etc/shadow", "history -c", "tree -o x", "less +!x", "uniq a b", "hostname x", "lsx", "!!", "",
     "X=1 ls", "ls \\\nrm", "file -C x", "less *", "man ?x", "cat ~/*/key",
     "docker rm x", "docker compose down", "docker volume rm ls", "docker --context x ps", "docker", "git branch new",
     "git tag v1", "ip link set eth0 down", "systemctl stop ssh", "kubectl delete pod x",
     "systemctl --root=x status", "journalctl --vacuum-size=1M", "pip install x", "dpkg -r x", "rpm -e x",
     "kubectl get secrets", "kubectl get cm app -o yaml", "ps auxe", "history", "cat wallet.txt",
     "nvidia-smi -r", "dmesg -n1", "mount /dev/sda1 /mnt", "python3", "python3 -c x", "ss -K"],
)  # fmt: skip
def test_every_other_line_asks(line: str) -> None:
    assert not is_harmless(line)
    assert asked(TypeText(f"{line}\n"), SHELL, read=True) is not None


def test_a_line_in_a_terminal_is_judged_as_a_whole_however_it_is_entered() -> None:
    history = InputHistory()

    def asks(action: Action[DesktopPoint]) -> bool:
        sent = None if line is None else line
        seen = Situation(SHELL, typed=line or "", read=line is not None, sent=sent)
        seen = history.judge(action, seen, "shell")
        history.did(action)
        return SHIPPED.question(action, seen) is not None

    line: str | None = ""
    assert not asks(TypeText("ls"))
    line = "ls"
    assert not asks(TypeText(" -l"))
    line = "ls -l"
    assert not asks(ENTER)
    line = "cat notes"
    assert asks(TypeText(" >x"))
    for line, unasked in (("cat notes", True), ("cat notes >x", False), ("rm -r notes", False), (None, False)):
        assert asks(ENTER) is not unasked, line
    assert asks(TypeText("ls\n")), "nobody knows what stands there"


@pytest.mark.parametrize(
    ("line", "command"),
    [("me@box:~$ ls -l", "ls -l"), ("[me@box dir#1]# ", ""), ("~ ❯ git status", "git status"), ("$", ""),
     ("me@box:~$ rm -r x # $ ls", "rm -r x # $ ls"), ("rm: remove file 'x'? ", None), ("", None)],
)  # fmt: skip
def test_a_command_begins_behind_the_first_sign_of_a_prompt(line: str, command: str | None) -> None:
    at = after_prompt(line)
    assert (None if at is None else line[at:]) == command


def test_a_star_by_itself_stands_for_any_words_and_a_list_covers_nothing_but_its_phrases() -> None:
    words = WordList(["show *", "* days", "打开*"])
    assert all(map(words.covers, ("show me more", "Last 30 days", "打开文件", "Show-more…")))
    assert not any(map(words.covers, ("Show", "Showdown", "to show", "", " ", "days of", "reopen", "show_" * 20)))


def test_a_star_stands_for_no_word_that_goes_on_to_something_else() -> None:
    words = WordList(["show *"])
    assert not any(map(words.covers, ("Show to everyone", "Show it and start", "Show one two three four five")))
    assert not any(map(words.covers, ("Show & share", "Show / edit", "Show a, send b", "Show → send")))


def test_my_and_your_hide_no_word_of_a_phrase() -> None:
    assert all(map(WordList(["close account"]).found, ("Close my account", "close account", "Close your account now")))
    assert not WordList(["close account"]).found("Close all, then account")


def test_another_word_is_not_covered_because_it_is_the_same_without_its_accents() -> None:
    words = WordList(["kop", "zurück"])
    assert all(map(words.covers, ("Kop", "Zurück", "Zuruck")))
    assert not any(map(words.covers, ("Köp", "Zurùck")))


def test_a_single_letter_on_a_page_asks_and_in_a_text_or_a_player_does_not() -> None:
    mail, letter = Place("Chromium", "Inbox - Gmail - Chromium"), PressKeys(("e",))
    assert asked(letter, mail, hit("document web", "Inbox")) is not None
    assert asked(letter, mail, hit("entry", "Subject")) is None
    assert asked(letter, Place("Vlc", "a film"), hit("frame", "a film")) is None


def test_enter_in_a_field_where_buttons_weigh_asks_but_in_a_search() -> None:
    bank = Place("Firefox", "Online Banking - Mozilla Firefox")
    search = hit("entry", "Search transactions", states=frozenset({"editable"}))
    assert asked(PressKeys(("enter",)), bank, hit("entry", "Amount")) is not None
    assert asked(PressKeys(("enter",)), bank, search) is None
    assert asked(PressKeys(("enter",)), PLACE, hit("entry", "Name")) is None


@pytest.mark.parametrize(
    ("app", "name", "is_search"),
    [("Firefox", "Delivery address", False), ("Firefox", "Location", False), ("Thunar", "Location", True),
     ("Firefox", "Search with Google or enter address", True), ("Chromium", "Adress- und Suchleiste", True)],
)  # fmt: skip
def test_a_field_for_an_address_is_a_search_in_a_program_and_not_on_a_page(
    app: str, name: str, is_search: bool
) -> None:
    field = hit("entry", name, states=frozenset({"editable"}))
    assert ("a search" in facts_of_focus(Situation(Place(app, "x"), None, "", (field,)))) is is_search


def test_every_switch_asks_where_protection_is_set_up() -> None:
    for title, asks in (("Privacy", True), ("Datenschutz", True), ("Appearance", False)):
        question = asked(PRESS, Place("Gnome-control-center", title), hit("switch", "Dark style"))
        assert (question is not None) is asks


def test_a_terminal_in_another_program_is_a_terminal() -> None:
    editor = Place("Code", "main.py - Visual Studio Code")
    assert asked(TypeText("make\n"), editor, hit("terminal", "Terminal 1")) is not None
    assert asked(TypeText("ls\n"), editor, hit("terminal", "Terminal 1"), read=True) is None


def test_an_address_that_carries_much_asks_also_where_it_is_typed() -> None:
    browser = Place("Firefox", "Mozilla Firefox")
    typed = TypeText("https://example.org/?q=" + "a secret that was read on the screen " * 4)
    assert asked(typed, browser, hit("entry", "Search or enter address"), sentence="read") is not None
    assert asked(TypeText("https://example.org/"), browser, sentence="read") is None
