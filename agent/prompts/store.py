"""Downloads published prompts, keeps them in the user's data folder, and reads them from there.

The files are kept as they were downloaded, and their SHA-256 is checked again whenever they are read.
"""

import hashlib
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from urllib.parse import quote

from agent.families.published import Published
from agent.prompts.recipes import Recipe, given_values, recipes, usual_address
from agent.prompts.source_text import Source, SourceError
from foundation.endpoints import is_loopback
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import write_atomically

#: The longest file in `configs/prompts.toml` has 60 KB.
_MOST_BYTES = 2 << 20
_PATIENCE = 20.0


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
        for path, content in contents.items():
            target = _place(recipe) / path
            _make_private(target.parent)
            write_atomically(target, content)
    except OSError as error:
        raise EnvironmentLacksError(
            f"{folder()} cannot be written: {error}.", "Is the place yours to write to?"
        ) from error
    return published


def address_of(recipe: Recipe, mirror: str | None = None, path: str = "") -> str:
    """Return the address of a family's file. Raises UsageError if the mirror's address is wrong."""
    return _filled(_address(mirror or usual_address()), recipe, path)


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
    """Remove a fetched prompt. Return whether there was one. Files that another family needs, too, stay."""
    was_kept = is_kept(recipe)
    others = [one for one in recipes().values() if one.family != recipe.family and one.repository == recipe.repository]
    shared = {path for other in others if other.commit == recipe.commit and is_kept(other) for path in other.files}
    for path in recipe.files.keys() - shared:
        (_place(recipe) / path).unlink(missing_ok=True)
    if not any(path.is_file() for path in _place(recipe).rglob("*")):
        shutil.rmtree(_place(recipe), ignore_errors=True)
        for parent in (_place(recipe).parent, _place(recipe).parent.parent, folder()):
            with suppress(OSError):
                parent.rmdir()
    return was_kept


def taken(recipe: Recipe, contents: Mapping[str, bytes]) -> Published:
    """Take the texts of a family out of its files. Raises EnvironmentLacksError."""
    try:
        source = Source(
            [contents[path].decode("utf-8") for path in recipe.files],
            given_values(recipe, date.today()),  # as the clients do: the machine's date
        )
        functions = recipe.within if isinstance(recipe.within, dict) else dict.fromkeys(recipe.parts, recipe.within)
        parts = {part: source.text(expression, functions.get(part, "")) for part, expression in recipe.parts.items()}
    except (SourceError, UnicodeDecodeError) as error:
        raise EnvironmentLacksError(
            f"The prompt cannot be taken out of {recipe.source}: {error}.", "Please report this."
        ) from error
    return Published(recipe.source, parts, recipe.phone)


def _again(recipe: Recipe) -> str:
    return f"Fetch it again with `mai-agent prompts fetch {recipe.family}`, or remove it: `prompts remove` there."


def _place(recipe: Recipe) -> Path:
    return folder() / recipe.repository / recipe.commit


def _make_private(path: Path) -> None:
    """Make a folder and its parents below the data folder, each for the user alone."""
    folder().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for part in (folder(), *reversed([one for one in path.parents if folder() in one.parents]), path):
        part.mkdir(exist_ok=True, mode=0o700)


def _address(written: str) -> str:
    """Return an address with its three names. Raises UsageError unless it is an HTTPS or a loopback address."""
    address = written if "{path}" in written else written.rstrip("/") + "/{repository}/{commit}/{path}"
    if not (address.startswith("https://") or (address.startswith("http://") and is_loopback(address))):
        raise UsageError(
            f"{written!r} is not the address of a mirror.",
            "It begins with https://, or is one of this machine, and may hold {repository}, {commit} and {path}.",
        )
    return address


def _filled(address: str, recipe: Recipe, path: str) -> str:
    values = {"repository": recipe.repository, "commit": recipe.commit, "path": path}
    for name, value in values.items():
        address = address.replace(f"{{{name}}}", quote(value))
    return address


def _download(url: str) -> bytes:
    """Return what is at an address. Raises EnvironmentLacksError."""
    import httpx2

    advice = "Is there a network? A mirror is named with --mirror, or prompts_mirror in the settings."
    data = bytearray()
    try:
        # A proxy of the environment is for other machines only.
        with (
            httpx2.Client(timeout=_PATIENCE, follow_redirects=False, trust_env=not is_loopback(url)) as client,
            client.stream("GET", url) as answer,
        ):
            if answer.status_code != 200:
                raise EnvironmentLacksError(f"{url} cannot be had: status {answer.status_code}.", advice)
            for piece in answer.iter_bytes():
                data += piece
                if len(data) > _MOST_BYTES:
                    raise EnvironmentLacksError(f"{url} is longer than any prompt.", advice)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise EnvironmentLacksError(f"{url} cannot be had: {error or type(error).__name__}.", advice) from error
    return bytes(data)
