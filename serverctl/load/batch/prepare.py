"""Turns a line into a request: reads and resizes images, builds the chat, fills in defaults."""

import base64
import binascii
import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from foundation.errors import UsageError
from serverctl.load.batch.lines import Request, image_parts, is_fetched, resolve
from serverctl.load.images import data_url, fitted

#: Maps the width and height of an image in pixels to the size at which it is sent.
Fit: TypeAlias = Callable[[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Defaults:
    """The defaults of lines."""

    system: str | None  # the system text; None for none
    max_tokens: int  # limit of an answer
    temperature: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request as it is sent; every image is a data: URL (or one that the server fetches)."""

    id: str
    messages: list[dict[str, Any]]
    max_tokens: int
    temperature: float
    schema: dict[str, Any] | None = None
    regex: str | None = None


class ImageError(Exception):
    """An image cannot be sent. The message is one sentence."""


def prepare(request: Request, base: Path, defaults: Defaults, fit: Fit | None = None) -> Prepared:
    """Read the images of a request from the folder `base`, and build the chat.

    The instruction comes before the images, as in MAI-UI's prompts. Without `fit`, images are sent as they are.

    Raises:
        ImageError: an image cannot be read or is none.
    """
    messages = copy.deepcopy(request.messages)
    if messages is None:
        pictures = ({"type": "image_url", "image_url": {"url": written}} for written in request.images)
        system = request.system if request.system is not None else defaults.system
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": [{"type": "text", "text": request.instruction}, *pictures]})
    for image in image_parts(messages):
        if not is_fetched(image["url"]):
            image["url"] = _image(image["url"], base, fit)
    return Prepared(
        id=request.id,
        messages=messages,
        max_tokens=defaults.max_tokens if request.max_tokens is None else request.max_tokens,
        temperature=defaults.temperature if request.temperature is None else request.temperature,
        schema=request.json_schema,
        regex=request.regex,
    )


def _image(written: str, base: Path, fit: Fit | None) -> str:
    inline = written.startswith("data:")
    if inline and fit is None:
        return written
    name = "the image in the line" if inline else f"the image {written!r}"
    try:
        data = _decode(written) if inline else resolve(written, base).read_bytes()
        return data_url(data if fit is None else fitted(data, fit))
    except OSError as error:
        raise ImageError(f"{name} cannot be read: {error.strerror or error}") from error
    except (ValueError, UsageError) as error:
        raise ImageError(f"{name}: {error}") from error


def _decode(url: str) -> bytes:
    head, _, body = url.partition(",")
    if not head.endswith(";base64"):
        raise ValueError("its data: URL is not base64")
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise ValueError(f"its base64 is broken ({error})") from error
