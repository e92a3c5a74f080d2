"""The request file: one JSON object a line, checked as a whole before anything is sent, read again one by one."""

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundation.errors import UsageError

_KNOWN = ("id", "image", "instruction", "system", "messages", "max_tokens", "temperature", "schema", "regex")
#: Parameters of the chat API that a line cannot set: ignoring them would change the answers without a word.
_NOT_HERE = frozenset(
    ("model", "top_p", "top_k", "min_p", "seed", "stop", "n", "stream", "tools", "tool_choice", "response_format",
     "logprobs", "frequency_penalty", "presence_penalty", "repetition_penalty", "extra_body", "structured_outputs")
)  # fmt: skip
#: Broken lines that an error message names; the number of the others follows.
_NAMED = 5


class LineError(ValueError):
    """A line is no request; the message is one sentence without the line's number."""


@dataclass(frozen=True, slots=True)
class Request:
    """One line.

    Args:
        id: its own, or its line number.
        images: paths as written, or data: URLs.
        instruction: the text; "" with `messages`.
        system: the system text, where the line has its own.
        messages: a whole chat instead of image and instruction.
        max_tokens: limit of the answer; None for the batch's.
        temperature: None for the batch's.
        schema: a JSON schema that the answer must follow.
        regex: a regular expression that the answer must match.
    """

    id: str
    images: tuple[str, ...] = ()
    instruction: str = ""
    system: str | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    schema: dict[str, Any] | None = None
    regex: str | None = None

    def paths(self) -> Iterator[str]:
        """Every image that is a file, as written in the line."""
        yield from (image for image in self.images if not image.startswith("data:"))
        for url in message_images(self.messages or ()):
            if is_path(url):
                yield url


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a good line is in the file."""

    id: str
    line: int
    offset: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A line that is no request."""

    line: int
    message: str

    @property
    def id(self) -> str:
        """What it is called among the answers: its own id may be missing, or another line's."""
        return f"line {self.line}"


@dataclass(frozen=True, slots=True)
class Index:
    """Every line of a request file, without its content."""

    entries: tuple[Entry, ...]
    broken: tuple[Broken, ...]


def is_path(url: str) -> bool:
    """Whether an image's URL is a file of this machine, and not one that the server fetches or that holds the data."""
    return not url.startswith(("data:", "http://", "https://"))


def message_images(messages: tuple[dict[str, Any], ...] | list[dict[str, Any]]) -> Iterator[str]:
    """The URLs of all images in a chat."""
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            image = part.get("image_url") if isinstance(part, dict) else None
            if isinstance(image, dict) and isinstance(image.get("url"), str):
                yield image["url"]


def index_requests(path: Path, *, keep_going: bool = False) -> Index:
    """Check every line and remember where it is.

    Images are looked for but not opened.

    Raises:
        UsageError: the file cannot be read or holds no requests; or lines are broken, ids twice or images missing,
            and `keep_going` is not set: the message names the lines.
    """
    entries: list[Entry] = []
    broken: list[Broken] = []
    lines_of: dict[str, int] = {}
    folders: dict[str, bool] = {}
    try:
        with path.open("rb") as file:
            offset = 0
            for number, raw in enumerate(file, 1):
                begin, offset = offset, offset + len(raw)
                if not raw.strip(b"\xef\xbb\xbf \t\r\n"):
                    continue
                try:
                    request = parse_request(raw, number)
                    _check_images(request, path.parent, folders)
                    if request.id in lines_of:
                        raise LineError(f"the id {request.id!r} is that of line {lines_of[request.id]} already")
                except LineError as error:
                    broken.append(Broken(number, str(error)))
                    continue
                lines_of[request.id] = number
                entries.append(Entry(request.id, number, begin))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.", "Name a file of JSON lines.") from error
    if broken and not keep_going:
        named = "; ".join(f"line {one.line}: {one.message}" for one in broken[:_NAMED])
        more = f"; and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
        raise UsageError(
            f"{path}: {named}{more}. Nothing was sent.",
            "Mend them, or go on with --keep-going: then they are recorded as errors.",
        )
    if not entries and not broken:
        raise UsageError(f"{path} holds no requests.", "One JSON object a line is a request; see --help.")
    return Index(tuple(entries), tuple(broken))


def _check_images(request: Request, base: Path, known: dict[str, bool]) -> None:
    for written in request.paths():
        if written not in known:
            known[written] = resolve(written, base).is_file()
        if not known[written]:
            raise LineError(f"there is no image {written!r}")


def resolve(written: str, base: Path) -> Path:
    """The file that a line means: relative to the request file, with ~ and file: as people write them."""
    return base / Path(written.removeprefix("file://")).expanduser()


def parse_request(raw: bytes, number: int) -> Request:
    """One line as a request.

    Args:
        raw: the line.
        number: its number, which is its id where it has none.

    Raises:
        LineError: it is none.
    """
    document = _document(raw)
    for key in document:
        if key in _KNOWN:
            continue
        if key in _NOT_HERE:
            raise LineError(f"{key!r} cannot be set in a line")
        if near := difflib.get_close_matches(key, _KNOWN, 1, 0.8):
            raise LineError(f"there is no field {key!r}: did you mean {near[0]!r}?")
    if document.get("schema") is not None and document.get("regex") is not None:
        raise LineError("an answer can follow a schema or a regex, not both")
    messages = _messages(document)
    return Request(
        id=_id(document, number),
        images=_images(document),
        instruction=_text(document, "instruction") or "",
        system=_text(document, "system"),
        messages=messages,
        max_tokens=_max_tokens(document),
        temperature=_temperature(document),
        schema=_object(document, "schema"),
        regex=_text(document, "regex"),
    )


def _document(raw: bytes) -> dict[str, Any]:
    try:
        document = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise LineError("it is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise LineError(f"it is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise LineError("it is not a JSON object")
    if b"\\u" in raw:
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise LineError("it holds half of a character (a lone surrogate)") from error
    return document


def _id(document: dict[str, Any], number: int) -> str:
    value = document.get("id")
    if value is None:
        return str(number)
    if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
        return str(value)
    raise LineError("its id must be a text")


def _text(document: dict[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise LineError(f"{key!r} must be a text")
    return value


def _object(document: dict[str, Any], key: str) -> dict[str, Any] | None:
    value = document.get(key)
    if value is not None and not isinstance(value, dict):
        raise LineError(f"{key!r} must be an object")
    return value


def _images(document: dict[str, Any]) -> tuple[str, ...]:
    value = document.get("image")
    images = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(images, list) or not all(isinstance(image, str) and image for image in images):
        raise LineError("'image' must be a path, a data: URL, or a list of them")
    if any(image.startswith(("http://", "https://")) for image in images):
        raise LineError("images are read from this machine: 'image' must be a path or a data: URL")
    return tuple(images)


def _messages(document: dict[str, Any]) -> tuple[dict[str, Any], ...] | None:
    messages = document.get("messages")
    if messages is None:
        if not document.get("instruction"):
            raise LineError("it needs an 'instruction' (or 'messages')")
        return None
    for other in ("image", "instruction", "system"):
        if document.get(other) is not None:
            raise LineError(f"'messages' is the whole chat, so there is no {other!r} beside it")
    if (
        not isinstance(messages, list)
        or not messages
        or not all(isinstance(one, dict) and isinstance(one.get("role"), str) for one in messages)
    ):
        raise LineError("'messages' must be a list of objects with a 'role'")
    return tuple(messages)


def _max_tokens(document: dict[str, Any]) -> int | None:
    value = document.get("max_tokens")
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise LineError("'max_tokens' must be a whole number of at least 1")


def _temperature(document: dict[str, Any]) -> float | None:
    value = document.get("temperature")
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2:
        return float(value)
    raise LineError("'temperature' must be a number from 0 to 2")
