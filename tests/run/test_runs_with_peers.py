"""Whole runs with cloud peers: several actions an answer, what their safety systems ask, and what goes back to them."""

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from stubs.desk import HURRIED, SIZE, Desk, FakeHand, FakePerson, FakeScreen, every, finish
from stubs.endpoint import MODEL, FakeEndpoint
from stubs.peers import (
    KEY,
    MODELS,
    PATIENT,
    PEERS,
    Behaviour,
    FakePeer,
    anthropic_events,
    clicks,
    computer_call,
    function_call,
    gemini_events,
    message,
    openai_events,
    refuse,
    says,
    stream,
    thinking,
    tool_use,
)

from agent.core.actions import Click, PressKeys, TypeText, VisitPage
from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.hand import ActionFailedError
from agent.events.run_events import ApprovalAsked, Decided, Event
from agent.families.registry import get_family
from agent.model.clients import client_of
from agent.model.endpoint import Endpoint, EngineChoice
from agent.model.engines import Engine, named_endpoint
from agent.record.bundle import Recorder
from agent.run.models.roles import open_model
from agent.safety.policy import Approval
from foundation.endpoints import normalize_url
from foundation.errors import ExitStatus, UsageError

CHECK = {"id": "cu_sc_1", "code": "malicious_instructions", "message": "Instructions were found on the screen."}
GOLDEN = Path(__file__).with_name("peers")


async def run(
    fake: FakePeer, model: str | None = None, watch: Any = lambda _: None, **options: Any
) -> tuple[list[Event], Desk]:
    endpoint = Endpoint(fake.base_url, KEY, model or MODELS[fake.peer], api=fake.peer)  # type: ignore[arg-type]
    desk = Desk(None, client=client_of(endpoint, PATIENT), family=f"{fake.peer}-computer", **options)
    return await desk.run(watch), desk


def several(peer: str) -> Behaviour:
    """A click, a text and a chord in one answer."""
    match peer:
        case "openai":
            actions = [{"type": "click", "x": 64, "y": 32, "button": "left"}, {"type": "type", "text": "hi"},
                       {"type": "keypress", "keys": ["CTRL", "S"]}]  # fmt: skip
            return stream(*openai_events(computer_call(1, *actions)))
        case "anthropic":
            blocks = [tool_use(1, "left_click", coordinate=[64, 32]), tool_use(2, "type", text="hi"),
                      tool_use(3, "key", text="ctrl+s")]  # fmt: skip
            return stream(*anthropic_events(thinking("All at once."), *blocks))
    parts = [function_call("click", x=250, y=125), function_call("type", text="hi"),
             function_call("hotkey", keys=["Control", "S"])]  # fmt: skip
    return stream(*gemini_events(*parts))


@pytest.mark.parametrize("peer", PEERS)
async def test_all_actions_of_an_answer_are_done_in_order_and_its_words_end_the_task(peer: str) -> None:
    with FakePeer(peer, [several(peer), says(peer, "The file is saved.")]) as fake:
        events, desk = await run(fake)
    assert desk.hand.done == [Click(DesktopPoint(64, 32)), TypeText("hi"), PressKeys(("ctrl", "s"))]
    assert finish(events).outcome == "done"
    assert finish(events).message == "The file is saved."
    assert finish(events).usage.completion == 40


@pytest.mark.parametrize("peer", PEERS)
async def test_every_call_of_an_answer_gets_its_result_and_the_last_one_the_screenshot(peer: str) -> None:
    with FakePeer(peer, [several(peer), says(peer, "Saved.")]) as fake:
        await run(fake)
    told = simplified(peer, fake.bodies[1])
    match peer:
        case "openai":
            assert [item["type"] for item in told["input"]] == ["message", "computer_call", "computer_call_output"]
            assert told["input"][2]["output"]["image_url"] == "IMAGE 2"
        case "anthropic":
            results = told["messages"][2]["content"]
            assert [result["tool_use_id"] for result in results] == ["toolu_1", "toolu_2", "toolu_3"]
            assert [result["content"][0]["type"] for result in results] == ["text", "text", "image"]
        case "gemini":
            responses = [part["functionResponse"] for part in told["contents"][2]["parts"]]
            assert [response["name"] for response in responses] == ["click", "type", "hotkey"]
            assert ["parts" in response for response in responses] == [False, False, True]


def objecting(peer: str) -> Behaviour:
    """A click that the peer's own safety system wants a person to agree to."""
    if peer == "openai":
        click = {"type": "click", "x": 64, "y": 32, "button": "left"}
        return stream(*openai_events(computer_call(1, click, checks=[CHECK])))
    decision = {"decision": "require_confirmation", "explanation": "Instructions were found on the screen."}
    return stream(*gemini_events(function_call("click", x=250, y=125, safety_decision=decision)))


@pytest.mark.parametrize("peer", ["openai", "gemini"])
async def test_what_the_service_objects_to_is_asked_of_the_person_even_where_nothing_else_is(peer: str) -> None:
    person = FakePerson(approvals=[Approval(True, "the person")])
    with FakePeer(peer, [objecting(peer), says(peer, "Done.")]) as fake:
        events, desk = await run(fake, person=person, approve="never")
    ((_, reason),) = person.asked
    assert "Instructions were found on the screen." in reason
    (asked,) = every(events, ApprovalAsked)
    assert asked.scope == "", "it cannot be allowed for good"
    assert desk.hand.done == [Click(DesktopPoint(64, 32))]
    told = simplified(peer, fake.bodies[1])
    if peer == "openai":
        assert told["input"][2]["acknowledged_safety_checks"] == [CHECK]
        assert told["input"][1]["pending_safety_checks"] == [CHECK]
    else:
        response = told["contents"][2]["parts"][0]["functionResponse"]["response"]
        assert response["safety_acknowledgement"] == "true"


@pytest.mark.parametrize("peer", ["openai", "gemini"])
async def test_what_the_person_does_not_agree_to_is_not_done_and_not_acknowledged(peer: str) -> None:
    person = FakePerson(approvals=[Approval(False, "the person")])
    with FakePeer(peer, [objecting(peer), says(peer, "Then not.")]) as fake:
        _, desk = await run(fake, person=person)
    assert desk.hand.done == []
    written = json.dumps(fake.bodies[1])
    assert "acknowledge" not in written
    assert "computer_call" not in written
    assert "functionCall" not in written
    assert "The person did not allow this." in written


@pytest.mark.parametrize(
    ("peer", "behaviour"),
    [
        ("openai", stream(*openai_events(message("I cannot help with that.", refusal=True)))),
        ("anthropic", stream(*anthropic_events({"type": "text", "text": "I cannot help with that."}, stop="refusal"))),
        ("gemini", stream(*gemini_events({"text": "I cannot help with that."}, finish="PROHIBITED_CONTENT"))),
    ],
    ids=PEERS,
)
async def test_a_service_that_declines_ends_the_run_as_given_up(peer: str, behaviour: Behaviour) -> None:
    with FakePeer(peer, [behaviour]) as fake:
        events, _ = await run(fake)
    assert finish(events).outcome == "gave_up"
    assert finish(events).message == "I cannot help with that."
    assert finish(events).status is ExitStatus.NOT_DONE


async def test_an_unusable_call_goes_back_to_the_model() -> None:
    bad = stream(*anthropic_events(tool_use(1, "left_click", coordinate=[9000, 5])))
    with FakePeer("anthropic", [bad, clicks("anthropic", 2, 5, 5), says("anthropic", "Done.")]) as fake:
        events, desk = await run(fake)
    assert len(desk.hand.done) == 1
    assert "lies outside" in json.dumps(fake.bodies[1])
    assert finish(events).outcome == "done"


async def test_what_failed_is_told_in_the_result_of_the_call() -> None:
    def fails(_: object) -> None:
        raise ActionFailedError("the window is gone")

    screen = FakeScreen()
    hand = FakeHand(screen)
    hand.behave = fails
    with FakePeer("anthropic", [clicks("anthropic", 1, 5, 5), says("anthropic", "I see.")]) as fake:
        await run(fake, screen=screen, hand=hand)
    (result,) = simplified("anthropic", fake.bodies[1])["messages"][2]["content"]
    assert "the window is gone" in result["content"][0]["text"]


async def test_the_older_gemini_vocabulary_works_a_browser() -> None:
    parts = [function_call("open_web_browser"), function_call("navigate", url="https://example.org")]
    with FakePeer("gemini", [stream(*gemini_events(*parts)), says("gemini", "There.")]) as fake:
        _, desk = await run(fake, "gemini-2.5-computer-use-preview-10-2025")
    assert VisitPage("https://example.org") in desk.hand.done
    (tool, *_) = fake.bodies[0]["tools"]
    assert tool == {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}


@pytest.mark.parametrize(
    ("model", "tool", "betas"),
    [
        ("claude-3-5-sonnet-20241022", "computer_20241022", "computer-use-2024-10-22"),
        ("claude-haiku-4-5", "computer_20250124", "computer-use-2025-01-24,interleaved-thinking-2025-05-14"),
        ("claude-opus-4-5-20251101", "computer_20251124", "computer-use-2025-11-24,interleaved-thinking-2025-05-14"),
        ("claude-opus-4-7", "computer_20251124", "computer-use-2025-11-24"),
        ("claude-opus-5-5", "computer_toolset_20260801", None),
    ],
)
async def test_every_claude_gets_the_tool_that_it_has(model: str, tool: str, betas: str | None) -> None:
    with FakePeer("anthropic", [says("anthropic", "Done.")]) as fake:
        await run(fake, model)
    (first, *_) = fake.bodies[0]["tools"]
    assert first["type"] == tool
    assert fake.headers[0].get("anthropic-beta") == betas
    if "toolset" not in tool:
        assert (first["display_width_px"], first["display_height_px"]) == (SIZE.width, SIZE.height)


@pytest.mark.parametrize(("model", "kept"), [("claude-opus-4-8", False), ("claude-haiku-4-5", True)])
async def test_adaptive_thinking_goes_back_only_while_all_before_it_does(model: str, kept: bool) -> None:
    script = [*(clicks("anthropic", number, 10 * number, 10) for number in range(1, 9)), says("anthropic", "Done.")]
    with FakePeer("anthropic", script) as fake:
        await run(fake, model)
    early, late = (json.dumps(fake.bodies[number]).count('"thinking": "I click."') for number in (3, 8))
    assert early == 3
    assert late == (8 if kept else 0)


async def test_the_older_openai_tool_is_told_the_size_of_the_screen() -> None:
    with FakePeer("openai", [says("openai", "Done.")]) as fake:
        await run(fake, "computer-use-preview-2025-03-11")
    assert fake.bodies[0]["tools"][0] == {
        "type": "computer_use_preview", "environment": "linux", "display_width": 256, "display_height": 256,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("peer", "screen", "sent"),
    [
        ("anthropic", (1920, 1080), (1280, 720)),
        ("anthropic", (2560, 1600), (1280, 800)),
        ("anthropic", (3440, 1440), (1280, 535)),
        ("anthropic", (1600, 1200), (1168, 876)),
        ("anthropic", (1024, 768), (1024, 768)),
        ("openai", (1920, 1080), (1920, 1080)),
        ("openai", (5120, 2880), (4266, 2400)),
        ("gemini", (1920, 1080), (1517, 853)),
        ("gemini", (1440, 900), (1440, 900)),
    ],
)
def test_no_image_is_sent_that_the_service_would_resize(
    peer: str, screen: tuple[int, int], sent: tuple[int, int]
) -> None:
    assert get_family(f"{peer}-computer").facts.image.fit(*screen) == sent


async def test_a_peers_family_is_refused_at_an_endpoint_that_does_not_speak_its_api() -> None:
    with FakeEndpoint() as endpoint:
        engine = Engine("endpoint", Endpoint(normalize_url(endpoint.url), "", MODEL))
        async with AsyncExitStack() as opened:
            with pytest.raises(UsageError, match="anthropic's own API") as raised:
                await open_model(engine, "anthropic-computer", HURRIED, opened)
    assert "--endpoint anthropic" in raised.value.remedy


async def test_a_peer_that_was_named_is_opened_with_its_family_and_said_to_get_the_screenshots() -> None:
    choice = EngineChoice("endpoint", "gemini", MODELS["gemini"], KEY)
    assert named_endpoint(choice).family == "gemini-computer"
    with FakePeer("gemini", context=1_000_000) as fake:
        engine = named_endpoint(EngineChoice("endpoint", fake.url, MODELS["gemini"], KEY))
        async with AsyncExitStack() as opened:
            model = await open_model(engine, None, PATIENT, opened)
    assert model.family.facts.name == "gemini-computer"
    assert model.endpoint.limits.context == 1_000_000
    assert model.remarks == (), "this one stays on the machine"


@pytest.mark.parametrize("peer", PEERS)
async def test_no_key_is_in_what_a_run_leaves_behind(peer: str, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "do the task")
    with FakePeer(peer, [clicks(peer, 1, 5, 5), refuse(400, f"The key {KEY} is odd.")]) as fake:
        events, _ = await run(fake, watch=recorder.handle)
    recorder.close()
    assert len(every(events, Decided)) == 1
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sealed" not in left
    assert KEY.encode() not in left
    assert KEY not in finish(events).message


def simplified(peer: str, body: dict[str, Any]) -> dict[str, Any]:
    """A request with "IMAGE n" for its screenshots, numbered as they first came, and "SYSTEM" for the system text."""
    images: dict[str, str] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items()}
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, str) and len(value) > 200 and " " not in value:
            return images.setdefault(value, f"IMAGE {len(images) + 1}")
        return "SYSTEM" if isinstance(value, str) and value.startswith("You work on a person's own") else value

    read: dict[str, Any] = plain(body)
    return read


def golden_of(peer: str, bodies: list[dict[str, Any]]) -> dict[str, Any]:
    """The requests of steps 1, 2, 5 and 12, the tools told once."""
    told = {str(step): simplified(peer, bodies[step - 1]) for step in (1, 2, 5, 12)}
    tools = [body.pop("tools") for body in told.values()]
    assert all(each == tools[0] for each in tools)
    return {"tools": tools[0], "requests": told}


@pytest.mark.parametrize("peer", PEERS)
async def test_the_requests_of_a_long_run_are_as_the_api_wants_them(peer: str) -> None:
    script = [*(clicks(peer, number, 10 * number, 10) for number in range(1, 12)), says(peer, "Done.")]
    with FakePeer(peer, script) as fake:
        events, _ = await run(fake)
    assert finish(events).outcome == "done"
    written = golden_of(peer, fake.bodies)
    path = GOLDEN / f"{peer}.json"
    assert written == json.loads(path.read_text(encoding="utf-8"))
