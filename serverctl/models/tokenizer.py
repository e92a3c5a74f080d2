"""Checks a model's tokenizer files before a start."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from foundation.configs import load_config
from serverctl.models.defects import Defect, Place, is_known, read_object
from serverctl.models.safetensors import BrokenFileError, check_beginning

FILE, SETTINGS = "tokenizer.json", "tokenizer_config.json"
#: Entries of config.json with the ids of special tokens.
_NAMED = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")


def check_tokenizer(place: Place, config: Mapping[str, Any], vocabulary: int) -> Iterator[Defect]:
    """Yield the defects of a tokenizer; `vocabulary` is the number of rows of the model's embeddings."""
    sets = load_config("files.toml")["tokenizers"]
    there = next((files for files in sets if all((place.folder / file).is_file() for file in files)), None)
    if there is None:
        yield place.missing(FILE)
        return
    for file in there:
        try:
            _look_at(place, file, config, vocabulary)
        except (BrokenFileError, OSError) as error:
            yield place.broken(file, error)
        except _MisfitError as error:
            yield place.unfit(str(error))
    if (place.folder / SETTINGS).exists():
        try:
            read_object(place, SETTINGS)
        except (BrokenFileError, OSError) as error:
            yield place.broken(SETTINGS, error)


class _MisfitError(Exception):
    """Two files belong to different models. The message is a clause."""


def _look_at(place: Place, file: str, config: Mapping[str, Any], vocabulary: int) -> None:
    """Check one file. Raises BrokenFileError, _MisfitError, OSError."""
    if not file.endswith(".json"):
        with (place.folder / file).open("rb") as opened:
            check_beginning(opened.read(512), (place.folder / file).stat().st_size)
        return
    found = read_object(place, file)
    if file != FILE:
        return
    words, added = _words(found), _added(found)
    if not words:
        raise BrokenFileError("has no vocabulary: it is damaged")
    model = found.get("model")
    if isinstance(model, Mapping) and model.get("type") == "BPE" and len(words) > 1024 and not model.get("merges"):
        raise BrokenFileError("has words and no merges: it is damaged")
    most = max((*_ids(words), *added), default=0)
    if most >= vocabulary:
        raise _MisfitError(f"{file} has tokens up to number {most:,}, and config.json says {vocabulary:,} tokens")
    if not is_known(config):
        return
    if isinstance(model, Mapping) and isinstance(words, dict) and not _in_order(words, model.get("merges")):
        raise BrokenFileError("does not number its words in the order in which they are merged: it is damaged")
    for name in _NAMED:
        number = config.get(name)
        if isinstance(number, int) and number not in added and not _is_special(words, number):
            raise _MisfitError(f"config.json says that {name} is {number:,}, and {file} has no such token")


def _in_order(words: Mapping[str, Any], merges: object) -> bool:
    """Return whether token ids follow the order of the merges, as in all of Qwen's byte-level vocabularies."""
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in _listed(merges))
    joined = (
        "".join(pair) for pair in pairs if len(_listed(pair)) == 2 and all(isinstance(part, str) for part in pair)
    )
    numbers = [number for word in joined if isinstance(number := words.get(word), int)]
    return all(one <= other for one, other in pairwise(numbers))


def _listed(value: object) -> list[Any]:
    """Return a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def _is_special(words: Mapping[str, int] | list[Any], number: int) -> bool:
    """Return whether an id of the base vocabulary is a special token, such as <|image_pad|>."""
    return isinstance(words, dict) and any(each == number and word.startswith("<") for word, each in words.items())


def _words(found: Mapping[str, Any]) -> Mapping[str, int] | list[Any]:
    model = found.get("model")
    words = model.get("vocab") if isinstance(model, Mapping) else None
    return words if isinstance(words, dict | list) else {}


def _ids(words: Mapping[str, int] | list[Any]) -> Iterator[int]:
    if isinstance(words, list):  # unigram: a token's id is its index
        yield len(words) - 1
    else:
        yield from (number for number in words.values() if isinstance(number, int))


def _added(found: Mapping[str, Any]) -> set[int]:
    return {
        token["id"]
        for token in _listed(found.get("added_tokens"))
        if isinstance(token, Mapping) and isinstance(token.get("id"), int)
    }
