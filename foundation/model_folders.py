"""What the files of a model's folder tell of its family: its name, its chat template, its architecture.

A fine-tune has its base model's architecture and mostly its template too, so its own name comes first.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foundation.families import detect_family, family_data

#: Files of a folder that are larger than this, in bytes, are none of those looked for.
_LARGEST = 4_000_000
#: How many folders of a path may name its model: in caches of the hub, a snapshot lies three below the name.
_NEAR = 4


@dataclass(frozen=True, slots=True)
class Clues:
    """What a folder tells."""

    names: tuple[str, ...] = ()  # under which the model is or was known, the best first
    types: frozenset[str] = field(default_factory=frozenset)  # model_type and architectures of its config.json
    template: str = ""  # its chat template
    processor: str = ""  # of images: its class, "/" and the side of a patch in pixels


@dataclass(frozen=True, slots=True)
class Found:
    """A family, and by what it was told."""

    family: str
    by: str  # a name, or a file


def clues_in(folder: Path) -> Clues | None:
    """What a folder tells; None where it is no model's."""
    config = _object(folder / "config.json")
    if config is None:
        return None
    named = config.get("_name_or_path")
    nested = config.get("text_config")
    told = [config.get("model_type"), *_list(config.get("architectures"))]
    told += [nested.get("model_type")] if isinstance(nested, Mapping) else []
    processor = _object(folder / "preprocessor_config.json") or {}
    kind, patch = processor.get("image_processor_type"), processor.get("patch_size")
    return Clues(
        tuple(name for name in (*reversed(folder.parts[-_NEAR:]), named) if isinstance(name, str) and name),
        frozenset(one for one in told if isinstance(one, str)),
        _template(folder),
        f"{kind}/{patch}" if kind and patch else "",
    )


def family_of(clues: Clues, among: Iterable[str]) -> Found | None:
    """The family that the clues tell: by a name, the marks of a template, an architecture, an image processor."""
    known = {name: family_data(name).get("detect", {}) for name in among}
    for name in clues.names:
        if (family := detect_family(name, known)) is not None:
            return Found(family, name)
    marked = [
        (len(marks), family)
        for family, detect in known.items()
        if (marks := detect.get("template")) and all(mark in clues.template for mark in marks)
    ]
    if marked:
        return Found(max(marked)[1], "its chat template")
    for family, detect in known.items():
        if clues.types & set(detect.get("model_types", ())):
            return Found(family, "its config.json")
    for family, detect in known.items():
        if any(clues.processor.startswith(one) for one in detect.get("processors", ())):
            return Found(family, "its preprocessor_config.json")
    return None


def _template(folder: Path) -> str:
    text = _text(folder / "chat_template.jinja")
    if text is not None:
        return text
    for name in ("chat_template.json", "tokenizer_config.json"):
        written = (_object(folder / name) or {}).get("chat_template")
        if isinstance(written, str):
            return written
    return ""


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _object(path: Path) -> dict[str, Any] | None:
    text = _text(path)
    try:
        value = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
