"""The request for a server, stored on disk by `up`. The supervisor and other commands read it."""

import re
import stat
import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from serverctl.hardware.detect import detect, detect_cpu
from serverctl.hardware.facts import Hardware
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.render import render
from serverctl.plan.settings import check_value
from serverctl.planning import Resolved, plan_for, resolve
from serverctl.vllm.capabilities import Capabilities, installed

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: Characters that pass unchanged through HTTP headers, environments and the configuration of routers.
_KEY = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")


def read_key(name: str | None) -> str:
    """Return the key in a file, or on standard input for "-"; "" without a name. Raises UsageError."""
    if name is None:
        return ""
    path = Path(name).expanduser()
    try:
        text = sys.stdin.readline() if name == "-" else path.read_text(encoding="utf-8")
        mode = 0 if name == "-" else path.stat().st_mode
    except (OSError, ValueError) as error:
        raise UsageError(f"The key file {name} cannot be read: {error}.", "Is the name right?") from error
    if stat.S_ISREG(mode) and mode & 0o077:
        raise UsageError(f"Other users may read or change the key file {path}.", f"`chmod 600 {path}` ends that.")
    key = text.strip()
    if not _KEY.fullmatch(key):
        raise UsageError(
            f"The key file {name} holds no key: one line of 16 to 512 letters, digits and . _ ~ + / = - is wanted.",
            "`openssl rand -hex 24` makes one.",
        )
    return key


@dataclass(frozen=True, slots=True)
class Served:
    """One of several models that a server swaps."""

    name: str  # for clients
    goal: Goal


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """The server that a supervisor should start."""

    goal: Goal
    vllm_python: str  # the Python of the environment with vLLM
    port: int | None = None  # None for any free port
    served_name: str | None = None  # the model's name for clients; None for its own
    cards: tuple[str, ...] = ()  # UUIDs (or numbers) of the cards to use; empty for the plan's choice
    processor: bool = False  # whether to serve without a card
    idle_seconds: float | None = None  # sleep after this time without requests; None for never
    key: str = field(default="", repr=False)  # the API's key, chosen by the user; "" to create one
    keep_key: bool = False  # whether a start keeps the key of the previous start
    together: tuple[str, ...] = ()  # the names of all servers of the same `up`, if there are several
    models: tuple[Served, ...] = ()  # all models that it swaps, one at a time; empty if it only serves `goal`
    passing: bool = False  # whether a bench started it temporarily; `up --again` ignores it

    def to_json(self) -> str:
        """Return the request as JSON text."""
        return _adapter(ServerRequest).dump_json(self, indent=1).decode()

    def for_model(self, model: str) -> "ServerRequest | None":
        """Return the request for one of its models, by name, repository or folder; None if it has no such model."""
        for each in self.models:
            if model and is_one_of(model, {each.name, each.goal.model or ""}):
                return replace(self, goal=each.goal, served_name=each.name)
        return None

    def hardware(self) -> Hardware:
        """Detect the hardware to plan for, with its current free memory.

        Raises EnvironmentLacksError if the requested cards are gone, instead of falling back to the CPU.
        """
        if self.processor:
            return Hardware((), detect_cpu())
        found = detect()
        if not self.cards:
            return found
        chosen = tuple(gpu for gpu in found.gpus if gpu.uuid in self.cards or str(gpu.index) in self.cards)
        if not chosen:
            why = f" {' '.join(found.problems)}" if found.problems else ""
            raise EnvironmentLacksError(
                f"The server's card {self.cards[0]} cannot be found any more.{why}",
                "`nvidia-smi` must list it; then `mai-server up` starts the server again.",
            )
        return replace(found, gpus=chosen)


def is_one_of(model: str, names: Set[str]) -> bool:
    """Return whether a model, given by name, repository or folder, has one of some names."""
    own_names = {model.casefold(), str(Path(model).expanduser().resolve()).casefold()}
    return not own_names.isdisjoint(name.casefold() for name in names)


def server_request(
    resolved: Resolved,
    plan: Plan,
    port: int | None = None,
    served_name: str | None = None,
    idle_seconds: float | None = None,
    key: str = "",
    keep_key: bool = False,
) -> ServerRequest:
    """Return the request for a plan, on exactly the plan's cards. Raises UsageError if a key file cannot be used."""
    assert resolved.vllm is not None
    return ServerRequest(
        goal=resolved.goal,
        vllm_python=str(resolved.vllm.python),
        port=port or resolved.config.port,
        served_name=served_name,
        cards=tuple(gpu.uuid or str(gpu.index) for gpu in plan.gpus),
        processor=not plan.gpus,
        idle_seconds=idle_seconds or resolved.config.idle_seconds,
        key=key or read_key(resolved.config.key_file),
        keep_key=keep_key or resolved.config.keep_key,
    )


def with_swapped_models(request: ServerRequest, first: Resolved, models: Sequence[str]) -> ServerRequest:
    """Let a server swap other models in, each with the settings that it would have alone.

    Raises UsageError for a model that is named twice, CannotPlanError for one that does not fit.
    """
    served = [Served(request.served_name or first.plan().model.name, request.goal)]
    for model in models:
        each = resolve(
            model,
            first.goal.preset,
            screen=first.goal.screen,
            force=first.goal.force,
            vllm_python=request.vllm_python,
            hardware=first.hardware,
        )
        plan = each.plan()
        render(plan, each.capabilities, 1)
        if plan.model.name in [other.name for other in served]:
            raise UsageError(f"The model {plan.model.name} is named twice.", "Name each model once.")
        served.append(Served(plan.model.name, each.goal))
    return replace(request, served_name=served[0].name, models=tuple(served), cards=())


def read_request(path: Path) -> ServerRequest:
    """Read a request from its file. Raises MaiError if that fails."""
    request: ServerRequest = _read(ServerRequest, path, "Start the server again with `mai-server up`.")

    def checked(goal: Goal) -> Goal:  # check the settings as those of a command line
        overrides = {name: check_value(name, value, str(path)) for name, value in goal.overrides.items()}
        return replace(goal, overrides=overrides)

    models = tuple(replace(each, goal=checked(each.goal)) for each in request.models)
    return replace(request, goal=checked(request.goal), models=models)


@dataclass(frozen=True, slots=True)
class Change:
    """Other settings for a running server."""

    request: ServerRequest  # the complete new request, including unchanged settings
    wait: float  # seconds for running requests to finish; then they are aborted

    def to_json(self) -> str:
        """Return the change as JSON text."""
        return _adapter(Change).dump_json(self).decode()


def read_change(path: Path) -> Change:
    """Read a change from its file. Raises MaiError if that fails."""
    change: Change = _read(Change, path, "Ask for the change again.")
    return change


def _read(kind: object, path: Path, remedy: str) -> Any:
    try:
        return _adapter(kind).validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MaiError(f"{path} cannot be read: {error}.", remedy) from error


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan with the capabilities of its vLLM."""

    plan: Plan
    capabilities: Capabilities
    offline: bool = False  # whether the whole model is on this machine, so that the hub is not needed


def prepare(request: ServerRequest, goal: Goal) -> Prepared:
    """Plan a request for the current hardware. Raises MaiError."""
    capabilities = installed(Path(request.vllm_python))
    return Prepared(plan_for(request.hardware(), goal, capabilities.version), capabilities)
