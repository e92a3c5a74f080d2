"""Where a model is served, and the server's known limits."""

import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from foundation.endpoints import is_loopback

ServerKind: TypeAlias = Literal["vllm", "literal", "other"]
#: The API: OpenAI's chat completions, as most servers have, or a cloud provider's own.
Api: TypeAlias = Literal["chat", "openai", "anthropic", "gemini"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one request; None if the server did not report them."""

    images: int | None = None  # images per request
    context: int | None = None  # tokens of prompt and answer together
    max_pixels: int | None = None  # pixel budget of one image


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of an OpenAI-compatible server or a cloud provider, with what is known about it."""

    base_url: str  # with the API's path, for example http://127.0.0.1:8000/v1
    api_key: str = field(default="", repr=False)  # sent as a bearer token; "" for servers without keys
    model: str | None = None  # the served model's name; None to discover it
    kind: ServerKind = "other"  # the server software, if known
    limits: Limits = Limits()  # the server's start parameters, if known
    api: Api = "chat"
    key_variable: str = "MAI_AGENT_API_KEY"  # the environment variable of the key, for error messages
    #: origins of the model, as the server reports them: repository names, folders
    origins: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """Return the host part of the address."""
        return urllib.parse.urlsplit(self.base_url).hostname or ""

    @property
    def is_local(self) -> bool:
        """Whether screenshots stay on this machine."""
        return self.kind == "literal" or is_loopback(self.base_url)


#: What services append to the name of the same model: a tag, or the date of a release.
_RELEASE = re.compile(r"(:latest|-\d{4}(-?\d{2}){0,2})$")


def is_other(requested: str, answered: str) -> bool:
    """Whether the name under which a server answered is another model's. A folder or a release may differ."""
    names = (_RELEASE.sub("", name.rstrip("/").rsplit("/", 1)[-1]).casefold() for name in (requested, answered))
    return bool(answered) and len(set(names)) > 1


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine that a person asked for."""

    name: str = "auto"
    url: str | None = None  # of an endpoint
    model: str | None = None
    api_key: str = field(default="", repr=False)  # for that endpoint
    preset: str | None = None  # for our own server
    beside: tuple[str, ...] = ()  # models that our own servers will serve at the same time
