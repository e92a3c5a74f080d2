"""Checks all files of a model before a start, without the network and in well under a second."""

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError, MaiError
from foundation.files import read_json_object
from serverctl.models.defects import Defect, Place, is_known, read_object
from serverctl.models.find import cached_snapshot, hub_is_off, look_for_hub, repo_folder
from serverctl.models.model import Model
from serverctl.models.safetensors import BrokenFileError
from serverctl.models.shape import Shape, VisionShape, read_shape
from serverctl.models.tokenizer import check_tokenizer
from serverctl.models.weights import check_weights

#: Optional files of a model. If they exist, they must be JSON.
_OPTIONAL = ("generation_config.json", "special_tokens_map.json", "added_tokens.json", "video_preprocessor_config.json")
#: Comments and raw blocks of a Jinja template.
_ASIDE = re.compile(r"\{#.*?#\}|\{%[-+]?\s*raw\b.*?endraw\s*[-+]?%\}", re.DOTALL)
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
        "tokenizer": check_tokenizer(place, config, shape.text.vocabulary),
        "processor": _processor(place, config, shape),
        "template": _template(place, config),
        "rest": (*_optional(place), *_changed(place)),
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


def refuse_unknown_method(model: Model, known: Collection[str]) -> None:
    """Raise NoStartError if vLLM does not know the quantisation method. An empty `known` accepts all methods."""
    method = model.shape.quantization
    plain = {name.replace("_", "-") for name in known} | set(load_config("files.toml")["other_names"])
    if method is None or not known or method.lower().replace("_", "-") in plain:
        return
    known_not = f"says {method!r}, which this vLLM does not know"
    problem = "does not say how (quant_method)" if method == "unknown" else known_not
    text = "Use another checkpoint: 16-bit weights, fp8, AWQ, GPTQ or compressed-tensors."
    raise NoStartError("QUANT_UNKNOWN", f"{model.name} is quantised, and its config.json {problem}.", text)


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
    if path.suffix == ".jinja" and _ends_within(text):
        raise BrokenFileError("is cut off: it ends within a tag or a block")
    if marks and not any(mark in text for mark in marks):
        yield f"{path.name} writes none of the tokenizer's own marks, as {marks[0]},"


def _ends_within(template: str) -> bool:
    template = _ASIDE.sub("", template)
    last = max(template.rfind(begin) for begin in ("{%", "{{", "{#"))
    if last >= 0 and not any(end in template[last + 2 :] for end in ("%}", "}}", "#}")):
        return True
    return any(
        len(re.findall(rf"{{%[-+]?\s*{word}\b", template)) > len(re.findall(rf"{{%[-+]?\s*end{word}\b", template))
        for word in ("for", "if", "macro")
    )


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


#: Files above this size are not hashed, bytes: they are weights. A tokenizer of 262,144 tokens has 33 MB.
_MOST_BYTES = 40 * 1024**2
_MARK = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def _changed(place: Place) -> Iterator[Defect]:
    """Yield a defect for each small file that differs from the hub's: damaged or edited. These do not stop a start.

    The hub's client keeps the hash of each downloaded file: SHA-256 for Git LFS files, the SHA-1 of the Git blob for
    others. In the cache it is the name of the file that the snapshot links to. For a local folder it is in
    `.cache/huggingface/download`.
    """
    for path in sorted(place.folder.glob("*")):
        mark = _mark_of(path)
        if mark is None:
            continue
        with suppress(OSError):  # other checks report unreadable files
            if path.stat().st_size > _MOST_BYTES:
                continue
            data = path.read_bytes()
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
            if (hashlib.sha256(data) if len(mark) == 64 else blob).hexdigest() != mark:
                what = f"{path.name} in {place.name} is not as the hub has it"
                yield Defect(what, "if nobody edited it on purpose, delete it and download it again", stops=False)


def _mark_of(path: Path) -> str | None:
    """Return the hash that the hub's client recorded for a file; None without one."""
    try:
        mark = path.resolve(strict=True).name
        if path.is_symlink() and _MARK.fullmatch(mark):
            return mark
        beside = path.parent / ".cache" / "huggingface" / "download" / f"{path.name}.metadata"
        mark = beside.read_text(encoding="ascii").splitlines()[1].strip()
    except (OSError, RuntimeError, ValueError, IndexError):  # RuntimeError: a loop of links (Python 3.11, 3.12)
        return None
    return mark if _MARK.fullmatch(mark) else None
