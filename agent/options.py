"""The options of the runs of one session, from the command line and the person's settings, as plain values."""

import argparse
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from agent.core.geometry import Size
from agent.model.endpoint import EngineChoice
from agent.settings import OTHER_ROLES, DesktopKind, Settings, runs_dir
from foundation.errors import UsageError

#: Stands for a server of ours, in place of an endpoint's address.
LOCAL = "local"


def check_one_desktop(arguments: argparse.Namespace) -> None:
    """Raise UsageError if the options name two desktops."""
    if getattr(arguments, "remote", None) is not None and (arguments.sandbox or arguments.desktop):
        other = "--sandbox" if arguments.sandbox else "--desktop"
        raise UsageError(f"{other} and --remote name two desktops.", "Leave one of them out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How runs are done. None means that nothing was set and that the run's default applies."""

    settings: Settings  # the person's settings, for what depends on the model's family
    runs: Path  # folder of the recorded runs
    traces: str | None = None  # address of the OpenTelemetry collector that gets a trace of each run
    instruction: str | None = None  # of the first run
    engine: EngineChoice = field(default_factory=EngineChoice)  # drives the runs
    family: str | None = None  # of the model; None to find it out
    planner: EngineChoice | None = None  # an endpoint whose model says what to do; the engine then finds the places
    planner_family: str | None = None
    grounder: EngineChoice | None = None  # an endpoint whose model finds the places that the engine's model names
    grounder_family: str | None = None
    relief: EngineChoice | None = None  # an endpoint whose model may take over if the run's own model is stuck
    relief_family: str | None = None
    relief_steps: int = 5  # the number of steps for which it takes over
    zoom: Literal["auto", "off", "always"] = "auto"  # whether a place is looked at more closely before it is clicked
    calibrate: Literal["auto", "off", "always"] = "auto"  # whether the model's points are calibrated first
    system_prompt: Path | None = None  # file whose text replaces the family's system text
    words: Literal["published", "ours"] = "published"  # whose prompt is used if the publisher's was fetched
    approve: str | None = None  # before which actions the person is asked; None for what suits the desktop
    policy: Path | None = None  # file with the rules
    tools: Path | None = None  # file that lists the MCP servers whose tools the model may call
    accessibility: str | None = None  # ask, on, off: whether it is switched on in the person's session during runs
    monitor: int | None = None  # which one, from 1
    desktop: DesktopKind = "auto"  # how it is captured and controlled
    remote: str | None = None  # address of another machine's server, whose desktop is used in place of this one's
    stop_key: str | None = None  # chord that stops a run anywhere
    patience: float | None = None  # longest wait for a first token, in seconds
    sandbox: bool = False  # work in a throw-away desktop; below: its size, kind, language, network, whether it stays
    sandbox_size: Size = Size(1920, 1080)  # noqa: RUF009 -- frozen
    sandbox_session: str = "xfce"
    sandbox_locale: str | None = None
    sandbox_network: Literal["none", "host"] | None = None  # what its programs reach
    keep: bool = False
    # From here on, see `RunSettings`.
    dry_run: bool = False
    thinking: bool = True
    style: str | None = None
    see: str | None = None
    history: str | None = None
    history_images: int | None = None
    max_steps: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_pixels: int | None = None
    image_format: str | None = None

    @classmethod
    def of(cls, arguments: argparse.Namespace, settings: Settings) -> "RunOptions":
        """Return the options of the command line; where it sets nothing, the settings apply."""
        check_one_desktop(arguments)
        values: dict[str, Any] = {}
        for one in fields(cls):
            argument = getattr(arguments, one.name, None)
            values[one.name] = settings.get(one.name) if argument is None else argument
        engine = arguments.engine or settings.get("engine") or "auto"
        url = arguments.endpoint or settings.get("endpoint")
        values |= {
            "settings": settings,
            "engine": EngineChoice(
                name=engine,
                url=url,
                # Without an endpoint, the literal engine ignores the model of the settings; --model is an error then.
                model=arguments.model or (settings.get("model") if url or engine != "literal" else None),
                api_key=settings.api_key,
                preset=arguments.preset,
            ),
            **{role: _other(role, arguments, settings) for role in OTHER_ROLES},
            "thinking": not arguments.no_thinking,
            "runs": runs_dir(getattr(arguments, "runs", None), settings),
        }
        # Nothing in a throw-away desktop needs approval, but tools of MCP servers act outside of it.
        if values["sandbox"] and arguments.approve is None and values["tools"] is None:
            values["approve"] = "never"
        return cls(**{name: value for name, value in values.items() if value is not None})


def _other(role: str, arguments: argparse.Namespace, settings: Settings) -> EngineChoice | None:
    """Return the endpoint of a model beside the engine's own; None if none is named."""

    def said(name: str) -> Any:
        return getattr(arguments, name, None) or settings.get(name)

    url = said(role)
    if url is None:
        return None
    if url == LOCAL:
        return EngineChoice("vllm", model=said(f"{role}_model"))
    return EngineChoice("endpoint", url, said(f"{role}_model"), settings.api_keys.get(role, ""))
