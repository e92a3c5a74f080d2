"""OpenAI-compatible endpoints: normalizes their addresses and lists their models."""

import asyncio
import ipaddress
import json
import urllib.parse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from foundation.errors import UsageError

if TYPE_CHECKING:
    from openai import AsyncOpenAI


def normalize_url(text: str) -> str:
    """Return the base URL for an address: host and port, or a URL with or without /v1. Raises UsageError."""
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


def is_loopback(url: str) -> bool:
    """Return whether requests to this URL stay on this machine."""
    host = urllib.parse.urlsplit(url).hostname or ""
    with suppress(ValueError):  # a host name, even if it begins like an address: 127.0.0.1.example.org
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    return False


#: Most bytes of a list of models. The longest known, OpenRouter's, has about 350 entries of 2 KiB.
_MOST_BYTES = 4 << 20
#: Most entries of a list of models: detecting the family of a name takes about 50 µs.
_MOST_MODELS = 5_000
#: Timeout in seconds for the whole list.
_TIMEOUT = 20
#: Longest model name. vLLM uses a folder's path as the name, which has at most 4,096 characters.
_LONGEST_NAME = 4096


class ListingError(Exception):
    """The answer is not a list of models, or is too long."""


async def list_models(client: "AsyncOpenAI") -> dict[str, dict[str, Any]]:
    """Return the entries of /v1/models by id. Raises TimeoutError, ListingError, or an exception of openai's."""
    data = bytearray()
    async with asyncio.timeout(_TIMEOUT), client.models.with_streaming_response.list() as response:
        async for piece in response.iter_bytes():
            data += piece
            if len(data) > _MOST_BYTES:
                raise ListingError("the list of models is longer than any server's")
    try:
        listing = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ListingError("the answer is not JSON") from error
    entries = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(entries, list):
        raise ListingError("the answer has no list of models")
    if len(entries) > _MOST_MODELS:
        raise ListingError(f"it lists {len(entries):,} models")
    named = ((one.get("id"), one) for one in entries if isinstance(one, dict))
    return {name: one for name, one in named if isinstance(name, str) and len(name) <= _LONGEST_NAME}
