"""The client against a scripted endpoint: what it sends, what it retries, and what it says."""

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from stubs.endpoint import (
    MODEL,
    Behaviour,
    Checks,
    Exchange,
    FakeEndpoint,
    after,
    events,
    half,
    pictures,
    raw,
    refuse,
    say,
    silent,
)

from agent.core.geometry import Size
from agent.model.asking import Completion, Delta, Patience, Progress, Retrying, ServerCondition, Waiting
from agent.model.clients import ChatClient
from agent.model.endpoint import Endpoint, ServerKind
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest, ImagePart, Message, Sampling, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import ToolCall
from foundation.endpoints import normalize_url
from foundation.errors import ExitStatus

HURRIED = Patience(connect=2, first_token=5, between_tokens=5, notice=5, retries=2, backoff=0.01)
USUAL = Patience(backoff=0.01)
SAMPLING = Sampling()
HELLO = [Message.text("user", "hello")]


def png(number: int) -> EncodedImage:
    header = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (64).to_bytes(4, "big") + (64).to_bytes(4, "big")
    return EncodedImage(header + bytes([number]), "png", Size(64, 64))


def client_of(endpoint: FakeEndpoint, kind: ServerKind = "other", patience: Patience = HURRIED) -> ChatClient:
    return ChatClient(Endpoint(normalize_url(endpoint.url), "", MODEL, kind), patience)


async def ask(
    client: ChatClient, messages: Sequence[Message] = HELLO, constraint: str | None = None, **parts: Any
) -> list[Progress | Completion]:
    heard: list[Progress | Completion] = []
    heard.append(await client.complete(ChatRequest(messages, SAMPLING, 64, regex=constraint, **parts), heard.append))
    return heard


async def whole(
    client: ChatClient, messages: Sequence[Message] = HELLO, constraint: str | None = None, **parts: Any
) -> Completion:
    last = (await ask(client, messages, constraint, **parts))[-1]
    assert isinstance(last, Completion)
    return last


async def refused(
    script: Any, requests: int = 1, kind: ServerKind = "other", patience: Patience = HURRIED, **more: Any
) -> ModelError:
    """The error of a request, for which the endpoint is asked so often."""
    with FakeEndpoint(script) as endpoint:
        with pytest.raises(ModelError) as raised:
            await asyncio.wait_for(ask(client_of(endpoint, kind, patience), **more), 60)
        assert len(endpoint.requests) == requests
    return raised.value


async def test_the_answer_streams_in_pieces_that_add_up_to_the_completion() -> None:
    with FakeEndpoint([say("one two three four")]) as endpoint:
        items = await ask(client_of(endpoint))
    deltas = [item.text for item in items if isinstance(item, Delta)]
    assert len(deltas) > 1
    assert isinstance(items[-1], Completion)
    assert items[-1].answer.content == "".join(deltas) == "one two three four"
    assert items[-1].answer.finish_reason == "stop"
    assert items[-1].ttft_ms is not None
    assert items[-1].ttft_ms <= items[-1].total_ms


@pytest.mark.parametrize("trace", ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ""])
async def test_requests_carry_the_trace_of_their_run_if_it_has_one(trace: str) -> None:
    with FakeEndpoint([say("yes")]) as endpoint:
        await ask(ChatClient(Endpoint(normalize_url(endpoint.url), "", MODEL), HURRIED, trace=trace))
    assert endpoint.headers[0].get("traceparent", "") == trace


async def test_usage_comes_with_cached_tokens_where_the_server_tells_them() -> None:
    script = [say("a", prompt=500, completion=7, cached=480), say("b", prompt=5, completion=1)]
    with FakeEndpoint(script) as endpoint:
        client = client_of(endpoint)
        first, second = await whole(client), await whole(client)
    assert (first.answer.usage.prompt, first.answer.usage.completion, first.answer.usage.cached) == (500, 7, 480)
    assert (second.answer.usage.prompt, second.answer.usage.cached) == (5, None)


async def test_the_request_carries_the_familys_sampling_and_only_vllm_gets_what_openai_lacks() -> None:
    with FakeEndpoint(lambda _: say("ok")) as endpoint:
        await whole(client_of(endpoint), constraint="a+")
        await whole(client_of(endpoint, "vllm"), constraint="a+")
    other, vllm = endpoint.requests
    assert other["temperature"] == vllm["temperature"] == 0.0
    assert other["seed"] == 42
    assert {"top_k", "repetition_penalty", "structured_outputs"}.isdisjoint(other)
    assert (vllm["top_k"], vllm["repetition_penalty"]) == (-1, 1.0)
    assert vllm["structured_outputs"] == {"regex": "a+"}


# What is retried


TRANSIENT: dict[str, Behaviour] = {
    "429": refuse(429, "slow down"),
    "500": refuse(500, "EngineCore encountered an issue"),
    "503": refuse(503, "loading"),
    "a lost connection": half("the ans"),
    "a stream without an end": events({"id": "c", "choices": [{"index": 0, "delta": {"content": "x"}}]}),
    "an error in the stream": events({"error": {"message": "engine died", "code": 500}}),
    "no JSON in the stream": events("{not json"),
    "a web page": raw(200, b"<html>It works!</html>"),
}


@pytest.mark.parametrize("behaviour", TRANSIENT.values(), ids=TRANSIENT.keys())
async def test_what_is_transient_is_retried_and_what_streamed_in_before_is_void(behaviour: Behaviour) -> None:
    with FakeEndpoint([behaviour, say("the answer")]) as endpoint:
        items = await ask(client_of(endpoint))
    retrying = next(index for index, item in enumerate(items) if isinstance(item, Retrying))
    assert "".join(item.text for item in items[retrying:] if isinstance(item, Delta)) == "the answer"
    assert isinstance(items[-1], Completion)
    assert items[-1].answer.content == "the answer"


@pytest.mark.parametrize("behaviour", TRANSIENT.values(), ids=TRANSIENT.keys())
async def test_after_two_retries_the_person_is_told_in_sentences(behaviour: Behaviour) -> None:
    error = await refused(lambda _: behaviour, requests=3)
    assert error.exit_status is ExitStatus.ENVIRONMENT
    assert error.what.endswith(".")
    assert error.remedy
    assert "Error(" not in str(error)
    assert "\n" not in str(error)


async def test_a_refused_connection_is_retried_and_then_explained_with_the_address() -> None:
    endpoint = FakeEndpoint()
    endpoint.close()
    attempts: list[Progress] = []
    with pytest.raises(ModelError) as raised:
        await client_of(endpoint).complete(ChatRequest(HELLO, SAMPLING, 8), attempts.append)
    assert all(isinstance(item, Retrying) for item in attempts)
    assert [item.attempt for item in attempts if isinstance(item, Retrying)] == [1, 2]
    assert raised.value.kind == "unreachable"
    assert endpoint.url in raised.value.what


LASTING: dict[str, tuple[Behaviour, str]] = {
    "bad key": (refuse(401, "Unauthorized"), "bad_key"),
    "forbidden": (refuse(403, "Forbidden"), "bad_key"),
    "unknown model": (refuse(404, "The model `x` does not exist."), "unknown_model"),
    "bad request": (refuse(400, "messages: field required"), "refused"),
    "unprocessable": (refuse(422, "nonsense"), "refused"),
    "images": (refuse(400, "At most 4 image(s) may be provided in one prompt."), "too_many_images"),
    "context": (refuse(400, "This model's maximum context length is 8192 tokens. However..."), "context_too_long"),
}


@pytest.mark.parametrize(("behaviour", "kind"), LASTING.values(), ids=LASTING.keys())
async def test_what_retrying_cannot_help_is_asked_once(behaviour: Behaviour, kind: str) -> None:
    error = await refused([behaviour, say("never")])
    assert error.kind == kind
    assert error.remedy


async def test_a_refusal_that_names_a_limit_gives_the_number() -> None:
    assert [(await refused([LASTING[name][0]])).limit for name in ("images", "context")] == [4, 8192]


async def test_the_pause_before_a_retry_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    patience = Patience(first_token=5, retries=4, backoff=0.5)
    with FakeEndpoint(lambda _: refuse(503, "loading")) as endpoint, pytest.raises(ModelError):
        monkeypatch.setattr("agent.model.asking.asyncio.sleep", note)
        await ask(client_of(endpoint, patience=patience))
    assert pauses == [0.5, 1.0, 2.0, 4.0]


# What servers do not know


@pytest.mark.parametrize(
    ("message", "kind", "field"),
    [
        ("Unrecognized request argument supplied: stream_options", "other", "stream_options"),
        ("unknown field: seed", "other", "seed"),
        ("Extra inputs are not permitted: top_k", "vllm", "top_k"),
        ("structured_outputs is not supported", "vllm", "structured_outputs"),
        ("Unknown parameter: 'chat_template_kwargs'", "other", "chat_template_kwargs"),
        ("response_format of type json_schema is not supported", "other", "response_format"),
        ("Unsupported parameter: stop", "other", "stop"),
    ],
)
async def test_a_part_that_a_server_refuses_is_left_out_from_then_on(
    message: str, kind: ServerKind, field: str
) -> None:
    with FakeEndpoint([refuse(400, message), say("a"), say("b")]) as endpoint:
        client = client_of(endpoint, kind)
        for _ in range(2):
            await whole(client, constraint="x", stop=["x"], schema={}, template_arguments={"enable_thinking": False})
    assert [field in request for request in endpoint.requests] == [True, False, False]


async def test_a_server_that_refuses_the_same_part_again_is_believed() -> None:
    assert (await refused(lambda _: refuse(400, "unknown field: seed"), requests=2)).kind == "refused"


async def test_chunks_that_leave_fields_out_are_read_as_far_as_they_go() -> None:
    script = events(
        {"object": "ping"},
        {"choices": [{"delta": {"content": "half "}}], "usage": {"completion_tokens": 3}},
        {"choices": [{"delta": {"role": "assistant"}}]},
        {"choices": [{"delta": {"content": "whole"}, "finish_reason": "stop"}]},
    )
    with FakeEndpoint([script]) as endpoint:
        completion = await whole(client_of(endpoint))
    assert completion.answer.content == "half whole"
    assert (completion.answer.usage.prompt, completion.answer.usage.completion) == (None, 3)


# What families ask for and answer besides text

TOOLS = [{"type": "function", "function": {"name": "computer", "parameters": {"type": "object"}}}]


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def test_tools_stop_strings_schema_and_template_arguments_travel_in_the_fields_servers_read() -> None:
    parts: dict[str, Any] = {
        "tools": TOOLS, "stop": ["</tool_call>"], "schema": {"type": "object"},
        "template_arguments": {"enable_thinking": False},
    }  # fmt: skip
    with FakeEndpoint([say("ok")]) as endpoint:
        await whole(client_of(endpoint), **parts)
    (body,) = endpoint.requests
    assert body["tools"] == TOOLS
    assert body["stop"] == ["</tool_call>"]
    assert body["response_format"] == {
        "type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}
    }  # fmt: skip
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


async def test_tools_are_never_left_out_in_silence() -> None:
    message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    error = await refused([refuse(400, message), say("never")], tools=TOOLS)
    assert error.kind == "no_tools"
    assert "--tool-call-parser" in error.remedy


async def test_tool_calls_and_their_results_go_both_ways() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "computer", "arguments": '{"action": "wait"}'}}
    with FakeEndpoint([events(chunk(tool_calls=[call]), chunk("tool_calls")), say("ok")]) as endpoint:
        client = client_of(endpoint)
        answer = (await whole(client, tools=TOOLS)).answer
        assert answer.tool_calls == (ToolCall("c1", "computer", '{"action": "wait"}'),)
        said = Message("assistant", tool_calls=answer.tool_calls, reasoning="I wait.")
        await whole(client, [*HELLO, said, Message.result("c1", TextPart("done"), ImagePart(png(1)))])
    assistant, tool = endpoint.requests[1]["messages"][1:]
    assert assistant["tool_calls"] == [{"id": "c1", "type": "function", "function": call["function"]}]
    assert assistant["reasoning_content"] == "I wait."
    assert (tool["role"], tool["tool_call_id"]) == ("tool", "c1")
    assert [part["type"] for part in tool["content"]] == ["text", "image_url"]


def test_tools_and_calls_count_among_the_texts_that_a_model_reads() -> None:
    said = Message("assistant", (TextPart("I click."), ImagePart(None)), (ToolCall("c", "computer", "{}"),), None, "hm")
    texts = list(ChatRequest([*HELLO, said], SAMPLING, tools=TOOLS).texts())
    assert texts == ["hello", "I click.", "computer{}", "hm", json.dumps(TOOLS[0])]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_a_model_that_thinks_aloud_is_not_silent(name: str) -> None:
    def think(exchange: Exchange) -> None:
        exchange.start_stream()
        for _ in range(10):
            exchange.event(chunk(**{name: "hm "}))
            exchange.over.wait(0.15)
        exchange.delta("So.", "stop")
        exchange.end_stream()

    patience = Patience(first_token=1.2, between_tokens=1.2, notice=1, retries=0)
    with FakeEndpoint([think]) as endpoint:
        items = await ask(client_of(endpoint, patience=patience))
    assert [item.reasoning for item in items if isinstance(item, Delta)] == [True] * 10 + [False]
    assert not any(isinstance(item, Waiting) for item in items)
    assert isinstance(items[-1], Completion)
    assert (items[-1].answer.reasoning, items[-1].answer.content) == ("hm " * 10, "So.")


# Answers without end


def babble(exchange: Exchange, text: str = "again and again " * 500) -> None:
    exchange.start_stream()
    while not exchange.over.is_set():
        exchange.delta(text)


async def test_an_answer_that_grows_without_end_is_given_up() -> None:
    assert (await refused([babble, say("never")])).kind == "endless"


@pytest.mark.parametrize("kind", ["content", "reasoning_content"])
@pytest.mark.parametrize("piece", ["again ", "a", "。"])
async def test_a_server_that_keeps_to_no_limit_of_tokens_is_given_up_soon(kind: str, piece: str) -> None:
    pieces = 0

    def babble_on(exchange: Exchange) -> None:
        nonlocal pieces
        exchange.start_stream()
        while not exchange.over.is_set() and pieces < 100_000:
            exchange.event({"choices": [{"index": 0, "delta": {kind: piece}}]})
            pieces += 1

    error = await refused([babble_on, say("never")])
    assert error.kind == "endless"
    assert "has no end" in error.what


async def test_an_answer_of_nothing_but_empty_pieces_is_silence() -> None:
    def drip(exchange: Exchange) -> None:
        exchange.start_stream()
        exchange.delta("begun")
        while not exchange.over.wait(0.02):
            exchange.delta("")

    patience = Patience(first_token=5, between_tokens=0.3, total=20, notice=5, retries=0)
    assert (await refused([drip], patience=patience)).kind == "silent"


async def test_an_answer_that_lasts_without_end_is_given_up() -> None:
    def drip(exchange: Exchange) -> None:
        exchange.start_stream()
        while not exchange.over.wait(0.05):
            exchange.delta("")

    patience = Patience(first_token=5, between_tokens=5, total=0.4, notice=5, retries=2, backoff=0.01)
    assert (await refused([drip, say("never")], patience=patience)).kind == "endless"


def flood(piece: bytes, **headers: str) -> Behaviour:
    """Sends the same bytes without end, at most 256 MiB of them."""

    def behave(exchange: Exchange) -> None:
        exchange.start_stream(**headers)
        for _ in range((256 << 20) // len(piece)):
            exchange.chunk(piece)

    return behave


@pytest.mark.parametrize(
    "piece",
    [b"A" * 65536, b"data: x\n" * 8192, b": nothing to say\n" * 4096, (b": on and on" * 500 + b"\n\n") * 10],
    ids=["a line", "an event", "a comment", "comments"],
)
@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
async def test_a_server_that_floods_without_an_answer_is_given_up_before_it_fills_the_memory(
    piece: bytes, kind: str
) -> None:
    assert (await refused([flood(piece, kind=kind), say("never")], patience=USUAL)).kind == "endless"


async def test_an_error_without_end_is_given_up() -> None:
    def refuse_on_and_on(exchange: Exchange) -> None:
        exchange.start_stream(status=400)
        for _ in range(4096):
            exchange.chunk(b"A" * 65536)

    with FakeEndpoint([refuse_on_and_on] * 3) as endpoint, pytest.raises(ModelError):
        await asyncio.wait_for(ask(client_of(endpoint, patience=USUAL)), 60)


async def test_a_packed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * (64 << 20))

    def answer(exchange: Exchange) -> None:
        exchange.start_stream(encoding="gzip")
        exchange.chunk(bomb)
        exchange.end_stream()

    with FakeEndpoint([answer] * 3) as endpoint, pytest.raises(ModelError, match="compresses its answers"):
        await ask(client_of(endpoint))
    sent = {name.lower(): value for name, value in endpoint.headers[0].items()}
    assert sent["accept-encoding"] == "identity"


async def test_a_model_whose_name_is_no_name_is_passed_over() -> None:
    with FakeEndpoint(models=[{"id": "m" * 5000}, {"id": None}, {"id": MODEL}]) as endpoint:
        client = ChatClient(Endpoint(normalize_url(endpoint.url), ""), HURRIED)
        assert (await client.discover()).model == MODEL


# Images by id


def looking(*numbers: int) -> list[Message]:
    return [Message.screenshot(png(number)) for number in numbers]


async def test_vllm_gets_the_bytes_of_an_image_once_and_its_id_afterwards() -> None:
    with FakeEndpoint(lambda _: say("ok"), checks=Checks()) as endpoint:
        client = client_of(endpoint, "vllm")
        first, second = await whole(client, looking(1)), await whole(client, looking(1, 2))
    (sent,) = pictures(endpoint.requests[0])
    known, new = pictures(endpoint.requests[1])
    assert sent == {"type": "image_url", "image_url": {"url": png(1).data_url}, "uuid": png(1).digest}
    assert known == {"type": "image_url", "image_url": None, "uuid": png(1).digest}
    assert new["image_url"] == {"url": png(2).data_url}
    assert (first.images_sent, second.images_sent) == (1, 1)
    assert endpoint.checks.refusals == []


async def test_other_servers_never_see_an_image_id() -> None:
    with FakeEndpoint(lambda _: say("ok")) as endpoint:
        client = client_of(endpoint)
        await whole(client, looking(1))
        await whole(client, looking(1))
    assert all("uuid" not in part and part["image_url"]["url"] for body in endpoint.requests for part in pictures(body))


async def test_an_image_that_the_server_forgot_is_sent_again_at_once() -> None:
    with FakeEndpoint(lambda _: say("ok"), checks=Checks()) as endpoint:
        client = client_of(endpoint, "vllm")
        await whole(client, looking(1, 2))
        endpoint.checks.held.clear()
        again = await whole(client, looking(1, 2))
    assert endpoint.checks.refusals == ["Cache miss for image at index 0 but data is not provided."]
    assert len(endpoint.requests) == 3
    assert again.images_sent == 2


async def test_a_server_that_keeps_forgetting_is_sent_bytes_always() -> None:
    with FakeEndpoint(lambda _: say("ok"), checks=Checks()) as endpoint:
        client = client_of(endpoint, "vllm")
        for _ in range(12):
            endpoint.checks.held.clear()
            await whole(client, looking(1))
    assert len(endpoint.checks.refusals) == 3
    assert all(part["image_url"] for body in endpoint.requests[-5:] for part in pictures(body))


async def test_a_cache_miss_for_bytes_that_were_sent_ends_the_request_instead_of_repeating_it() -> None:
    miss = refuse(400, "Cache miss for image at index 0 but data is not provided.")
    assert (await refused(lambda _: miss, kind="vllm", messages=looking(1))).kind == "refused"


async def test_image_ids_are_dropped_where_a_server_does_not_know_them() -> None:
    with FakeEndpoint([refuse(400, "Extra inputs are not permitted: uuid"), say("a"), say("b")]) as endpoint:
        client = client_of(endpoint, "vllm")
        await whole(client, looking(1))
        await whole(client, looking(1))
    assert [["uuid" in part for part in pictures(body)] for body in endpoint.requests] == [[True], [False], [False]]


# Patience


async def test_silence_before_the_first_token_is_told_and_then_ends_the_wait() -> None:
    patience = Patience(first_token=0.5, between_tokens=5, notice=0.1, retries=2, backoff=0.01)
    with FakeEndpoint([silent()]) as endpoint:
        heard: list[Progress] = []
        with pytest.raises(ModelError) as raised:
            await client_of(endpoint, patience=patience).complete(ChatRequest(HELLO, SAMPLING, 8), heard.append)
        assert len(endpoint.requests) == 1
    assert raised.value.kind == "silent"
    assert "--patience" in raised.value.remedy
    assert heard
    assert all(isinstance(item, Waiting) for item in heard)
    seconds = [item.seconds for item in heard if isinstance(item, Waiting)]
    assert seconds == sorted(seconds)


def test_a_person_who_waits_longer_for_the_first_token_has_as_long_for_the_answer_as_before() -> None:
    assert Patience.of(None) == Patience()
    assert Patience.of(7200) == Patience(first_token=7200, between_tokens=60, total=7200 + Patience().total)
    assert Patience.of(10).between_tokens == 10


async def test_silence_in_the_middle_of_an_answer_ends_the_wait() -> None:
    patience = Patience(first_token=30, between_tokens=0.3, notice=0.1)
    assert (await refused([silent("I think")], patience=patience)).kind == "silent"


async def test_a_slow_first_token_within_patience_is_waited_for() -> None:
    patience = Patience(first_token=20, between_tokens=0.2, notice=0.1)
    with FakeEndpoint([after(0.6, say("late"))]) as endpoint:
        items = await ask(client_of(endpoint, patience=patience))
    assert any(isinstance(item, Waiting) for item in items)
    assert isinstance(items[-1], Completion)
    assert items[-1].answer.content == "late"


async def test_an_abandoned_request_hangs_up_on_the_server() -> None:
    with FakeEndpoint([silent("I think"), say("next")]) as endpoint:
        client = client_of(endpoint)
        began = asyncio.Event()
        asking = asyncio.ensure_future(client.complete(ChatRequest(HELLO, SAMPLING, 8), lambda _: began.set()))
        await began.wait()
        asking.cancel()
        await asyncio.wait({asking})
        assert (await whole(client)).answer.content == "next"
        await client.aclose()


def conditions(*told: ServerCondition) -> Callable[[], ServerCondition]:
    """A server of ours whose condition changes from one question to the next; the last one stays."""
    left = list(told)

    def ask() -> ServerCondition:
        return left.pop(0) if len(left) > 1 else left[0]

    return ask


async def test_a_crashed_server_of_ours_is_waited_for_and_the_step_goes_on() -> None:
    coming = [ServerCondition("coming", "loading the model"), ServerCondition("coming", "engine ready")]
    with FakeEndpoint([half("one two"), say("whole")]) as endpoint:
        client = ChatClient(
            Endpoint(normalize_url(endpoint.url), "", MODEL, "vllm"), HURRIED,
            conditions(*coming, ServerCondition("ready", "")),
        )  # fmt: skip
        items = await ask(client)
    reasons = [item.reason for item in items if isinstance(item, Retrying)]
    assert any("loading the model" in reason for reason in reasons)
    assert any("engine ready" in reason for reason in reasons)
    assert isinstance(items[-1], Completion)
    assert items[-1].answer.content == "whole"


async def test_a_server_of_ours_that_does_not_come_back_ends_the_step_with_its_reason() -> None:
    with FakeEndpoint([half("one two"), say("never")]) as endpoint:
        gone = conditions(ServerCondition("gone", "It died twice within ten minutes."))
        client = ChatClient(Endpoint(normalize_url(endpoint.url), "", MODEL, "vllm"), HURRIED, gone)
        with pytest.raises(ModelError, match="twice within ten minutes") as caught:
            await ask(client)
    assert caught.value.kind == "gone"
    assert caught.value.exit_status == ExitStatus.ENVIRONMENT


async def test_after_a_restart_images_are_sent_whole_again() -> None:
    """A new process holds none of the images that the old one was sent by id."""
    with FakeEndpoint([say("a"), half("b"), say("c")]) as endpoint:
        back = conditions(ServerCondition("coming", "starting Python"), ServerCondition("ready", ""))
        client = ChatClient(Endpoint(normalize_url(endpoint.url), "", MODEL, "vllm"), HURRIED, back)
        await whole(client, looking(1))
        last = await whole(client, looking(1))
    assert last.images_sent == 1
