"""Events as JSON, a line each: what scripts read of them."""

from dataclasses import replace
from datetime import datetime

from stubs.events import PICTURE, VIEW, run_of, started, step

from agent.events.as_json import to_json
from agent.events.run_events import Acted, ApprovalAsked, Decided, ModelInUse, Observed, Warned


def test_every_event_says_what_it_is_in_which_form_and_when() -> None:
    before = datetime.now().astimezone()
    for event in run_of(1):
        told = to_json(event)
        assert told["event"] == type(event).__name__
        assert told["schema"] == 3
        assert abs((datetime.fromisoformat(told["at"]) - before).total_seconds()) < 5
        assert datetime.fromisoformat(told["at"]).tzinfo is not None


def test_events_that_differ_in_their_time_alone_are_equal() -> None:
    assert Warned("a remark", at=1.0) == Warned("a remark", at=2.0)


def test_a_start_names_every_model_by_its_role_and_the_one_that_acts_beside_them() -> None:
    models = {
        "actor": ModelInUse("endpoint", "MAI-UI-8B", "mai-ui", "http://127.0.0.1:1/v1"),
        "planner": ModelInUse("endpoint", "Large", "other", "http://127.0.0.1:2/v1"),
    }
    told = to_json(started(models=models))
    assert [told[name] for name in ("engine", "model", "family", "endpoint", "words")] == list(
        told["models"]["actor"].values()
    )
    assert told["models"]["planner"]["model"] == "Large"


def test_lists_are_told_with_their_first_beside_them() -> None:
    observed, _, decided, acted, _ = step(1)
    assert isinstance(observed, Observed)
    assert isinstance(decided, Decided)
    assert isinstance(acted, Acted)
    several = to_json(replace(decided, actions=decided.actions * 2, targets=decided.targets * 2))
    assert several["actions"] == [several["action"]] * 2
    assert several["targets"] == [several["target"]] * 2
    assert several["calls"] == [several["call"]]
    assert to_json(replace(observed, images=(PICTURE, PICTURE)))["image"] == to_json(observed)["images"][0]
    assert to_json(Observed(1, (), VIEW, 0, "", {}))["image"] is None
    assert to_json(acted)["index"] == 0
    assert to_json(ApprovalAsked(1, acted.target, "risky", index=1))["index"] == 1
