"""Keys pressed at random around starts and ends of runs do nothing that was not named on the screen."""

import random

import pytest
from stubs.terminal import ALONE, CLICK, RISK, SUDO, Bench, shown
from textual.pilot import Pilot

from agent.conductor import QuestionOver, RunClosed
from agent.tui.screens.run import RunScreen

_KEYS = (
    "enter", "enter", "enter", "escape", "escape", "space", "tab", "tab", "up", "down", "y", "y", "a", "n", "i", "e",
    "x", "s", "t", "u", "v", "z", "j", "k", "q", "f2", "backspace", "home", "end", "pagedown", "o",
)  # fmt: skip
#: Half of the keys are of those that would do something.
_STARTING, _ANSWERING = ("enter", "enter", "tab", "up", "escape", "backspace"), ("y", "y", "a", "s", "space", "escape")
_KEYS_EACH = 70
#: What a key that allows an action is called beside it.
_ALLOWING = {"y": "yes", "a": "yes", "space": "yes", "s": "yes", "enter": "change"}


class Happenings:
    """A run that begins, asks and ends whenever it likes."""

    def __init__(self, bench: Bench, chance: random.Random) -> None:
        self._bench, self._chance, self._step = bench, chance, 0
        self._begun = 0  # runs of which the beginning was told

    async def next(self, pilot: Pilot[int], screen: RunScreen) -> None:
        bench, started = self._bench, len(self._bench.conductor.started)
        if self._begun < started:
            self._begun, self._step = started, 0
            await bench.feed(pilot, *bench.begins())
        elif screen.asking.wanted is not None and self._chance.random() < 0.2:
            await bench.feed(pilot, QuestionOver())
        elif screen.view.active and screen.asking.wanted is None:
            self._step += 1
            match self._chance.randrange(3):
                case 0:
                    await bench.feed(pilot, *bench.step(self._step, CLICK))
                case 1:
                    asks = bench.asks(self._step, SUDO, *RISK)
                    await bench.feed(pilot, *bench.sees(self._step), *bench.decides(self._step, SUDO), *asks)
                case 2:
                    await bench.feed(pilot, *bench.ends(self._step), RunClosed())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2033])
async def test_keys_at_random_start_stop_and_approve_only_what_is_named(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)
    async with bench.app(None).run_test(size=(100, 30)) as pilot:
        screen = pilot.app._run_screen  # type: ignore[attr-defined]
        happenings = Happenings(bench, chance)
        for at in range(_KEYS_EACH):
            if chance.random() < 0.7:
                await happenings.next(pilot, screen)
            if pilot.app.screen is not screen:  # the recorded runs, the undo's question, help
                await pilot.press("escape")
            bench.clock.now += chance.choice((0.05, 0.6, 20.0))
            before, line, told = shown(pilot), screen.prompt.line.value, len(bench.conductor.stopped)
            begun, answered = len(bench.conductor.started), len(bench.answers)
            likely = _ANSWERING if screen.asking.wanted is not None else _STARTING if not screen.view.active else _KEYS
            key = chance.choice(likely if chance.random() < 0.5 else _KEYS)
            await pilot.press(key)
            await pilot.pause(ALONE if screen.asking.wanted is not None or bench.answers[answered:] else 0)
            what = f"seed {seed}, key {at}: {key}\n{before}"
            for instruction in bench.conductor.started[begun:]:
                assert key == "enter" and instruction == line.strip() and line.strip() in before, what
            if len(bench.conductor.stopped) > told:
                assert key == "escape" and "Press Esc once more to stop." in before, what
            for answer in bench.answers[answered:]:
                named = _ALLOWING.get(key, "")
                assert not answer.allowed or (named and named in before and "sudo rm -rf" in before), what
        assert bench.conductor.started
