"""The options of runs, and the person's settings for them: `config.toml` and a few environment variables.

The command line wins over the environment, the environment over the file, the file over the defaults.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

from foundation.configs import check_settings, config_names, read_settings, state_folder
from foundation.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

#: The ways to see and touch the desktop: "auto" goes by what the session offers.
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


_TRIES = ("auto", "off", "always")
#: How pictures are drawn in the terminal: sixel or kitty graphics (`pixels`), characters, or the finest characters that
#: are sure to be drawn there (`blocks`).
IMAGES = ("auto", "pixels", "octants", "sextants", "quadrants", "halves", "blocks", "off")
#: Every option that the command line and the settings file share, in the order of the help.
OPTIONS = (
    Option("approve", "policy", "ask before: every action, risky ones (default on your desktop), none (default in a "
           "sandbox)", choices=("ask", "risky", "never")),
    Option("policy", "policy", "rules for what is risky (default: the shipped ones)", "FILE", "path"),
    Option("tools", "policy", "MCP servers whose tools the model may call, each call as the policy says: a settings "
           "file of any host with \"mcpServers\"", "FILE", "path"),
    Option("accessibility", "policy", choices=("ask", "on", "off")),
    Option("monitor", "desktop", "which monitor (default: the primary one)", "N", "count", in_file=False),
    Option("desktop", "desktop", "how the desktop is seen and touched: x11; portal (GNOME, KDE: asks you once in a "
           "dialog); wlroots (sway, Hyprland and their like); default auto, by what the session offers, Wayland first",
           choices=get_args(DesktopKind)),
    Option("stop_key", "desktop"),
    Option("runs", "runs", "folder of the recorded runs", "DIR", "path"),
    Option("images", "runs", choices=IMAGES),
    Option("engine", "engine", "auto (default: the named endpoint, a running server, the graphics card, else the "
           "literal engine), vllm, literal (an --endpoint then only reads what is beyond it), or endpoint", "ENGINE",
           choices=("auto", "vllm", "literal", "endpoint")),
    Option("endpoint", "engine", "an OpenAI-compatible endpoint, for example 127.0.0.1:8000; or openai, anthropic, "
           "gemini", "URL"),
    Option("model", "engine", "the model: of the endpoint, or for vllm a name (MAI-UI-8B), a repository or a folder",
           "NAME"),
    Option("preset", "engine", "how vllm serves it: latency (default), balanced, ... (mai-server plan --help)", "NAME",
           in_file=False),
    Option("family", "engine", "the model's family (default: found out from its name)", "NAME"),
    Option("no_thinking", "engine", "ask for answers without a thought", kind="flag", in_file=False),
    Option("system_prompt", "engine", "replace the family's system text", "FILE", "path", in_file=False),
    Option("words", "engine", "whose words ask the model: its publisher's where they were fetched (published, default; "
           "mai-agent prompts --help), or this program's (ours)", choices=("published", "ours")),
    Option("prompts_mirror", "engine"),
    Option("max_pixels", "engine", "pixel budget of a screenshot", "N", "count"),
    Option("patience", "engine", "longest wait for a first token (default 300)", "SECONDS", "seconds"),
    Option("planner", "two models", "an endpoint whose model says in words what to do (local: a vLLM of ours beside "
           "the engine's); the engine's model then only finds the places", "URL"),
    Option("grounder", "two models", "an endpoint whose model finds the places; the engine's model then says in words "
           "what to do", "URL"),
    Option("relief", "two models", "an endpoint whose model takes over for a while where the engine's is stuck; "
           "elsewhere only as the policy file allows", "URL"),
    Option("relief_steps", "two models", "for so many steps (default 5)", "N", "count"),
    *(
        option
        for role in OTHER_ROLES
        for option in (
            Option(f"{role}_model", "two models", f"which of the {role}'s models", "NAME"),
            Option(f"{role}_family", "two models", "its family (default: "
                   f"{'planner, a format for any model' if role == 'planner' else 'found out from its name'})", "NAME"),
        )
    ),
    Option("zoom", "two models", "look closely before a click: where the first guess may be off (auto, default), "
           "never, or always", choices=_TRIES),
    Option("calibrate", "two models", "find out first where the model clicks: once for an endpoint of yours (auto, "
           "default), never, or before this run", choices=_TRIES),
    Option("sandbox", "sandbox", "run in a throw-away desktop (Xvfb and XFCE)", kind="flag", in_file=False),
    Option("sandbox_size", "sandbox", "from 640x480 to 7680x7680 (default 1920x1080)", "WxH", "size", in_file=False),
    Option("sandbox_session", "sandbox", "which desktop (default xfce), for gnome, kde and cinnamon their applications "
           "without the shell; bare: only a window manager; sway, gnome-shell: Wayland",
           choices=tuple(config_names("sandbox")), in_file=False),
    Option("sandbox_locale", "sandbox", "what it speaks, as in de_DE.UTF-8 (default: what you speak)", "NAME",
           in_file=False),
    Option("sandbox_network", "sandbox", "what programs in it reach: nothing, or what this machine does (default host)",
           choices=("none", "host")),
    Option("keep", "sandbox", "leave the sandbox running, and say how to look at it", kind="flag", in_file=False),
    Option("max_steps", "limits and history", "give up after N actions (default 50)", "N", "count"),
    Option("max_seconds", "limits and history", "give up after S seconds (default 1800)", "S", "seconds"),
    Option("max_tokens", "limits and history", "give up after N tokens (default: no limit)", "N", "count"),
    Option("style", "limits and history", "how the model is asked (default desktop)", choices=("desktop", "reference")),
    Option("see", "limits and history", "how the model is shown the screen: its picture, that with numbered elements, "
           "these as text (default: what fits)", choices=("screenshot", "marks", "outline")),
    Option("history", "limits and history", "which past screenshots are sent (default block; sliding with --style "
           "reference)", choices=("block", "sliding", "grow")),
    Option("history_images", "limits and history", "how many at most", "N", "count"),
    Option("image_format", "limits and history", "default: the family's own", choices=("png", "jpeg", "webp")),
)  # fmt: skip


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
    path, table = read_settings(environ)
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
        if wish not in _TRIES:
            raise UsageError(f"MAI_AGENT_CALIBRATE is {wish!r}.", "Use auto, off or always.")
        values["calibrate"] = wish
    keys = {role: environ.get(f"MAI_AGENT_{role.upper()}_API_KEY", "") for role in OTHER_ROLES}
    return Settings(values, prompts, environ.get("MAI_AGENT_API_KEY", ""), keys, chosen)


@cache
def _schema() -> "type[BaseModel]":
    """What may stand in the file. Made here, so that `--help` does not import the validation library."""
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


def runs_dir(given: Path | None, settings: Settings) -> Path:
    """The folder of the recorded runs: the one of the command line, of the settings, or the user's state folder."""
    if given is not None:
        return given
    return Path(settings.get("runs")).expanduser() if settings.get("runs") else state_folder() / "runs"
