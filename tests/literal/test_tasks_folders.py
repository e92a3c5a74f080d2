"""Folders made, things renamed and trashed: what is pressed, and that nothing is before the right thing is selected."""

from dataclasses import replace

import pytest

from agent.core.changes import Change
from agent.core.geometry import Region
from agent.core.notes import Note
from agent.literal.engine import Engine
from agent.screen.outline import ShownWindow
from tests.literal.made_up import call_of, element, ending, follow, screen, taken, talk

HOME = ShownWindow("home - Thunar", "Thunar", Region(0, 0, 640, 500), active=True)
DIALOG = ShownWindow("Dialog", "Thunar", Region(100, 100, 300, 150), active=True)
OF_HOME = {"window": HOME.title, "app": HOME.app, "source": "tree"}


def status(text):
    return element("status bar", text, 10, 480, 400, 20, **OF_HOME)


def folder(*elements, changes=(), text="8 folders | 2 files"):
    """The home in the file manager."""
    return screen(status(text), *elements, windows=(HOME,), changes=changes)


def asking(value, text="8 folders | 2 files"):
    """A dialog of the file manager with a field that has the focus."""
    field = element(
        "text", "", 120, 150, 200, 30, value=value, states={"focused", "editable"}, window=DIALOG.title, app=DIALOG.app
    )
    return screen(field, status(text), windows=(DIALOG, replace(HOME, active=False)))


def done(replies):
    """What was done, in short."""
    calls = [call_of(reply) for reply in replies]
    return [str(call.get("keys") or call.get("text") or call["action"]) for call in calls]


def file_change(name, before, after):
    return Change("file", f"/home/me/{name}", before, after)


SELECTED = '"draft.txt" | 5 bytes | plain text document'
SELECTING = [folder(), asking(""), asking("draft?txt"), folder(text=SELECTED)]
KEYS_OF_SELECTING = ["ctrl+s", "draft?txt", "enter"]


def test_a_folder_is_made_by_the_keys_of_the_file_manager_and_the_new_folder_is_the_evidence():
    made = file_change("Invoices", None, "a folder")
    screens = [folder(), asking("New Folder"), asking(""), asking("Invoices"), folder(changes=[made])]
    replies = follow("create a folder called Invoices", *screens)
    assert done(replies)[:-1] == ["ctrl+shift+n", "backspace", "Invoices", "enter"]
    assert ending(replies[-1]) == ("success", True)
    assert "/home/me/Invoices" in replies[-1].arguments["evidence"][0]


def test_a_name_that_the_person_changed_is_the_one_that_is_taken():
    made = file_change("Bills", None, "a folder")
    screens = [folder(), asking("New Folder"), asking(""), asking("Bills"), folder(changes=[made])]
    replies = follow("create a folder called Invoices", *screens, notes={2: Note("changed", "type “Bills”")})
    assert done(replies)[2:-1] == ["Invoices", "enter"]
    assert ending(replies[-1]) == ("success", True)
    assert "/Bills" in replies[-1].arguments["evidence"][0]


def test_a_name_that_is_looked_at_late_is_entered_once_more():
    made = file_change("Invoices", None, "a folder")
    screens = [folder(), asking("New Folder"), asking(""), *[asking("Invoices")] * 4, folder(changes=[made])]
    replies = follow("create a folder called Invoices", *screens)
    assert done(replies)[3:-1] == ["enter", "wait", "wait", "enter"]
    assert ending(replies[-1]) == ("success", True)


def test_a_field_that_holds_something_else_is_left():
    screens = [folder(), asking("New Folder"), asking(""), *[asking("New FolderInvoices")] * 4, *[folder()] * 6]
    replies = follow("create a folder called Invoices", *screens)
    assert done(replies)[-2] == "escape"
    assert "enter" not in done(replies)
    assert ending(replies[-1])[0] == "fail"


def test_a_folder_that_is_there_already_is_said():
    there = element("icon", "Invoices", 200, 100, **OF_HOME)
    (reply,) = follow("create a folder called Invoices", folder(there))
    assert ending(reply)[0] == "fail"
    assert "exists already" in reply.arguments["text"]


@pytest.mark.parametrize(
    "title", ["Documents - Thunar", "Documents", "Documents — Dolphin", "/home/me/Documents - Thunar"]
)
def test_no_second_folder_of_its_name_is_made_in_the_one_that_is_open(title):
    there = screen(status("2 files"), windows=(replace(HOME, title=title),))
    (reply,) = follow("create a folder called Documents", there)
    assert ending(reply)[0] == "fail"
    assert "it is the folder that is open" in reply.arguments["text"]
    (reply,) = follow("create a folder called documents", there)
    assert ending(reply)[0] == "fail"
    (reply,) = follow("create a folder called Documents in Documents", there)  # who says so means it
    assert call_of(reply)["keys"] == "ctrl+shift+n"


@pytest.mark.parametrize("name", ["Thunar", "Documents 2", "Docu"])
def test_a_folder_is_made_in_the_one_that_is_open_and_told_where(name):
    (reply,) = follow(
        f"create a folder called '{name}'",
        screen(status("2 files"), windows=(replace(HOME, title="Documents - Thunar"),)),
    )
    assert call_of(reply)["keys"] == "ctrl+shift+n"
    assert "Make a new folder in “Documents”." in reply.thought


def test_a_folder_that_came_before_is_no_evidence_for_one_that_did_not():
    made = file_change("Invoices", None, "a folder")
    dialog = replace(asking("Invoices"), changes=(made,))
    screens = [
        folder(changes=[made]),
        asking("New Folder"),
        asking(""),
        dialog,
        *[dialog] * 5,
        *[folder(changes=[made])] * 5,
    ]
    last = follow("create a folder called Invoices", *screens)[-1]
    assert ending(last)[0] == "fail"


def test_something_is_renamed_where_its_own_name_is_asked_for():
    moved = file_change("draft.txt", "5 bytes", "moved to /home/me/final.txt")
    field = asking("draft.txt", SELECTED)
    screens = [*SELECTING, field, field, field, asking(""), asking("final.txt"), folder(changes=[moved])]
    replies = follow("rename draft.txt to final.txt", *screens)
    assert done(replies)[:-1] == [*KEYS_OF_SELECTING, "f2", "end", "shift+home", "backspace", "final.txt", "enter"]
    assert ending(replies[-1]) == ("success", True)


def test_nothing_is_renamed_where_another_name_is_asked_for():
    screens = [*SELECTING, asking("draft.txt.bak"), *[folder()] * 3]
    replies = follow("rename draft.txt to final.txt", *screens)
    assert done(replies)[:-1] == [*KEYS_OF_SELECTING, "f2", "escape"]
    assert ending(replies[-1])[0] == "fail"


def test_something_is_trashed_once_it_alone_is_selected():
    gone = file_change("draft.txt", "5 bytes", "in the trash, as /home/me/.local/share/Trash/files/draft.txt")
    replies = follow("move draft.txt to the trash", *SELECTING, folder(changes=[gone]))
    assert done(replies)[:-1] == [*KEYS_OF_SELECTING, "delete"]
    assert ending(replies[-1]) == ("success", True)


def test_what_the_run_itself_made_is_not_told_any_more_once_it_is_in_the_trash():
    made, other = file_change("draft.txt", None, "5 bytes"), file_change("other.txt", None, "5 bytes")
    selecting = [replace(one, changes=(made, other)) for one in SELECTING]
    replies = follow("move draft.txt to the trash", *selecting, folder(changes=[other]))
    assert ending(replies[-1]) == ("success", True)
    replies = follow("move draft.txt to the trash", *selecting, *[folder()] * 6)  # nothing is told at all
    assert ending(replies[-1])[0] == "fail"


@pytest.mark.parametrize(
    "text", ["8 folders | 2 files", "2 files selected: 9 bytes", '"draft.txt.bak" | 5 bytes', '"my draft.txt" | 1 byte']
)
def test_nothing_is_trashed_while_something_else_or_nothing_is_selected(text):
    where = "move draft.txt to the trash"
    replies = follow(where, *SELECTING[:3], *[folder(text=text)] * 4, *[screen(windows=())] * 20)
    assert "delete" not in done(replies)


def test_what_nautilus_selected_after_the_trashed_thing_is_not_taken_for_it():
    window = ShownWindow("home", "org.gnome.Nautilus", Region(0, 0, 640, 500), active=True)
    inside = {"window": window.title, "app": window.app, "source": "tree"}
    now = screen(
        element("label", "“draft.txt” moved to trash", **inside),
        element("table cell", "other.txt", 300, 300, states={"selected"}, **inside),
        windows=(window,),
    )
    replies = follow("move draft.txt to the trash", *SELECTING[:3], *[now] * 20)
    assert "delete" not in done(replies)


def test_without_a_file_manager_the_folder_is_opened_first():
    (reply,) = follow("rename a.txt to b.txt", screen())
    assert call_of(reply) == {"action": "open", "text": "./a.txt/.."}
    (reply,) = follow("rename ~/notes/a.txt to b.txt", folder())
    assert call_of(reply) == {"action": "open", "text": "~/notes/"}


SEVERAL = Note("failed", "several are called 'list.txt': ~/Documents/list.txt, ~/Downloads/list.txt")


@pytest.mark.parametrize(
    "sentence", ["move list.txt to the trash", "delete the file list.txt", "rename list.txt to b.txt"]
)
def test_of_two_files_of_one_name_none_is_touched_before_the_person_says_which(sentence):
    _, asked = follow(sentence, screen(), screen(), notes={0: SEVERAL})
    assert call_of(asked)["action"] == "ask_user"
    assert "1) ~/Documents/list.txt, 2) ~/Downloads/list.txt" in call_of(asked)["question"]
    nobody = follow(sentence, screen(), screen(), screen(), notes={0: SEVERAL, 1: Note("nobody")})
    assert done(nobody)[:-1] == ["./list.txt/..", "ask_user"]
    assert ending(nobody[-1])[0] == "fail"
    assert "~/Downloads/list.txt" in nobody[-1].arguments["text"]


@pytest.mark.parametrize(
    ("reply", "opens"), [("the second one", "~/Downloads/"), ("1", "~/Documents/"), ("Downloads", "~/Downloads/")]
)
def test_the_file_that_the_person_says_is_the_one(reply, opens):
    engine = Engine()
    first = engine.reply(talk("trash list.txt", screen()))
    moves = [taken(first, screen(), SEVERAL)]
    asked = engine.reply(talk("trash list.txt", screen(), *moves))
    moves.append(replace(taken(asked, screen()), user_reply=reply))
    assert call_of(engine.reply(talk("trash list.txt", screen(), *moves))) == {"action": "open", "text": opens}


def test_of_two_files_of_one_name_none_is_opened_before_the_person_says_which():
    engine = Engine()
    first = engine.reply(talk("open the file list.txt", screen()))
    moves = [taken(first, screen(), SEVERAL)]
    asked = engine.reply(talk("open the file list.txt", screen(), *moves))
    assert call_of(asked)["action"] == "ask_user"
    answered = replace(taken(asked, screen()), user_reply="the first")
    second = engine.reply(talk("open the file list.txt", screen(), *moves, answered))
    assert call_of(second) == {"action": "open", "text": "~/Documents/list.txt"}


def test_an_answer_that_names_none_of_them_ends_the_run():
    engine = Engine()
    moves = [taken(engine.reply(talk("trash list.txt", screen())), screen(), SEVERAL)]
    asked = engine.reply(talk("trash list.txt", screen(), *moves))
    for reply in ("7", "yes", "both", ".txt", "list.txt", "first or second"):
        answered = replace(taken(asked, screen()), user_reply=reply)
        assert ending(engine.reply(talk("trash list.txt", screen(), *moves, answered)))[0] == "fail", reply


@pytest.mark.parametrize("name", ["'..'", "'.'", "'a/../../b'"])
def test_a_name_that_leads_elsewhere_is_refused(name):
    (reply, *_) = follow(f"rename draft.txt to {name}", folder())
    assert ending(reply)[0] == "fail"


def test_a_folder_that_is_made_at_once_gets_its_name_in_place():
    untitled, named = file_change("Untitled Folder", None, "a folder"), file_change("Invoices", None, "a folder")
    screens = [folder(), folder(changes=[untitled]), folder(changes=[untitled]), folder(changes=[named])]
    replies = follow("create a folder called Invoices", *screens)
    assert done(replies)[:-1] == ["ctrl+shift+n", "Invoices", "enter"]
    assert ending(replies[-1]) == ("success", True)


def test_a_folder_of_another_name_that_came_instead_is_told():
    untitled = file_change("Untitled Folder", None, "a folder")
    replies = follow("create a folder called Invoices", folder(), *[folder(changes=[untitled])] * 9)
    assert ending(replies[-1])[0] != "success"
    assert "“Untitled Folder” appeared instead, and is still there" in str(replies[-1].arguments)


def test_what_the_file_manager_says_against_a_name_ends_it_soon_and_is_told():
    refusal = element(
        "label", 'The file "Invoices" already exists.', 120, 120, 250, 20, window="Attention", app="Thunar"
    )
    attention = ShownWindow("Attention", "Thunar", Region(100, 100, 300, 150), active=True)
    refused = screen(refusal, windows=(attention, replace(HOME, active=False)))
    screens = [folder(), asking("New Folder"), asking(""), asking("Invoices"), refused, refused, *[folder()] * 3]
    replies = follow("create a folder called Invoices", *screens)
    assert done(replies)[3:6] == ["enter", "wait", "escape"]
    assert "already exists" in str(replies[-1].arguments)


@pytest.mark.parametrize(("top", "known"), [(200, True), (5, False)])
def test_a_name_read_among_the_files_exists_already_and_one_in_the_title_bar_does_not(top, known):
    bar = element("menu bar", "", 0, 20, 640, 20, **OF_HOME)
    read = element("label", "Invoices", 200, top, 60, 12, **(OF_HOME | {"source": "words"}))
    replies = follow("create a folder called Invoices", folder(bar, read))
    assert ("exists already" in str(replies[-1].arguments)) is known


IN_DOCUMENTS = replace(HOME, title="Documents - Thunar")
DOCUMENTS = screen(replace(status("2 files"), window=IN_DOCUMENTS.title), windows=(IN_DOCUMENTS,))


def test_a_folder_that_the_file_manager_shows_is_entered_and_not_only_selected():
    inside = element("icon", "Documents", 200, 100, 60, 60, **OF_HOME)
    selected = folder(inside, text='"Documents" | folder')
    screens = [folder(inside), asking(""), asking("?ocuments"), selected, DOCUMENTS]
    replies = follow("go to Documents", *screens)
    assert done(replies)[:-1] == ["ctrl+s", "?ocuments", "enter", "enter"]
    assert ending(replies[-1]) == ("success", True)
    assert "Documents - Thunar" in str(replies[-1].arguments)


def test_a_file_of_that_name_is_not_started_by_going_to_it():
    inside = element("icon", "setup", 200, 100, 60, 60, **OF_HOME)
    selected = folder(inside, text='"setup" | 26.8 KiB (27,440 bytes) | executable')
    replies = follow("go to setup", folder(inside), asking(""), asking("?etup"), selected)
    assert done(replies)[:-1] == ["ctrl+s", "?etup", "enter"]
    assert "is a file and no folder" in str(replies[-1].arguments)


def test_a_folder_that_the_file_manager_does_not_show_is_opened_by_its_name():
    replies = follow("go to Documents", folder(), DOCUMENTS)
    assert done(replies)[:-1] == ["./Documents/"]
    assert ending(replies[-1]) == ("success", True)


@pytest.mark.parametrize(("verb", "keys"), [("move", "ctrl+x"), ("copy", "ctrl+c")])
def test_a_file_is_moved_or_copied_by_the_file_manager_and_the_file_there_is_the_evidence(verb, keys):
    there = "/home/me/Documents/draft.txt"
    moved = file_change("draft.txt", "5 bytes", f"moved to {there}")
    made = Change("file", there, None, "5 bytes")
    came = replace(DOCUMENTS, changes=(moved if verb == "move" else made,))
    replies = follow(f"{verb} draft.txt to Documents", *SELECTING, folder(text=SELECTED), DOCUMENTS, came)
    assert done(replies)[:-1] == [*KEYS_OF_SELECTING, keys, "./Documents/", "ctrl+v"]
    assert ending(replies[-1]) == ("success", True)


@pytest.mark.parametrize("folder_name", ["USB stick", "the folder Archive"])
def test_where_no_file_manager_is_open_the_folder_is_opened_before_anything_is_copied(folder_name):
    lacking = Note("failed", "no file or folder in your home is called so")
    opened, ended = follow(f"copy draft.txt to {folder_name}", screen(), screen(), notes={0: lacking})
    assert call_of(opened) == {"action": "open", "text": f"./{folder_name.removeprefix('the folder ')}/"}
    assert ending(ended)[0] == "fail"


def test_a_file_that_did_not_come_is_not_called_moved():
    replies = follow("move draft.txt to Documents", *SELECTING, folder(text=SELECTED), *[DOCUMENTS] * 12)
    assert ending(replies[-1])[0] == "fail"
