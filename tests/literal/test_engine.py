"""The engine on made-up pages: what it decides, and that it never clicks something else."""

import pytest
from PIL import Image, ImageDraw

from agent.literal.conversation import Conversation, Move, read_conversation
from agent.literal.engine import Engine
from agent.literal.reader import Page
from agent.notes import Note
from agent.screen.ocr import Box, Word


class FakeShot:
    def __init__(self, image):
        self.image = image


class FakeReader:
    """Reads what was written on an image by `screen`."""

    def read(self, image):
        return Page(image, image.info["words"], ocr=None)


def screen(*texts, ground="white"):
    """A screenshot of 960x544 with texts at (x, y), and the words an eye would read."""
    image = Image.new("RGB", (960, 544), ground)
    draw = ImageDraw.Draw(image)
    words = []
    for text, x, y in texts:
        left = x
        for part in text.split():
            box = Box(left, y, left + 8 * len(part), y + 12)
            draw.rectangle((box.left, box.top, box.right - 1, box.bottom - 1), outline="black")
            words.append(Word(part, box, 95))
            left = box.right + 5
    image.info["words"] = words
    return image


@pytest.fixture
def engine():
    return Engine(FakeReader())


def conversation(instruction, now, *moves):
    return Conversation(instruction, list(moves), FakeShot(now))


def move(part, intent, call, before, *notes):
    return Move(part, intent, call, FakeShot(before), tuple(notes))


EMPTY = screen()


def test_the_first_step_opens_the_application(engine):
    reply = engine.reply(conversation("open settings and enable dark mode", EMPTY))
    assert reply.arguments == {"action": "open", "text": "settings"}


def test_a_visible_thing_is_clicked_in_its_middle(engine):
    reply = engine.reply(conversation("click Appearance", screen(("Appearance", 440, 266))))
    assert reply.arguments == {"action": "click", "coordinate": [500, 500]}


def test_a_thing_that_is_not_visible_is_looked_for_where_it_lives(engine):
    before, now = EMPTY, screen(("Appearance", 440, 266), ("Keyboard", 440, 366))
    opened = move(0, "act", {"action": "open", "text": "settings"}, before)
    reply = engine.reply(conversation("open settings and enable dark mode", now, opened))
    assert reply.arguments == {"action": "click", "coordinate": [500, 500]}
    assert "look under “Appearance”" in reply.thought


def test_it_never_clicks_something_else(engine):
    page = screen(("Delete everything", 100, 100), ("Install", 100, 200), ("Keyboard", 100, 300))
    moves, actions = [], []
    for _ in range(20):
        reply = engine.reply(conversation("click Appearance", page, *moves))
        actions.append(reply.arguments["action"])
        if reply.arguments["action"] == "terminate":
            break
        moves.append(move(0, reply.thought.rsplit(", ", 1)[1].rstrip("]"), reply.arguments, page, Note("no_effect")))
    assert reply.arguments["status"] == "fail"
    assert "could not find “Appearance”" in reply.arguments["text"]
    assert not {"click", "double_click", "right_click"} & set(actions)


def test_it_says_done_only_when_the_screen_changed(engine):
    page = screen(("Apply", 440, 266))
    clicked = move(0, "act", {"action": "click", "coordinate": [470, 500]}, page, Note("no_effect"))
    waited = move(0, "late", {"action": "wait"}, page, Note("no_effect"))
    assert engine.reply(conversation("click Apply", page, clicked, waited)).arguments["status"] == "fail"
    applied = screen(("Applied", 300, 100))
    assert engine.reply(conversation("click Apply", applied, clicked)).arguments["status"] == "success"
    assert engine.reply(conversation("click Apply", applied, clicked, waited)).arguments["status"] == "success"


def test_it_waits_before_it_clicks_a_second_time(engine):
    page = screen(("Apply", 440, 266))
    clicked = move(0, "act", {"action": "click", "coordinate": [470, 500]}, page)
    assert engine.reply(conversation("click Apply", page, clicked)).arguments["action"] == "wait"


def test_dark_mode_counts_only_when_the_screen_became_darker(engine):
    light, dark = screen(("Dark", 440, 266)), screen(("Dark", 440, 266), ground="black")
    clicked = move(0, "act", {"action": "click", "coordinate": [476, 500]}, light)
    assert engine.reply(conversation("enable dark mode", dark, clicked)).arguments["status"] == "success"
    brighter = screen(("Dark", 440, 266), ("More", 10, 10), ground="white")
    reply = engine.reply(conversation("enable dark mode", brighter, clicked))
    assert reply.arguments.get("status") != "success"


def test_text_that_nothing_took_is_pressed_key_by_key(engine):
    typed = move(0, "act", {"action": "type", "text": "1+2"}, EMPTY, Note("no_effect"))
    reply = engine.reply(conversation("type 1+2", EMPTY, typed))
    assert reply.arguments == {"action": "key", "keys": "1"}


def test_an_unknown_application_is_looked_for_on_the_screen(engine):
    page = screen(("Home", 464, 266))
    failed = move(0, "act", {"action": "open", "text": "Home"}, page, Note("failed", "no application"))
    reply = engine.reply(conversation("open Home", page, failed))
    assert reply.arguments["action"] == "click"


def test_a_bare_desktop_is_not_scrolled(engine):
    moves = [move(0, "clear", {"action": "move", "coordinate": [996, 499]}, EMPTY, Note("no_effect"))]
    reply = engine.reply(conversation("click Nothing", EMPTY, *moves))
    assert reply.arguments["action"] == "terminate"


def test_a_dry_run_ends_after_the_first_step(engine):
    done = move(0, "act", {"action": "open", "text": "settings"}, EMPTY, Note("dry_run"))
    assert engine.reply(conversation("open settings and click x", EMPTY, done)).arguments["action"] == "answer"


def test_an_instruction_it_does_not_understand_is_answered_with_what_it_does(engine):
    reply = engine.reply(conversation("order a pizza", EMPTY))
    assert reply.arguments["status"] == "fail"
    assert "literal engine" in reply.arguments["text"]


def with_box(image, x, y, *, on):
    """A check box of 14 pixels whose left upper corner is at (x, y)."""
    draw = ImageDraw.Draw(image)
    draw.rectangle(
        (x, y, x + 13, y + 13), fill=(53, 132, 228) if on else "white", outline=(53, 132, 228) if on else "grey"
    )
    return image


def test_what_has_a_control_beside_it_is_switched_and_not_the_heading_of_the_same_name(engine):
    page = with_box(screen(("Sticky Keys", 100, 100), ("Use sticky keys", 130, 150)), 108, 149, on=False)
    reply = engine.reply(conversation("enable sticky keys", page))
    x, y = reply.arguments["coordinate"]
    assert 108 < x * 960 / 999 < 122
    assert 149 < y * 544 / 999 < 163


def test_a_switch_counts_as_done_only_in_the_wanted_state(engine):
    def page(on):
        return with_box(screen(("Show thumbnails", 130, 150)), 108, 149, on=on)

    clicked = move(0, "act", {"action": "click", "coordinate": [120, 287]}, page(on=False))
    reply = engine.reply(conversation("enable thumbnails", page(on=True), clicked))
    assert reply.arguments["status"] == "success"
    reply = engine.reply(conversation("disable thumbnails", page(on=True), clicked))
    assert reply.arguments.get("status") != "success"


def test_what_is_on_already_is_not_clicked(engine):
    page = with_box(screen(("Show thumbnails", 130, 150)), 108, 149, on=True)
    reply = engine.reply(conversation("enable thumbnails", page))
    assert reply.arguments["status"] == "success"
    assert "already" in reply.arguments["text"]


def test_a_highlight_that_goes_away_elsewhere_is_no_effect_of_a_click(engine):
    before, after = screen(("Apply", 440, 266)), screen(("Apply", 440, 266))
    ImageDraw.Draw(before).rectangle((20, 20, 60, 40), fill="grey")
    clicked = move(0, "act", {"action": "click", "coordinate": [478, 500]}, before)
    assert engine.reply(conversation("click Apply", after, clicked)).arguments["action"] == "wait"


def test_a_named_window_that_is_not_there_is_not_closed(engine):
    page = screen(*[(f"Document {number}", 300, 100 + 30 * number) for number in range(12)])
    reply = engine.reply(conversation("close firefox", page))
    assert reply.arguments["status"] == "fail"
    assert "firefox" in reply.arguments["text"]


def test_on_a_bare_desktop_nothing_is_closed(engine):
    assert engine.reply(conversation("close the window", EMPTY)).arguments["status"] == "fail"


def denied_with(said):
    return (Note("refused"), Note("said", said))


def test_what_the_person_adds_comes_after_the_rest(engine):
    page, after = screen(("Apply", 440, 266)), screen(("Close", 440, 266))
    clicked = move(0, "act", {"action": "click", "coordinate": [470, 500]}, page, Note("said", "open mousepad"))
    waited = move(0, "late", {"action": "wait"}, after)
    talk = conversation("click Apply", after, clicked, waited)
    talk.told = ["open mousepad"]
    reply = engine.reply(talk)
    assert reply.arguments == {"action": "open", "text": "mousepad"}
    assert "[part 2 of 2, act]" in reply.thought


def test_what_it_cannot_follow_it_says_and_goes_on(engine):
    page = screen(("Apply", 440, 266))
    waited = move(0, "late", {"action": "wait"}, EMPTY, Note("said", "hurry up a bit"))
    talk = conversation("click Apply", page, waited)
    talk.told = ["hurry up a bit"]
    reply = engine.reply(talk)
    assert "I cannot follow what you say" in reply.thought
    assert reply.arguments["action"] == "click"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Skip it and go on with the next part.", {"action": "click", "coordinate": [500, 500]}),
        ("open mousepad", {"action": "click", "coordinate": [500, 500]}),
    ],
)
def test_a_part_that_the_person_does_not_want_is_left_out(engine, said, expected):
    page = screen(("Appearance", 440, 266))
    denied = move(0, "act", {"action": "open", "text": "terminal"}, page, *denied_with(said))
    talk = conversation("open terminal and click Appearance", page, denied)
    talk.told = [said]
    reply = engine.reply(talk)
    assert reply.arguments == expected
    assert "You did not want this" in reply.thought


def test_what_is_done_instead_is_done_at_the_end(engine):
    denied = move(0, "act", {"action": "open", "text": "terminal"}, EMPTY, *denied_with("open mousepad"))
    talk = conversation("open terminal", EMPTY, denied)
    talk.told = ["open mousepad"]
    assert engine.reply(talk).arguments == {"action": "open", "text": "mousepad"}


def test_a_part_that_was_skipped_is_not_called_done(engine):
    denied = move(0, "act", {"action": "open", "text": "terminal"}, EMPTY, *denied_with("Skip it."))
    talk = conversation("open terminal", EMPTY, denied)
    talk.told = ["Skip it."]
    reply = engine.reply(talk)
    assert "All other parts are done: none." in reply.arguments["text"]


def test_a_persons_words_are_read_from_the_chat():
    said = "The person says: “open mousepad”."
    url = "data:image/png;base64,"  # looked at only when it is needed
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    talk = read_conversation([{"role": "user", "content": f"click Apply\n{said}"}, picture])
    assert (talk.instruction, talk.told) == ("click Apply", ["open mousepad"])


def test_a_plain_no_ends_the_run_and_says_so(engine):
    denied = move(0, "act", {"action": "open", "text": "terminal"}, EMPTY, Note("refused"))
    reply = engine.reply(conversation("open terminal and type 'ls'", EMPTY, denied))
    assert reply.arguments["status"] == "fail"
    assert "You did not allow this: open “terminal”." in reply.arguments["text"]


def test_instead_may_be_said(engine):
    denied = move(0, "act", {"action": "open", "text": "terminal"}, EMPTY, *denied_with("open settings instead"))
    talk = conversation("open terminal", EMPTY, denied)
    talk.told = ["open settings instead"]
    assert engine.reply(talk).arguments == {"action": "open", "text": "settings"}


def test_what_it_cannot_do_instead_ends_the_run(engine):
    denied = move(0, "act", {"action": "open", "text": "terminal"}, EMPTY, *denied_with("something nicer"))
    talk = conversation("open terminal and type 'ls'", EMPTY, denied)
    talk.told = ["something nicer"]
    reply = engine.reply(talk)
    assert reply.arguments["status"] == "fail"
    assert "I cannot follow what you say" in reply.arguments["text"]
