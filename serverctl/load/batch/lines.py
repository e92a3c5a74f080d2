"""The request file: JSON lines, all checked before anything is sent, then read one by one and made into requests."""

import copy
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from foundation.errors import UsageError
from serverctl.load.images import data_url

#: Parameters of the chat API that a line cannot set: ignoring them would silently change the answers.
_NOT_HERE = frozenset(
    ("model", "top_p", "top_k", "min_p", "seed", "stop", "n", "stream", "tools", "tool_choice", "response_format",
     "logprobs", "frequency_penalty", "presence_penalty", "repetition_penalty", "extra_body", "structured_outputs")
)  # fmt: skip
#: Broken lines that an error message names; the number of the others follows.
_NAMED = 5


class LineError(ValueError):
    """A line is not a valid request. The message is one sentence without the line's number."""


class Request(BaseModel):
    """One line. A field's description is used in error messages."""

    model_config = ConfigDict(strict=True, frozen=True)

    id: str = Field(min_length=1, description="a text")
    images: list[Annotated[str, Field(min_length=1)]] = Field(
        [], alias="image", description="a path, a data: URL, or a list of them"
    )
    instruction: str = Field("", description="a text")
    system: str | None = Field(None, description="a text")
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = Field(
        None, description="a list of objects with a 'role'"
    )
    max_tokens: Annotated[int, Field(ge=1)] | None = Field(None, description="a whole number of at least 1")
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(None, description="a number from 0 to 2")
    json_schema: dict[str, Any] | None = Field(None, alias="schema", description="an object")
    regex: str | None = Field(None, description="a text")

    @field_validator("images")
    @classmethod
    def _are_of_this_machine(cls, images: list[str]) -> list[str]:
        if any(map(is_fetched, images)):
            raise LineError("images are read from this machine: 'image' must be a path or a data: URL")
        return images

    @field_validator("messages")
    @classmethod
    def _have_roles(cls, messages: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        if not all(isinstance(message.get("role"), str) for message in messages or ()):
            raise LineError("'messages' must be a list of objects with a 'role'")
        return messages

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.json_schema is not None and self.regex is not None:
            raise LineError("an answer can follow a schema or a regex, not both")
        if self.messages is None and not self.instruction:
            raise LineError("it needs an 'instruction' (or 'messages')")
        beside = [name for name in ("images", "instruction", "system") if name in self.model_fields_set]
        if self.messages is not None and beside:
            name = beside[0].replace("images", "image")
            raise LineError(f"'messages' is the whole chat, so there is no {name!r} beside it")
        return self

    def paths(self) -> Iterator[str]:
        """Every image that is a file, as written in the line."""
        urls = [*self.images, *(image["url"] for image in image_parts(self.messages or ()))]
        return (url for url in urls if not url.startswith("data:") and not is_fetched(url))


#: The fields of a line by their names there.
_FIELDS = {field.alias or name: field for name, field in Request.model_fields.items()}


def is_fetched(url: str) -> bool:
    """Whether the server fetches the image itself; otherwise the URL names a local file or holds the data."""
    return url.startswith(("http://", "https://"))


def image_parts(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All images in a chat: objects with a "url"."""
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            match part:
                case {"image_url": {"url": str()} as image}:
                    yield image


def index_requests(path: Path) -> dict[int, str]:
    """Check every line, and return the ids by the lines' numbers. Images must exist but are not opened.

    Raises UsageError if there are no requests, and for broken lines, double ids and missing images.
    """
    ids: dict[int, str] = {}
    broken: dict[str, str] = {}
    lines_of: dict[str, int] = {}
    images: dict[str, bool] = {}
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.strip(b"\xef\xbb\xbf \t\r\n"):
                    continue
                try:
                    request = parse_request(raw, number)
                    for written in request.paths():
                        if written not in images:
                            images[written] = resolve(written, path.parent).is_file()
                        if not images[written]:
                            raise LineError(f"there is no image {written!r}")
                    if request.id in lines_of:
                        raise LineError(f"the id {request.id!r} is that of line {lines_of[request.id]} already")
                except LineError as error:
                    broken[f"line {number}"] = str(error)
                else:
                    lines_of[request.id] = number
                    ids[number] = request.id
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.", "Name a file of JSON lines.") from error
    if broken:
        named = "; ".join(f"{name}: {message}" for name, message in list(broken.items())[:_NAMED])
        more = f"; and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
        raise UsageError(f"{path}: {named}{more}. Nothing was sent.", "Correct them, or take them out.")
    if not ids:
        raise UsageError(f"{path} holds no requests.", "One JSON object a line is a request; see --help.")
    return ids


def resolve(written: str, base: Path) -> Path:
    """Return the path of a file in a line, relative to the request file. Accepts ~ and file://."""
    return base / Path(written.removeprefix("file://")).expanduser()


def parse_request(raw: bytes, number: int) -> Request:
    """Read one line as a request; the default id is the line's number. Raises LineError."""
    fields = {name: value for name, value in _document(raw).items() if value is not None}
    for name in (name for name in fields if name not in _FIELDS):
        if name in _NOT_HERE:
            raise LineError(f"{name!r} cannot be set in a line")
        if near := difflib.get_close_matches(name, _FIELDS, 1, 0.8):
            raise LineError(f"there is no field {name!r}: did you mean {near[0]!r}?")
    if type(fields.setdefault("id", number)) is int:
        fields["id"] = str(fields["id"])
    if isinstance(fields.get("image"), str):
        fields["image"] = [fields["image"]]
    try:
        return Request.model_validate(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        if problem["type"] == "value_error":
            raise problem["ctx"]["error"] from error
        name = str(problem["loc"][0])
        raise LineError(f"{name!r} must be {_FIELDS[name].description}") from error


def _document(raw: bytes) -> dict[str, Any]:
    try:
        document = json.loads(raw.decode("utf-8-sig"))
        if b"\\u" in raw:
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise LineError("it is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise LineError("it holds half of a character (a lone surrogate)") from error
    except (ValueError, RecursionError) as error:
        raise LineError(f"it is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise LineError("it is not a JSON object")
    return document


class ImageError(Exception):
    """An image cannot be sent. The message is one sentence."""


def prepare(request: Request, base: Path, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the chat API for a request, whose images are read from the folder `base`.

    The defaults are "system", "max_tokens" and "temperature". The instruction comes before the images, as in MAI-UI's
    prompts. Raises ImageError if one cannot be read or is none.
    """
    messages = copy.deepcopy(request.messages)
    if messages is None:
        pictures = ({"type": "image_url", "image_url": {"url": written}} for written in request.images)
        system = request.system if request.system is not None else defaults["system"]
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": [{"type": "text", "text": request.instruction}, *pictures]})
    for image in image_parts(messages):
        if not is_fetched(image["url"]):
            image["url"] = _image(image["url"], base)
    sent: dict[str, Any] = {"messages": messages}
    for name in ("max_tokens", "temperature"):
        sent[name] = defaults[name] if getattr(request, name) is None else getattr(request, name)
    if request.json_schema is not None:
        schema = {"name": "answer", "schema": request.json_schema}
        sent["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.regex is not None:
        sent["extra_body"] = {"structured_outputs": {"regex": request.regex}}
    return sent


def _image(written: str, base: Path) -> str:
    if written.startswith("data:"):
        return written
    try:
        return data_url(resolve(written, base).read_bytes())
    except OSError as error:
        raise ImageError(f"the image {written!r} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ImageError(f"the image {written!r}: {error}") from error
