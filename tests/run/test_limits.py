"""Requests stay within what the server takes, however long the run gets."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from stubs.desk import HURRIED
from stubs.endpoint import DONE, MODEL, Checks, FakeEndpoint, act, pictures, refuse, say, texts

from agent.core.geometry import Size, Viewport
from agent.events.run_events import Event, Warned
from agent.families.base import Decision, PastStep
from agent.families.registry import get_family
from agent.model.clients import ChatClient
from agent.model.endpoint import Endpoint, Limits
from agent.model.refusals import ModelError
from agent.run.models.actor import Actor
from agent.run.models.history import BLOCK_HIGH, BLOCK_LOW, History, HistoryRule, answer_tokens
from agent.run.models.resolve_point import PointModel, TargetFinder
from agent.run.models.settings import RunSettings
from agent.run.observing.observe import Observation
from agent.screen.encode import EncodedImage, encode
from agent.screen.settle import Fingerprint
from foundation.endpoints import normalize_url

NONE = Limits()
SIDE = 512
TOKENS = SIDE * SIDE // 1024
RULES: tuple[HistoryRule, ...] = ("sliding", "block", "grow")


def looks(count: int) -> list[Observation]:
    """As many different screens of one size."""
    from PIL import Image

    plain = Image.new("RGB", (SIDE, SIDE), "white")
    data = encode(plain, "png").data
    fingerprint = Fingerprint.of(plain)
    viewport = Viewport.of_image(Size(SIDE, SIDE))
    # A PNG ignores what follows its end: cheap images that all differ.
    images = [EncodedImage(data + number.to_bytes(2, "big"), "png", Size(SIDE, SIDE)) for number in range(count)]
    return [Observation((image,), TOKENS, viewport, fingerprint) for image in images]


class Long:
    """A long run of the mind alone."""

    def __init__(self, endpoint: FakeEndpoint, rule: HistoryRule, limits: Limits = NONE, **options: Any) -> None:
        family = get_family("mai-ui")
        kind = options.pop("kind", "other")
        self.client = ChatClient(Endpoint(normalize_url(endpoint.url), "", MODEL, kind, limits), HURRIED)
        settings = RunSettings("do the task", history=rule, **options)
        self.history = History(rule, limits, answer_tokens(family, limits.context), settings.history_images)
        targets = TargetFinder(PointModel("actor", self.client, family, family.facts.image), zoom="off")
        self.actor = Actor(self.client, family, self.history, settings, (), targets)
        self.warnings: list[str] = []

    def _hear(self, event: Event) -> None:
        if isinstance(event, Warned):
            self.warnings.append(event.message)

    async def walk(self, steps: int, note: Callable[[int], str | None] = lambda _: None) -> None:
        try:
            for number, seen in enumerate(looks(steps)):
                decision = (await self.actor.ask(number + 1, seen, [], self._hear)).result
                assert isinstance(decision, Decision)
                self.history.add(PastStep(decision.thought, decision.calls, seen.images, note=note(number)), TOKENS)
        finally:
            await self.client.aclose()


def clicks(thought: str = "I go on.") -> Callable[[int], Any]:
    return lambda number: say(act("click", thought, coordinate=[number % 999, 5]))


@pytest.mark.parametrize(
    ("context", "room"),
    [(None, 2048), (100_000, 2048), (8192, 2048), (8188, 2047), (4096, 1024), (1024, 256), (9, 256)],
)
def test_an_answer_gets_what_its_family_asks_for_or_a_quarter_of_a_small_context(
    context: int | None, room: int
) -> None:
    family = get_family("mai-ui")
    assert family.facts.sampling.max_tokens == 2048
    assert answer_tokens(family, context) == room


async def test_the_room_for_an_answer_is_what_is_asked_for() -> None:
    with FakeEndpoint(clicks()) as endpoint:
        await Long(endpoint, "block", Limits(context=4096)).walk(2)
    assert [body["max_tokens"] for body in endpoint.requests] == [1024, 1024]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("most", [1, 2, 4, 10])
async def test_a_known_limit_of_images_is_never_exceeded(rule: HistoryRule, most: int) -> None:
    with FakeEndpoint(clicks(), checks=Checks(images=most)) as endpoint:
        await Long(endpoint, rule, Limits(images=most)).walk(60)
    assert endpoint.checks.refusals == []
    assert endpoint.checks.largest_images == min(most, {"sliding": 3, "block": BLOCK_HIGH, "grow": 60}[rule])


@pytest.mark.parametrize("rule", RULES)
async def test_an_unknown_limit_of_images_is_learned_from_one_refusal(rule: HistoryRule) -> None:
    with FakeEndpoint(clicks(), checks=Checks(images=2)) as endpoint:
        long = Long(endpoint, rule)
        await long.walk(40)
    assert len(endpoint.checks.refusals) == 1
    assert endpoint.checks.largest_images == 2
    assert "at most 2 images" in long.warnings[0]


@pytest.mark.parametrize(
    ("rule", "context"),
    [("sliding", 4096), ("block", 4096), ("grow", 4096), ("sliding", 8192), ("block", 8192), ("grow", 12_288)],
)
async def test_a_known_context_is_never_exceeded_in_200_steps(rule: HistoryRule, context: int) -> None:
    checks = Checks(context=context)
    with FakeEndpoint(clicks("I look at 设置 and go on. " * 6), checks=checks) as endpoint:
        await Long(endpoint, rule, Limits(context=context)).walk(200, lambda number: "n" * (number % 7 * 40) or None)
    assert checks.refusals == []
    assert context // 3 < checks.largest_tokens <= context  # and what there is gets used


@pytest.mark.parametrize("rule", RULES)
async def test_an_unknown_context_is_learned_and_kept(rule: HistoryRule) -> None:
    checks = Checks(context=8192)
    with FakeEndpoint(clicks("I look and go on. " * 10), checks=checks) as endpoint:
        await Long(endpoint, rule).walk(100)
    assert len(checks.refusals) <= 2
    assert len(endpoint.requests) == 100 + len(checks.refusals)


@pytest.mark.parametrize("rule", RULES)
async def test_a_tokenizer_that_needs_more_than_estimated_does_not_end_the_run(rule: HistoryRule) -> None:
    checks = Checks(context=8192, images=5, bytes_per_token=1.4)
    with FakeEndpoint(clicks("I look and go on. " * 10), checks=checks) as endpoint:
        await Long(endpoint, rule, Limits(context=8192)).walk(100)
    assert checks.refusals  # it does need more, or this test shows nothing
    assert checks.largest_tokens <= 8192


async def test_a_screenshot_too_large_for_the_context_ends_in_a_sentence() -> None:
    checks = Checks(context=700)
    with FakeEndpoint(clicks(), checks=checks) as endpoint, pytest.raises(ModelError) as raised:
        await Long(endpoint, "block").walk(3)
    assert raised.value.kind == "context_too_long"
    assert "--max-pixels" in raised.value.remedy


async def test_a_server_that_takes_no_images_is_not_asked_forever() -> None:
    with FakeEndpoint(lambda _: refuse(400, "At most 0 image(s) may be provided in one prompt.")) as endpoint:
        with pytest.raises(ModelError):
            await Long(endpoint, "block").walk(1)
        assert len(endpoint.requests) == 1


# What the window shows


async def shown(rule: HistoryRule, steps: int, **options: Any) -> list[dict[str, Any]]:
    with FakeEndpoint(clicks()) as endpoint:
        await Long(endpoint, rule, **options).walk(steps)
    return endpoint.requests


async def test_sliding_shows_three_screens_and_block_three_to_twelve() -> None:
    sliding = [len(pictures(body)) for body in await shown("sliding", 12)]
    block = [len(pictures(body)) for body in await shown("block", 26)]
    assert sliding == [1, 2] + [3] * 10
    assert block == [*range(1, 13), *range(3, 13), *range(3, 7)]
    assert (min(block[12:]), max(block)) == (BLOCK_LOW, BLOCK_HIGH)


async def test_grow_keeps_every_screen_that_fits() -> None:
    assert [len(pictures(body)) for body in await shown("grow", 9)] == list(range(1, 10))


async def test_the_number_of_screens_can_be_chosen() -> None:
    assert max(len(pictures(body)) for body in await shown("block", 30, history_images=9)) == 9
    assert {len(pictures(body)) for body in (await shown("sliding", 30, history_images=2))[2:]} == {2}


async def test_between_drops_a_block_request_begins_with_all_of_the_one_before() -> None:
    requests = await shown("block", 40)
    dropped = 0
    for before, after in itertools.pairwise(requests):
        if len(pictures(after)) > len(pictures(before)):
            assert after["messages"][: len(before["messages"])] == before["messages"]
        else:
            dropped += 1
    assert dropped == 3


async def test_under_a_small_context_the_beginning_still_changes_only_now_and_then() -> None:
    with FakeEndpoint(clicks("I look and go on. " * 4), checks=Checks(context=8192)) as endpoint:
        await Long(endpoint, "block", Limits(context=8192)).walk(120)
    requests = endpoint.requests[20:]
    kept = sum(
        after["messages"][: len(before["messages"])] == before["messages"]
        for before, after in itertools.pairwise(requests)
    )
    assert kept >= len(requests) // 2


async def test_the_newest_screen_is_always_shown_and_left_out_steps_are_counted() -> None:
    with FakeEndpoint(clicks("word " * 200), checks=Checks(context=6000)) as endpoint:
        await Long(endpoint, "block", Limits(context=6000)).walk(30)
    screens = looks(30)
    for number, body in enumerate(endpoint.requests):
        assert pictures(body)[-1]["image_url"]["url"] == screens[number].images[0].data_url
        answers = len(texts(body, "assistant"))
        told = [text for text in texts(body, "user") if "earlier steps are left out" in text]
        assert answers == number or told == [f"({number - answers} earlier steps are left out here.)"]


async def test_vllm_is_sent_each_screenshot_once_over_a_whole_run() -> None:
    with FakeEndpoint(clicks()) as endpoint:
        await Long(endpoint, "block", kind="vllm").walk(30)
    sent = [part for body in endpoint.requests for part in pictures(body) if part["image_url"]]
    assert len(sent) == 30
    assert DONE not in texts(endpoint.requests[-1])
