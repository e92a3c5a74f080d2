"""Waiting ends when the screen is still: what blinks is ignored, what moves is waited for."""

from collections.abc import Callable

import pytest
from desks import FilmScreen, draw
from PIL import Image

from agent.screen import settle as settling
from agent.screen.capture import Frame
from agent.screen.settle import Fingerprint, Settled, SettleRule, settle, unchanged
from foundation.errors import EnvironmentLacksError

RULE = SettleRule(quiet=0.3, cap=2.0, poll=0.05, spot_cells=4)

Watch = Callable[..., Settled]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Settles on a film; time is the film's own, so that nothing here takes or measures real time."""

    def run(
        film: Callable[[float], Image.Image], rule: SettleRule = RULE, stopped: Callable[[], bool] = lambda: False
    ) -> Settled:
        screen = FilmScreen(film)
        monkeypatch.setattr(settling, "time", screen)
        return settle(screen, rule, stopped)

    return run


def blinking(at: float) -> Image.Image:
    return draw(caret=int(at / 0.1) % 2 == 0)


def ticking(at: float) -> Image.Image:
    return draw(clock=f"12:0{int(at / 0.1) % 10}")


BEFORE = Fingerprint.of(draw())


def test_a_still_screen_takes_the_quiet_time_and_no_more(watch: Watch) -> None:
    settled = watch(lambda _: draw())
    assert settled.still
    assert settled.seconds == pytest.approx(RULE.quiet, abs=RULE.poll)
    assert settled.restless == frozenset()
    assert unchanged(BEFORE, settled)


@pytest.mark.parametrize("film", [blinking, ticking])
def test_a_blinking_caret_or_a_clock_keeps_nobody_waiting_and_is_no_change(
    watch: Watch, film: Callable[[float], Image.Image]
) -> None:
    settled = watch(film)
    assert settled.still
    assert settled.seconds < RULE.cap / 2
    assert settled.restless
    assert unchanged(BEFORE, settled)


def test_a_ticked_box_is_a_change_beside_a_blinking_caret(watch: Watch) -> None:
    settled = watch(lambda at: draw(caret=int(at / 0.1) % 2 == 0, ticked=at > 0.05))
    assert settled.still
    assert not unchanged(BEFORE, settled)


def test_a_ticked_box_alone_is_a_change(watch: Watch) -> None:
    settled = watch(lambda _: draw(ticked=True))
    assert settled.still
    assert not unchanged(BEFORE, settled)


def moving(at: float) -> Image.Image:
    step = min(int(at / 0.05), 16)
    return draw(window=(100 + 10 * step, 80))


def test_a_moving_window_is_waited_for_until_it_stands(watch: Watch) -> None:
    settled = watch(moving)
    assert settled.still
    assert settled.seconds >= 0.8 + RULE.quiet - RULE.poll
    assert settled.frame.image.tobytes() == draw(window=(260, 80)).tobytes()
    assert not unchanged(BEFORE, settled)


def test_a_window_that_opens_late_is_still_waited_for(watch: Watch) -> None:
    settled = watch(lambda at: draw() if at < 0.2 else draw(window=(20, 40)))
    assert settled.still
    assert settled.frame.image.tobytes() == draw(window=(20, 40)).tobytes()
    assert settled.seconds >= 0.2 + RULE.quiet - RULE.poll


def test_a_film_is_cut_off_at_the_cap_and_called_unstill(watch: Watch) -> None:
    settled = watch(lambda at: draw(shade=100 + int(at * 1000) % 150))
    assert not settled.still
    assert settled.seconds == pytest.approx(RULE.cap, abs=RULE.poll)


def test_a_stop_ends_the_wait_at_the_next_look(watch: Watch) -> None:
    settled = watch(lambda at: draw(shade=100 + int(at * 1000) % 150), stopped=lambda: True)
    assert not settled.still
    assert settled.seconds == pytest.approx(RULE.poll)


def test_a_spot_may_be_as_large_as_the_rule_says(watch: Watch) -> None:
    strict = SettleRule(quiet=0.3, cap=1.0, poll=0.05, spot_cells=0)
    assert not watch(blinking, strict).still
    assert watch(blinking).still


def test_the_last_look_is_what_is_handed_on(watch: Watch) -> None:
    settled = watch(ticking)
    assert not Fingerprint.of(settled.frame.image).changed_cells(settled.fingerprint)


def test_a_change_of_resolution_is_a_change(watch: Watch) -> None:
    settled = watch(lambda _: draw().resize((320, 240)))
    assert settled.still
    assert not unchanged(BEFORE, settled)


def test_a_screen_that_cannot_be_read_says_so() -> None:
    class Gone:
        def grab(self) -> Frame:
            raise EnvironmentLacksError("The screen can no longer be captured.", "Is the display still there?")

        def close(self) -> None:
            """Nothing to close."""

    with pytest.raises(EnvironmentLacksError, match="captured"):
        settle(Gone(), RULE)


def test_a_box_that_is_drawn_in_several_goes_is_a_change(watch: Watch) -> None:
    """Toolkits fade a tick in: a few small changes, which then rest, are not a caret."""
    settled = watch(lambda at: draw(shade=230, ticked=at > 0.05, caret=0.1 < at < 0.2))
    assert settled.still
    assert settled.restless == frozenset()
    assert not unchanged(BEFORE, settled)
