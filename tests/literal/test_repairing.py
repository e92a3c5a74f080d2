"""A step of a recipe whose target has another name now: a text model may say which thing it is."""

import asyncio
import json
from dataclasses import replace

import pytest
from literal.made_up import PICTURE, WINDOW, element, past, screen, talk
from stubs.endpoint import FakeEndpoint, refuse, say

from agent.families.registry import get_family
from agent.literal.client import literal_engine
from agent.literal.goals import Click, Part, Repeat, Target, Type
from agent.model.endpoint import EngineChoice

SAVE = Part(Click(Target("Save", "push button", inside="Settings")))
RENAMED = screen(element("push button", "Keep"), element("push button", "Quit"), element("menu item", "Store"))
SAVED = screen(element("push button", "Kept"))
WAITS = 5  # until a target counts as missing


def repeat(script, *screens, part=SAVE, asks=False, said=None):
    """The calls for a recipe of one step, the requests to the model, and what it repaired; `said` answers questions."""
    repairs = {}

    async def talk_to(url):
        client = literal_engine(EngineChoice("literal", url), str, [Repeat((part,))], repairs).client
        calls, steps = [], []
        try:
            for now in screens:
                request = replace(talk("do it again", now, *steps), options={"asks": asks})
                done = await client.complete(get_family("literal").request(request))
                calls.append(dict(get_family("literal").parse(done.answer, (PICTURE.size,)).calls[0].arguments))
                if calls[-1]["action"] == "terminate":
                    break
                steps.append(past(calls[-1], now, said=said if calls[-1]["action"] == "ask_user" else None))
        finally:
            await client.aclose()
        return calls

    with FakeEndpoint(script) as endpoint:
        return asyncio.run(talk_to(endpoint.url)), endpoint.requests, repairs


def same(name):
    return say(json.dumps({"same": name}))


def test_the_model_chooses_among_the_things_of_that_kind_in_that_window():
    other = element("push button", "Save all", window="Notes", app="notes", x=900)
    now = replace(RENAMED, outline=replace(RENAMED.outline, elements=(*RENAMED.outline.elements, other)))
    calls, requests, repairs = repeat([same("Keep")], *[now] * (WAITS + 2), SAVED)
    assert [call["action"] for call in calls[-2:]] == ["click", "terminate"]
    assert calls[-2]["coordinate"] == [250, 210]
    assert calls[-1]["status"] == "success"
    assert repairs == {1: Target("Keep", "push button", inside="Settings")}
    assert len(requests) == 1
    assert json.loads(requests[0]["messages"][1]["content"][0]["text"].partition("There now: ")[2]) == ["Keep", "Quit"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (same(""), "does not know it either"),
        (same("Store"), "does not know it either"),  # a menu item: it was not offered
        (say("Keep, I think"), "was asked, but its answer holds no JSON"),
        (refuse(500, "broken"), "no model could be asked"),
    ],
)
def test_what_the_model_does_not_know_is_not_clicked(script, why):
    calls, _, repairs = repeat([script] * 9, *[RENAMED] * (WAITS + 2))
    assert {call["action"] for call in calls} == {"wait", "terminate"}
    assert calls[-1]["status"] == "fail"
    assert calls[-1]["text"].startswith("Step 1 of 1, click “Save” in “Settings”: there is no push button “Save”")
    assert why in calls[-1]["text"]
    assert repairs == {}


@pytest.mark.parametrize(("said", "action"), [("yes", "click"), ("no", "terminate"), (None, "terminate")])
def test_a_person_decides_where_one_can_be_asked(said, action):
    calls, _, repairs = repeat([same("Keep")], *[RENAMED] * (WAITS + 3), asks=True, said=said)
    assert "MAI-UI-8B says that it is “Keep” now" in calls[WAITS + 1]["question"]
    assert calls[WAITS + 2]["action"] == action
    assert bool(repairs) is (said == "yes")


def test_a_field_may_have_a_new_name():
    form = screen(element("text", "Heading", value="", states={"editable", "focused"}))
    part = Part(Type("Bread", Target("Title", "text", inside="Settings")))
    calls, requests, repairs = repeat([same("Heading")], *[form] * (WAITS + 2), part=part)
    assert calls[-1] == {"action": "type", "text": "Bread"}
    assert repairs[1].name == "Heading"
    assert "Bread" not in json.dumps(requests), "what is typed may be a secret"


def test_in_a_window_with_another_title_the_one_in_front_counts():
    part = Part(Click(Target("Save", "push button", inside="Old title")))
    calls, _, repairs = repeat([same("Keep")], *[RENAMED] * (WAITS + 2), SAVED, part=part)
    assert calls[-2]["action"] == "click"
    assert repairs == {1: Target("Keep", "push button", inside="Settings")}


def test_what_is_there_but_cannot_be_used_is_no_question():
    grey = screen(element("push button", "Save", states={"disabled"}), element("push button", "Quit"))
    calls, requests, _ = repeat([same("Quit")], *[grey] * (WAITS + 2))
    assert calls[-1]["action"] == "terminate"
    assert not requests
    assert WINDOW.title in calls[-1]["text"]
