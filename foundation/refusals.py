"""Classifies why a request to a server failed, for all servers' dialects. The callers add their own messages."""

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias

RefusalKind: TypeAlias = Literal[
    "unreachable", "silent", "overloaded", "server_error", "broken", "bad_key", "unknown_model", "too_many_images",
    "no_images", "context_too_long", "refused",
]  # fmt: skip

_IMAGES_LIMIT = re.compile(r"At most (\d+) image", re.IGNORECASE)
_CONTEXT_LIMIT = re.compile(r"(?:context length|model length|max_model_len)[^0-9]{0,40}(\d{3,})", re.IGNORECASE)
_CONTEXT_WORDS = re.compile(
    r"context length|context window|max(?:imum)? model len|max_model_len|prompt is too long|n_ctx|"
    r"exceeds the maximum number of tokens",
    re.IGNORECASE,
)
#: Errors of models without vision: vLLM, llama.cpp ("image input is not supported"), Ollama ("missing data required for
#: image input"), LM Studio ("Model does not support images"), OpenAI ("image_url is only supported by certain models"),
#: services in Rust ("unknown variant `image_url`, expected `text`").
_NO_IMAGES = re.compile(
    r"not a multimodal model|image input is not supported|required for image input|not support (?:image|vision)"
    r"|image_url.{0,40}only supported by|unknown variant .{0,3}image_url|does not (?:accept|take) images?"
    r"|images? (?:inputs? )?(?:are|is) not supported",
    re.IGNORECASE,
)
_KIND_OF_STATUS: dict[int, RefusalKind] = {401: "bad_key", 403: "bad_key", 429: "overloaded", 503: "overloaded"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failed request."""

    kind: RefusalKind  # for programs
    reason: str  # the message of the server or transport, in one line without a full stop
    #: the HTTP status; None if there was none, also for an error inside a stream
    status: int | None = None
    limit: int | None = None  # the limit of images or tokens in the message
    wait: float | None = None  # seconds until the server wants to be asked again (Retry-After)


def refusal_of(error: BaseException) -> Refusal:
    """Classify the exception of a request. An unexpected one means that the answer was unreadable."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return of_status(_said(error), int(error.status_code), error.response.headers)
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Refusal("silent", cause_of(error))
    if isinstance(error, openai.APIConnectionError):
        return Refusal("unreachable", cause_of(error))
    if type(error) is openai.APIError:  # an error event inside a stream
        return Refusal("server_error", _said(error))
    return Refusal("broken", cause_of(error))


def of_status(text: str, status: int, headers: Mapping[str, str] | None = None) -> Refusal:
    """Classify a refusal by its HTTP status, text and headers."""
    match = _IMAGES_LIMIT.search(text)
    if _NO_IMAGES.search(text) or (match is not None and int(match[1]) == 0):  # llama.cpp sends it with status 500
        return Refusal("no_images", text, status)
    kind = _KIND_OF_STATUS.get(status, "server_error" if status >= 500 else None)
    if kind is not None:
        return Refusal(kind, text, status, wait=_wait(headers or {}))
    if match is not None:
        return Refusal("too_many_images", text, status, int(match[1]))
    if _CONTEXT_WORDS.search(text):
        found = _CONTEXT_LIMIT.search(text)
        return Refusal("context_too_long", text, status, int(found[1]) if found else None)
    return Refusal("unknown_model" if status == 404 else "refused", text, status)


def _wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, which is a number of seconds or a date; None without one."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _said(error: Any) -> str:
    text = error.body.get("message") if isinstance(error.body, dict) else None
    return " ".join(str(text or error.message).split())[:400].rstrip(".")


def cause_of(error: BaseException) -> str:
    """Return the message of an exception's root cause, in one line without a full stop."""
    deepest = error
    while (deeper := deepest.__cause__ or deepest.__context__) is not None:
        deepest = deeper
    return " ".join(str(deepest).split())[:200].rstrip(".") or type(deepest).__name__
