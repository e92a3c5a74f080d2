"""A second model that takes over where the run's own is stuck."""

from io import StringIO
from pathlib import Path

from stubs.desk import FakePerson
from stubs.endpoint import Exchange, act, pictures, say, texts
from stubs.two_models import CLICK, GARBAGE, GIVE_UP, OTHER, OVER, go

from agent.commands.run import _parser
from agent.console.printers import PlainPrinter
from agent.core.actions import TypeText
from agent.events.run_events import Event, HandedBack, HandedOver, ReliefAsked, StepFinished, Warned
from agent.options import RunOptions
from agent.record.bundle import Recorder
from agent.record.read import find_bundle
from agent.record.replay import replay_as_recorded
from agent.run.models.settings import LoopRule
from agent.safety.stop import StopSwitch
from agent.settings import load_settings
from agent.tui.translate import Translator
from agent.tui.view import RunView


class TestHandingOver:
    async def test_without_a_need_the_second_model_is_never_asked(self) -> None:
        ran = await go([CLICK, OVER], [])
        assert ran.relief.requests == []
        assert ran.told(HandedOver) == []

    async def test_a_model_that_gives_up_is_relieved(self) -> None:
        ran = await go([CLICK, GIVE_UP], [OTHER, OVER])
        (over,) = ran.told(HandedOver)
        assert (over.step, over.role, over.host, over.steps, over.allowed) == (3, "relief", "127.0.0.1", 5, "local")
        assert over.why == "it gives up"
        assert ran.who == ["actor", "actor", "relief", "relief"]
        assert ran.end.outcome == "done"
        assert ran.told(HandedBack) == []

    async def test_a_model_that_repeats_itself_is_relieved(self) -> None:
        rule = LoopRule(nudge_at=1, stop_at=2)
        ran = await go([CLICK, CLICK], [OVER], still=True, loop_rule=rule)
        assert ran.told(HandedOver)[0].why == "it repeats itself without effect"
        assert ran.end.outcome == "done"
        assert [event.step for event in ran.told(StepFinished)] == [1, 2, 3], "every step is over before the next"

    async def test_three_steps_that_change_nothing_are_enough(self) -> None:
        ran = await go([CLICK, OTHER, say(act("click", coordinate=[600, 600]))], [OVER], still=True)
        assert ran.told(HandedOver)[0].why == "3 steps in a row failed or changed nothing"
        assert ran.who == ["actor"] * 3 + ["relief"]

    async def test_two_steps_that_change_nothing_are_not(self) -> None:
        ran = await go([CLICK, OTHER, OVER], [], still=True)
        assert ran.told(HandedOver) == []

    async def test_answers_that_cannot_be_read_are_a_reason(self) -> None:
        ran = await go([GARBAGE] * 3, [OVER])
        assert ran.told(HandedOver)[0].why.startswith("its answers cannot be carried out")
        assert ran.end.outcome == "done"

    async def test_a_question_to_the_person_is_none(self) -> None:
        ran = await go([say(act("ask_user", text="Which one?")), OVER], [], person=FakePerson(["the first"]))
        assert ran.told(HandedOver) == []

    async def test_it_is_told_in_words_what_was_done(self) -> None:
        ran = await go([say(act("type", text="hello world")), GIVE_UP], [OVER])
        (said,) = [text for text in texts(ran.relief.requests[0], "user") if "did not get on" in text]
        assert "do the task" in said
        assert "hello world" in said
        assert len(pictures(ran.relief.requests[0])) == 1, "it has a history of its own"

    async def test_a_relief_that_gives_up_ends_the_run(self) -> None:
        ran = await go([GIVE_UP], [GIVE_UP])
        assert ran.end.outcome == "gave_up"
        assert ran.told(HandedBack) == []


class TestHandingBack:
    async def test_it_hands_back_after_its_steps_and_the_first_model_is_told_of_them(self) -> None:
        typing = say(act("type", text="from the other one"))
        ran = await go([CLICK, GIVE_UP, OVER], [typing, OTHER], steps=2)
        assert ran.who == ["actor", "actor", "relief", "relief", "actor"]
        (back,) = ran.told(HandedBack)
        assert (back.step, back.why) == (5, "its steps are used up")
        whole = "\n".join(texts(ran.own.requests[-1]))
        assert "Meanwhile another model did: “" in whole
        assert "from the other one" in whole

    async def test_a_relief_that_is_stuck_itself_hands_back_at_once(self) -> None:
        ran = await go([CLICK, GIVE_UP, OVER], [GARBAGE] * 3)
        assert ran.told(HandedBack)[0].why.startswith("it is stuck, too")
        assert ran.end.outcome == "done"

    async def test_a_relief_that_does_not_answer_hands_back(self) -> None:
        broken = [lambda exchange: exchange.respond(400, b'{"error": {"message": "no"}}')]
        ran = await go([CLICK, GIVE_UP, OVER], broken)
        assert len(ran.told(HandedBack)) == 1
        assert ran.end.outcome == "done"

    async def test_it_takes_over_twice_and_no_more(self) -> None:
        ran = await go([CLICK, GIVE_UP, GIVE_UP, GIVE_UP], [OTHER, CLICK], steps=1)
        assert len(ran.told(HandedOver)) == 2
        assert len(ran.told(HandedBack)) == 2
        assert ran.end.outcome == "gave_up"
        assert "Meanwhile another model did" in "\n".join(texts(ran.relief.requests[1]))

    async def test_a_stop_ends_it_while_it_works(self) -> None:
        stop = StopSwitch()

        def halt(exchange: Exchange) -> None:
            stop.stop("you said so")
            exchange.over.wait(20)

        ran = await go([GIVE_UP], [halt], stop=stop)
        assert ran.end.outcome == "stopped"
        assert ran.told(HandedBack) == []


class TestConsent:
    async def test_by_default_nothing_is_sent_to_another_machine_and_the_run_says_so(self) -> None:
        ran = await go([CLICK, GIVE_UP], [], far=True)
        assert ran.relief.requests == []
        assert ran.end.outcome == "gave_up"
        (said,) = [event.message for event in ran.events[:5] if isinstance(event, Warned) and "stuck" in event.message]
        assert "models.example may not take over" in said
        assert "[leaving]" in said

    async def test_a_person_is_asked_with_the_host_the_steps_and_the_first_picture(self, tmp_path: Path) -> None:
        person = FakePerson(permits=[True])
        recorder = Recorder(tmp_path, "do the task")
        ran = await go(
            [CLICK, GIVE_UP], [OVER], far=True, leaving={"screenshots": "ask"}, person=person,
            bundle=str(recorder.path), watch=recorder.handle,
        )  # fmt: skip
        (question,) = person.permitted
        preview = recorder.path / "leaving" / "0003.png"
        assert "models.example" in question
        assert "5 steps" in question
        assert str(preview) in question
        assert preview.is_file()
        assert ran.told(HandedOver)[0].allowed == "person"
        assert len(ran.relief.requests) == 1

    async def test_after_a_no_nothing_is_sent_and_nobody_is_asked_again(self) -> None:
        person = FakePerson(permits=[False])
        own = [CLICK, OTHER, CLICK, say(act("click", coordinate=[900, 900])), OTHER, CLICK, OVER]
        ran = await go(own, [], far=True, leaving={"screenshots": "ask"}, person=person, still=True)
        assert ran.relief.requests == []
        assert len(person.permitted) == 1
        assert len(ran.told(ReliefAsked)) == 1
        assert ran.end.outcome == "done", "a run that could go on by itself does"

    async def test_the_policy_may_say_yes_once_and_for_all(self) -> None:
        ran = await go([GIVE_UP], [OVER], far=True, leaving={"screenshots": "yes"})
        assert ran.told(HandedOver)[0].allowed == "policy"
        assert ran.told(HandedOver)[0].host == "models.example"
        assert ran.end.outcome == "done"

    async def test_a_relief_that_is_not_there_does_not_keep_the_run_from_beginning(self) -> None:
        ran = await go([OVER], [], far=True, leaving={"screenshots": "yes"}, family="no such family")
        assert any("No other model can take over" in event.message for event in ran.told(Warned))
        assert ran.end.outcome == "done"


async def test_the_record_says_who_decided_what(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "do the task")
    await go([CLICK, GIVE_UP, OVER], [OTHER], steps=1, bundle=str(recorder.path), watch=recorder.handle)
    steps = find_bundle(tmp_path, recorder.path.name).steps
    assert [step.by for step in steps] == ["actor", "actor", "relief", "actor"]
    assert [one.words for one in steps[2].before] == ["MAI-UI-8B at 127.0.0.1 takes over for 1 step: it gives up"]
    assert [one.words for one in steps[3].before] == ["handed back: its steps are used up"]
    assert steps[2].how == ["decided by the fallback model"]


async def test_a_run_of_two_models_replays_each_step_in_its_own_family(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "do the task")
    press = say('{"thought": "t", "action": "type", "text": "from the other family"}')
    await go(
        [CLICK, GIVE_UP, OVER], [press], steps=1, family="generic", bundle=str(recorder.path), watch=recorder.handle
    )
    replayed = [*replay_as_recorded(find_bundle(tmp_path, recorder.path.name))]
    assert [step.failure for step in replayed] == [None] * 4
    assert replayed[2].target == TypeText("from the other family")


async def test_a_person_reads_who_takes_over_and_who_decided(tmp_path: Path) -> None:
    out, recorder = StringIO(), Recorder(tmp_path, "do the task")
    printer = PlainPrinter(out)
    view = RunView()
    translator = Translator(view, lambda: 0.0)

    def show(event: Event) -> None:
        printer.handle(event)
        recorder.handle(event)
        translator.apply(event, recorder.latest)

    person = FakePerson(permits=[True])
    await go([GIVE_UP, OVER], [OTHER], far=True, leaving={"screenshots": "ask"}, person=person, steps=1, watch=show)
    taken = "MAI-UI-8B at models.example takes over for 1 step, allowed by you: it gives up"
    back = "handed back: its steps are used up"
    lines = out.getvalue().splitlines()
    rows = [row.words for row in view.rows]
    for words in (taken, back):
        assert words in lines
        assert words in rows
    assert lines.index(taken) < lines.index("  decided by the fallback model") < lines.index(back)
    assert "decided by the fallback model" in view.rows[rows.index(taken) + 1].found
    assert any(row.startswith("may MAI-UI-8B at models.example take over") for row in rows)


def test_the_command_line_and_the_settings_name_a_relief(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('relief = "127.0.0.1:9"\nrelief_steps = 3\n', encoding="utf-8")
    environ = {"MAI_AGENT_CONFIG": str(tmp_path / "config.toml"), "MAI_AGENT_RELIEF_API_KEY": "key"}
    options = RunOptions.of(_parser().parse_args(["--relief-model", "M", "x"]), load_settings(environ))
    assert options.relief is not None
    assert (options.relief.url, options.relief.model, options.relief.api_key) == ("127.0.0.1:9", "M", "key")
    assert options.relief_steps == 3
    assert RunOptions.of(_parser().parse_args(["x"]), load_settings({})).relief is None
