"""Converts servers' error responses, in all their formats, to one error class with two sentences."""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Literal, TypeAlias

from agent.model.endpoint import Endpoint
from foundation.errors import ExitStatus, MaiError
from foundation.refusals import Refusal, RefusalKind, refusal_of

ErrorKind: TypeAlias = Literal[
    "unreachable", "overloaded", "broken", "silent", "bad_key", "unknown_model", "too_many_images",
    "no_images", "context_too_long", "image_forgotten", "unsupported", "no_tools", "refused", "endless", "gone",
]  # fmt: skip

SEE_ITS_LOG = "The server's own log says more."

_UNSUPPORTED = re.compile(
    r"unrecognized|unsupported|unknown|not (?:permitted|supported|allowed)|extra (?:inputs|fields)|unexpected",
    re.IGNORECASE,
)
#: The optional parts of a request, and how error messages mention them.
_OPTIONAL_PARTS = (
    ("stream_options", ("stream_options", "include_usage")),
    ("sampling", ("top_k", "repetition_penalty")),
    ("seed", ("seed",)),
    ("regex", ("structured_outputs",)),
    ("schema", ("response_format", "json_schema")),
    ("template_arguments", ("chat_template_kwargs",)),
    ("stop", ("stop",)),
    ("image_id", ("uuid",)),
)


class ModelError(MaiError):
    """The model could not be asked. `kind` is for programs, two sentences are for the person.

    `limit` is the number that the server's error named. `part` is the optional request part that the server does not
    know. `wait` are the seconds after which the server wants to be asked again, if it said so.
    """

    exit_status = ExitStatus.ENVIRONMENT

    def __init__(
        self,
        kind: ErrorKind,
        what: str,
        remedy: str,
        limit: int | None = None,
        part: str | None = None,
        wait: float | None = None,
    ) -> None:
        super().__init__(what, remedy)
        self.kind: ErrorKind = kind
        self.limit = limit
        self.part = part
        self.wait = wait


#: For each kind: the message, and what to do.
_SENTENCES: dict[RefusalKind, tuple[str, str]] = {
    "silent": ("{where} did not answer in time.", "Is the server overloaded or hung?"),
    "unreachable": ("There is no connection to {where} ({reason}).", "Is the server running there?"),
    "bad_key": ("{where} refuses the key.", "Set the right one in the variable {key}."),
    "overloaded": ("{where} answers with status {status}: {reason}.", SEE_ITS_LOG),
    "server_error": ("{where} answers with status {status}: {reason}.", SEE_ITS_LOG),
    "broken": ("{where} sent an invalid answer ({reason}).", SEE_ITS_LOG),
    "too_many_images": (
        "The server takes at most {limit} images in a request.",
        "Start it with a higher --limit-mm-per-prompt, or lower --history-images.",
    ),
    "no_images": (
        "The model takes no images ({reason}).",
        "Use --family generic --see outline: it tells the model the elements of the screen as text.",
    ),
    "context_too_long": (
        "The request is longer than the model's context: {reason}.",
        "Lower --max-pixels or --history-images, or start the server with a longer context.",
    ),
    "unknown_model": (
        "{where} does not serve {model!r} ({reason}).",
        "See what it serves under /v1/models, and choose with --model.",
    ),
    "refused": ("{where} refuses the request ({status}): {reason}.", SEE_ITS_LOG),
}


#: Remedies for cloud providers, where the user cannot restart the server or read its log.
_PEERS_REMEDIES: dict[RefusalKind, str] = {
    "silent": "It may be overloaded. A longer wait can be set with --patience SECONDS.",
    "unreachable": "Is this machine connected to the network?",
    "overloaded": "Your account there may be at its limit, or the service busy: try again later.",
    "server_error": "The service is busy or has a fault: try again later.",
    "broken": "Try again; if it stays so, its API may have changed.",
    "context_too_long": "Lower --max-pixels or --history-images.",
    "unknown_model": "Is its name right, and may your key use it? Choose with --model.",
    "refused": "Those are the service's own words.",
}


def explain(error: Exception, endpoint: Endpoint, sent: Collection[str] = ()) -> ModelError:
    """Convert an exception of a request to a ModelError. `sent` names the request parts that the error may be about."""
    return error if isinstance(error, ModelError) else in_words(refusal_of(error), endpoint, sent)


def in_words(refusal: Refusal, endpoint: Endpoint, sent: Collection[str] = ()) -> ModelError:
    """Convert a server's error response to a ModelError. `sent` is as in `explain`."""
    if endpoint.api_key:  # some services repeat the key
        refusal = replace(refusal, reason=refusal.reason.replace(endpoint.api_key, "[the key]"))
    kind = refusal.kind
    if kind == "server_error" and refusal.status is None:  # inside a stream
        kind = "broken"
    if endpoint.api == "chat" and kind == "refused" and "tools" in sent and "tool" in refusal.reason.lower():
        return ModelError(  # tools are never omitted: without them the model cannot act
            "no_tools",
            f"{endpoint.base_url} does not take tools ({refusal.reason}).",
            "Enable tool calls (vLLM: --enable-auto-tool-choice --tool-call-parser NAME), or choose a --family "
            "that needs none.",
        )
    if kind in ("refused", "unknown_model") and (part := _unknown_part(refusal.reason, sent)):
        return ModelError("unsupported", f"The server does not know {part}: it is left out.", "", part=part)
    what, remedy = _SENTENCES[kind]
    words = {"where": endpoint.base_url, "model": endpoint.model, "reason": refusal.reason}
    what = what.format(**words, status=refusal.status, limit=refusal.limit)
    if endpoint.api != "chat":
        remedy = _PEERS_REMEDIES.get(kind, remedy)
    remedy = remedy.format(key=endpoint.key_variable)
    found: ErrorKind = "overloaded" if kind == "server_error" else kind
    return ModelError(found, what, remedy, refusal.limit, wait=refusal.wait)


def _unknown_part(reason: str, sent: Collection[str]) -> str | None:
    """Return the optional request part that the server does not know."""
    if not _UNSUPPORTED.search(reason):
        return None
    mentioned = (part for part, words in _OPTIONAL_PARTS if any(word in reason for word in words))
    return next((part for part in mentioned if part in sent), None)
