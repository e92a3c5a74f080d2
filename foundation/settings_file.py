"""The person's settings file, `config.toml`: found and read here; each half of the program checks its own part."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foundation.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Schema = TypeVar("Schema", bound=BaseModel)


def settings_path(environ: Mapping[str, str] | None = None) -> Path:
    """Where the settings are: MAI_AGENT_CONFIG, or the user's configuration folder."""
    named = (os.environ if environ is None else environ).get("MAI_AGENT_CONFIG")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_config_dir("mai-agent", appauthor=False)) / "config.toml"


def read_settings(path: Path) -> dict[str, Any]:
    """The tables of a settings file, empty where there is no file. Raises UsageError where it cannot be read."""
    import tomllib

    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The settings in {path} cannot be read: {error}.", "Mend or remove the file.") from error


def check_settings(schema: "type[Schema]", table: Any, where: str) -> "Schema":
    """A table as its schema has it; the description of a schema's field says how to write it.

    `where` begins the message, for example "In config.toml, [server]:". Raises UsageError: names the first entry that
    is wrong, and what is allowed.
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
    what = "is missing" if error["type"] == "missing" else f"cannot be {error['input']!r}"
    allowed = error["msg"].replace("Input should be", "It must be")
    raise UsageError(f"{where} {name} {what}.", (field and field.description) or f"{allowed}.")
