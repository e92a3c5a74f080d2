"""Words have a contrast of 4.5:1 or more (WCAG 2.2, 1.4.3) in both themes that Textual calls its own."""

from collections.abc import Iterator

import pytest
from stubs.terminal import CLICK, RISK, SUDO, Bench, settled, shown, write_run
from stubs.witness import DARK
from textual.color import Color
from textual.filter import dim_color
from textual.pilot import Pilot

from agent.conductor import RunClosed
from agent.events.run_events import Paused, Receipt
from agent.tui.contrast import LEAST, contrast


def pale(pilot: Pilot[int]) -> Iterator[tuple[str, str, str, float]]:
    """The words on the screen that are too pale: with their colour, their ground and the ratio."""
    for strip in pilot.app.screen._compositor.render_strips():
        for segment in strip:
            style = segment.style
            if style is None or style.color is None or style.bgcolor is None or not any(map(str.isalnum, segment.text)):
                continue
            front, back = (style.bgcolor, style.color) if style.reverse else (style.color, style.bgcolor)
            front = dim_color(back, front) if style.dim else front
            words, ground = Color.from_rich_color(front), Color.from_rich_color(back)
            if (ratio := contrast(words, ground)) < LEAST:
                yield segment.text.strip(), words.hex, ground.hex, round(ratio, 2)


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
async def test_all_words_are_readable(bench: Bench, theme: str) -> None:
    found: set[tuple[str, str, str, float]] = set()

    async def look(pilot: Pilot[int]) -> None:
        await pilot.pause()
        assert len(shown(pilot)) > 100
        found.update(pale(pilot))

    async with bench.app(None).run_test(size=(100, 30)) as pilot:
        pilot.app.theme = theme
        await look(pilot)
        await pilot.press(*"write", "enter")
        steps = [*bench.step(1, CLICK), *bench.step(2, CLICK)]
        await bench.feed(pilot, *bench.begins(), *steps, Paused(2, "you paused it"))
        await look(pilot)
        await pilot.press("v", "v", "up")
        await look(pilot)
        await bench.feed(pilot, *bench.asked(3, SUDO, *RISK))
        while pilot.app.screen.query(".-waiting"):  # its keys are disabled, so pale, until the panel looks at the clock
            bench.clock.now += 1
            await pilot.pause(0.05)
        await look(pilot)
        await bench.feed(pilot, *bench.does(3, SUDO, "it failed"), Receipt((DARK,)), *bench.ends(3), RunClosed())
        await look(pilot)
        write_run(bench.folder / "runs", "20260101-a", 2)
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await settled(pilot)
        await look(pilot)
        assert "search: words" in shown(pilot)
    assert "\n".join(map(str, sorted(found))) == ""
