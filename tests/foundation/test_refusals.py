"""What servers and transports say when they do not answer is told apart in one place."""

import httpx2
import openai
import pytest

from foundation.refusals import Refusal, refusal_of

REQUEST = httpx2.Request("POST", "http://127.0.0.1:8000/v1/chat/completions")


def answered(status: int, message: str) -> openai.APIStatusError:
    return openai.APIStatusError("?", response=httpx2.Response(status, request=REQUEST), body={"message": message})


@pytest.mark.parametrize(
    ("status", "message", "kind", "limit"),
    [
        (401, "Unauthorized", "bad_key", None),
        (429, "Too many requests", "overloaded", None),
        (503, "Engine is dead", "overloaded", None),
        (500, "maximum context length is 10", "server_error", None),
        (400, "At most 4 image(s) may be provided.", "too_many_images", 4),
        (400, "This model's maximum context length is 8192 tokens.", "context_too_long", 8192),
        (400, "the prompt exceeds n_ctx", "context_too_long", None),
        (404, "The model `x` does not exist.", "unknown_model", None),
        (422, "odd", "refused", None),
    ],
)
def test_a_status_and_its_words_are_one_kind_and_the_limit_they_name(
    status: int, message: str, kind: str, limit: int | None
) -> None:
    refusal = refusal_of(answered(status, message))
    assert (refusal.kind, refusal.status, refusal.limit) == (kind, status, limit)
    assert refusal.reason == message.rstrip(".")


def test_what_is_no_status_is_silence_no_connection_a_broken_stream_or_no_answer() -> None:
    try:
        raise openai.APIConnectionError(request=REQUEST) from OSError("Connection refused.")
    except openai.APIConnectionError as error:
        assert refusal_of(error) == Refusal("unreachable", "Connection refused")
    assert refusal_of(openai.APITimeoutError(REQUEST)).kind == "silent"
    assert refusal_of(TimeoutError()).kind == "silent"
    inside = openai.APIError("Engine\n died.", REQUEST, body=None)
    assert refusal_of(inside) == Refusal("server_error", "Engine died")
    assert refusal_of(ValueError()) == Refusal("broken", "ValueError")
