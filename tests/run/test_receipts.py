"""Receipts: every run ends with one, whatever becomes of the run or of who tells what changed."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from stubs.desk import Desk, FakeScreen, finish, run
from stubs.endpoint import DONE, act, refuse, texts
from stubs.witness import DARK, OPENED, FakeWitness

from agent.core.changes import Change
from agent.events.run_events import Acted, Event, Receipt, RunFinished
from agent.families.base import PromptRequest
from agent.families.mai_ui.family import MaiUi
from agent.model.request import ChatRequest
from agent.run.loop import loop
from agent.run.loop import witness_worker as watch
from foundation.errors import ExitStatus

CLICK = act("click", coordinate=[500, 500])


def stop_when_acted(event: Event, desk: Desk) -> None:
    if isinstance(event, Acted):
        desk.stop.stop("enough")


def receipt_of(events: list[Event]) -> Receipt:
    """The only receipt, which comes before the run's end."""
    (receipt,) = (event for event in events if isinstance(event, Receipt))
    assert events[-2] is receipt
    assert isinstance(events[-1], RunFinished)
    return receipt


@pytest.mark.parametrize(
    ("script", "settings", "outcome"),
    [
        ([CLICK, DONE], {}, "done"),
        ([CLICK, act("terminate", status="fail")], {}, "gave_up"),
        ([CLICK, act("answer", text="42")], {}, "done"),
        ([CLICK, "junk", "junk", "junk"], {}, "unparsable"),
        ([CLICK, refuse(400, "no")], {}, "failed"),
        ([CLICK, CLICK], {"max_steps": 1}, "out_of_budget"),
    ],
    ids=["done", "gave up", "answered", "unparsable", "failed", "out of budget"],
)
async def test_every_run_ends_with_what_changed(script: Any, settings: dict[str, Any], outcome: str) -> None:
    witness = FakeWitness(DARK, remarks=("KDE's settings are not known.",))
    events, _ = await run(script, settings=settings, open_witness=witness.open)
    assert finish(events).outcome == outcome
    assert receipt_of(events) == Receipt((DARK,), ("KDE's settings are not known.",))
    assert witness.closed.wait(5)


async def test_a_run_whose_screen_cannot_be_seen_has_a_receipt_too() -> None:
    screen = FakeScreen()
    screen.trouble = OSError("no display")
    events, _ = await run([], screen=screen, open_witness=FakeWitness(DARK).open)
    assert receipt_of(events).changes == (DARK,)


async def test_that_nothing_changed_is_said_as_plainly() -> None:
    events, _ = await run([CLICK, DONE], open_witness=FakeWitness().open)
    assert receipt_of(events).lines == ["nothing changed"]


async def test_where_nobody_watches_it_is_not_said_that_nothing_changed() -> None:
    for nobody in (None, lambda: None):
        events, _ = await run([CLICK, DONE], open_witness=nobody)
        assert receipt_of(events) == Receipt((), (watch.NOBODY,), watched=False)
        assert receipt_of(events).lines == [watch.NOBODY]


async def test_a_dry_run_touches_nothing_and_asks_nobody() -> None:
    witness = FakeWitness(DARK)
    events, _ = await run([CLICK, DONE], settings={"dry_run": True}, open_witness=witness.open)
    assert receipt_of(events).lines == [loop.DRY_RUN_TOUCHES_NOTHING]
    assert witness.asked == 0


async def test_a_witness_that_cannot_be_opened_costs_the_receipt_only() -> None:
    def fail() -> FakeWitness:
        raise OSError("no bus")

    events, desk = await run([CLICK, DONE], open_witness=fail)
    receipt = receipt_of(events)
    assert (receipt.changes, receipt.watched) == ((), False)
    assert "no bus" in receipt.remarks[0]
    assert len(desk.hand.done) == 1


async def test_a_witness_that_raises_costs_the_receipt_only() -> None:
    witness = FakeWitness(DARK)

    def fail() -> None:
        raise ValueError("a strange file")

    witness.behave = fail
    events, _ = await run([CLICK, DONE], open_witness=witness.open)
    receipt = receipt_of(events)
    assert (receipt.changes, receipt.watched) == ((), False)
    assert "a strange file" in receipt.remarks[0]
    assert witness.closed.wait(5)


async def test_the_last_look_waits_until_programs_have_written_and_that_of_a_stop_less() -> None:
    witness, stopped = FakeWitness(DARK), FakeWitness(DARK)
    await run([CLICK, DONE], open_witness=witness.open)
    assert witness.settled
    events, _ = await run([CLICK, CLICK], stop_when_acted, open_witness=stopped.open)
    assert receipt_of(events).changes == (DARK,)
    assert 0 < stopped.settled[-1] < witness.settled[-1]


async def test_a_stop_does_not_wait_for_a_witness_that_hangs() -> None:
    over, witness = threading.Event(), FakeWitness(DARK)
    witness.behave = over.wait  # until after the run
    events, _ = await run([CLICK, CLICK], stop_when_acted, open_witness=witness.open)
    over.set()
    assert receipt_of(events).watched is False
    assert finish(events).status is ExitStatus.STOPPED


async def test_what_is_done_before_the_watch_began_makes_the_receipt_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_OPENING", 0.05)
    witness, open_now = FakeWitness(DARK), threading.Event()

    def open_late() -> FakeWitness:
        open_now.wait(10)
        return witness

    def watched(event: Event, _: Desk) -> None:
        if isinstance(event, Acted):
            open_now.set()

    events, _ = await run([CLICK, DONE], watched, open_witness=open_late)
    receipt = receipt_of(events)
    assert (receipt.changes, receipt.watched) == ((DARK,), False)


async def test_what_strangers_wrote_is_of_bounded_length() -> None:
    many = [Change("file", f"/home/me/{'x' * 5000}{number}", None, "y" * 5000) for number in range(5500)]
    events, _ = await run([CLICK, DONE], open_witness=FakeWitness(*many).open)
    receipt = receipt_of(events)
    assert len(receipt.changes) == 5000
    assert receipt.remarks == ("500 more changes are left out, and cannot be undone.",)
    assert max(len(line) for line in receipt.lines) < 1000


# What a model says against what changed


async def test_done_with_nothing_changed_goes_back_to_the_model_once() -> None:
    witness = FakeWitness(OPENED)
    script = [CLICK, DONE, act("click", coordinate=[1, 1]), DONE]

    def change(_: Event, desk: Desk) -> None:
        if len(desk.hand.done) > 1:
            witness.found = [OPENED, DARK]

    events, desk = await run(script, change, instruction="enable dark mode", open_witness=witness.open)
    told = texts(desk.endpoint.requests[2], "user")[-1]
    assert "You say that the task is done, but nothing changed that could show it" in told
    assert (finish(events).outcome, finish(events).status, finish(events).verified) == ("done", ExitStatus.DONE, True)
    assert finish(events).evidence == (str(DARK),)


async def test_a_model_that_insists_leaves_the_run_unverified() -> None:
    events, desk = await run(
        [CLICK, DONE, act("terminate", "Really.", status="success", text="All is dark."), DONE],
        instruction="enable dark mode",
        open_witness=FakeWitness(OPENED).open,
    )
    assert len(desk.endpoint.requests) == 3
    end = finish(events)
    assert (end.outcome, end.status, end.verified) == ("unverified", ExitStatus.NOT_DONE, False)
    assert "The model says that the task is done, but nothing changed that could show it" in end.message
    assert receipt_of(events).changes == (OPENED,)


async def test_done_at_once_is_doubted_where_something_was_to_be_done() -> None:
    events, desk = await run([DONE, DONE], instruction="open the settings", open_witness=FakeWitness().open)
    assert "nothing was done" in texts(desk.endpoint.requests[1], "user")[-1]
    assert finish(events).outcome == "unverified"


@pytest.mark.parametrize("instruction", ["what is the weather?", "is dark mode enabled?", "do the task"])
async def test_done_at_once_is_believed_where_nothing_was_to_be_done(instruction: str) -> None:
    events, desk = await run([DONE], instruction=instruction, open_witness=FakeWitness().open)
    assert (finish(events).outcome, finish(events).verified) == ("done", None)
    assert len(desk.endpoint.requests) == 1


async def test_an_answer_to_a_question_is_done_without_evidence() -> None:
    events, _ = await run(
        [act("answer", text="It is on.")], instruction="turn on dark mode", open_witness=FakeWitness().open
    )
    assert (finish(events).outcome, finish(events).verified) == ("done", None)


async def test_a_change_that_nobody_meant_is_no_evidence_and_no_contradiction() -> None:
    other = Change("setting", "dconf /org/gnome/desktop/peripherals/mouse/speed", "0", "1")
    events, _ = await run([CLICK, DONE], instruction="enable dark mode", open_witness=FakeWitness(other).open)
    assert (finish(events).outcome, finish(events).verified) == ("done", None)


async def test_without_a_witness_a_model_that_did_something_is_believed_unverified() -> None:
    events, _ = await run([CLICK, DONE], instruction="enable dark mode", open_witness=None)
    assert (finish(events).outcome, finish(events).status, finish(events).verified) == ("done", ExitStatus.DONE, None)


async def test_the_last_step_leaves_no_room_for_doubting_twice() -> None:
    events, _ = await run(
        [CLICK, DONE], instruction="enable dark mode", open_witness=FakeWitness().open, settings={"max_steps": 2}
    )
    assert finish(events).outcome == "unverified"


async def test_programs_that_write_late_are_waited_for() -> None:
    witness = FakeWitness()
    witness.behave = lambda: witness.found.append(DARK) if witness.asked == 2 else None
    events, desk = await run([CLICK, DONE], instruction="enable dark mode", open_witness=witness.open)
    assert (finish(events).outcome, finish(events).verified) == ("done", True)
    assert len(desk.endpoint.requests) == 2


def said_by_engine(**arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'computer_use', 'arguments': arguments})}\n</tool_call>"


def own_claim(verified: bool, *evidence: str) -> str:
    return said_by_engine(action="terminate", status="success", text="All parts.", evidence=evidence, verified=verified)


@pytest.mark.parametrize(
    ("claim", "outcome", "verified"),
    [
        (own_claim(True, "the switch is checked"), "done", True),
        (own_claim(False, "the switch was not found"), "unverified", False),
        (own_claim(True, str(DARK)), "unverified", False),
    ],
)
async def test_the_built_in_engine_ends_done_only_with_evidence(claim: str, outcome: str, verified: bool) -> None:
    click = said_by_engine(action="left_click", coordinate=[5, 5])
    events, desk = await run(
        [click, claim],
        instruction="enable dark mode",
        family="literal",
        settings={"own_engine": True},
        open_witness=FakeWitness(OPENED).open,
    )
    assert len(desk.endpoint.requests) == 2  # it is not asked again: it would say the same
    end = finish(events)
    assert (end.outcome, end.verified, end.status is ExitStatus.DONE) == (outcome, verified, outcome == "done")
    assert end.evidence


async def test_a_family_that_asks_for_it_is_told_what_changed() -> None:
    told = []

    class Told(MaiUi):
        def request(self, prompt: PromptRequest) -> ChatRequest:
            told.append(tuple(prompt.changes))
            return super().request(prompt)

    family = Told("mai-ui")
    family.facts = replace(family.facts, outline=True)
    changed = replace(DARK, undo={"store": "xfconf"})
    await run([CLICK, DONE], family=family, open_witness=FakeWitness(changed).open)
    assert told[0] == ()
    assert told[-1] == (DARK,)
    assert told[-1][0].undo is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([DARK, Change("setting", "dconf /org/gnome/desktop/interface/color-scheme", "'default'", "'prefer-dark'")],
         ["Dark mode: off -> on"]),
        ([Change("setting", "xfconf xsettings /Net/ThemeName", "Adwaita", "Greybird")], ["Theme: Adwaita -> Greybird"]),
        ([Change("setting", "dconf /org/gnome/clock-show-date", "false", "true")], ["Clock show date: off -> on"]),
        ([Change("setting", "xfconf a /b/itemSize", "3", None)], ["Item size: back to its default"]),
        ([Change("setting", "xfconf a /b/itemSize", None, "3")], ["Item size: 3"]),
        ([Change("app", "manager", None, "Settings"), Change("window", "manager", None, "Settings")],
         ["opened “Settings” (manager)"]),
        ([Change("window", "Mousepad", "a - Mousepad", None)], ["closed “a - Mousepad”"]),
        ([Change("window", "Mousepad", "a", "b")], ["the window “a” became “b”"]),
        ([Change("file", "~/a.txt", None, "file of 3 bytes")], ["new: ~/a.txt (file of 3 bytes)"]),
        ([Change("file", "~/a.txt", "file of 3 bytes", None)], ["gone: ~/a.txt"]),
        ([Change("file", "~/a.txt", "file", "moved to ~/b.txt", {"how": "moved"})], ["~/a.txt: moved to ~/b.txt"]),
        ([], ["nothing changed"]),
    ],
)  # fmt: skip
def test_a_receipt_is_told_in_a_persons_words_and_each_thing_once(changes: list[Change], words: list[str]) -> None:
    assert [line.words for line in Receipt(tuple(changes)).told] == words
