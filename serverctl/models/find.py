"""Finds a model by folder, known name or repository, on disk before the network."""

import difflib
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from foundation.configs import config_names, load_config
from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from serverctl.models.defects import BrokenFileError, Place, read_object
from serverctl.models.model import SHORT_ANSWER, Model, Quantized
from serverctl.models.shape import read_shape

#: Pixel limits of a model without preprocessor_config.json: those of Qwen3-VL on the hub.
_DEFAULT_PIXELS = (65_536, 16_777_216)
_INDEX = "model.safetensors.index.json"
_FILES = ("config.json", "preprocessor_config.json", "processor_config.json", _INDEX)


@cache
def known_models() -> tuple[Model, ...]:
    """Return every model in `configs/models`, with the dimensions that are shipped with it."""
    files = [load_config(f"models/{file}.toml") for file in config_names("models")]
    return tuple(_known_model({**file, **entry}) for file in files for entry in file["model"])


def _known_model(entry: Mapping[str, Any]) -> Model:
    origin = f"models/shapes/{entry['shape']}.json"
    config = load_config(origin)
    names = ("family", "history_images", "reasoning_parser")
    usual, most = entry.get("answer_tokens", SHORT_ANSWER)
    return Model(
        entry["name"],
        entry["repo"],
        read_shape(config, f"configs/{origin}"),
        *_pixels({"preprocessor_config.json": config["image"]}),
        origin=f"configs/{origin}",
        mtp_layers=_mtp_layers(config) or entry.get("mtp_layers", 0),
        answer_tokens=(usual, most),
        quantized=tuple(Quantized(**one) for one in entry.get("quantized", ())),
        **{name: entry[name] for name in names if name in entry},
    )


def find_model(name: str, allow_network: bool = True) -> Model:
    """Find a model by a folder with a config.json, a known name, or a repository (org/name).

    Raises:
        UsageError: the name is unknown, or the folder contains no model.
        EnvironmentLacksError: the hub is needed and cannot be reached.
    """
    if not name.strip():
        raise UsageError("A model's name is empty.", "Name a known model, a repository or a folder.")
    known, checkpoint = _known(name)
    folder = _folder(name)
    # Ignore a folder in the working directory that has a known model's name but no model.
    if folder is not None and (known is None or _holds_model(folder)):
        return _from_folder(folder)
    if name.startswith(("/", "./", "../", "~")) or name.count("/") > 1:
        raise UsageError(f"There is no folder {name}.", "Name a model's folder, a known model or a repository.")
    repo = checkpoint.repo if checkpoint else known.source if known else name
    if repo.count("/") != 1 or not all(repo.split("/")):
        raise _unknown(name)
    own = None if checkpoint is None else repo.rsplit("/", 1)[-1]
    snapshot = cached_snapshot(repo)
    if snapshot is not None:
        origin = f"config.json of {repo} on this disk"
        return _assemble(repo, _files_in(snapshot), origin, known, _weights_in(snapshot), own)
    if known is not None:
        return known if checkpoint is None else replace(known.as_checkpoint(checkpoint), name=str(own))
    if not allow_network:
        raise EnvironmentLacksError(
            f"{repo} is not on this disk and not among the known models.", "Let the hub be asked, or name a folder."
        )
    return _assemble(repo, _from_hub(repo), f"config.json of {repo} on the hub", None, None)


def _unknown(name: str) -> UsageError:
    names = {entry.name.casefold(): entry.name for entry in known_models()}
    near = [names[each] for each in difflib.get_close_matches(name.casefold(), names, 3, 0.4)]
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known models are: {', '.join(names.values())}."
    return UsageError(f"No model named {name!r} is known.", f"{hint} Any other is named as org/name, or by its folder.")


def _folder(name: str) -> Path | None:
    try:
        folder = Path(name).expanduser()
        return folder.resolve() if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _holds_model(folder: Path) -> bool:
    """Return whether a folder contains a config.json. Raises EnvironmentLacksError if the folder is not readable."""
    try:
        return (folder / "config.json").is_file()
    except PermissionError as error:
        remedy = f"Make it readable: chmod u+rx {shlex.quote(str(folder))}."
        raise EnvironmentLacksError(f"{folder} may not be read.", remedy) from error


def whole_name(name: str) -> str:
    """Return a model's name for a process in another working directory: a folder becomes an absolute path."""
    folder = _folder(name)
    return str(folder) if folder is not None and _holds_model(folder) else name


def _known(name: str) -> tuple[Model | None, Quantized | None]:
    """Find a known model by name or repository, ignoring case, with the checkpoint if the name is of one."""
    wanted = name.casefold()
    for entry in known_models():
        if wanted in (entry.name.casefold(), entry.source.casefold()):
            return entry, None
        for checkpoint in entry.quantized:
            if wanted in (checkpoint.repo.casefold(), checkpoint.repo.rsplit("/", 1)[-1].casefold()):
                return entry, checkpoint
    return None, None


def cache_folder() -> Path:
    """Return the cache folder of the hub's client, by its documented environment variables."""
    if named := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(named).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(home).expanduser() / "hub"


def repo_folder(repo: str) -> Path:
    """Return the folder of a repository in the cache of the hub's client, also during a download."""
    return cache_folder() / f"models--{repo.replace('/', '--')}"


def cached_snapshot(repo: str) -> Path | None:
    """Return the folder of a downloaded repository's newest files; None without a config.json."""
    try:
        if not repo_folder(repo).is_dir():
            return None  # avoids importing the hub's client
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(repo, "config.json", cache_dir=cache_folder())
    except (OSError, ValueError):  # an invalid folder name or an unreadable folder
        return None
    return Path(found).parent if isinstance(found, str) else None


def downloaded_bytes(repo: str) -> int:
    """Return the bytes of a repository on this disk, including partial files."""
    total = 0
    for path in (repo_folder(repo) / "blobs").glob("*"):
        with suppress(OSError):  # a finished download was just renamed
            total += path.stat().st_size
    return total


def _weights_in(folder: Path) -> Path | None:
    """Return the folder if it holds all weights: every file of the index, or every part of a numbered set."""
    if (folder / _INDEX).is_file():
        names = _read_json(folder / _INDEX).get("weight_map")
        files = {str(name) for name in names.values()} if isinstance(names, Mapping) else set()
        return folder if files and all((folder / name).exists() for name in files) else None
    files = {path.name for path in folder.glob("*.safetensors") if path.exists()}
    numbered = [found for name in files if (found := re.search(r"-\d{5}-of-(\d{5})\.safetensors$", name))]
    complete = not numbered or len(numbered) == int(numbered[0][1])
    return folder if files and complete else None


def _from_folder(folder: Path) -> Model:
    if not _holds_model(folder):
        what = f"{folder} has no config.json, so it holds no model."
        raise UsageError(what, "Name the folder with the model's files.")
    files = _files_in(folder)
    known = _known_in(folder, files["config.json"])
    return _assemble(str(folder), files, f"{folder}/config.json", known, folder, folder.name)


def _known_in(folder: Path, config: Mapping[str, Any]) -> Model | None:
    """Return the known model in a folder, by the names that it bears; None if none is known.

    These are the folder's name, the repository of a folder in the hub's cache (models--ORG--NAME/snapshots/REVISION),
    and the name or path that transformers wrote into config.json.
    """
    parts = (part.removeprefix("models--").replace("--", "/") for part in folder.parts if part.startswith("models--"))
    wrote = str(config.get("_name_or_path") or "").rstrip("/")
    names = (folder.name, *parts, wrote, wrote.rsplit("/", 1)[-1])
    return next((found for name in names if name and (found := _known(name)[0]) is not None), None)


def _files_in(folder: Path) -> dict[str, Mapping[str, Any]]:
    return {file: _read_json(folder / file) for file in _FILES if (folder / file).is_file()}


def _assemble(
    source: str,
    files: Mapping[str, Mapping[str, Any]],
    origin: str,
    known: Model | None,
    local: Path | None,
    name: str | None = None,
) -> Model:
    config, metadata = files["config.json"], files.get(_INDEX, {}).get("metadata")
    size = _whole(metadata.get("total_size")) if isinstance(metadata, Mapping) else None
    single = local / "model.safetensors" if local else None
    if size is None and single and single.is_file():
        size = single.stat().st_size
    shape = read_shape(config, origin)
    minimum, maximum = _pixels(files)
    base = known or Model(source.rsplit("/", 1)[-1], source, shape, minimum, maximum)
    return replace(
        base, name=name or base.name, source=source, shape=shape, min_pixels=minimum, max_pixels=maximum, origin=origin,
        checkpoint_bytes=size, mtp_layers=_mtp_layers(config) or base.mtp_layers,
        quantized=() if name else base.quantized, local=local,
    )  # fmt: skip


def _mtp_layers(config: Mapping[str, Any]) -> int:
    text = config.get("text_config")
    found = (text if isinstance(text, Mapping) else config).get("mtp_num_hidden_layers")
    return found if type(found) is int and 0 < found < 100 else 0


def _whole(value: object) -> int | None:
    """Convert 1, 1.0 or "1" to a positive integer; None for everything else."""
    try:
        number = int(float(str(value)))
    except (ValueError, OverflowError):
        return None
    return number if number > 0 else None


def _pixels(files: Mapping[str, Mapping[str, Any]]) -> tuple[int, int]:
    """Return the smallest and largest image in pixels.

    They are in preprocessor_config.json, or in processor_config.json of newer transformers.
    """
    nested = files.get("processor_config.json", {}).get("image_processor")
    for processor in (files.get("preprocessor_config.json"), nested):
        if not isinstance(processor, Mapping):
            continue
        size = processor.get("size")
        if isinstance(size, Mapping) and (most := _whole(size.get("longest_edge"))):
            return min(_whole(size.get("shortest_edge")) or _DEFAULT_PIXELS[0], most), most
        if most := _whole(processor.get("max_pixels")):
            return min(_whole(processor.get("min_pixels")) or 3136, most), most
    return _DEFAULT_PIXELS


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        return read_object(Place(path.parent), path.name)
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}."
        raise EnvironmentLacksError(what, "Check its permissions and disk.") from error
    except BrokenFileError as error:
        what = f"{path} cannot be read: it {error.what}."
        raise EnvironmentLacksError(what, "Download it again, or mend it.") from error


#: Timeout for the check whether the hub is reachable, seconds.
_HUB_TIMEOUT = 5.0


def hub_is_off() -> bool:
    """Return whether HF_HUB_OFFLINE forbids network access."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def look_for_hub(repo: str) -> None:
    """Check once whether the hub is reachable: its client would retry for half a minute with five messages.

    Raises EnvironmentLacksError if it is not reachable. Does nothing in offline mode.
    """
    from huggingface_hub import constants, get_session

    if hub_is_off():
        return  # the client itself fails at once
    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_TIMEOUT)
    except Exception as error:
        raise _unreachable(repo) from error


def _from_hub(repo: str) -> dict[str, Mapping[str, Any]]:
    """Download the small files of a repository with the hub's client, with its cache, token and offline rules."""
    from huggingface_hub import errors, hf_hub_download

    look_for_hub(repo)
    files: dict[str, Mapping[str, Any]] = {}
    for file in _FILES:
        try:
            files[file] = _read_json(Path(hf_hub_download(repo, file)))
        except MaiError:
            raise
        except Exception as error:  # the client's HTTP library changed twice in two years, and so did its exceptions
            local = isinstance(error, errors.LocalEntryNotFoundError)
            if local or file == "config.json" or not isinstance(error, errors.EntryNotFoundError):
                raise _refusal(repo, error) from error
    return files


def _refusal(repo: str, error: Exception) -> MaiError:
    """Convert an error of the hub's client into one with a remedy."""
    from huggingface_hub import errors

    match error:
        case errors.LocalEntryNotFoundError():
            return _unreachable(repo)
        case errors.EntryNotFoundError():
            return UsageError(f"{repo} has no config.json.", "Is it a model that vLLM can serve?")
        case errors.GatedRepoError():
            what = f"{repo} asks everybody to accept its terms first."
            return MaiError(what, "Accept them on its page and log in with `hf auth login`.")
        case errors.RepositoryNotFoundError() | errors.HFValidationError():
            what = f"There is no model {repo!r} on the hub, or it is private."
            return UsageError(what, "Check its name, or log in with `hf auth login`.")
    what = f"The hub cannot be asked about {repo}: {error}."
    return EnvironmentLacksError(what, "Try again, or name the model's folder.")


def _unreachable(repo: str) -> MaiError:
    return EnvironmentLacksError(
        f"The hub cannot be reached to look at {repo}.", "Download the model first, or name its folder."
    )
