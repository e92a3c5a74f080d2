"""Finds and reads the TOML files of `configs/`: data apart from code, shipped inside the wheel."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


@cache
def configs_dir() -> Path:
    """The folder of the shipped configuration: inside the installed package, or beside it in a checkout.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for candidate in (_PACKAGE / "configs", _PACKAGE.parent / "configs"):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError("the configs folder is missing: this installation of mai-agent is incomplete")


@cache
def load_config(name: str) -> dict[str, Any]:
    """One shipped file by its name below `configs/`, for example "families/mai-ui.toml"."""
    with (configs_dir() / name).open("rb") as file:
        return tomllib.load(file)


def config_names(folder: str) -> list[str]:
    """The names (without .toml) of the files in one folder of `configs/`, sorted."""
    return sorted(path.stem for path in (configs_dir() / folder).glob("*.toml"))
