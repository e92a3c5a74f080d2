"""How much of a run's prompts a server with a prefix cache need not compute again, counted in blocks as vLLM does."""

import hashlib
from collections.abc import Iterator

import pytest

from agent.core.geometry import Size
from agent.families.base import Call, PastStep, PromptRequest
from agent.families.registry import get_family
from agent.model.endpoint import Limits
from agent.model.request import ChatRequest, TextPart
from agent.run.models.history import History, HistoryRule, most_images
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

STEPS = 14
BLOCK = 16  # tokens
SCREENSHOT = 2040  # tokens of 1920x1080 at factor 32 (docs/facts.md)
CALL = Call("computer_use", {"action": "left_click", "coordinate": [387, 355]})
#: Families that write their history as messages; others tell it in the one message that ends with the screenshot.
CONVERSING = ["mai-ui", "qwen3-vl", "qwen2.5-vl", "qwen3.5", "ui-tars", "ui-tars-1.5", "evocua", "gui-owl-1.5", "fara",
              "opencua", "kimi"]  # fmt: skip


def tokens(request: ChatRequest) -> Iterator[str]:
    """Every token of a prompt, a letter in four standing for a token of text."""
    for message in request.messages:
        yield message.role
        for part in message.parts:
            if isinstance(part, TextPart):
                yield from (part.text[at : at + 4] for at in range(0, len(part.text), 4))
            elif part.image is not None:
                yield from (f"{part.image.digest} {number}" for number in range(SCREENSHOT))


def served(name: str, rule: HistoryRule = "block", images: int | None = None, limit: int | None = None) -> float:
    """The share of a run's prompt tokens whose blocks, and all before them, were in a request before."""
    family = get_family(name)
    screens = [EncodedImage(b"%d" % number, "png", Size(1920, 1088)) for number in range(STEPS)]
    kept = images or most_images(rule, family.facts, "vllm")
    history = History(rule, Limits(images=limit), 2048, kept)
    known: set[bytes] = set()
    hits = total = 0
    for number, screen in enumerate(screens):
        steps, skipped = history.window(2000, SCREENSHOT)
        apps = tuple(f"Application {each}" for each in range(40))
        prompt = PromptRequest("open settings", (screen,), steps, skipped, apps=apps)
        said = list(tokens(family.request(prompt)))
        chain = b""
        for start in range(0, len(said) - BLOCK + 1, BLOCK):
            chain = hashlib.blake2b(chain + repr(said[start : start + BLOCK]).encode(), digest_size=16).digest()
            hits += BLOCK if chain in known else 0
            known.add(chain)
        total += len(said)
        thought = f"The list shows what I look for, so I click on it: {number}."
        answer = Answer(family.written(thought, (CALL,)))
        history.add(PastStep(thought, (CALL,), (screen,), answer=answer), SCREENSHOT)
    return hits / total


@pytest.mark.parametrize("name", CONVERSING)
def test_four_fifths_of_a_runs_prompts_come_from_the_prefix_cache(name: str) -> None:
    assert served(name) >= 0.8


def test_a_server_that_takes_three_screenshots_still_keeps_half_of_a_prompt() -> None:
    assert served("mai-ui", "sliding", 3) < 0.25
    assert served("mai-ui", limit=3) > 0.5
