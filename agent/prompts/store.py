"""Downloads published prompts, keeps them in the user's data folder, and reads them from there.

`configs/prompts.toml` says where each family's prompt is, and how it is taken out. It is offered once, before the first
run of its family, and only if there is a network. The files are kept as they were downloaded, and their SHA-256 is
checked again whenever they are read.
"""

import hashlib
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict

from agent.families.published import GROUNDING, Published, mark
from agent.prompts.source_text import Source
from foundation.configs import check_settings, load_config, state_folder
from foundation.endpoints import is_loopback
from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from foundation.files import keep_json, read_json_object, write_atomically

#: The longest file in `configs/prompts.toml` has 60 KB.
_MOST_BYTES = 2 << 20
_TIMEOUT = 20.0
_HOLE = re.compile(r"\{([a-z_]+)(?::([^{}]*))?\}")


class Recipe(BaseModel):
    """The published prompt of one family."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    family: str = ""
    repository: str
    commit: str
    files: dict[str, str]  # SHA-256 by path
    parts: dict[str, str]  # expressions by the part of a request
    within: str | dict[str, str] = ""  # the function whose names the expressions use, or one for each part
    given: dict[str, str | int] = {}  # values that only a running program knows; "{name}" is a placeholder
    phone: Sequence[str] = ()  # parts that are about a phone: only for `--style reference`

    @property
    def source(self) -> str:
        """The repository and the commit, as records name them."""
        return f"{self.repository}@{self.commit[:12]}"


def folder() -> Path:
    """Return where published prompts are kept: below the user's data folder (XDG)."""
    import platformdirs

    return Path(platformdirs.user_data_dir("mai-agent", appauthor=False)) / "prompts"


def recipe_of(family: str) -> Recipe:
    """Return the recipe of a family. Raises UsageError if its publisher's client is not known."""
    try:
        return recipes()[family]
    except KeyError:
        raise UsageError(
            f"No published prompt of the family {family!r} is known.", f"Known are: {', '.join(recipes())}."
        ) from None


def is_kept(recipe: Recipe) -> bool:
    """Return whether a family's prompt was fetched."""
    return all((_place(recipe) / path).is_file() for path in recipe.files)


def fetch(recipe: Recipe, mirror: str | None = None) -> Published:
    """Download a family's files, check them, take its texts out, and keep the files.

    `mirror` is an address with {repository}, {commit} and {path}, or a base address for them. Raises
    EnvironmentLacksError: a file cannot be downloaded, has another checksum, or lacks the texts.
    """
    contents = {path: _download(address_of(recipe, mirror, path)) for path in recipe.files}
    for path, digest in recipe.files.items():
        if (found := hashlib.sha256(contents[path]).hexdigest()) != digest:
            raise EnvironmentLacksError(
                f"{path} of {recipe.source} has other contents than expected: its SHA-256 is {found}.",
                "It was changed on the way, or the mirror is wrong. Nothing was kept.",
            )
    published = taken(recipe, contents)
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        for path, content in contents.items():
            target = _place(recipe) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, content)
    except OSError as error:
        raise EnvironmentLacksError(f"{folder()} cannot be written: {error}.", "Check its permissions.") from error
    return published


def address_of(recipe: Recipe, mirror: str | None = None, path: str = "") -> str:
    """Return the address of a family's file.

    Raises UsageError unless the mirror's is an HTTPS or a loopback address.
    """
    written = mirror or _prompts()[0]
    address = written if "{path}" in written else written.rstrip("/") + "/{repository}/{commit}/{path}"
    if not (address.startswith("https://") or (address.startswith("http://") and is_loopback(address))):
        raise UsageError(
            f"{written!r} is not the address of a mirror.",
            "It begins with https://, or is one of this machine, and may hold {repository}, {commit} and {path}.",
        )
    for name, value in (("repository", recipe.repository), ("commit", recipe.commit), ("path", path)):
        address = address.replace(f"{{{name}}}", quote(value))
    return address


def kept(recipe: Recipe) -> Published | None:
    """Return a fetched prompt; None if it was not fetched. Raises EnvironmentLacksError if it was changed since."""
    if not is_kept(recipe):
        return None
    try:
        contents = {path: (_place(recipe) / path).read_bytes() for path in recipe.files}
    except OSError as error:
        raise EnvironmentLacksError(f"{_place(recipe)} cannot be read: {error}.", _again(recipe)) from error
    for path, digest in recipe.files.items():
        if hashlib.sha256(contents[path]).hexdigest() != digest:
            raise EnvironmentLacksError(f"{_place(recipe) / path} was changed since it was fetched.", _again(recipe))
    return taken(recipe, contents)


def published_words(family: str, choice: str | None = None) -> Published | None:
    """Return a family's fetched words; None if there are none, or `choice` (the option `words`) is "ours"."""
    recipe = None if choice == "ours" else recipes().get(family)
    return None if recipe is None else kept(recipe)


def remove(recipe: Recipe) -> bool:
    """Remove a fetched prompt. Return whether there was one."""
    was_kept = is_kept(recipe)
    for path in recipe.files:
        (_place(recipe) / path).unlink(missing_ok=True)
    return was_kept


def taken(recipe: Recipe, contents: Mapping[str, bytes]) -> Published:
    """Take the texts of a family out of its files."""
    source = Source(
        [contents[path].decode("utf-8") for path in recipe.files],
        given_values(recipe, date.today()),  # as the clients do: the machine's date
    )
    functions = recipe.within if isinstance(recipe.within, dict) else dict.fromkeys(recipe.parts, recipe.within)
    parts = {part: source.text(expression, functions.get(part, "")) for part, expression in recipe.parts.items()}
    return Published(recipe.source, parts, recipe.phone)


def _again(recipe: Recipe) -> str:
    return f"Fetch it again with `mai-agent prompts fetch {recipe.family}`, or remove it: `prompts remove` there."


def _place(recipe: Recipe) -> Path:
    return folder() / recipe.repository / recipe.commit


def _download(url: str) -> bytes:
    """Return what is at an address. Raises EnvironmentLacksError."""
    import httpx2

    advice = "Is there a network? A mirror is named with --mirror, or prompts_mirror in the settings."
    data = bytearray()
    try:
        # A proxy of the environment is for other machines only.
        with (
            httpx2.Client(timeout=_TIMEOUT, follow_redirects=False, trust_env=not is_loopback(url)) as client,
            client.stream("GET", url) as answer,
        ):
            if answer.status_code != 200:
                raise EnvironmentLacksError(f"{url} cannot be fetched: status {answer.status_code}.", advice)
            for piece in answer.iter_bytes():
                data += piece
                if len(data) > _MOST_BYTES:
                    raise EnvironmentLacksError(f"{url} is longer than any prompt.", advice)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise EnvironmentLacksError(f"{url} cannot be fetched: {error or type(error).__name__}.", advice) from error
    return bytes(data)


class _Prompts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    address: str
    families: dict[str, Recipe]


def recipes() -> dict[str, Recipe]:
    """Return the recipe of each family that has one. Raises UsageError naming what is wrong in the file."""
    return _prompts()[1]


@cache
def _prompts() -> tuple[str, dict[str, Recipe]]:
    prompts = check_settings(_Prompts, load_config("prompts.toml"), "In configs/prompts.toml,")
    named = {name: recipe.model_copy(update={"family": name}) for name, recipe in sorted(prompts.families.items())}
    return prompts.address, named


def given_values(recipe: Recipe, today: date) -> dict[str, str | int]:
    """Return the given values, with marks for the placeholders, and with the date filled in."""

    def filled(hole: re.Match[str]) -> str:
        return today.strftime(hole[2] or "%Y-%m-%d") if hole[1] == "date" else mark(hole[1])

    return {
        expression: _HOLE.sub(filled, value) if isinstance(value, str) else value
        for expression, value in recipe.given.items()
    }


#: An address of documentation (RFC 5737). Nothing is sent there: only the route to it is looked up.
_FAR_AWAY = ("192.0.2.1", 443)


def offer(
    family: str,
    ask: Callable[[str], bool],
    tell: Callable[[str], None],
    *,
    mirror: str | None = None,
    reference: bool = False,
    points: bool = False,
) -> None:
    """Ask the person whether to fetch the prompt of a family, and fetch it. A failure is only told.

    `reference`: the run uses the style "reference". `points`: the model only finds places.
    """
    recipe = recipes().get(family)
    if recipe is None or is_kept(recipe) or not _suits(recipe, reference=reference, points=points):
        return
    answered = read_json_object(_answers())
    if recipe.commit in answered.get(family, ()) or not network_at_hand(address_of(recipe, mirror)):
        return
    question = (
        f"This program has its own prompt for models of {family}. The prompt of their public client can be fetched "
        f"from {recipe.source}, and is used from then on. Fetch it?"
    )
    if ask(question):
        try:
            fetch(recipe, mirror)
        except MaiError as error:
            tell(f"The model is asked in our own words. {error}")
            return
        tell(f"Fetched; `mai-agent prompts remove {family}` removes it.")
    else:
        tell(f"The model is asked in our own words. `mai-agent prompts fetch {family}` gets the client's later.")
    keep_json(_answers(), {**answered, family: [recipe.commit]})


def network_at_hand(url: str) -> bool:
    """Return whether this machine has a route to an address. Sends nothing."""
    if is_loopback(url):
        return True
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_FAR_AWAY)
    except OSError:
        return False
    return bool(urlsplit(url).hostname)


def _suits(recipe: Recipe, *, reference: bool, points: bool) -> bool:
    if points:
        return GROUNDING in recipe.parts
    return any(part != GROUNDING and (reference or part not in recipe.phone) for part in recipe.parts)


def _answers() -> Path:
    return state_folder() / "prompts.json"
