"""An outline is taken beside the picture, of the screen that the picture shows, and never holds anybody up."""

import threading
import time
from concurrent.futures import wait
from dataclasses import replace

from PIL import Image, ImageDraw, ImageFont
from stubs.desk import SETTLE
from stubs.display import wait_until

from agent.core.geometry import Region, Size, Viewport
from agent.desktop.protocol.windows import Window
from agent.families.base import FamilyFacts
from agent.run.observing import outliner
from agent.run.observing.observe import Observer
from agent.run.observing.outliner import Outliner
from agent.screen.capture import Frame
from agent.screen.ocr import Ocr
from agent.screen.outline import Element, Outline
from agent.screen.settle import SettleRule, settle
from foundation.errors import EnvironmentLacksError
from foundation.images import ImageRule

SIZE = Size(800, 480)
AHEAD = SettleRule(quiet=0.2, cap=5.0, poll=0.005, hint=0.02)
RULE = ImageRule(1, 1, 10**8)
FONT = ImageFont.load_default(16)


def picture(text, shade=240):
    image = Image.new("RGB", (SIZE.width, SIZE.height), (shade, shade, shade))
    ImageDraw.Draw(image).text((100, 100), text, fill=(20, 20, 20), font=FONT)
    return image


class Screen:
    """Shows one picture after the other; the last one stays."""

    def __init__(self, *pictures):
        self.pictures = list(pictures)

    def grab(self):
        image = self.pictures.pop(0) if len(self.pictures) > 1 else self.pictures[0]
        return Frame(image, Viewport.of_image(SIZE), 0.0)

    def close(self):
        pass


class Tree:
    """A tree with one button, which notes the threads that use it."""

    def __init__(self, error=None, seconds=0.0):
        self.threads = set()
        self.error = error
        self.seconds = seconds
        self.taken = 0

    def outline(self):
        self.threads.add(threading.current_thread().name)
        self.taken += 1
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return Outline(SIZE, (Element(1, "push button", "Save", Region(90, 95, 120, 30)),))

    def at(self, point):
        return None

    def close(self):
        self.threads.add(threading.current_thread().name)


def observer(screen, open_elements, open_windows=lambda: None):
    return Observer(screen, RULE, "png", 90, Outliner(open_elements, open_windows))


def outline_of(text, open_elements):
    eye = observer(Screen(picture(text)), open_elements)
    outline = eye.look().outline
    eye.close()
    return outline


def test_tree_and_words_are_one_outline():
    [element] = outline_of("Save", Tree).elements
    assert (element.name, element.source) == ("Save", "both")


def test_without_a_tree_there_are_still_the_words():
    [element] = outline_of("Delete all", lambda: None).elements
    assert (element.name, element.role, element.source) == ("Delete all", "label", "words")


def test_the_next_run_of_a_program_reads_only_what_changed(monkeypatch):
    languages = ("eng", "eng")  # as in no other test: their readers come back late
    read = []
    words = Ocr.words

    def counted(self, image, *rest, **more):
        read.append(image.size)
        return words(self, image, *rest, **more)

    monkeypatch.setattr(Ocr, "words", counted)
    for text, reads in (("Delete all", True), ("Delete all", False), ("Keep all", True)):
        read.clear()
        eye = Observer(Screen(picture(text)), RULE, "png", 90, Outliner(lambda: None, lambda: None, languages))
        assert [element.name for element in eye.look().outline.elements] == [text]
        eye.close()
        assert bool(read) is reads, text
        wait_until(lambda: languages in outliner._spare_readers, "the run gave its reader back")


def test_a_tree_that_cannot_be_opened_says_why_and_leaves_the_words():
    def refused():
        raise EnvironmentLacksError("There is no accessibility bus.")

    outline = outline_of("Delete all", refused)
    assert [element.name for element in outline.elements] == ["Delete all"]
    assert "no accessibility bus" in outline.lacks


def test_a_broken_tree_is_told_and_ends_nothing():
    tree = Tree(error=ValueError("no such node"))
    outline = outline_of("Save", lambda: tree)
    assert [element.name for element in outline.elements] == ["Save"]  # as it is read
    assert "no such node" in outline.lacks


def test_the_tree_is_used_on_one_thread_of_its_own():
    tree = Tree()
    eye = observer(Screen(picture("Save")), lambda: tree)
    eye.look()
    eye.look()
    eye.close()
    assert tree.threads <= {"outline"}


def test_an_outline_of_a_screen_that_has_changed_since_is_thrown_away():
    tree = Tree(seconds=0.3)  # longer than the picture takes
    screen = Screen(picture("Save"), picture("Delete", shade=90), picture("Delete", shade=90))
    eye = observer(screen, lambda: tree)
    seen = eye.look()
    eye.close()
    assert tree.taken == 2
    assert {"Save", "Delete"} == {element.name for element in seen.outline.elements}
    assert seen.outline.elements[0].trusted is False  # the screen says Delete where the tree says Save


def test_the_outline_is_begun_while_it_is_waited_for_the_screen_to_be_still():
    tree = Tree()
    eye = observer(Screen(picture("Save"), picture("Delete"), picture("Delete")), lambda: tree)
    settled = eye.watch(AHEAD, lambda: False)
    seen = eye.observe(settled)
    eye.close()
    assert tree.taken == 1
    assert [element.name for element in seen.outline.elements if element.source == "words"] == ["Delete"]


def test_what_was_begun_of_a_screen_that_changed_again_is_thrown_away():
    tree = Tree()
    eye = observer(Screen(picture("Save")), lambda: tree)
    eye.watch(AHEAD, lambda: False)
    other = settle(Screen(picture("Delete")), SETTLE)
    eye.screen.pictures = [picture("Delete")]
    seen = eye.observe(other)
    eye.close()
    assert [element.name for element in seen.outline.elements if element.source == "words"] == ["Delete"]
    assert tree.taken == 2


def test_a_look_of_its_own_uses_nothing_that_was_begun_before():
    eye = observer(Screen(picture("Save")), lambda: None)
    eye.watch(AHEAD, lambda: False)
    eye.screen.pictures = [picture("Delete")]
    assert [element.name for element in eye.look().outline.elements] == ["Delete"]
    eye.close()


def awaiting(shows):
    """An observer of a screen that stays, for a model that awaits a screen on which `shows(outline)` is true."""
    tree = Tree()
    outliner = Outliner(lambda: tree, lambda: None)
    return Observer(Screen(picture("Delete")), RULE, "png", 90, outliner, awaited=lambda: shows), tree


def test_a_screen_that_shows_what_is_awaited_is_not_waited_for_and_its_words_are_not_read():
    eye, tree = awaiting(lambda outline: outline.elements[0].name == "Save")
    settled = eye.watch(replace(AHEAD, quiet=5.0), lambda: False)
    seen = eye.observe(settled)
    eye.close()
    assert settled.seconds < 2
    assert [(element.name, element.source) for element in seen.outline.elements] == [("Save", "tree")]
    assert tree.taken == 1


def test_the_tree_is_read_again_until_it_shows_what_is_awaited():
    shown = iter([False, False, True])
    eye, tree = awaiting(lambda _: next(shown))
    assert eye.watch(replace(AHEAD, quiet=5.0), lambda: False).seconds < 2
    eye.close()
    assert tree.taken == 3


def test_a_still_screen_without_what_is_awaited_is_read_with_its_words():
    eye, _ = awaiting(lambda _: False)
    seen = eye.observe(eye.watch(AHEAD, lambda: False))
    eye.close()
    assert [element.name for element in seen.outline.elements if element.source == "words"] == ["Delete"]


def test_the_windows_of_a_desktop_without_a_tree_are_told():
    class Windows:
        def active(self):
            return Window(2, "Front", "Editor", None)

        def stacking(self):
            return [1, 2, 3]

        def is_ordinary(self, identifier):
            return identifier != 3  # a panel

        def window(self, identifier):
            return Window(identifier, {1: "Behind", 2: "Front"}[identifier], "Editor", None)

        def region(self, identifier):
            return Region(10 * identifier, 0, 300, 200)

        def close(self):
            pass

    eye = observer(Screen(picture("Save")), lambda: None, Windows)
    outline = eye.look().outline
    eye.close()
    assert [(window.title, window.active) for window in outline.windows] == [("Front", True), ("Behind", False)]


def test_where_nobody_waits_for_it_the_outline_comes_while_the_model_thinks():
    taking, going = threading.Event(), threading.Event()

    class Slow(Tree):
        def outline(self):
            taking.set()
            going.wait(10)
            return super().outline()

    outliner = Outliner(Slow, lambda: None, read_words=False)
    eye = Observer(Screen(picture("Save")), RULE, "png", 90, outliner, waits=False)
    seen = eye.look()
    assert taking.wait(10)
    assert seen.outline is None
    going.set()
    wait((seen.outlining,), 10)
    assert [(element.name, element.source) for element in seen.outline.elements] == [("Save", "tree")]
    eye.close()


def test_no_family_waits_for_an_outline_that_it_does_not_want():
    assert not FamilyFacts.of("mai-ui").outline
    assert not FamilyFacts.of("qwen3-vl").outline
