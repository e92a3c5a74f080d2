"""Where a model is served, and what is known of the server's limits."""

import ipaddress
import urllib.parse
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from foundation.errors import UsageError

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
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # a name, also one that only looks like an address: 127.0.0.1.example.org
            return False


def normalize_url(text: str) -> str:
    """The base URL of an endpoint as a person may write it: a host with a port, a URL with or without /v1.

    Raises:
        UsageError: it is no address.
    """
    address = text.strip()
    if "://" not in address:
        address = f"http://{address}"
    try:
        parts = urllib.parse.urlsplit(address)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or " " in address:
        raise UsageError(f"{text!r} is not the address of an endpoint.", "It looks like http://127.0.0.1:8000/v1.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", ""))
