"""Every family drives a whole run with answers of its own: a click, nonsense, a text, the end."""

import json
from typing import Any

import pytest
from stubs.desk import Desk
from stubs.endpoint import FakeEndpoint, say
from test_conformance import calls_of

from agent.core.actions import Click, TypeText, map_points
from agent.core.geometry import Size, Viewport
from agent.events.run_events import Decided, RunFinished
from agent.families.base import Call, Decision
from agent.families.registry import family_names, get_family
from agent.record.redactor import Redactor
from foundation.chat_stream import Answer

#: Those that are asked as chats, and bring the calls that they write.
CHATTING = [name for name in family_names() if calls_of(name) and get_family(name).facts.api == "chat"]
SCREEN = (256, 256)


def calls_for(name: str, kind: str, **fields: Any) -> list[Call]:
    """The calls that a family brings for one action of this kind, of those that fit on the screen."""
    family, found = get_family(name), []
    sent = Size(*family.facts.image.fit(*SCREEN))
    for told in calls_of(name):
        action, call = told["actions"][0], Call(told["call"]["name"], told["call"]["arguments"])
        if len(told["actions"]) > 1 or action["type"] != kind or not fields.items() <= action.items():
            continue
        if isinstance(family.parse(Answer(family.written("x", [call])), [sent]), Decision):
            found.append(call)
    return found


#: Not those whose calls all lie beside so small a screen.
RUNNING = [name for name in CHATTING if calls_for(name, "click", button="left", count=1) and calls_for(name, "type")]


@pytest.mark.parametrize("name", RUNNING)
async def test_a_family_clicks_is_corrected_types_and_ends(name: str) -> None:
    family = get_family(name)
    clicks, ends = calls_for(name, "click", button="left", count=1), calls_for(name, "finish", success=True)
    texts = calls_for(name, "type")
    script = [
        say(family.written("First the button.", clicks[:1])),
        say("Action: I do not know."),
        say(family.written("Now I type.", texts[:1])),
        say(family.written("Done.", ends[:1])) if ends else say(family.written("", calls_for(name, "answer")[:1])),
    ]
    with FakeEndpoint(script) as endpoint:
        desk = Desk(endpoint, family=name)
        told = await desk.run()
    assert [type(action) for action in desk.hand.done][:2] == [Click, TypeText]
    meant = family.parse(Answer(family.written("x", clicks[:1])), [Size(*family.facts.image.fit(*SCREEN))])
    assert isinstance(meant, Decision)
    assert desk.hand.done[0] == map_points(meant.actions[0], Viewport.of_image(Size(*SCREEN)).to_desktop)
    assert isinstance(told[-1], RunFinished)
    assert told[-1].outcome == "done"
    decided = [event for event in told if isinstance(event, Decided)]
    assert [event.failure is None for event in decided] == [True, False, True, True]
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize("name", CHATTING)
def test_what_an_answer_types_can_be_masked_in_the_familys_own_syntax(name: str) -> None:
    for call in calls_for(name, "type"):
        typed = get_family(name).parse(Answer(get_family(name).written("x", [call])), [Size(1932, 1092)])
        assert isinstance(typed, Decision)
        secret = "hunter22 zwölf"
        plain = json.loads(json.dumps(dict(call.arguments), ensure_ascii=False))
        (said,) = [action.text for action in typed.actions if isinstance(action, TypeText)]
        replaced = {key: secret if value == said else value for key, value in plain.items()}
        assert secret in replaced.values(), plain
        written = get_family(name).written("x", [Call(call.name, replaced)])
        assert "hunter22" not in Redactor(secrets=[secret]).text(written), written
