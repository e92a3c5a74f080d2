"""The options of runs, and the person's settings for them: `config.toml` and a few environment variables.

The command line wins over the environment, the environment over the file, the file over the defaults.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from foundation.configs import check_settings, config_names, load_config, read_settings, state_folder
from foundation.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

#: The ways to capture and control the desktop. "auto" chooses one that the session offers.
DesktopKind: TypeAlias = Literal["auto", "x11", "portal", "wlroots"]
#: The roles of models beside the one that acts, each with an endpoint and a key of its own.
OTHER_ROLES = ("planner", "grounder", "relief")
Kind: TypeAlias = Literal["text", "path", "count", "seconds", "flag", "size"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of runs: `--like-this` on the command line if it has a help, `like_this` in the file if `in_file`."""

    name: str
    group: str
    help: str = ""
    metavar: str | None = None
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    in_file: bool = True


def _option(table: dict[str, Any]) -> Option:
    chosen = table.get("choices", ())
    return Option(**table | {"choices": tuple(config_names(chosen) if isinstance(chosen, str) else chosen)})


#: Every option that the command line and the settings file share, in the order of the help.
OPTIONS = tuple(map(_option, load_config("options.toml")["options"]))
CHOICES = {option.name: option.choices for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the person set; names as on the command line, None if they set nothing."""

    values: Mapping[str, Any] = field(default_factory=dict)
    system_prompts: Mapping[str, Path] = field(default_factory=dict)
    api_key: str = field(default="", repr=False)  # of the endpoint
    api_keys: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the other models' endpoints, by role
    #: the person's choices for a family's own options, by the family's name
    family_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """The value of a setting, or None."""
        return self.values.get(name)

    @property
    def desktop(self) -> DesktopKind:
        """How the desktop is captured and controlled."""
        kind: DesktopKind = self.get("desktop") or "auto"
        return kind

    def system_prompt(self, family: str, file: Path | None = None) -> str | None:
        """Return the text that replaces a family's system text: from `file` or the settings. Raises UsageError."""
        path = file or self.system_prompts.get(family)
        return None if path is None else read_text(path)


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The person's settings. Raises UsageError naming what is wrong in the file."""
    environ = os.environ if environ is None else environ
    path, table = read_settings(environ)
    table.pop("server", None)  # the server controller checks its own table when a server is started
    # Most starts have no file: they need not wait for the validation library.
    values = check_settings(_schema(), table, f"In {path},").model_dump(exclude_unset=True) if table else {}
    for name in (option.name for option in OPTIONS if option.kind == "path" and option.name in values):
        values[name] = Path(values[name]).expanduser() if values[name] else None
    families = values.pop("family_settings", {})
    prompts = {
        family: (path.parent / entry["system_prompt"]).expanduser()
        for family, entry in families.items()
        if entry.get("system_prompt")
    }
    chosen = {family: entry["options"] for family, entry in families.items() if entry.get("options")}
    for name, variable in (("endpoint", "MAI_AGENT_ENDPOINT"), ("model", "MAI_AGENT_MODEL")):
        if environ.get(variable):
            values[name] = environ[variable]
    if wish := environ.get("MAI_AGENT_CALIBRATE"):
        if wish not in CHOICES["calibrate"]:
            raise UsageError(f"MAI_AGENT_CALIBRATE is {wish!r}.", "Use auto, off or always.")
        values["calibrate"] = wish
    keys = {role: environ.get(f"MAI_AGENT_{role.upper()}_API_KEY", "") for role in OTHER_ROLES}
    return Settings(values, prompts, environ.get("MAI_AGENT_API_KEY", ""), keys, chosen)


@cache
def _schema() -> "type[BaseModel]":
    """Return the schema of the file. It is made here, so that `--help` does not import the validation library."""
    from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

    strict = ConfigDict(extra="forbid", strict=True)

    class FamilySettings(BaseModel):
        model_config = strict

        system_prompt: str | None = None
        options: dict[str, str | bool | int] | None = None

        @model_validator(mode="after")
        def _says_something(self) -> Self:
            if self.system_prompt is None and self.options is None:
                raise ValueError("it is empty")
            return self

    kinds: dict[str, Any] = {"count": (int | None, Field(None, ge=1)), "seconds": (float | None, Field(None, ge=1))}
    literal: Any = Literal
    entries: dict[str, Any] = {
        option.name: (literal[option.choices] | None, None)
        if option.choices
        else kinds.get(option.kind, (str | None, None))
        for option in OPTIONS
        if option.in_file
    }
    how = 'Write [family_settings.mai-ui] and in it system_prompt = "FILE", or options = { ... }.'
    entries["family_settings"] = (dict[str, FamilySettings], Field({}, description=how))
    return create_model("SettingsFile", __config__=strict, **entries)


def read_text(path: Path) -> str:
    """The text of a file the person named. Raises UsageError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Is the name right?") from error


def runs_dir(folder: Path | None, settings: Settings) -> Path:
    """The folder of the recorded runs: the one of the command line, of the settings, or the user's state folder."""
    return folder or settings.get("runs") or state_folder() / "runs"
