"""The person's settings: `config.toml` in their configuration folder, and a few environment variables.

The command line wins over the environment, the environment over the file, the file over the defaults.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foundation.errors import UsageError

_TEXTS = (
    "endpoint",
    "model",
    "family",
    "runs",
    "approve",
    "policy",
    "engine",
    "style",
    "history",
    "image_format",
    "stop_key",
)
_CHOICES = {
    "approve": ("ask", "risky", "never"),
    "style": ("desktop", "reference"),
    "history": ("block", "sliding", "grow"),
    "image_format": ("png", "jpeg", "webp"),
}
_NUMBERS = ("max_steps", "max_seconds", "max_tokens", "max_pixels", "history_images", "patience")
_SECONDS = ("max_seconds", "patience")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the person set; names as on the command line, None where they set nothing."""

    values: Mapping[str, Any] = field(default_factory=dict)
    system_prompts: Mapping[str, Path] = field(default_factory=dict)
    api_key: str = field(default="", repr=False)

    def get(self, name: str) -> Any:
        """The value of a setting, or None."""
        return self.values.get(name)

    def system_prompt(self, family: str) -> str | None:
        """The text that replaces a family's system text. Raises UsageError when its file cannot be read."""
        path = self.system_prompts.get(family)
        return None if path is None else read_text(path)


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """Where the settings are: MAI_AGENT_CONFIG, or the user's configuration folder."""
    named = (os.environ if environ is None else environ).get("MAI_AGENT_CONFIG")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_config_dir("mai-agent", appauthor=False)) / "config.toml"


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The person's settings. Raises UsageError naming what is wrong in the file."""
    environ = os.environ if environ is None else environ
    path = config_path(environ)
    data: dict[str, Any] = {}
    if environ.get("MAI_AGENT_CONFIG") and not path.is_file():
        raise UsageError(f"There are no settings in {path}.", "MAI_AGENT_CONFIG names that file.")
    if path.is_file():
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"The settings in {path} cannot be read: {error}.", "Mend or remove the file.") from error
    families = data.pop("family_settings", {})
    data.pop("server", None)  # the server controller's own table: it checks it when a server is started
    for name, value in data.items():
        expected = str if name in _TEXTS else int | float if name in _NUMBERS else None
        if expected is None or not isinstance(value, expected) or isinstance(value, bool):
            known = ", ".join(sorted((*_TEXTS, *_NUMBERS)))
            raise UsageError(f"In {path}, {name!r} is no setting or has the wrong type.", f"Settings are: {known}.")
        if value not in _CHOICES.get(name, (value,)):
            raise UsageError(f"In {path}, {name} cannot be {value!r}.", f"Choose one of: {', '.join(_CHOICES[name])}.")
        if name in _NUMBERS and not (float(value) >= 1 and (name in _SECONDS or isinstance(value, int))):
            raise UsageError(f"In {path}, {name} cannot be {value!r}.", "It is a number of at least 1.")
    for name, variable in (("endpoint", "MAI_AGENT_ENDPOINT"), ("model", "MAI_AGENT_MODEL")):
        if environ.get(variable):
            data[name] = environ[variable]
    return Settings(data, _system_prompts(families, path), environ.get("MAI_AGENT_API_KEY", ""))


def _system_prompts(families: Any, path: Path) -> dict[str, Path]:
    """[family_settings.mai-ui] system_prompt = "file", relative to the settings' folder."""
    prompts: dict[str, Path] = {}
    if not isinstance(families, dict):
        raise UsageError(f"In {path}, family_settings must be a table.", "Write [family_settings.mai-ui].")
    for family, table in families.items():
        prompt = table.get("system_prompt") if isinstance(table, dict) else None
        if not isinstance(prompt, str):
            raise UsageError(f"In {path}, [family_settings.{family}] needs system_prompt = FILE.", "Mend the file.")
        prompts[family] = (path.parent / prompt).expanduser()
    return prompts


def read_text(path: Path) -> str:
    """The text of a file the person named. Raises UsageError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Is the name right?") from error
