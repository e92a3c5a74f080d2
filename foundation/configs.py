"""Locates and reads settings and state: the shipped `configs/`, the user's `config.toml`, the state folder."""

import json
import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foundation.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Schema = TypeVar("Schema", bound=BaseModel)


@cache
def configs_dir() -> Path:
    """Return the folder of the shipped configuration: in the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent
    for candidate in (package / "configs", package.parent / "configs"):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError("the configs folder is missing: this installation of mai-agent is incomplete")


@cache
def load_config(name: str) -> dict[str, Any]:
    """Load a shipped file by its path below `configs/`, such as "gpus/t4.toml"."""
    path = configs_dir() / name
    if path.suffix == ".json":
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document
    with path.open("rb") as file:
        return tomllib.load(file)


def config_names(folder: str, suffix: str = ".toml") -> list[str]:
    """Return the names of the files in a folder of `configs/` without their suffix, sorted."""
    return sorted(path.stem for path in (configs_dir() / folder).glob(f"*{suffix}"))


def settings_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the settings: MAI_AGENT_CONFIG, or `config.toml` in the user's configuration folder."""
    named = (os.environ if environ is None else environ).get("MAI_AGENT_CONFIG")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_config_dir("mai-agent", appauthor=False)) / "config.toml"


def read_settings(environ: Mapping[str, str] | None = None) -> tuple[Path, dict[str, Any]]:
    """Return the path of the settings file and its content; empty if there is none. Raises UsageError."""
    environ = os.environ if environ is None else environ
    path = settings_path(environ)
    if not path.exists():
        if environ.get("MAI_AGENT_CONFIG"):
            raise UsageError(f"There are no settings in {path}.", "MAI_AGENT_CONFIG names that file.")
        return path, {}
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The settings in {path} cannot be read: {error}.", "Mend or remove the file.") from error


def check_settings(schema: "type[Schema]", table: Any, where: str) -> "Schema":
    """Validate a table. Raises UsageError: the first wrong entry, with the field's description as the remedy.

    `where` begins the message, for example "In config.toml, [server]:".
    """
    from pydantic import ValidationError

    try:
        return schema.model_validate(table)
    except ValidationError as failed:
        error = failed.errors()[0]
    if not error["loc"]:
        raise UsageError(f"{where} this is no table of settings.", "Write NAME = VALUE in it, a setting a line.")
    name = ".".join(map(str, error["loc"]))
    field = schema.model_fields.get(str(error["loc"][0]))
    if error["type"] == "extra_forbidden":
        raise UsageError(f"{where} there is no setting {name!r}.", f"Settings are: {', '.join(schema.model_fields)}.")
    problem = "is missing" if error["type"] == "missing" else f"cannot be {error['input']!r}"
    allowed = error["msg"].replace("Input should be", "It must be")
    raise UsageError(f"{where} {name} {problem}.", (field and field.description) or f"{allowed}.")


def state_folder() -> Path:
    """Return the folder in MAI_AGENT_STATE, or the user's state folder. It may not exist yet."""
    return _own_folder("state")


def data_folder() -> Path:
    """Return the folder in MAI_AGENT_DATA, or the user's data folder. It may not exist yet."""
    return _own_folder("data")


def _own_folder(kind: str) -> Path:
    if named := os.environ.get(f"MAI_AGENT_{kind.upper()}"):
        return Path(named).expanduser()
    import platformdirs

    return Path(getattr(platformdirs, f"user_{kind}_dir")("mai-agent", appauthor=False))
