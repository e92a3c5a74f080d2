"""From a line to what is sent: images read and made to fit, the chat put together, defaults filled in."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from foundation.errors import UsageError
from serverctl.batch.lines import Request, is_path, resolve
from serverctl.images import data_url, fitted

#: Width and height of an image in pixels, to those at which it is sent.
Fit: TypeAlias = Callable[[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for lines that do not say.

    Args:
        system: the system text; None for none.
        max_tokens: limit of an answer. MAI-UI's own client has 2048 (agent/families/mai_ui/family.toml).
        temperature: 0 for the same answer every time.
    """

    system: str | None = None
    max_tokens: int = 2048
    temperature: float = 0.0


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
    """An image cannot be sent; the message is one sentence."""


def prepare(request: Request, base: Path, defaults: Defaults, fit: Fit | None = None) -> Prepared:
    """Read the images of a request, and put together what is sent.

    The instruction comes before the images, as in MAI-UI's prompts.

    Args:
        request: the line.
        base: the folder that its paths are relative to.
        defaults: what it does not say.
        fit: makes the images this size; None sends them as they are.

    Raises:
        ImageError: an image cannot be read or is none.
    """
    messages = request.messages
    if messages is None:
        pictures = ({"type": "image_url", "image_url": {"url": written}} for written in request.images)
        system = request.system if request.system is not None else defaults.system
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": [{"type": "text", "text": request.instruction}, *pictures]})
    return Prepared(
        id=request.id,
        messages=[_with_images(message, base, fit) for message in messages],
        max_tokens=defaults.max_tokens if request.max_tokens is None else request.max_tokens,
        temperature=defaults.temperature if request.temperature is None else request.temperature,
        schema=request.json_schema,
        regex=request.regex,
    )


def _with_images(message: dict[str, Any], base: Path, fit: Fit | None) -> dict[str, Any]:
    """A message, its image files read."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_with_image(part, base, fit) for part in content]}


def _with_image(part: Any, base: Path, fit: Fit | None) -> Any:
    image = part.get("image_url") if isinstance(part, dict) else None
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        return part
    url = image["url"]
    if not is_path(url) and not url.startswith("data:"):
        return part  # the server fetches it
    return {**part, "image_url": {**image, "url": _image(url, base, fit)}}


def _image(written: str, base: Path, fit: Fit | None) -> str:
    """An image as a data: URL."""
    if written.startswith("data:") and fit is None:
        return written
    name = "the image in the line" if written.startswith("data:") else f"the image {written!r}"
    try:
        data = _decode(written) if written.startswith("data:") else resolve(written, base).read_bytes()
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
