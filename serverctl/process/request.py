"""The request for a server, stored on disk by `up`. The supervisor and other commands read it."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from foundation.errors import EnvironmentLacksError, MaiError
from serverctl.hardware.detect import detect, detect_cpu
from serverctl.hardware.facts import Hardware
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.settings import check_value
from serverctl.planning import plan_for
from serverctl.process.key_file import read_key
from serverctl.resolve import Resolved
from serverctl.vllm.capabilities import Capabilities, installed

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """The server that a supervisor should start."""

    goal: Goal
    vllm_python: str  # the Python of the environment with vLLM
    port: int | None = None  # None for any free port
    served_name: str | None = None  # the model's name for clients; None for its own
    cards: tuple[str, ...] = ()  # UUIDs (or numbers) of the cards to use; empty for the plan's choice
    processor: bool = False  # whether to serve without a card
    idle_seconds: float | None = None  # stop after this time without requests; None for never
    key: str = field(default="", repr=False)  # the API's key, chosen by the user; "" to create one
    keep_key: bool = False  # whether a start takes the key of the one before
    together: tuple[str, ...] = ()  # the names of all servers of the same `up`, if there are several
    passing: bool = False  # whether a program started it for its own time, so that `up --again` leaves it out

    def to_json(self) -> str:
        """Return the request as JSON text."""
        return _adapter().dump_json(self, indent=1).decode()

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


def read_request(path: Path) -> ServerRequest:
    """Read a request from its file. Raises MaiError if that fails."""
    try:
        request = _adapter().validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MaiError(f"{path} cannot be read: {error}.", "Start the server again with `mai-server up`.") from error
    overrides = {name: check_value(name, value, str(path)) for name, value in request.goal.overrides.items()}
    return replace(request, goal=replace(request.goal, overrides=overrides))


@dataclass(frozen=True, slots=True)
class Change:
    """Other settings for a running server."""

    request: ServerRequest  # the whole, with what stays
    wait: float  # for the requests that run, seconds; then they are broken off

    def to_json(self) -> str:
        """Return the change as JSON text."""
        return _changes().dump_json(self).decode()


def read_change(path: Path) -> Change:
    """Read a change from its file. Raises MaiError if that fails."""
    try:
        return _changes().validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MaiError(f"{path} cannot be read: {error}.", "Ask for the change again.") from error


@cache
def _adapter() -> "TypeAdapter[ServerRequest]":
    from pydantic import TypeAdapter

    return TypeAdapter(ServerRequest)


@cache
def _changes() -> "TypeAdapter[Change]":
    from pydantic import TypeAdapter

    return TypeAdapter(Change)


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
