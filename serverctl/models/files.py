"""Checks all files of a model before a start, without the network and in well under a second."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError, MaiError
from foundation.files import read_json_object
from serverctl.models.defects import BrokenFileError, Defect, Place, check_beginning, is_known, read_object
from serverctl.models.find import cached_snapshot, hub_is_off, look_for_hub, repo_folder
from serverctl.models.model import Model
from serverctl.models.shape import Shape, VisionShape, read_shape
from serverctl.models.weights import check_weights

#: Optional files of a model. If they exist, they must be JSON.
_OPTIONAL = ("generation_config.json", "special_tokens_map.json", "added_tokens.json", "video_preprocessor_config.json")
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")


class NoStartError(EnvironmentLacksError):
    """No start can succeed; `kind` is the failure's name in `serverctl/diagnose`."""

    def __init__(self, kind: str, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.kind = kind


def place_of(model: Model) -> Place | None:
    """Return the place of a model's files; None if they are not on this machine."""
    if Path(model.source).is_absolute():
        return Place(Path(model.source))
    snapshot = cached_snapshot(model.source)
    return None if snapshot is None else Place(snapshot, model.source)


def check_files(place: Place, flags: Sequence[str] = ()) -> list[Defect]:
    """Return the defects of a model's files; empty if there are none.

    Skips the parts that vLLM's `flags` replace, such as the tokenizer.
    """
    try:
        config = read_object(place, "config.json")
        shape = read_shape(config, "config.json")
    except (BrokenFileError, OSError) as error:
        return [place.broken("config.json", error)]
    except MaiError as error:
        return [place.unfit(error.what.rstrip("."))]
    brought = load_config("files.toml")["flags"]
    skipped = {part for word in flags for part in brought.get(word.split("=")[0], ())}
    if strange := next(_strange_values(config, shape), None):
        return [place.unfit(strange)]
    parts = {
        "weights": check_weights(place, config, shape),
        "tokenizer": _tokenizer(place, config, shape.text.vocabulary),
        "processor": _processor(place, config, shape),
        "template": _template(place, config),
        "rest": _optional(place),
    }
    return [defect for part, defects in parts.items() if part not in skipped for defect in defects]


def needs_no_hub(model: Model, flags: Sequence[str]) -> bool:
    """Return whether all files of a repository are on this machine.

    vLLM must then run in offline mode: without a network it requests the list of files for minutes and fails (0.32).

    Raises NoStartError if no start can succeed: a file is broken, or must be downloaded and cannot be.
    """
    complete = refuse_bad_files(model, flags)
    refuse_unreachable(model, flags)
    names_others = any("/" in word for word in flags)  # a draft model, another tokenizer
    return complete and not names_others and not Path(model.source).is_absolute()


def refuse_bad_files(model: Model, flags: Sequence[str]) -> bool:
    """Raise NoStartError if a defect prevents the start. Return whether all files are on this machine."""
    place = place_of(model)
    found = check_files(place, flags) if place else []
    bad = [defect for defect in found if defect.stops]
    if bad:
        more = f" `mai-server doctor` lists {len(bad) - 1} more." if len(bad) > 1 else ""
        raise NoStartError("CORRUPT", f"{bad[0].what}.", f"{bad[0].remedy[:1].upper()}{bad[0].remedy[1:]}.{more}")
    return place is not None and not any(defect.missing for defect in found)


def refuse_unreachable(model: Model, flags: Sequence[str]) -> None:
    """Raise NoStartError if weights must be downloaded and the hub is unreachable."""
    if model.local is not None or Path(model.source).is_absolute() or any("load-format" in word for word in flags):
        return
    problem = f"{model.source} is not (or not wholly) on this machine"
    if hub_is_off():
        text = "Unset HF_HUB_OFFLINE, download it on a machine with a network, or name a folder that holds it."
        raise NoStartError("OFFLINE", f"{problem}, and HF_HUB_OFFLINE keeps it from being downloaded.", text)
    try:
        look_for_hub(model.source)
    except MaiError as error:
        host = urlsplit(getproxies().get("https", "")).hostname  # without credentials
        proxy = f"Does the proxy {host} (HTTPS_PROXY) answer?" if host else "A proxy is named by HTTPS_PROXY."
        text = f"Connect to the network, or name a folder that holds the model. {proxy}"
        raise NoStartError("NETWORK", f"{problem}, and the hub cannot be reached.", text) from error


def unfinished(repo: str) -> int:
    """Return the number of a repository's files with an interrupted or running download."""
    return len(list((repo_folder(repo) / "blobs").glob("*.incomplete")))


def _processor(place: Place, config: Mapping[str, Any], shape: Shape) -> Iterator[Defect]:
    if shape.vision is None:
        return
    processors = [file for file in _PROCESSORS if (place.folder / file).exists()]
    if not processors:
        yield place.missing(_PROCESSORS[0])
    for file in processors:
        yield from place.found(file, _unlike(place, file, config, shape.vision))


def _unlike(place: Place, file: str, config: Mapping[str, Any], vision: VisionShape) -> Iterator[str]:
    """Yield a clause for each setting of an image processor that contradicts config.json."""
    found = read_object(place, file)
    if not is_known(config):
        return
    nested = found.get("image_processor")
    image = nested if isinstance(nested, Mapping) else found
    classes = (found.get("processor_class"), image.get("processor_class"), image.get("image_processor_type"))
    beginning = load_config("files.toml")["processors"]["begin"]
    if foreign := next((name for name in classes if name and not str(name).startswith(beginning)), None):
        yield f"{file} names {foreign}, and config.json a {config['model_type']},"
        return
    if image is found and file != _PROCESSORS[0]:
        return  # the patch sizes are in the other file
    defaults = load_config("files.toml")["processors"]["defaults"]
    for name, size in (("patch_size", vision.patch), ("merge_size", vision.merge)):
        number = image.get(name, defaults[name])
        if number != size:
            yield f"{file} says {name} {number}, and config.json {size},"
    for name in ("image_mean", "image_std"):
        if (shades := image.get(name)) is None:
            continue
        numbers = shades if isinstance(shades, list) else []
        kept = [
            one for one in numbers if isinstance(one, int | float) and (one > 0 or (name == "image_mean" and not one))
        ]
        if not len(kept) == len(numbers) == vision.channels:
            yield f"{file} says {name} {str(shades)[:40]}, which is not one number above 0 a colour,"


def _template(place: Place, config: Mapping[str, Any]) -> Iterator[Defect]:
    """Check the chat template.

    Without one, vLLM starts but rejects every chat request. With another model's template the answers are bad.
    """
    templates = [file for file in load_config("files.toml")["chat_templates"] if (place.folder / file).exists()]
    settings = read_json_object(place.folder / "tokenizer_config.json")  # its own check reports a broken file
    marks = _marks(settings) if is_known(config) else []
    for file in templates:
        yield from place.found(file, _foreign_template(place.folder / file, marks))
    if not templates and not settings.get("chat_template"):
        yield place.missing("chat_template.jinja")


def _marks(settings: Mapping[str, Any]) -> list[str]:
    """Return the special tokens in tokenizer_config.json, some of which a chat template must contain."""
    found: list[Any] = [settings.get("eos_token")]
    for name in ("additional_special_tokens", "extra_special_tokens", "added_tokens_decoder"):
        group = settings.get(name)
        found += group.values() if isinstance(group, Mapping) else group if isinstance(group, list) else ()
    texts = [token.get("content") if isinstance(token, Mapping) else token for token in found]
    return [text for text in texts if isinstance(text, str) and text.startswith("<|")]


def _foreign_template(path: Path, marks: Sequence[str]) -> Iterator[str]:
    """Yield a clause if a template contains none of the marks. Raises BrokenFileError, OSError."""
    if not path.is_file():
        return
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BrokenFileError("is no text: it is damaged") from None
    if not text.strip():
        raise BrokenFileError("is empty")
    if marks and not any(mark in text for mark in marks):
        yield f"{path.name} writes none of the tokenizer's own marks, as {marks[0]},"


def _optional(place: Place) -> Iterator[Defect]:
    for file in _OPTIONAL:
        if not (place.folder / file).exists():
            continue
        try:
            found = read_object(place, file)
        except (BrokenFileError, OSError) as error:
            yield replace(place.broken(file, error), stops=False)
            continue
        most = found.get("max_new_tokens")
        if file == "generation_config.json" and most is not None and not (type(most) is int and most > 0):
            yield place.broken(file, BrokenFileError(f"says max_new_tokens {most}: vLLM does not start with that"))


def _strange_values(config: Mapping[str, Any], shape: Shape) -> Iterator[str]:
    """Yield a clause for each invalid or contradictory value of config.json that vLLM rejects."""
    rules, known = load_config("files.toml")["configuration"], load_config("files.toml")["known"]
    for name, value in _said(config, "dtype", "torch_dtype"):
        if str(value).removeprefix("torch.") not in rules["dtypes"]:
            yield f"config.json says {name} {str(value)[:40]}, which is no format of weights that vLLM takes,"
    for name, value in _said(config, *rules["numbers"]):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            yield f"config.json says {name} {str(value)[:40]}, which is no number above 0,"
    if (quantized := config.get("quantization_config")) is not None and not isinstance(quantized, Mapping):
        yield f"config.json says quantization_config {str(quantized)[:40]}, which is no object,"
    named, kind = config.get("architectures"), config.get("model_type")
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        yield f"config.json says architectures {str(named)[:60]}, which is no list of names,"
        return
    wanted = next((one for one, architecture in known.items() if architecture in (named or ())), None)
    if wanted is not None and kind != wanted:
        yield f"config.json says architecture {known[wanted]} and model_type {str(kind)[:40]}"
    if kind not in known:
        return
    text, tower = shape.text, shape.vision
    if text.heads % text.kv_heads:
        yield f"config.json says {text.heads} heads and {text.kv_heads} KV heads, which do not divide them,"
    if tower is not None and tower.hidden % tower.heads:
        yield f"config.json says a vision tower {tower.hidden} wide with {tower.heads} heads, which do not divide it,"
    for _, rope in _said(config, "rope_scaling", "rope_parameters"):
        sections = rope.get("mrope_section") if isinstance(rope, Mapping) else None
        if isinstance(sections, list) and sum(part for part in sections if type(part) is int) != text.head_dim // 2:
            yield f"config.json says mrope_section {str(sections)[:40]}, and heads of {text.head_dim} numbers,"


def _said(config: Mapping[str, Any], *names: str) -> Iterator[tuple[str, Any]]:
    """Return the names and values of entries of config.json, at the top level and one level below."""
    parts = [config, *(part for part in config.values() if isinstance(part, Mapping))]
    return ((name, part[name]) for name in names for part in parts if part.get(name) is not None)


_TOKENIZER, _SETTINGS = "tokenizer.json", "tokenizer_config.json"
#: Entries of config.json with the ids of special tokens.
_SPECIAL = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")


def _tokenizer(place: Place, config: Mapping[str, Any], vocabulary: int) -> Iterator[Defect]:
    """Yield the defects of a tokenizer; `vocabulary` is the number of rows of the model's embeddings."""
    sets = load_config("files.toml")["tokenizers"]
    tokenizer_files = next((files for files in sets if all((place.folder / file).is_file() for file in files)), None)
    if tokenizer_files is None:
        yield place.missing(_TOKENIZER)
        return
    for file in (*tokenizer_files, *([_SETTINGS] if (place.folder / _SETTINGS).exists() else ())):
        yield from place.found(file, _foreign_tokens(place, file, config, vocabulary))


def _foreign_tokens(place: Place, file: str, config: Mapping[str, Any], vocabulary: int) -> Iterator[str]:
    """Yield a clause if a file is of another model. Raises BrokenFileError, OSError."""
    if not file.endswith(".json"):
        with (place.folder / file).open("rb") as opened:
            check_beginning(opened.read(512), (place.folder / file).stat().st_size)
        return
    found = read_object(place, file)
    if file != _TOKENIZER:
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
    for name in _SPECIAL:
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
