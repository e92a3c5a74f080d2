"""The loop guard compares action and screen."""

import numpy as np

from agent.run.models.settings import LoopDetector, LoopRule
from agent.screen.settle import Fingerprint


def screen(*marked: tuple[int, int]) -> Fingerprint:
    """A screen of 20 by 20 cells with these cells marked."""
    grey = np.zeros((160, 160), np.int16)
    for row, column in marked:
        grey[row * 8 : row * 8 + 8, column * 8 : column * 8 + 8] = 200
    return Fingerprint(grey)


def test_it_nudges_at_the_third_and_stops_at_the_fifth_time() -> None:
    detector = LoopDetector()
    assert [detector.observe("click", screen()) for _ in range(5)] == ["fine", "fine", "nudge", "nudge", "stop"]


def test_small_restless_spots_do_not_hide_a_loop() -> None:
    detector = LoopDetector()
    verdicts = [detector.observe("click", screen((0, number), (1, number))) for number in range(5)]
    assert verdicts[-1] == "stop"


def test_a_different_screen_or_another_action_is_no_repetition() -> None:
    detector = LoopDetector()
    pages = [screen(*((row, page) for row in range(6))) for page in range(10)]
    assert {detector.observe("click next", page) for page in pages} == {"fine"}
    assert {detector.observe(f"click {number}", pages[0]) for number in range(10)} == {"fine"}


def test_two_actions_in_turn_are_a_loop_too() -> None:
    detector = LoopDetector()
    verdicts = [detector.observe("ab"[number % 2], screen()) for number in range(10)]
    assert verdicts[-1] == "stop"


def test_waiting_may_be_repeated_three_times_as_often() -> None:
    detector = LoopDetector()
    verdicts = [detector.observe("wait", screen(), waiting=True) for _ in range(15)]
    assert verdicts.index("nudge") == 8
    assert verdicts.index("stop") == 14


def test_what_happened_long_ago_is_forgotten() -> None:
    detector = LoopDetector(LoopRule(memory=4))
    verdicts = []
    for number in range(40):
        verdicts.append(detector.observe("click" if number % 5 == 0 else f"other {number}", screen()))
    assert set(verdicts) == {"fine"}
