"""Reads /v1/models of any server within bounds: the openai library takes minutes for a list without an end."""

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: Bytes of the list. OpenRouter's, the longest known, has about 350 entries of 2 KiB.
_MOST_BYTES = 4 << 20
#: Entries that are looked at: telling the family of a name takes about 50 µs.
_MOST_MODELS = 5_000
#: Seconds for the whole list.
_PATIENCE = 20
#: The path of a folder, which vLLM takes for a name, has 4,096 characters at the most.
_LONGEST_NAME = 4096


class ListingError(Exception):
    """What came is no list of models, or one without an end."""


async def list_models(client: "AsyncOpenAI") -> dict[str, dict[str, Any]]:
    """The entries of /v1/models by their ids.

    Raises:
        TimeoutError: the whole list did not come in time.
        ListingError: it is no list, or longer than any server's.
        Exception: whatever the library raises where the server refuses or cannot be reached.
    """
    data = bytearray()
    async with asyncio.timeout(_PATIENCE), client.models.with_streaming_response.list() as response:
        async for piece in response.iter_bytes():
            data += piece
            if len(data) > _MOST_BYTES:
                raise ListingError("the list of models is longer than any server's")
    try:
        listing = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ListingError("what it lists is not JSON") from error
    entries = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(entries, list):
        raise ListingError("what it lists are no models")
    if len(entries) > _MOST_MODELS:
        raise ListingError(f"it lists {len(entries):,} models")
    named = ((one.get("id"), one) for one in entries if isinstance(one, dict))
    return {name: one for name, one in named if isinstance(name, str) and len(name) <= _LONGEST_NAME}
