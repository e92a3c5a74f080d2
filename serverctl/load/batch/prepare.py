"""Turns a line into a request: reads and resizes images, builds the chat, fills in defaults."""

import base64
import binascii
import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from foundation.errors import UsageError
from serverctl.load.batch.lines import Request, image_parts, is_fetched, resolve
from serverctl.load.images import data_url, fitted

#: Maps the width and height of an image in pixels to the size at which it is sent.
Fit: TypeAlias = Callable[[int, int], tuple[int, int]]


class ImageError(Exception):
    """An image cannot be sent. The message is one sentence."""


def prepare(request: Request, base: Path, defaults: Mapping[str, Any], fit: Fit | None = None) -> dict[str, Any]:
    """Return the arguments of the chat API for a request, whose images are read from the folder `base`.

    The defaults are "system", "max_tokens" and "temperature". The instruction comes before the images, as in MAI-UI's
    prompts. Without `fit`, images are sent as they are.

    Raises:
        ImageError: an image cannot be read or is none.
    """
    messages = copy.deepcopy(request.messages)
    if messages is None:
        pictures = ({"type": "image_url", "image_url": {"url": written}} for written in request.images)
        system = request.system if request.system is not None else defaults["system"]
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": [{"type": "text", "text": request.instruction}, *pictures]})
    for image in image_parts(messages):
        if not is_fetched(image["url"]):
            image["url"] = _image(image["url"], base, fit)
    sent: dict[str, Any] = {"messages": messages}
    for name in ("max_tokens", "temperature"):
        sent[name] = defaults[name] if getattr(request, name) is None else getattr(request, name)
    if request.json_schema is not None:
        schema = {"name": "answer", "schema": request.json_schema}
        sent["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.regex is not None:
        sent["extra_body"] = {"structured_outputs": {"regex": request.regex}}
    return sent


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
