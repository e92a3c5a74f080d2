"""The clients of cloud peers, through their makers' libraries, against scripted ones."""

import json
import sys
from typing import Any

import pytest
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
    reasoning,
    refuse,
    says,
    stream,
    thinking,
    tool_use,
)

from agent.model import engines
from agent.model.asking import Completion, Delta, ModelClient, Progress, Retrying
from agent.model.clients import client_of
from agent.model.endpoint import Endpoint, EngineChoice
from agent.model.engines import Engine, choose_engine, named_endpoint
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest, Message, Sampling
from foundation.errors import EnvironmentLacksError, UsageError

HELLO = [Message.text("system", "Be brief."), Message.text("user", "hello")]


def chosen(peer: FakePeer, model: str | None = None, key: str = KEY) -> Endpoint:
    choice = EngineChoice("endpoint", peer.url, model or MODELS[peer.peer], key)
    return named_endpoint(choice).endpoint


def client(peer: FakePeer) -> ModelClient:
    return client_of(chosen(peer), PATIENT)


async def ask(peer: FakePeer, messages: Any = HELLO, **parts: Any) -> tuple[Completion, list[Progress]]:
    heard: list[Progress] = []
    asked = client(peer)
    try:
        return await asked.complete(ChatRequest(messages, Sampling(), 64, **parts), heard.append), heard
    finally:
        await asked.aclose()


async def refused(peer: str, *script: Behaviour) -> ModelError:
    with FakePeer(peer, script) as fake, pytest.raises(ModelError) as raised:
        await ask(fake)
    return raised.value


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*engines.KEY_VARIABLES, "GOOGLE_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("peer", PEERS)
async def test_words_stream_in_with_usage_and_an_end(peer: str) -> None:
    with FakePeer(peer, [says(peer, "It is done.")]) as fake:
        completion, heard = await ask(fake)
    assert completion.answer.content == "It is done."
    assert "".join(one.text for one in heard if isinstance(one, Delta)) == "It is done."
    assert completion.answer.finish_reason == "stop"
    assert completion.answer.usage.completion == 20
    assert completion.answer.usage.cached == 7
    assert completion.answer.usage.prompt == (107 if peer == "anthropic" else 100)
    assert completion.ttft_ms is not None


@pytest.mark.parametrize("peer", PEERS)
async def test_a_thought_and_a_call_are_told_apart_and_kept_as_they_came(peer: str) -> None:
    with FakePeer(peer, [clicks(peer, 1, 30, 40)]) as fake:
        completion, heard = await ask(fake)
    answer = completion.answer
    assert answer.reasoning == "I click."
    assert any(one.reasoning for one in heard if isinstance(one, Delta))
    (call,) = answer.tool_calls
    told = json.loads(call.arguments)
    match peer:
        case "openai":
            assert (call.id, call.name) == ("call_1", "computer")
            assert told == {"actions": [{"type": "click", "x": 30, "y": 40, "button": "left"}]}
            assert answer.items[0]["encrypted_content"] == "sealed-1"
            assert answer.items[1] == computer_call(1, *told["actions"])
        case "anthropic":
            assert (call.id, call.name) == ("toolu_1", "left_click")
            assert told == {"coordinate": [30, 40]}
            assert list(answer.items) == [thinking("I click."), tool_use(1, "left_click", coordinate=[30, 40])]
        case "gemini":
            assert call.name == "click"
            assert told == {"x": 30, "y": 40}
            assert answer.items[1]["function_call"] == {"name": "click", "args": {"x": 30, "y": 40}}
            assert answer.items[1]["thought_signature"] == b"sealed-1"


async def test_an_older_computer_call_of_one_action_is_the_same_as_one_of_several() -> None:
    call = computer_call(1)
    del call["actions"]
    call["action"] = {"type": "wait"}
    with FakePeer("openai", [stream(*openai_events(call))]) as fake:
        completion, _ = await ask(fake)
    assert json.loads(completion.answer.tool_calls[0].arguments) == {"actions": [{"type": "wait"}]}


async def test_several_calls_of_one_answer_keep_their_order() -> None:
    blocks = [tool_use(1, "left_click", coordinate=[1, 2]), tool_use(2, "type", text="hi"), tool_use(3, "screenshot")]
    with FakePeer("anthropic", [stream(*anthropic_events(*blocks))]) as fake:
        first, _ = await ask(fake)
    parts = [function_call("click", x=1, y=2), function_call("type", text="hi")]
    with FakePeer("gemini", [stream(*gemini_events(*parts))]) as fake:
        second, _ = await ask(fake)
    assert [(call.id, call.name) for call in first.answer.tool_calls] == [
        ("toolu_1", "left_click"), ("toolu_2", "type"), ("toolu_3", "screenshot"),
    ]  # fmt: skip
    assert json.loads(first.answer.tool_calls[1].arguments) == {"text": "hi"}
    assert [call.name for call in second.answer.tool_calls] == ["click", "type"]
    assert len({call.id for call in second.answer.tool_calls}) == 2


@pytest.mark.parametrize(
    ("peer", "behaviour", "reason", "words"),
    [
        ("openai", stream(*openai_events(message("I cannot help.", refusal=True))), "refusal", "I cannot help."),
        ("openai", stream(*openai_events(message("I"), reason="content_filter")), "refusal", "I"),
        ("anthropic", stream(*anthropic_events({"type": "text", "text": "No."}, stop="refusal")), "refusal", "No."),
        ("gemini", stream(*gemini_events({"text": "No."}, finish="PROHIBITED_CONTENT")), "refusal", "No."),
        ("gemini", stream({"promptFeedback": {"blockReason": "SAFETY"}}), "refusal",
         "The service declines the request (SAFETY)."),
        ("openai", stream(*openai_events(message("I"), reason="max_output_tokens")), "length", "I"),
        ("anthropic", stream(*anthropic_events({"type": "text", "text": "I"}, stop="max_tokens")), "length", "I"),
        ("gemini", stream(*gemini_events({"text": "I"}, finish="MAX_TOKENS")), "length", "I"),
        ("gemini", stream(*gemini_events(finish="MALFORMED_FUNCTION_CALL")), "malformed", ""),
    ],
)  # fmt: skip
async def test_an_answer_says_how_it_ended(peer: str, behaviour: Behaviour, reason: str, words: str) -> None:
    with FakePeer(peer, [behaviour]) as fake:
        completion, _ = await ask(fake)
    assert (completion.answer.finish_reason, completion.answer.content) == (reason, words)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error"), (503, "api_error")])
async def test_what_is_transient_is_tried_again(peer: str, status: int, kind: str) -> None:
    script = [refuse(status, "Too busy now.", kind), says(peer, "At last.")]
    with FakePeer(peer, script) as fake:
        completion, heard = await ask(fake)
        assert len(fake.bodies) == 2
    assert completion.answer.content == "At last."
    assert [one.reason for one in heard if isinstance(one, Retrying)] == [
        f"{fake.base_url} answers with status {status}: Too busy now."
    ]


@pytest.mark.parametrize("peer", PEERS)
async def test_what_stays_overloaded_is_told_with_what_to_do(peer: str) -> None:
    busy = refuse(529, "Overloaded.", "overloaded_error")
    error = await refused(peer, busy, busy)
    assert error.kind == "overloaded"
    assert "try again later" in error.remedy


@pytest.mark.parametrize("peer", PEERS)
async def test_a_broken_stream_is_tried_again(peer: str) -> None:
    begun = {
        "openai": openai_events(message("Half"))[:3],
        "anthropic": anthropic_events({"type": "text", "text": "Half"})[:4],
        "gemini": gemini_events({"text": "Half"})[:1],
    }[peer]
    script = [stream(*begun, end=False), stream(*begun), says(peer, "Whole.")]
    with FakePeer(peer, script[1:]) as fake:
        completion, heard = await ask(fake)
    assert completion.answer.content == "Whole."
    assert any(isinstance(one, Retrying) for one in heard)
    with FakePeer(peer, [script[0], script[2]]) as fake:
        completion, heard = await ask(fake)
    assert completion.answer.content == "Whole."


async def test_an_error_inside_of_a_stream_is_explained_like_one_before_it() -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    begun = anthropic_events({"type": "text", "text": "Half"})[:4]
    with FakePeer("anthropic", [stream(*begun, overloaded), says("anthropic", "Whole.")]) as fake:
        completion, _ = await ask(fake)
    assert completion.answer.content == "Whole."
    failed = openai_events(message("x"))[0] | {"type": "response.failed"}
    failed["response"] |= {"status": "failed", "error": {"code": "server_error", "message": "The model broke."}}
    with FakePeer("openai", [stream(failed), says("openai", "Whole.")]) as fake:
        completion, heard = await ask(fake)
    assert completion.answer.content == "Whole."
    assert any("The model broke" in one.reason for one in heard if isinstance(one, Retrying))


@pytest.mark.parametrize(
    ("peer", "message"),
    [
        ("openai", "Your input exceeds the context window of this model."),
        ("anthropic", "prompt is too long: 208310 tokens > 200000 maximum"),
        ("gemini", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."),
    ],
)
async def test_a_request_that_is_too_long_is_known_as_such(peer: str, message: str) -> None:
    assert (await refused(peer, refuse(400, message))).kind == "context_too_long"


@pytest.mark.parametrize("peer", PEERS)
async def test_any_other_refusal_is_told_at_once_in_the_services_words(peer: str) -> None:
    error = await refused(peer, refuse(400, "No such parameter here."))
    assert error.kind == "refused"
    assert "No such parameter here" in error.what


@pytest.mark.parametrize("peer", PEERS)
async def test_a_peer_that_is_not_there_is_unreachable(peer: str) -> None:
    with FakePeer(peer) as fake:
        endpoint = chosen(fake)
    asked = client_of(endpoint, PATIENT)
    with pytest.raises(ModelError) as raised:
        await asked.discover()
    await asked.aclose()
    assert raised.value.kind == "unreachable"
    assert "network" in raised.value.remedy


@pytest.mark.parametrize("peer", PEERS)
async def test_key_and_model_are_checked_before_anything_is_sent(peer: str) -> None:
    with FakePeer(peer, context=200_000) as fake:
        asked = client(fake)
        found = await asked.discover()
        await asked.aclose()
        assert found.limits.context == (None if peer == "openai" else 200_000)
        asked = client_of(chosen(fake, key="wrong-key"), PATIENT)
        with pytest.raises(ModelError) as raised:
            await asked.discover()
        await asked.aclose()
        assert raised.value.kind == "bad_key"
        assert engines.PEERS[peer].key in raised.value.remedy
        assert "wrong-key" not in str(raised.value)
        asked = client_of(chosen(fake, "llama"), PATIENT)
        with pytest.raises(ModelError, match="llama") as raised:
            await asked.discover()
        await asked.aclose()
        assert raised.value.kind == "unknown_model"
        assert fake.bodies == []


async def test_a_model_must_be_named() -> None:
    with FakePeer("openai") as fake:
        asked = client_of(Endpoint(fake.base_url, KEY, api="openai"), PATIENT)
        with pytest.raises(UsageError, match="many models") as raised:
            await asked.discover()
    assert "--model" in raised.value.remedy


def literal() -> Engine:
    raise AssertionError("not asked for")


@pytest.mark.parametrize(
    ("address", "api", "base_url"),
    [
        ("openai", "openai", "https://api.openai.com/v1"),
        ("https://api.openai.com/", "openai", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1/", "chat", "https://api.openai.com/v1"),
        ("Anthropic", "anthropic", "https://api.anthropic.com"),
        ("api.anthropic.com", "anthropic", "https://api.anthropic.com"),
        ("gemini", "gemini", "https://generativelanguage.googleapis.com"),
        ("https://generativelanguage.googleapis.com", "gemini", "https://generativelanguage.googleapis.com"),
        ("openai+http://127.0.0.1:9/v1", "openai", "http://127.0.0.1:9/v1"),
        ("anthropic+https://gateway.example", "anthropic", "https://gateway.example"),
        ("127.0.0.1:8000", "chat", "http://127.0.0.1:8000/v1"),
        ("https://openrouter.ai/api/v1", "chat", "https://openrouter.ai/api/v1"),
    ],
)
def test_a_peer_is_meant_by_its_name_or_its_bare_host(
    address: str, api: str, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = choose_engine(EngineChoice(url=address, model="m", api_key=KEY), literal)
    assert (engine.endpoint.api, engine.endpoint.base_url) == (api, base_url)
    assert engine.family == (None if api == "chat" else f"{api}-computer")


def test_the_peers_own_key_comes_before_the_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = EngineChoice("endpoint", "anthropic", "m", "for-my-own-server")
    assert named_endpoint(choice).endpoint.api_key == "for-my-own-server"
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert named_endpoint(choice).endpoint.api_key == KEY
    assert KEY not in repr(named_endpoint(choice))


def test_a_missing_key_is_told_with_its_variable() -> None:
    with pytest.raises(EnvironmentLacksError) as raised:
        named_endpoint(EngineChoice("endpoint", "gemini", "m"))
    assert "GEMINI_API_KEY" in raised.value.remedy


@pytest.mark.parametrize(("peer", "library"), [("anthropic", "anthropic"), ("gemini", "google.genai")])
def test_a_missing_library_is_told_with_the_extra_that_brings_it(
    peer: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentLacksError, match="not installed") as raised:
        named_endpoint(EngineChoice("endpoint", peer, "m", KEY))
    assert f'pip install "mai-agent[{peer}]"' in raised.value.remedy


def test_asking_for_help_imports_no_peers_library() -> None:
    import subprocess

    code = "import sys, agent.model.clients; print({'openai', 'anthropic', 'google.genai'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


async def test_the_silent_thinking_of_a_peer_is_no_content() -> None:
    with FakePeer("openai", [stream(*openai_events(reasoning(1, "Hm."), message("Yes.")))]) as fake:
        completion, _ = await ask(fake)
    assert (completion.answer.reasoning, completion.answer.content) == ("Hm.", "Yes.")
