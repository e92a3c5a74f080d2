"""Model families as both `agent` and `serverctl` need them: data file, image rule, and detection of their models.

A family is a folder with a `family.toml`; there is no other registry.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from foundation.configs import load_config
from foundation.errors import UsageError
from foundation.files import read_json_object
from foundation.images import ImageRule

#: Parents of the families' folders, beside this package both in a checkout and in an installation.
ROOTS: tuple[Path, ...] = (Path(__file__).resolve().parents[1] / "agent" / "families",)


@cache
def _families(roots: tuple[Path, ...]) -> dict[str, tuple[Path, dict[str, Any]]]:
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in sorted(path for root in roots for path in root.glob("*/family.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        found[str(data["name"])] = (path.parent, data)
    for name, (folder, data) in found.items():
        if "like" in data:
            shared = {key: value for key, value in found[data["like"]][1].items() if key not in _NOT_SHARED}
            found[name] = (folder, {**shared, **data})
    return found


#: Keys that a family does not inherit through `like`.
_NOT_SHARED = frozenset({"detect", "like", "models", "name", "proven_by", "scores"})


def family_names() -> list[str]:
    """Return the names of all families, sorted; also of those with only an image rule."""
    return sorted(_families(ROOTS))


def named(written: str) -> str:
    """Return the name of the family that a family's or model's name means, in any case; other text unchanged."""
    families = _families(ROOTS)
    if written in families or ".." in written:
        return written
    meant = _joined(_words(_last(written)))
    for name, (_, data) in families.items():
        if meant in [_joined(_words(_last(one))) for one in (name, *data.get("models", ()))]:
            return name
    return detect_family(written) or written


def _family(name: str) -> tuple[Path, dict[str, Any]]:
    name = named(name)
    if name not in _families(ROOTS):
        raise UsageError(f"There is no family {name!r}.", f"Use one of: {', '.join(family_names())}.")
    return _families(ROOTS)[name]


def family_data(name: str) -> dict[str, Any]:
    """Return the data of a family. Raises UsageError if it does not exist."""
    return _family(name)[1]


def family_folder(name: str) -> Path:
    """Return a family's folder. Raises UsageError."""
    return _family(name)[0]


def image_rule(name: str) -> ImageRule:
    """Return a family's image rule. Raises UsageError."""
    image = family_data(name)["image"]
    numbers = {name: int(image[name]) for name in ("factor", "min_pixels", "max_pixels")}
    return ImageRule(
        **numbers,
        counts=bool(image.get("tokens", True)),
        linear=bool(image.get("linear", False)),
        max_side=image.get("max_side"),
        token_pixels=image.get("token_pixels"),
    )


def detect_family(model: str, among: Iterable[str] | None = None) -> str | None:
    """Return the family with the longest spelling that a served model's name contains; None for none.

    Only whole words and numbers count, in any case and with any signs between them: "GLM-4_5V" contains "glm-4.5v", and
    "qwen3-8b" does not contain "qwen3.8". The owner of a model says nothing about its family. In a path, the last part
    that contains a spelling counts.
    """
    known = [
        (len(spelling), name, spelling)
        for name in (family_names() if among is None else among)
        for spelling in _spellings(name)
    ]
    strangers = frozenset(spelling for word in load_config("strangers.toml")["names"] for spelling in _spelt(word))
    for part in _parts(model):
        spelt = _runs(_words(part))
        matches = [(length, name) for length, name, spelling in known if spelling in spelt]
        if matches:
            return None if strangers & spelt else max(matches)[1]
    return None


#: Matches a size with its unit (such as 8b or 4bit), a number, or a word.
_WORD = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:b|m|k|bit|bits|bpw)(?![a-z0-9])|[0-9]+|[a-z]+")
#: The longest spelling, in words.
_MOST_WORDS = 8


def _last(model: str) -> str:
    return model.strip().rstrip("/").rpartition("/")[2]


def _parts(model: str) -> Sequence[str]:
    """Return the parts of a name that may identify the family, the best first."""
    parts = model.strip().rstrip("/").split("/")
    return parts[::-1] if model.startswith(("/", "~", ".")) else parts[-1:]


def _words(written: str) -> Sequence[str]:
    """Return the words and numbers of a name. A "p" between digits is a point, as in "qwen3p5"."""
    return _WORD.findall(re.sub(r"(?<=[0-9])p(?=[0-9])", ".", written.lower()))


def _joined(words: Sequence[str]) -> str:
    """Write words without anything between them, but with a point between two numbers."""
    return re.sub(r"(?<=[0-9]) (?=[0-9])", ".", " ".join(words)).replace(" ", "")


def _runs(words: Sequence[str]) -> frozenset[str]:
    ends = range(1, _MOST_WORDS + 1)
    return frozenset(_joined(words[begin : begin + end]) for begin in range(len(words)) for end in ends)


def _spelt(written: str) -> Sequence[str]:
    """Return a name in the form of `_runs`, with and without the points between digits ("qwen25vl")."""
    joined = _joined(_words(written))
    return joined, re.sub(r"(?<=[0-9])\.(?=[0-9](?![0-9]))", "", joined)


def _spellings(name: str) -> Iterable[str]:
    """Return the spellings that identify a family's models, with its own name unless that is a common word."""
    detect = family_data(name).get("detect", {})
    names = (*(() if detect.get("a_word", False) else (name,)), *detect.get("names", ()))
    return {spelling for one in names for spelling in _spelt(one)}


#: Largest file to read in a model's folder, in bytes.
_LARGEST = 4_000_000
#: Trailing parts of a path that may name the model: in the hub's cache, a snapshot is three levels below the name.
_NEAR = 4


@dataclass(frozen=True, slots=True)
class Found:
    """A family, and the clue that identified it."""

    family: str
    by: str  # a name, or a file


def family_in(folder: Path, among: Iterable[str]) -> Found | None:
    """Return the family of the model in a folder; None if there is no model or no clue.

    A fine-tune has the architecture and usually the chat template of its base model, so its own name comes first.
    """
    if not (folder / "config.json").is_file():
        return None
    config = _object(folder / "config.json")
    known = {name: family_data(name).get("detect", {}) for name in among}
    for name in (*reversed(folder.parts[-_NEAR:]), config.get("_name_or_path")):
        if isinstance(name, str) and name and (family := detect_family(name, known)) is not None:
            return Found(family, name)
    template = _template(folder)
    marked = [
        (len(marks), family)
        for family, detect in known.items()
        if (marks := detect.get("template")) and all(mark in template for mark in marks)
    ]
    if marked:
        return Found(max(marked)[1], "its chat template")
    types = _types(config)
    for family, detect in known.items():
        if types & set(detect.get("model_types", ())):
            return Found(family, "its config.json")
    processor = _object(folder / "preprocessor_config.json")
    kind, patch = processor.get("image_processor_type"), processor.get("patch_size")
    for family, detect in known.items():
        if kind and patch and any(f"{kind}/{patch}".startswith(one) for one in detect.get("processors", ())):
            return Found(family, "its preprocessor_config.json")
    return None


def _types(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the model_type and the architectures in a config.json, as far as they are texts."""
    nested, architectures = config.get("text_config"), config.get("architectures")
    types = [config.get("model_type"), *(architectures if isinstance(architectures, list) else ())]
    types += [nested.get("model_type")] if isinstance(nested, Mapping) else []
    return frozenset(one for one in types if isinstance(one, str))


def _template(folder: Path) -> str:
    with suppress(OSError, ValueError):
        if (alone := folder / "chat_template.jinja").stat().st_size <= _LARGEST:
            return alone.read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        written = _object(folder / name).get("chat_template")
        if isinstance(written, str):
            return written
    return ""


def _object(path: Path) -> dict[str, Any]:
    with suppress(OSError):
        return read_json_object(path) if path.stat().st_size <= _LARGEST else {}
    return {}
