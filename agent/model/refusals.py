"""What servers say when they do not answer, in all their dialects, as one kind of error with two sentences."""

import re
from collections.abc import Collection
from typing import Any, Literal, TypeAlias

from agent.model.endpoint import Endpoint
from foundation.errors import ExitStatus, MaiError

ErrorKind: TypeAlias = Literal[
    "unreachable", "overloaded", "broken", "silent", "bad_key", "unknown_model", "too_many_images",
    "context_too_long", "image_forgotten", "unsupported", "refused", "gone",
]  # fmt: skip

SEE_ITS_LOG = "The server's own log says more."

_IMAGES_LIMIT = re.compile(r"At most (\d+) image", re.IGNORECASE)
_CONTEXT_LIMIT = re.compile(r"(?:context length|model length|max_model_len)[^0-9]{0,40}(\d{3,})", re.IGNORECASE)
_CONTEXT_WORDS = re.compile(
    r"context length|context window|max(?:imum)? model len|prompt is too long|n_ctx", re.IGNORECASE
)
_UNSUPPORTED = re.compile(
    r"unrecognized|unsupported|unknown|not (?:permitted|supported|allowed)|extra (?:inputs|fields)|unexpected",
    re.IGNORECASE,
)
#: The optional parts of a request, and the words by which a refusal speaks of them.
_OPTIONAL_PARTS = (
    ("stream_options", ("stream_options", "include_usage")),
    ("sampling", ("top_k", "repetition_penalty")),
    ("seed", ("seed",)),
    ("constraint", ("structured_outputs",)),
    ("image_id", ("uuid",)),
)


class ModelError(MaiError):
    """The model could not be asked; `kind` for programs, two sentences for the person.

    Args:
        kind: what happened.
        what: the first sentence.
        remedy: the second.
        limit: the number that a refusal named.
        part: the optional part of the request that the server does not know.
    """

    exit_status = ExitStatus.ENVIRONMENT

    def __init__(
        self, kind: ErrorKind, what: str, remedy: str, limit: int | None = None, part: str | None = None
    ) -> None:
        super().__init__(what, remedy)
        self.kind: ErrorKind = kind
        self.limit = limit
        self.part = part


def explain(error: Exception, endpoint: Endpoint, dropped: Collection[str]) -> ModelError:
    """Any exception of a request as one of ours.

    Args:
        error: what was raised, by the library or the transport below it.
        endpoint: what was asked.
        dropped: optional parts that were not sent, so that the refusal cannot mean them.
    """
    import openai

    where = endpoint.base_url
    if isinstance(error, ModelError):
        return error
    if isinstance(error, openai.APITimeoutError):
        return ModelError("silent", f"{where} did not answer in time.", "Is the server overloaded or hung?")
    if isinstance(error, openai.APIConnectionError):
        return ModelError(
            "unreachable", f"There is no connection to {where} ({_cause(error)}).", "Is the server running there?"
        )
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return ModelError(
            "bad_key", f"{where} refuses the key.", "Set the right one in the variable MAI_AGENT_API_KEY."
        )
    if isinstance(error, openai.RateLimitError | openai.InternalServerError):
        return ModelError(
            "overloaded", f"{where} answers with status {error.status_code}: {_message(error)}.", SEE_ITS_LOG
        )
    if isinstance(error, openai.APIStatusError):
        return _explain_status(error, endpoint, dropped)
    return ModelError("broken", f"{where} sent something that is no answer ({_cause(error)}).", SEE_ITS_LOG)


def _explain_status(error: Any, endpoint: Endpoint, dropped: Collection[str]) -> ModelError:
    message, where = _message(error), endpoint.base_url
    if match := _IMAGES_LIMIT.search(message):
        limit = int(match[1])
        return ModelError(
            "too_many_images",
            f"The server takes at most {limit} images in a request.",
            "Start it with a higher --limit-mm-per-prompt, or lower --history-images.",
            limit,
        )
    if _CONTEXT_WORDS.search(message):
        found = _CONTEXT_LIMIT.search(message)
        return ModelError(
            "context_too_long",
            f"The request is longer than the model's context: {message}.",
            "Lower --max-pixels or --history-images, or start the server with a longer context.",
            int(found[1]) if found else None,
        )
    if _UNSUPPORTED.search(message):
        for part, words in _OPTIONAL_PARTS:
            if part not in dropped and any(word in message for word in words):
                return ModelError("unsupported", f"The server does not know {part}: it is left out.", "", part=part)
    if error.status_code == 404:
        return ModelError(
            "unknown_model",
            f"{where} does not serve {endpoint.model!r} ({message}).",
            "See what it serves under /v1/models, and choose with --model.",
        )
    return ModelError("refused", f"{where} refuses the request ({error.status_code}): {message}.", SEE_ITS_LOG)


def reason_of(error: Exception) -> str:
    """What a server or the transport gave as the reason, in one line."""
    return _message(error) if hasattr(error, "body") else _cause(error)


def _message(error: Any) -> str:
    body = error.body
    text = body.get("message") if isinstance(body, dict) else None
    return " ".join(str(text or error.message).split())[:400].rstrip(".")


def _cause(error: BaseException) -> str:
    deepest = error
    while (deeper := deepest.__cause__ or deepest.__context__) is not None:
        deepest = deeper
    text = " ".join(str(deepest).split())[:200]
    return text or type(deepest).__name__
