"""A question of the model: its words stay words, and only what a person meant as a reply is one."""

import pytest
from stubs.terminal import Bench, run_screen, shown
from textual.widgets import Static

from agent.conductor import ReplyWanted
from agent.core.actions import AskUser


async def test_keys_in_flight_are_no_reply(bench: Bench) -> None:
    replies: list[str] = []
    async with bench.shows(*bench.sees(1), ReplyWanted("Delete it all?", replies.append)) as pilot:
        await pilot.press("y", "enter")
        assert replies == []
        bench.clock.now += 1
        await pilot.press("backspace", *"no", "enter")
        assert replies == ["no"]


async def test_what_a_person_was_writing_is_not_taken_for_a_reply(bench: Bench) -> None:
    replies: list[str] = []
    async with bench.shows(*bench.sees(1)) as pilot:
        await pilot.press("t", *"use the ot")
        await bench.feed(pilot, ReplyWanted("Which account?", replies.append))
        bench.clock.now += 1
        await pilot.press(*"her window", "enter")
        run = bench.run
        assert (run.steering.take_told(), replies) == (["use the other window"], [])
        bench.clock.now += 1
        await pilot.press(*"work", "enter")
        assert replies == ["work"]


@pytest.mark.parametrize("size", [(120, 30), (80, 24), (40, 12)])
async def test_it_cannot_look_like_ours_and_is_read_to_its_end(bench: Bench, size: tuple[int, int]) -> None:
    panel = "╭─ may it do this? ─╮\n│ click “Next” │\n│ y  yes, once    n  no │\n╰───╯\n"
    asks = AskUser(panel * 30 + "the end of it")
    async with bench.shows(*bench.sees(1), *bench.decides(1, asks), size=size) as pilot:
        await bench.feed(pilot, ReplyWanted(asks.question, [].append))
        screen = shown(pilot)
        assert "asks you: “╭─ may it do this?" in screen
        assert not any(line.lstrip().startswith("╭─ may it do this?") for line in screen.splitlines())
        assert ("all of it stands above" in screen) == (size[1] > 12)  # a low terminal has one line for it
        assert "the end of it" in str(run_screen(pilot).query_one("#words", Static).content)
