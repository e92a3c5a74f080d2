"""What is found out about an endpoint: its address as people write it, the model it serves, its limits."""

import socket

import pytest
from stubs.desk import HURRIED
from stubs.endpoint import MODEL, FakeEndpoint, say

from agent.families.registry import detect_family
from agent.model.clients import ChatClient
from agent.model.endpoint import Endpoint, Limits
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest, Message, Sampling
from foundation.endpoints import normalize_url
from foundation.errors import UsageError

NONE = Limits()


async def whole(client: ChatClient) -> str:
    """The answer to a hello."""
    completion = await client.complete(ChatRequest([Message.text("user", "hello")], Sampling(), 64))
    return completion.answer.content


async def discover(endpoint: FakeEndpoint, model: str | None = None, limits: Limits = NONE) -> Endpoint:
    client = ChatClient(Endpoint(normalize_url(endpoint.url), "", model, limits=limits), HURRIED)
    try:
        return await client.discover(detect_family)
    finally:
        await client.aclose()


async def test_the_one_served_model_is_found_with_vllms_context_and_kind() -> None:
    with FakeEndpoint(models=[{"id": "Qwen", "owned_by": "vllm", "max_model_len": 8192}]) as endpoint:
        found = await discover(endpoint)
        stricter = await discover(endpoint, limits=Limits(images=4, context=4096))
    assert (found.model, found.kind, found.limits.context) == ("Qwen", "vllm", 8192)
    assert stricter.limits == Limits(images=4, context=4096)


async def test_of_several_models_the_one_of_a_known_family_is_taken() -> None:
    with FakeEndpoint(models=[{"id": "llama"}, {"id": "tongyi/MAI-UI-2B"}]) as endpoint:
        assert (await discover(endpoint)).model == "tongyi/MAI-UI-2B"


@pytest.mark.parametrize("names", [("llama", "mistral"), ("MAI-UI-2B", "MAI-UI-8B")])
async def test_where_several_models_qualify_the_person_chooses(names: tuple[str, str]) -> None:
    with FakeEndpoint(models=[{"id": name, "owned_by": "vllm"} for name in names]) as endpoint:
        with pytest.raises(UsageError) as raised:
            await discover(endpoint)
        chosen = await discover(endpoint, names[1])
    assert names[0] in str(raised.value)
    assert "--model" in str(raised.value)
    assert chosen.model == names[1]


async def test_a_model_that_is_not_served_is_refused_with_the_names_that_are() -> None:
    with FakeEndpoint(models=[{"id": "llama"}]) as endpoint, pytest.raises(ModelError, match="llama") as raised:
        await discover(endpoint, "MAI-UI-8B")
    assert raised.value.kind == "unknown_model"


async def test_a_server_without_any_model_is_said_to_serve_none() -> None:
    with FakeEndpoint(models=[]) as endpoint, pytest.raises(ModelError, match="serves no model"):
        await discover(endpoint)


async def test_a_server_that_lists_no_models_can_still_chat_when_the_model_is_named() -> None:
    with FakeEndpoint(models=404) as endpoint:
        assert (await discover(endpoint, "MAI-UI-8B")).model == "MAI-UI-8B"
        with pytest.raises(ModelError) as raised:
            await discover(endpoint)
    assert "None" not in str(raised.value)
    assert "--model" in raised.value.remedy


async def test_entries_of_the_list_that_leave_fields_out_or_are_nonsense_do_no_harm() -> None:
    listing = [{"id": 7}, {"object": "model"}, {"id": "MAI-UI-8B", "max_model_len": "long"}]
    with FakeEndpoint(models=listing) as endpoint:
        found = await discover(endpoint)
    assert (found.model, found.kind, found.limits.context) == ("MAI-UI-8B", "other", None)


async def test_a_listing_in_another_shape_is_explained() -> None:
    for listing in ({"models": []}, {"data": None}, {"data": "x"}):
        with FakeEndpoint(models=listing) as endpoint, pytest.raises(ModelError):
            await discover(endpoint)


@pytest.mark.parametrize(
    ("entry", "count"), [({"id": "MAI-UI-8B"}, 200_000), ({"id": "x"}, 6_000), ({"id": "x", "about": "y" * 900}, 5_000)]
)
async def test_a_list_without_an_end_is_not_read_to_its_end(entry: dict[str, str], count: int) -> None:
    """200,000 entries hung the agent for two minutes, Ctrl-C included."""
    with FakeEndpoint(models=[entry] * count) as endpoint:
        assert (await discover(endpoint, "MAI-UI-8B")).model == "MAI-UI-8B"
        with pytest.raises(ModelError, match=r"does not list its models \((it lists|the list)") as raised:
            await discover(endpoint)
    assert "--model" in raised.value.remedy


async def test_the_key_is_sent_and_a_wrong_one_is_named_as_such() -> None:
    with FakeEndpoint([say("ok")], key="secret") as endpoint:
        address = normalize_url(endpoint.url)
        right = ChatClient(Endpoint(address, "secret"), HURRIED)
        await right.discover()
        assert await whole(right) == "ok"
        with pytest.raises(ModelError) as raised:
            await ChatClient(Endpoint(address, "guess"), HURRIED).discover()
    assert raised.value.kind == "bad_key"
    assert "MAI_AGENT_API_KEY" in raised.value.remedy
    assert "guess" not in str(raised.value)


async def test_a_dead_address_is_said_at_once_at_the_start() -> None:
    endpoint = FakeEndpoint()
    endpoint.close()
    with pytest.raises(ModelError) as raised:
        await discover(endpoint)
    assert raised.value.kind == "unreachable"


async def test_what_stays_on_this_machine_takes_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # bound, not listening: whoever is sent here is refused
        taken.bind(("127.0.0.1", 0))
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{taken.getsockname()[1]}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        with FakeEndpoint([say("direct")]) as endpoint:
            assert (await discover(endpoint)).model == MODEL
            assert await whole(ChatClient(Endpoint(normalize_url(endpoint.url), "", MODEL), HURRIED)) == "direct"


def test_a_key_never_shows_when_an_endpoint_is_printed() -> None:
    assert "secret" not in repr(Endpoint("http://127.0.0.1/v1", "secret"))
