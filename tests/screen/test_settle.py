"""When a screen counts as still, and what of it changed."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from desks import CARET, CLOCK, FilmScreen, draw
from PIL import Image, ImageDraw

from agent.screen import settle as settling
from agent.screen.capture import Frame
from agent.screen.settle import CELL, Fingerprint, Settled, SettleRule, settle, unchanged
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


def test_a_screen_that_shows_enough_is_not_waited_for_until_it_is_still(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = FilmScreen(lambda at: draw() if at < 0.2 else draw(window=(200, 80)))
    monkeypatch.setattr(settling, "time", screen)
    asked: list[int] = []

    def is_enough() -> bool:
        asked.append(1)
        return True

    settled = settle(screen, replace(RULE, hint=0.1), may_be_still=lambda *_: None, is_enough=is_enough)
    assert settled.still
    assert settled.seconds == pytest.approx(0.1, abs=RULE.poll)  # nothing had changed by then
    assert len(asked) == 1


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


def changed(one: Image.Image, other: Image.Image) -> frozenset[tuple[int, int]]:
    return Fingerprint.of(one).changed_cells(Fingerprint.of(other))


def test_the_same_picture_has_not_changed() -> None:
    assert not changed(draw(), draw())
    assert Fingerprint.of(draw()).digest == Fingerprint.of(draw()).digest


@pytest.mark.parametrize("difference", [{"caret": True}, {"clock": "12:01"}, {"ticked": True}])
def test_a_small_thing_changes_a_few_cells_and_only_around_it(difference: dict[str, object]) -> None:
    cells = changed(draw(), draw(**difference))
    assert 1 <= len(cells) <= 4


def test_a_cell_is_named_by_its_row_and_column() -> None:
    (cell,) = changed(draw(), draw(caret=True))
    assert cell == (CARET[1] // CELL, CARET[0] // CELL)
    assert {row for row, _ in changed(draw(), draw(clock="11:11"))} == {CLOCK[1] // CELL}


def test_a_ticked_box_is_another_screen() -> None:
    assert changed(draw(), draw(ticked=True))
    assert Fingerprint.of(draw()).digest != Fingerprint.of(draw(ticked=True)).digest


def test_a_moved_window_changes_many_cells() -> None:
    assert len(changed(draw(), draw(window=(160, 120)))) > 10


def test_a_window_moved_by_few_pixels_is_seen_too() -> None:
    assert changed(draw(), draw(window=(103, 80)))


def test_compression_noise_is_no_change() -> None:
    image = draw()
    noisy = image.point(lambda value: min(255, value + 4))
    assert not changed(image, noisy)


def test_a_screen_of_another_size_has_changed_as_a_whole() -> None:
    cells = changed(Image.new("RGB", (640, 480)), Image.new("RGB", (480, 640)))
    assert cells == frozenset({(-1, -1)})


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (33, 31), (641, 479)])
def test_odd_sizes_are_compared_to_their_last_pixel(size: tuple[int, int]) -> None:
    image = Image.new("RGB", size, "black")
    other = image.copy()
    ImageDraw.Draw(other).rectangle((size[0] - 1, size[1] - 1, size[0], size[1]), fill="white")
    assert changed(image, other) == {((size[1] - 1) // CELL, (size[0] - 1) // CELL)}


def test_a_change_has_no_direction() -> None:
    one, other = draw(), draw(window=(160, 120), ticked=True)
    assert changed(one, other) == changed(other, one)
