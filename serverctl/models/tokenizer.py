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
    tokenizer_files = next((files for files in sets if all((place.folder / file).is_file() for file in files)), None)
    if tokenizer_files is None:
        yield place.missing(FILE)
        return
    for file in (*tokenizer_files, *([SETTINGS] if (place.folder / SETTINGS).exists() else ())):
        yield from place.found(file, _misfits(place, file, config, vocabulary))


def _misfits(place: Place, file: str, config: Mapping[str, Any], vocabulary: int) -> Iterator[str]:
    """Yield a clause if a file is of another model. Raises BrokenFileError, OSError."""
    if not file.endswith(".json"):
        with (place.folder / file).open("rb") as opened:
            check_beginning(opened.read(512), (place.folder / file).stat().st_size)
        return
    found = read_object(place, file)
    if file != FILE:
        return
    model = found["model"] if isinstance(found.get("model"), dict) else {}
    words, merges = model.get("vocab"), model.get("merges")
    if not words or not isinstance(words, dict | list):
        raise BrokenFileError("has no vocabulary: it is damaged")
    if model.get("type") == "BPE" and len(words) > 1024 and not merges:
        raise BrokenFileError("has words and no merges: it is damaged")
    # In a unigram model's list, a token's id is its index.
    numbered = words if isinstance(words, dict) else {"": len(words) - 1}
    tokens = [token.get("id") for token in _listed(found.get("added_tokens")) if isinstance(token, dict)]
    added = [number for number in tokens if isinstance(number, int)]
    most = max((number for number in (*numbered.values(), *added) if isinstance(number, int)), default=0)
    if most >= vocabulary:
        yield f"{file} has tokens up to number {most:,}, and config.json says {vocabulary:,} tokens"
        return
    if not is_known(config):
        return
    if isinstance(words, dict) and not _in_order(words, merges):
        raise BrokenFileError("does not number its words in the order in which they are merged: it is damaged")
    special = {*added, *(number for word, number in numbered.items() if word.startswith("<"))}
    for name in _NAMED:
        number = config.get(name)
        if isinstance(number, int) and number not in special:
            yield f"config.json says that {name} is {number:,}, and {file} has no such token"
            return


def _in_order(words: Mapping[str, Any], merges: object) -> bool:
    """Return whether token ids follow the order of the merges, as in all of Qwen's byte-level vocabularies."""
    pairs = (merge.split(" ") if isinstance(merge, str) else _listed(merge) for merge in _listed(merges))
    joined = ("".join(pair) for pair in pairs if len(pair) == 2 and all(isinstance(part, str) for part in pair))
    numbers = [number for word in joined if isinstance(number := words.get(word), int)]
    return all(one <= other for one, other in pairwise(numbers))


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
