"""The approval question: nothing is approved that was not in sight, whatever the action and the terminal are like."""

from typing import Any

import pytest
from stubs.terminal import ALONE, Bench, run_screen, shown
from textual.pilot import Pilot

from agent.core.actions import Action, CallTool, Click, OpenApp, PressKeys, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.safety.policy import Approval, Policy
from agent.safety.situation import Place, Situation
from agent.screen.outline import Element
from agent.tui.screens import answering
from agent.tui.widgets.approval import GRACE

pytestmark = pytest.mark.slow

SIZES = [(140, 40), (80, 24), (40, 12)]
TERMINAL = Situation(focused=Place("Xfce4-terminal", "me@host: ~"))
HARMLESS = "echo harmless words that go on and on; "
BLIND = HARMLESS * 40 + "\nrm -rf ~/Documents\n"
YES = Approval(allowed=True, by="you")


async def asked(bench: Bench, pilot: Pilot[int], action: Action[DesktopPoint], **known: Any) -> None:
    await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, action))
    known = {"reason": "this goes into a terminal (rule “terminal”)", "scope": "typing into Xfce4-terminal"} | known
    await bench.feed(pilot, *bench.asks(1, action, **known))
    await pilot.pause()
    bench.clock.now += 1


async def press(bench: Bench, pilot: Pilot[int], key: str) -> None:
    """A key by itself, by a person who had time to read."""
    await pilot.press(key)
    await pilot.pause(ALONE)
    bench.clock.now += 1


async def read_to_the_end(bench: Bench, pilot: Pilot[int]) -> str:
    """Press y until it approves; the lines that were in the place that scrolls, each of them really on the screen."""
    reader = run_screen(pilot).asking.reader
    seen: dict[int, str] = {}
    rows: list[Any] = []
    first = int(reader.scroll_offset.y)  # what stands before it was read by the test
    for _ in range(200):
        if bench.answers:
            assert {index for index, row in enumerate(rows) if row.line.end > row.line.start} <= {*range(first), *seen}
            return "".join(seen[index] for index in sorted(seen))
        rows, top, screen = reader._rows, int(reader.scroll_offset.y), shown(pilot)
        for index, row in list(enumerate(rows))[top : top + reader.size.height]:
            assert row.line.text.rstrip() in screen
            seen[index] = row.line.text
        await pilot.press("y")
        bench.clock.now += 1
        if run_screen(pilot).asking.complete:
            await pilot.pause(ALONE)
    raise AssertionError("it is never approved")


def always_in_sight(screen: str, *words: str) -> None:
    assert "because " in screen, screen
    assert "n no" in screen.replace("  ", " "), screen
    for word in words:
        assert word in screen, screen


@pytest.mark.parametrize("size", SIZES)
async def test_a_command_after_1500_harmless_characters_is_in_sight_and_is_not_approved_unread(
    bench: Bench, size: tuple[int, int]
) -> None:
    async with bench.app().run_test(size=size) as pilot:
        await asked(bench, pilot, TypeText(BLIND), matched=("rm -rf ~/Documents",), situation=TERMINAL)
        whole = run_screen(pilot).asking.complete
        always_in_sight(shown(pilot), "rm -rf", "⏎", "open settings", "type 1,")
        await press(bench, pilot, "y")
        assert bench.answers == ([YES] if whole else [])
        always_in_sight(shown(pilot), "rm -rf", "⏎", "open settings") if not whole else None
        await read_to_the_end(bench, pilot)
        assert bench.answers == [YES]


@pytest.mark.parametrize("size", SIZES)
async def test_what_a_rule_found_is_in_sight_although_the_text_disguises_it(
    bench: Bench, size: tuple[int, int]
) -> None:
    async with bench.app().run_test(size=size) as pilot:
        text = BLIND.replace("rm -rf", "r\u200bm -rf") + HARMLESS * 9
        await asked(bench, pilot, TypeText(text), matched=("rm -rf ~/Documents",), situation=TERMINAL)
        always_in_sight(shown(pilot), "rm -rf ~/", "on and on;")
        await read_to_the_end(bench, pilot)
        assert bench.answers == [YES]


@pytest.mark.parametrize("key", ["y", "a"])
@pytest.mark.parametrize("size", SIZES)
async def test_neither_once_nor_always_is_a_way_around_reading(bench: Bench, size: tuple[int, int], key: str) -> None:
    async with bench.app().run_test(size=size) as pilot:
        await asked(bench, pilot, TypeText("\n".join(f"line {number}" for number in range(500))))
        for pages in range(3):
            always_in_sight(shown(pilot), "read on", "line 499")
            await press(bench, pilot, key)
            assert bench.answers == [], pages
        await press(bench, pilot, "end")  # the end is in sight, but not what is between
        await press(bench, pilot, key)
        assert bench.answers == []


@pytest.mark.parametrize("size", [SIZES[0], SIZES[-1]])
@pytest.mark.parametrize(
    "action",
    [
        TypeText("\n" * 3000 + "rm -rf ~\n" + "\n" * 3000),
        TypeText("x" * 4000 + "; rm -rf ~"),
        TypeText("\u202e" * 60 + "rm -rf ~" + "\u200b" * 200),
        TypeText("a b\t" * 20 + "rm -rf ~\r" * 7),
        TypeText(("o" + "\u0301\u0302" * 30) * 4 + "rm -rf ~"),
        TypeText("日本" * 80 + "rm -rf ~"),
        TypeText("word " * 80 + "rm -rf ~" + " " * 3000),
        CallTool("shell", {"env": {f"K{number}": "v" * 30 for number in range(20)}, "run": "rm -rf ~"}),
        OpenApp("~/" + "folder/" * 90 + "rm -rf ~.desktop"),
        PressKeys((*(f"f{number}" for number in range(1, 200)), "rm -rf ~")),
    ],
    ids=lambda action: type(action).__name__,
)
async def test_whatever_the_action_is_all_of_it_was_in_sight_when_it_is_approved(
    bench: Bench, size: tuple[int, int], action: Action[DesktopPoint]
) -> None:
    async with bench.app().run_test(size=size) as pilot:
        await asked(bench, pilot, action, situation=TERMINAL)
        always_in_sight(shown(pilot))
        seen = await read_to_the_end(bench, pilot)
        assert "rm -rf ~" in seen
        assert bench.answers == [YES]


async def test_what_was_in_sight_stays_so_when_the_terminal_changes_and_the_rest_does_not(bench: Bench) -> None:
    text = "\n".join(f"line {number}" for number in range(30))
    async with bench.app().run_test(size=(100, 50)) as pilot:
        await asked(bench, pilot, TypeText(text))
        panel = run_screen(pilot).asking
        assert not panel.complete
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert not panel.complete
        always_in_sight(shown(pilot), "line 29", "open settings")
        await press(bench, pilot, "y")
        assert bench.answers == []
        await read_to_the_end(bench, pilot)


async def test_a_yes_that_waits_is_void_when_the_terminal_is_made_too_small_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench.app().run_test(size=(80, 24)) as pilot:
        await asked(bench, pilot, TypeText("ls\n"))
        with monkeypatch.context() as slow:
            slow.setattr(answering, "_ALONE", 2.0)  # a busy machine takes a while to resize
            await pilot.press("y")
            await pilot.resize_terminal(12, 5)
        await pilot.pause(2.2)
        assert bench.answers == []
        bench.clock.now += 1
        await press(bench, pilot, "y")
        assert bench.answers == []
        await pilot.resize_terminal(80, 24)
        bench.clock.now += 1
        await press(bench, pilot, "y")
        assert bench.answers == [YES]


async def test_what_came_into_sight_just_now_cannot_have_been_read(bench: Bench) -> None:
    async with bench.app().run_test(size=(40, 12)) as pilot:
        await asked(bench, pilot, TypeText("one two three four five six seven eight nine ten " * 2), scope="")
        bench.clock.now += 1
        for _ in range(20):
            await pilot.press("pagedown")
        await pilot.pause()
        assert run_screen(pilot).asking.complete
        await pilot.press("y")
        await pilot.pause(ALONE)
        assert bench.answers == []
        await press(bench, pilot, "y")
        await press(bench, pilot, "y")
        assert bench.answers == [YES]


async def test_its_keys_look_live_as_soon_as_they_are_however_late_the_clock_is(bench: Bench) -> None:
    async with bench.app().run_test(size=(80, 24)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.asked(1, TypeText("ls\n"), "a reason", ""))
        panel = bench_panel(pilot)
        await pilot.pause(GRACE + 0.3)  # its timer has rung, and the clock has not moved
        assert panel.has_class("-waiting")
        bench.clock.now += 1
        for _ in range(100):
            await pilot.pause(0.05)
            if not panel.has_class("-waiting"):
                return
        raise AssertionError("its keys are pale for ever")


async def test_what_is_behind_another_screen_is_not_in_sight(bench: Bench) -> None:
    async with bench.app().run_test(size=(80, 24)) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await pilot.pause()
        await asked(bench, pilot, TypeText("ls\n"))
        panel = bench_panel(pilot)
        assert not panel.complete
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("y")  # at once: it cannot have been read
        await pilot.pause(ALONE)
        assert bench.answers == []
        await press(bench, pilot, "y")
        await press(bench, pilot, "y")
        assert bench.answers == [YES]


def bench_panel(pilot: Pilot[int]) -> Any:
    return pilot.app._run_screen.asking  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", SIZES)
async def test_the_reasons_of_many_rules_are_all_read_and_never_push_the_keys_away(
    bench: Bench, size: tuple[int, int]
) -> None:
    reasons = tuple(f"reason number {number} of a careful person (rule “r{number}”)" for number in range(12))
    async with bench.app().run_test(size=size) as pilot:
        await asked(bench, pilot, Click(DesktopPoint(1, 2)), reason="; ".join(reasons), reasons=reasons)
        always_in_sight(shown(pilot))
        seen = await read_to_the_end(bench, pilot)
        seen = seen or shown(pilot)
        assert all(f"rule “r{number}”" in seen for number in range(12)) or size[0] > 40


@pytest.mark.parametrize("rows", [14, 23])
async def test_two_lines_of_a_text_are_in_sight_however_many_reasons_there_are(bench: Bench, rows: int) -> None:
    reasons = tuple(f"reason number {number} of a careful person" for number in range(12))
    async with bench.app().run_test(size=(40, rows)) as pilot:
        await asked(bench, pilot, TypeText(BLIND), reason="; ".join(reasons), reasons=reasons)
        assert bench_panel(pilot).reader.size.height == 2


async def test_a_name_that_is_cut_in_the_line_is_read_in_full(bench: Bench) -> None:
    name = "Accept the harmless " + "and very useful " * 20 + "DELETION OF ALL MAIL"
    button = Element(1, "push button", name, Region(0, 0, 10, 10))
    known = Situation(under=Place("Firefox", "A page"), elements=(button,))
    async with bench.app().run_test(size=(40, 12)) as pilot:
        await asked(bench, pilot, Click(DesktopPoint(1, 2)), situation=known)
        await press(bench, pilot, "y")
        assert bench.answers == []
        seen = await read_to_the_end(bench, pilot)
        assert "DELETION OF ALL" in seen


async def test_space_and_s_approve_nothing_that_was_not_in_sight(bench: Bench) -> None:
    async with bench.app().run_test(size=(40, 12)) as pilot:
        await asked(bench, pilot, TypeText(BLIND), asker="paused")
        run = bench.run
        run.steering.pause()
        await press(bench, pilot, "space")
        await press(bench, pilot, "s")
        assert bench.answers == []


async def test_a_change_too_long_for_the_line_is_asked_about_anew(bench: Bench) -> None:
    async with bench.app().run_test(size=(80, 24)) as pilot:
        await asked(bench, pilot, TypeText(BLIND), situation=TERMINAL)
        await press(bench, pilot, "e")
        await pilot.press(*"# x", "enter")
        await pilot.pause(ALONE)
        assert bench.answers == []
        assert "As you changed it" in shown(pilot)
        bench.clock.now += 1
        await press(bench, pilot, "y")
        assert bench.answers == []
        await read_to_the_end(bench, pilot)
        assert bench.answers == [Approval(allowed=True, by="you", instead=TypeText(f"{BLIND}# x"))]


async def test_a_change_that_is_seen_whole_on_the_line_is_done_at_once(bench: Bench) -> None:
    async with bench.app().run_test(size=(80, 24)) as pilot:
        await asked(bench, pilot, TypeText("ls\n"))
        await press(bench, pilot, "e")
        assert r"ls\n" in shown(pilot)
        await pilot.press("home", *"# ", "enter")
        await pilot.pause()
        assert bench.answers == [Approval(allowed=True, by="you", instead=TypeText("# ls\n"))]


async def test_what_and_where_stand_first_and_everything_is_told_once(bench: Bench) -> None:
    delete = Element(1, "push button", "Delete", Region(0, 0, 10, 10))
    known = Situation(under=Place("Thunar", "Documents"), words="Delete", elements=(delete,))
    async with bench.app().run_test(size=(140, 40)) as pilot:
        await asked(
            bench, pilot, Click(DesktopPoint(412.7, 305.2)), reason="this deletes (rule “delete”)", situation=known
        )
        screen = shown(pilot)
        assert "click “Delete” in Thunar “Documents”" in screen
        assert screen.index("in Thunar") < screen.index("because this deletes") < screen.index("yes, once")
        assert screen.count("this deletes") == 1


async def test_what_the_shipped_rules_find_is_marked_in_the_text(bench: Bench) -> None:
    action = TypeText("first words of a note\n" + "sudo rm -rf /\n")
    question = Policy.load("risky").question(action, TERMINAL)
    assert question is not None
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await asked(
            bench, pilot, action, reason=question.reason, scope="", matched=question.matched, situation=TERMINAL
        )
        reader = run_screen(pilot).asking.reader
        marked = [piece.text for row in reader._rows for piece in row.line.pieces if piece.marked]
        assert "sudo" in "".join(marked)


async def test_a_toast_covers_no_key(bench: Bench) -> None:
    async with bench.app().run_test(size=(80, 24)) as pilot:
        await asked(bench, pilot, TypeText("ls\n"))
        pilot.app.notify("something\n" * 4)
        await pilot.pause()
        always_in_sight(shown(pilot), "yes, once", "ls⏎")
