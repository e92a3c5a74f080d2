"""What counts as the person taking over, and what does not."""

import pytest
from stubs.display import PlainDisplay, wait_until

from agent.desktop.input.takeover import Look, Takeover, TakeoverJudge
from agent.desktop.protocol.desktop import TakeoverWatch
from agent.desktop.protocol.hand import Rest
from agent.desktop.x11.input import X11InputState
from agent.run.control import Steering

HERE, THERE = (100, 100), (300, 200)


class Story:
    """Looks at a made-up clock."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.judge = TakeoverJudge(self.told.append)
        self.now = 0.0

    def see(self, look: Look, seconds: float = 0.025, ours: bool = False) -> "Story":
        for _ in range(max(1, round(seconds / 0.025))):
            self.now += 0.025
            self.judge.look(look, self.now, ours=ours)
        return self


def test_a_pointer_that_comes_to_rest_elsewhere_was_moved_by_the_person() -> None:
    story = Story().see(Look(HERE)).see(Look((200, 150))).see(Look(THERE))
    assert story.told == []
    assert story.see(Look(THERE), 0.5).told == ["moved the pointer to 300,200"]


def test_a_pointer_that_never_rests_is_the_person_too() -> None:
    story = Story().see(Look(HERE))
    for step in range(60):
        story.see(Look((200 + step, 100)))
    assert len(story.told) == 1


@pytest.mark.parametrize(("pixels", "told"), [(8, 0), (9, 1)])
def test_more_than_eight_pixels_are_no_trembling(pixels: int, told: int) -> None:
    for there in ((HERE[0] + pixels, HERE[1]), (HERE[0], HERE[1] - pixels)):
        assert len(Story().see(Look(HERE)).see(Look(there), 2).told) == told


def test_a_way_to_our_own_window_is_none() -> None:
    story = Story().see(Look(HERE)).see(Look((150, 150))).see(Look((200, 180)))
    assert story.see(Look(THERE), 2, ours=True).told == []
    assert story.see(Look(THERE, frozenset({1}), frozenset({38})), 1, ours=True).told == []


def test_keys_and_buttons_that_go_down_are_told_once() -> None:
    story = Story().see(Look(HERE))
    for _ in range(3):
        story.see(Look(HERE, keys=frozenset({38}))).see(Look(HERE))
        story.see(Look(HERE, buttons=frozenset({1}))).see(Look(HERE))
    assert story.told == ["pressed keys", "clicked at 100,100"]


def test_what_was_down_before_is_nobodys_doing() -> None:
    stuck = Look(HERE, frozenset({1}), frozenset({38}))
    assert Story().see(stuck, 1).see(Look(HERE), 1).told == []


def test_after_it_starts_over_the_place_of_the_pointer_is_the_new_one() -> None:
    story = Story().see(Look(HERE)).see(Look(THERE), 0.5)
    story.judge.forget()
    assert story.see(Look(THERE), 2).told == ["moved the pointer to 300,200"]
    assert len(story.see(Look(HERE), 1).told) == 2


@pytest.mark.e2e
def test_on_a_display_what_the_hand_does_is_ignored_and_what_the_person_does_pauses(display: PlainDisplay) -> None:
    steering, rest = Steering(), Rest(busy=True)
    watch = Takeover(TakeoverWatch(steering, rest, lambda _: False), X11InputState)
    display.call("xdotool", "mousemove", "200", "200", "keydown", "a")
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: steering.paused, "it is paused", 0.6)
    display.call("xdotool", "keyup", "a")
    rest.busy = False
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: steering.paused, "it is paused", 0.6)
    display.call("xdotool", "keydown", "shift")
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: steering.paused, "it is paused", 0.3)
    display.call("xdotool", "keyup", "shift", "mousemove", "400", "300")
    wait_until(lambda: steering.paused, "it is paused")
    assert steering.paused == "you took over: moved the pointer to 400,300"
    assert steering.take_acts() == ["moved the pointer to 400,300"]
    steering.resume()
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: steering.paused, "it is paused", 1.0)
    display.call("xdotool", "keydown", "a", "sleep", "0.1", "keyup", "a")
    wait_until(lambda: steering.paused, "it is paused")
    assert steering.take_acts() == ["pressed keys"]
    watch.close()
