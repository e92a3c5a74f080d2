"""Parses chat completions of OpenAI-compatible servers, streamed or whole, in all their dialects.

Reasoning has several names (`reasoning_content` in vLLM and DeepSeek, `reasoning` in newer vLLM and OpenRouter,
`thinking` elsewhere), is text, an object or a list of parts, and comes under two names at once from some servers. Tool
calls come whole or in deltas that share an index, which some servers omit or set to 0 for all calls.
"""

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from typing import Any, Literal, TypeAlias

PieceKind: TypeAlias = Literal["content", "reasoning", "call"]

#: Longest useful answer. 2,048 tokens are about 8,000 characters, long reasoning ten times that.
MAX_CHARS = 1_000_000

#: Multiples of the token limit, for text and for reasoning, which some servers do not count. Token estimates are
#: lower bounds: an estimate above this means that the server ignores the limit.
_OVER, _OVER_THINKING = 1.25, 4.0

#: Longest kept name of a model.
_LONGEST_MODEL = 200

_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


class AnswerTooLongError(Exception):
    """The server's answer is longer than the limit in characters or tokens."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of streamed text; for a tool call, of its name and arguments."""

    kind: PieceKind
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call; its arguments are the model's own JSON, which may be broken."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request; None if the server does not report them."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*((one or 0) + (more or 0) for one, more in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer of a model."""

    content: str = ""
    reasoning: str = ""  # its reasoning, if the server separates that from the content
    tool_calls: tuple[ToolCall, ...] = ()  # in the order in which they began
    #: "length" if the token limit cut the answer off, "refusal" if the service declined, "malformed" if it could not
    #: parse the model's call; None if the server sent no finish reason
    finish_reason: str | None = None
    usage: Usage = Usage()
    model: str = ""  # the name of the model that answered, as the server reports it
    #: the answer in the API's own format, for APIs that require it unchanged in the next request
    items: tuple[Any, ...] = field(default=(), repr=False)


@dataclass(slots=True)
class _OpenCall:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class AnswerReader:
    """Assembles one answer from the chunks of a stream, or from one whole completion.

    The whole answer is limited to `max_chars` characters, text and tool calls to a little over `max_tokens` (the limit
    in the request), and reasoning to four times `max_tokens`.
    """

    def __init__(self, max_chars: int = MAX_CHARS, max_tokens: int | None = None) -> None:
        self._room = max_chars
        self._said = self._thought = float("inf")
        if max_tokens is not None:
            self._said, self._thought = max_tokens * _OVER, max_tokens * _OVER_THINKING
        self._texts: dict[PieceKind, list[str]] = {"content": [], "reasoning": []}
        self._calls: list[_OpenCall] = []
        self._finish_reason: str | None = None
        self._usage = Usage()
        self._model = ""

    def take(self, chunk: Any) -> list[Piece]:
        """Return the new pieces of a chunk (a dict or an object of the openai library). Raises AnswerTooLongError."""
        self._usage = _usage(_get(chunk, "usage")) or self._usage
        self._model = _text(_get(chunk, "model"))[:_LONGEST_MODEL] or self._model
        pieces: list[Piece] = []
        for choice in _list(_get(chunk, "choices")):
            if _get(choice, "index") not in (0, None):
                continue  # only one answer was requested
            message = _get(choice, "delta") or _get(choice, "message")
            pieces += [*_texts(message), *self._take_calls(message)]
            self._finish_reason = _text(_get(choice, "finish_reason")) or self._finish_reason
        for piece in pieces:
            self._room -= len(piece.text) or 1
            if piece.kind == "reasoning":
                self._thought -= _fewest_tokens(piece.text)
            else:
                self._said -= _fewest_tokens(piece.text)
            if piece.kind != "call":
                self._texts[piece.kind].append(piece.text)
        if min(self._room, self._said, self._thought) < 0:
            raise AnswerTooLongError("the answer does not end")
        return pieces

    def answer(self) -> Answer:
        """Return the answer so far."""
        return Answer(
            content="".join(self._texts["content"]),
            reasoning="".join(self._texts["reasoning"]),
            tool_calls=tuple(ToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls),
            finish_reason=self._finish_reason,
            usage=self._usage,
            model=self._model,
        )

    def _take_calls(self, message: Any) -> Iterator[Piece]:
        for delta in _list(_get(message, "tool_calls")):
            function = _get(delta, "function")
            name, arguments = _text(_get(function, "name")), _get(function, "arguments")
            if isinstance(arguments, dict):  # complete and already parsed
                arguments = json.dumps(arguments, ensure_ascii=False, default=str)
            call = self._call(_get(delta, "index"), _text(_get(delta, "id")), name)
            begins = not call.name
            call.name = call.name or name
            call.arguments.append(_text(arguments))
            yield Piece("call", (name if begins else "") + _text(arguments))

    def _call(self, index: Any, identifier: str, name: str) -> _OpenCall:
        """Return the call that a delta continues, or a new one."""
        position = index if isinstance(index, int) else None
        for call in reversed(self._calls):
            if identifier and identifier != call.id:
                continue
            if position == call.index and (position is not None or identifier or not name):
                return call
        self._calls.append(_OpenCall(position, identifier))
        return self._calls[-1]


def _fewest_tokens(text: str) -> float:
    """Return a lower bound for a piece's tokens. Some servers send many tokens at once, others single letters."""
    return min(1.0, len(text) / 4)


def _texts(message: Any) -> Iterator[Piece]:
    """Yield the reasoning and text of a delta or message. The first field that contains reasoning counts."""
    content = _get(message, "content")
    parts = _list(content)
    thinking = [part for part in parts if _get(part, "type") in ("thinking", "reasoning")]
    reasoning = next((text for name in _REASONING_FIELDS if (text := _flat(_get(message, name)))), "")
    if reasoning := reasoning or _flat(thinking):
        yield Piece("reasoning", reasoning)
    if text := _text(content) or _flat([part for part in parts if part not in thinking]):
        yield Piece("content", text)


def _flat(value: Any, depth: int = 4) -> str:
    """Return the text in a string, in an object under a common name, or in a list of these."""
    if value is None or isinstance(value, str) or depth == 0:
        return _text(value)
    if isinstance(value, list | tuple):
        return "".join(_flat(item, depth - 1) for item in value)
    names = ("text", "content", "thinking", "reasoning", "summary")
    return next((text for name in names if (text := _flat(_get(value, name), depth - 1))), "")


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    cached = _get(_get(value, "prompt_tokens_details"), "cached_tokens")
    return Usage(_count(_get(value, "prompt_tokens")), _count(_get(value, "completion_tokens")), _count(cached))


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
