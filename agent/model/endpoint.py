"""Where a model is served, and what is known of the server's limits."""

import urllib.parse
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from foundation.addresses import is_loopback

ServerKind: TypeAlias = Literal["vllm", "literal", "other"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold; None where the server did not say.

    Args:
        images: images per request.
        context: tokens of prompt and answer together.
        max_pixels: pixel budget of one image.
    """

    images: int | None = None
    context: int | None = None
    max_pixels: int | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint that is ready.

    Args:
        base_url: with the API's path, for example http://127.0.0.1:8000/v1.
        api_key: sent as a bearer token; "" for servers without one.
        model: the served model's name; None to find it out.
        kind: what serves it, where that is known.
        limits: what it was started with, where that is known.
    """

    base_url: str
    api_key: str = field(default="", repr=False)
    model: str | None = None
    kind: ServerKind = "other"
    limits: Limits = Limits()

    @property
    def host(self) -> str:
        """The host part of the address."""
        return urllib.parse.urlsplit(self.base_url).hostname or ""

    @property
    def is_local(self) -> bool:
        """Whether screenshots stay on this machine."""
        return is_loopback(self.base_url)
