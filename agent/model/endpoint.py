"""Where a model is served, and what is known of the server's limits."""

import urllib.parse
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from foundation.endpoints import is_loopback

ServerKind: TypeAlias = Literal["vllm", "literal", "other"]
#: What is spoken there: OpenAI's chat completions, as most servers do, or the own API of a cloud peer.
Api: TypeAlias = Literal["chat", "openai", "anthropic", "gemini"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold; None where the server did not say."""

    images: int | None = None  # images per request
    context: int | None = None  # tokens of prompt and answer together
    max_pixels: int | None = None  # pixel budget of one image


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that is ready: an OpenAI-compatible one, or a cloud peer's."""

    base_url: str  # with the API's path, for example http://127.0.0.1:8000/v1
    api_key: str = field(default="", repr=False)  # sent as a bearer token; "" for servers without one
    model: str | None = None  # the served model's name; None to find it out
    kind: ServerKind = "other"  # what serves it, where that is known
    limits: Limits = Limits()  # what it was started with, where that is known
    api: Api = "chat"
    key_variable: str = "MAI_AGENT_API_KEY"  # the variable that the key is taken from, for who must set it
    #: where the server has the model from, as it tells: names of repositories, folders
    origins: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """The host part of the address."""
        return urllib.parse.urlsplit(self.base_url).hostname or ""

    @property
    def is_local(self) -> bool:
        """Whether screenshots stay on this machine."""
        return self.kind == "literal" or is_loopback(self.base_url)


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine a person asked for."""

    name: str = "auto"
    url: str | None = None  # of an endpoint
    model: str | None = None
    api_key: str = field(default="", repr=False)  # for that endpoint
    preset: str | None = None  # for a server of ours
    beside: tuple[str, ...] = ()  # models that servers of ours will serve beside it
