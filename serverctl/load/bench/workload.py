"""What a bench sends: how many requests, with which screenshots and how much text, and what a cache may hold."""

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal, TypeAlias

from typing_extensions import override

from foundation.errors import UsageError
from serverctl.load.client import MOST_CONNECTIONS
from serverctl.load.images import data_url, png, screenshot

#: "cold": every request is new to the server, from its first token on. "warm": all requests of a setting are the same.
#: "replayed": as a recorded run: its beginning is new, its history is what the server has just seen.
Cache: TypeAlias = Literal["cold", "warm", "replayed"]

#: Screenshots are drawn before a setting is measured: about 0.85 bytes a pixel as base64, so 3.4 GB at this limit.
_MOST_PIXELS = 4_000_000_000

#: Suffix of the second name if a server is compared with itself, as a test of the comparison.
AGAIN = " (again)"

#: Words of about one token each in the vocabularies of the Qwen models.
_WORDS = (
    "the a to of and in on with for from by click open close window button menu text field icon page list item next "
    "previous step action result screen pointer scroll type wait answer note plan task file folder name search bar "
    "left right top bottom first last new old same other dark light mode settings save copy"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid that a workload spans."""

    width: int  # of every screenshot, in pixels
    height: int
    images: int  # screenshots in a request
    concurrency: int  # requests under way at once
    cache: Cache  # what the server may have seen before

    def __str__(self) -> str:
        return f"{self.images} x {self.width}x{self.height}, {self.concurrency} at once, {self.cache}"


class Load(ABC):
    """What a bench sends: made up (`Workload`) or recorded (`replay.Replay`)."""

    requests: int  # measured requests of each setting
    max_tokens: int  # of the longest answer

    @abstractmethod
    def settings(self) -> Iterator[Setting]:
        """Every setting, in the order in which they are measured."""

    @property
    def groups(self) -> Sequence[tuple[int, ...]]:
        """The numbers of a setting's requests: one client sends those of a group, one after the other."""
        return [(number,) for number in range(self.requests)]

    @abstractmethod
    def messages(self, setting: Setting, request: int, run: str) -> list[dict[str, Any]]:
        """The chat of the request with this number; -1 is the request that is not measured."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The workload as JSON values."""

    def answer_tokens(self, number: int) -> int:  # noqa: ARG002  # a recorded answer has its own
        """The length of the answer to a request, in tokens."""
        return self.max_tokens

    def pause_after(self, number: int) -> float:  # noqa: ARG002
        """Seconds that the client waits after a request's answer."""
        return 0.0

    @property
    def total(self) -> int:
        """Measured requests of all settings together."""
        return sum(map(len, self.groups)) * sum(1 for _ in self.settings())


@dataclass(frozen=True)
class Workload(Load):
    """A made-up load. Raises UsageError if a number makes no sense."""

    sizes: tuple[tuple[int, int], ...] = ((1920, 1080),)  # of the screenshots, width and height in pixels
    images: int = 1  # screenshots in a request
    requests: int = 20  # measured requests of each setting
    concurrency: tuple[int, ...] = (1,)  # requests under way at once; one setting for each number
    # Length of every answer in tokens (the end-of-text token is ignored if the server can): a thought and one action.
    # MAI-UI's own limit of 2048 would measure runaway answers.
    max_tokens: int = 128
    # Length of the prompt's text in tokens, roughly; the server's own count is in the report. An agent's text has about
    # this length: the system text with its actions, the task, and the calls of the steps before.
    text_tokens: int = 1500
    cache: Literal["warm", "cold", "both"] = "both"  # which caches to measure
    # 0 to 1: the share of each request's text (its beginning) and of its screenshots that all requests have in common.
    # Only with cold caches: every run is new to the server as a whole.
    repeated_text: float = 0.0
    repeated_images: float = 0.0
    seed: int = 0  # of screenshots and texts

    def __post_init__(self) -> None:
        if not self.sizes or not self.concurrency:
            raise UsageError("There is nothing to measure.", "Name at least one size and one concurrency.")
        least, most = min(self.concurrency), max(self.concurrency)
        pixels = self.requests * self.images * max(width * height for width, height in self.sizes)
        sides = [side for size in self.sizes for side in size]
        for wrong, message, remedy in (
            (min(sides) < 32 or max(sides) > 16_384, "A screenshot's sides must be 32 to 16384 pixels.",
             "A usual size is 1920x1080."),
            (not 0 <= self.images <= 64, f"{self.images} images in a request make no sense.", "Use 0 to 64."),
            (least < 1 or most > MOST_CONNECTIONS, f"Concurrency must be 1 to {MOST_CONNECTIONS}.",
             "One person at a screen is 1."),
            (self.requests < most, f"{self.requests} requests never are {most} at once.",
             f"Use --requests {4 * most} or more."),
            (pixels > _MOST_PIXELS, f"{self.requests} requests with these screenshots do not fit into memory.",
             "Use fewer --requests or --images, or a smaller --size."),
            (self.max_tokens < 2, "Answers of one token have no time per token.", "Use --max-tokens 2 or more."),
            (self.text_tokens < 0, "A text cannot have fewer than 0 tokens.", "Use --text-tokens 0 or more."),
        ):  # fmt: skip
            if wrong:
                raise UsageError(message, remedy)

    @override
    def settings(self) -> Iterator[Setting]:
        cold: Cache = "replayed" if self.repeated_text or self.repeated_images else "cold"
        caches: tuple[Cache, ...] = {"both": (cold, "warm"), "cold": (cold,), "warm": ("warm",)}[self.cache]
        for cache, (width, height), concurrency in product(caches, self.sizes, self.concurrency):
            yield Setting(width, height, self.images, concurrency, cache)

    @override
    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @override
    def messages(self, setting: Setting, request: int, run: str) -> list[dict[str, Any]]:
        # The name of the run is in the first words and in every picture, so that the server cannot remember a cold
        # request from an earlier run with the same seed.
        number = 0 if setting.cache == "warm" else request
        begin = f"{run}/{self.seed}/{setting}"
        key = f"{begin}/{number}"
        content: list[dict[str, Any]] = [
            {"type": "text", "text": "Please say what to do next, with one action, from these screenshots."}
        ]
        for image in range(setting.images):
            place = number * setting.images + image
            # Spread evenly: with 0.7, seven of every ten pictures are repeated.
            is_repeated = int((place + 1) * self.repeated_images) > int(place * self.repeated_images)
            name = f"{begin}/{image}" if is_repeated else f"{key}/{image}"
            picture = data_url(png(screenshot(name, setting.width, setting.height)))
            content.append({"type": "image_url", "image_url": {"url": picture}})
        alike = round(self.repeated_text * self.text_tokens)
        text = [filler(begin, alike)] if alike else []
        text.append(filler(key, self.text_tokens - alike))
        return [{"role": "system", "content": " ".join(text)}, {"role": "user", "content": content}]


def filler(key: str, tokens: int) -> str:
    """A text of about this many tokens, which differs from another key's in the first words.

    Prefix caches work in blocks of 16 tokens and more, and the key of a block covers all text before it.
    """
    digest = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    known, dice = _WORDS.split(), random.Random(key)  # noqa: S311  # filler text, not a secret
    return " ".join([digest, *(dice.choice(known) for _ in range(max(0, tokens - 12)))])
