"""How servers answer besides the usual stream: as one object, in another model's name, or by asking for a pause."""

import asyncio
import time
from email.utils import formatdate

import pytest
from stubs.endpoint import MODEL, Behaviour, Exchange, FakeEndpoint, raw, refuse, say, whole

from agent.model.asking import Completion, Patience, Progress, Waiting
from agent.model.clients import ChatClient
from agent.model.endpoint import Endpoint, is_other
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest, Message, Sampling
from foundation.endpoints import normalize_url

HURRIED = Patience(connect=2, first_token=5, between_tokens=5, notice=0.05, retries=2, backoff=0.01)
TEXT = "two\nlines, and {braces}"


async def ask(endpoint: FakeEndpoint, patience: Patience = HURRIED) -> tuple[Completion, list[Progress]]:
    heard: list[Progress] = []
    client = ChatClient(Endpoint(normalize_url(endpoint.url), "", MODEL), patience)
    request = ChatRequest([Message.text("user", "hello")], Sampling())
    try:
        return await client.complete(request, heard.append), heard
    finally:
        await client.aclose()


def in_pieces(content: bytes) -> Behaviour:
    def behave(exchange: Exchange) -> None:
        exchange.start_stream("application/json")
        for start in range(0, len(content), 7):
            exchange.chunk(content[start : start + 7])
        exchange.end_stream()

    return behave


@pytest.mark.parametrize(
    "behaviour",
    [
        raw(200, whole(TEXT), "application/json"),
        raw(200, whole(TEXT), "text/event-stream"),  # as a proxy calls every answer to a streamed request
        raw(200, b"\r\n" + whole(TEXT, indent=2) + b"\n", "application/json; charset=utf-8"),
        raw(200, whole(TEXT, indent=1).replace(b"\n", b"\r\n"), "text/plain"),
        in_pieces(whole(TEXT, indent=2)),
    ],
    ids=["json", "named a stream", "indented", "of Windows", "in pieces"],
)
async def test_one_object_in_place_of_a_stream_is_the_answer(behaviour: Behaviour) -> None:
    with FakeEndpoint([behaviour]) as endpoint:
        completion, _ = await ask(endpoint)
    answer = completion.answer
    assert (answer.content, answer.finish_reason, answer.usage.prompt) == (TEXT, "stop", 7)


async def test_an_error_as_one_object_is_told_in_the_servers_words() -> None:
    body = b'{"error": {"message": "out of memory", "code": 500}}'
    with FakeEndpoint(lambda _: raw(200, body, "application/json")) as endpoint, pytest.raises(ModelError) as raised:
        await ask(endpoint)
    assert "out of memory" in raised.value.what


async def test_the_name_of_the_model_that_answered_is_known() -> None:
    with FakeEndpoint([say("a"), raw(200, whole("b", "another/model"), "application/json")]) as endpoint:
        assert [(await ask(endpoint))[0].answer.model for _ in range(2)] == [MODEL, "another/model"]


@pytest.mark.parametrize(
    ("asked", "answered", "other"),
    [
        ("MAI-UI-8B", "MAI-UI-8B", False),
        ("MAI-UI-8B", "", False),  # not told
        ("MAI-UI-8B", "Tongyi-MAI/mai-ui-8b", False),
        ("/models/MAI-UI-8B/", "MAI-UI-8B", False),
        ("gpt-5", "gpt-5-2025-08-07", False),
        ("qwen3-vl", "qwen3-vl:latest", False),
        ("MAI-UI-8B", "MAI-UI-2B", True),
        ("gpt-5", "gpt-5-mini", True),
        ("gpt-5", "gpt-5-mini-2025-08-07", True),
        ("MAI-UI-8B", "MAI-UI-8B-AWQ", True),
    ],
)
def test_a_folder_or_a_release_is_no_other_model(asked: str, answered: str, other: bool) -> None:
    assert is_other(asked, answered) is other


@pytest.mark.parametrize("after", ["0.2", lambda: formatdate(time.time() + 2.2, usegmt=True)], ids=["seconds", "date"])
async def test_a_server_that_asks_for_a_pause_gets_it_and_the_person_sees_it_pass(after: object) -> None:
    told = after() if callable(after) else str(after)
    with FakeEndpoint([refuse(429, "slow down", Retry_After=told), say("ok")]) as endpoint:
        began = time.monotonic()
        completion, heard = await ask(endpoint)
    assert completion.answer.content == "ok"
    assert time.monotonic() - began >= 0.2
    left = [one.seconds for one in heard if isinstance(one, Waiting) and "pause" in one.words]
    assert len(left) > 1
    assert left == sorted(left, reverse=True)


@pytest.mark.parametrize("told", ["-5", "nan", "soon", "1e400", "Fri, 99 Foo 2020 00:00:00 GMT"])
async def test_a_pause_that_is_no_time_is_the_usual_one(told: str) -> None:
    with FakeEndpoint([refuse(429, "slow down", Retry_After=told), say("ok")]) as endpoint:
        completion, heard = await ask(endpoint)
    assert completion.answer.content == "ok"
    assert not [one for one in heard if isinstance(one, Waiting) and "pause" in one.words]


async def test_a_pause_longer_than_a_person_waits_ends_the_request_at_once_and_says_how_long_it_is() -> None:
    with FakeEndpoint(lambda _: refuse(429, "quota", Retry_After="3600")) as endpoint:
        with pytest.raises(ModelError) as raised:
            await ask(endpoint)
        assert len(endpoint.requests) == 1
    assert "60 minutes" in raised.value.what


async def test_a_pause_can_be_broken_off() -> None:
    with FakeEndpoint(lambda _: refuse(429, "slow down", Retry_After="60")) as endpoint:
        asking = asyncio.ensure_future(ask(endpoint))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        asking.cancel()
        await asyncio.wait({asking})
    assert asking.cancelled()
    assert time.monotonic() - began < 30  # of the pause's 60 s
