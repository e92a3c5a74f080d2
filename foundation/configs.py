"""Finds and reads the data files of `configs/`: data apart from code, shipped inside the wheel."""

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent


@cache
def configs_dir() -> Path:
    """The folder of the shipped configuration: inside the installed package, or beside it in a checkout."""
    for candidate in (_ROOT / "configs", _ROOT.parent / "configs"):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError("the configs folder is missing: this installation of mai-agent is incomplete")


@cache
def load_config(name: str) -> dict[str, Any]:
    """One shipped file by its name below `configs/`, for example "gpus/t4.toml" or "vllm/0.33.0.json"."""
    path = configs_dir() / name
    if path.suffix == ".json":
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document
    with path.open("rb") as file:
        return tomllib.load(file)


def config_names(folder: str, suffix: str = ".toml") -> list[str]:
    """The names (without their suffix) of the files in one folder of `configs/`, sorted."""
    return sorted(path.stem for path in (configs_dir() / folder).glob(f"*{suffix}"))
