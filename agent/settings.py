"""The person's settings: `config.toml` in their configuration folder, and a few environment variables.

The command line wins over the environment, the environment over the file, the file over the defaults.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

from foundation.errors import UsageError
from foundation.settings_file import check_settings, read_settings, settings_path

if TYPE_CHECKING:
    from pydantic import BaseModel

#: By which way the desktop is seen and touched: "auto" is by what the session offers.
DesktopKind: TypeAlias = Literal["auto", "x11", "portal", "wlroots"]
DESKTOP_KINDS: tuple[DesktopKind, ...] = get_args(DesktopKind)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the person set; names as on the command line, None where they set nothing."""

    values: Mapping[str, Any] = field(default_factory=dict)
    system_prompts: Mapping[str, Path] = field(default_factory=dict)
    api_key: str = field(default="", repr=False)  # of the endpoint
    api_keys: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the other models' endpoints, by role
    #: what a person chose of a family's own ways, by the family's name
    family_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """The value of a setting, or None."""
        return self.values.get(name)

    @property
    def desktop(self) -> DesktopKind:
        """By which way the desktop is seen and touched."""
        kind: DesktopKind = self.get("desktop") or "auto"
        return kind

    def system_prompt(self, family: str, given: Path | None = None) -> str | None:
        """The text that replaces a family's system text: of the file given, or set. Raises UsageError."""
        path = given or self.system_prompts.get(family)
        return None if path is None else read_text(path)


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The person's settings. Raises UsageError naming what is wrong in the file."""
    environ = os.environ if environ is None else environ
    path = settings_path(environ)
    if environ.get("MAI_AGENT_CONFIG") and not path.is_file():
        raise UsageError(f"There are no settings in {path}.", "MAI_AGENT_CONFIG names that file.")
    table = read_settings(path)
    table.pop("server", None)  # the server controller's own table: it checks it when a server is started
    # Most starts have no file: they need not wait for the validation library.
    values = check_settings(_schema(), table, f"In {path},").model_dump(exclude_unset=True) if table else {}
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
        if wish not in ("auto", "off", "always"):
            raise UsageError(f"MAI_AGENT_CALIBRATE is {wish!r}.", "Use auto, off or always.")
        values["calibrate"] = wish
    keys = {role: environ.get(f"MAI_AGENT_{role.upper()}_API_KEY", "") for role in _OTHERS}
    return Settings(values, prompts, environ.get("MAI_AGENT_API_KEY", ""), keys, chosen)


#: The roles of models beside the one that acts, each with an endpoint and a key of its own.
_OTHERS = ("planner", "grounder", "relief")


@cache
def _schema() -> "type[BaseModel]":
    """What may stand in the file. Made here, so that `--help` does not import the validation library."""
    from pydantic import BaseModel, ConfigDict, Field, model_validator

    class FamilySettings(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)

        system_prompt: str | None = None
        options: dict[str, str | bool | int] | None = None

        @model_validator(mode="after")
        def _says_something(self) -> Self:
            if self.system_prompt is None and self.options is None:
                raise ValueError("it is empty")
            return self

    class SettingsFile(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)

        endpoint: str | None = None
        model: str | None = None
        family: str | None = None
        planner: str | None = None
        planner_model: str | None = None
        planner_family: str | None = None
        grounder: str | None = None
        grounder_model: str | None = None
        grounder_family: str | None = None
        relief: str | None = None
        relief_model: str | None = None
        relief_family: str | None = None
        relief_steps: int | None = Field(None, ge=1)
        zoom: Literal["auto", "off", "always"] | None = None
        calibrate: Literal["auto", "off", "always"] | None = None
        runs: str | None = None
        approve: Literal["ask", "risky", "never"] | None = None
        policy: str | None = None
        accessibility: Literal["ask", "on", "off"] | None = None
        engine: str | None = None
        style: Literal["desktop", "reference"] | None = None
        see: Literal["screenshot", "marks", "outline"] | None = None
        history: Literal["block", "sliding", "grow"] | None = None
        image_format: Literal["png", "jpeg", "webp"] | None = None
        images: Literal["auto", "pixels", "octants", "sextants", "quadrants", "halves", "blocks", "off"] | None = None
        stop_key: str | None = None
        desktop: DesktopKind | None = None
        sandbox_network: Literal["none", "host"] | None = None
        max_steps: int | None = Field(None, ge=1)
        max_seconds: float | None = Field(None, ge=1)
        max_tokens: int | None = Field(None, ge=1)
        max_pixels: int | None = Field(None, ge=1)
        history_images: int | None = Field(None, ge=1)
        patience: float | None = Field(None, ge=1)
        family_settings: dict[str, FamilySettings] = Field(
            {}, description='Write [family_settings.mai-ui] and in it system_prompt = "FILE", or options = { ... }.'
        )

    return SettingsFile


def read_text(path: Path) -> str:
    """The text of a file the person named. Raises UsageError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Is the name right?") from error
