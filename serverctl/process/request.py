"""What `up` was asked for, on disk: the supervisor reads it, and so does everybody who asks what runs and why."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from foundation.errors import EnvironmentLacksError, MaiError
from serverctl.hardware.detect import detect, detect_cpu
from serverctl.hardware.facts import Hardware
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.settings import check_value
from serverctl.planning import plan_for
from serverctl.resolve import Resolved
from serverctl.vllm.capabilities import Capabilities, installed

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """What a supervisor is to start."""

    goal: Goal  # what is wanted
    vllm_python: str  # the Python of the environment with vLLM
    port: int | None = None  # None for a free one
    served_name: str | None = None  # the model's name for clients; None for its own
    cards: tuple[str, ...] = ()  # UUIDs (or numbers) of the cards to use; empty for the plan's choice
    processor: bool = False  # whether to serve without a card
    idle_seconds: float | None = None  # it ends when nobody has asked anything for so long; None for never

    def to_json(self) -> str:
        """As JSON text."""
        return _adapter().dump_json(self, indent=1).decode()

    def hardware(self) -> Hardware:
        """The hardware to plan for, as it is now: free memory included.

        Raises EnvironmentLacksError where its cards are gone: the processor is no substitute nobody asked for.
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
) -> ServerRequest:
    """What a supervisor is to start for a plan: on exactly the plan's cards."""
    assert resolved.vllm is not None
    return ServerRequest(
        goal=resolved.goal,
        vllm_python=str(resolved.vllm.python),
        port=port or resolved.config.port,
        served_name=served_name,
        cards=tuple(gpu.uuid or str(gpu.index) for gpu in plan.gpus),
        processor=not plan.gpus,
        idle_seconds=idle_seconds or resolved.config.idle_seconds,
    )


def read_request(path: Path) -> ServerRequest:
    """Read a request from its file. Raises MaiError if that fails."""
    try:
        request = _adapter().validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MaiError(f"{path} cannot be read: {error}.", "Start the server again with `mai-server up`.") from error
    overrides = {name: check_value(name, value, str(path)) for name, value in request.goal.overrides.items()}
    return replace(request, goal=replace(request.goal, overrides=overrides))


@cache
def _adapter() -> "TypeAdapter[ServerRequest]":
    from pydantic import TypeAdapter

    return TypeAdapter(ServerRequest)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan with the vLLM it was made for."""

    plan: Plan
    capabilities: Capabilities
    offline: bool = False  # whether the start finds the whole model here, and needs no hub


def prepare(request: ServerRequest, goal: Goal) -> Prepared:
    """The plan for a request as things are now. Raises MaiError."""
    capabilities = installed(Path(request.vllm_python))
    return Prepared(plan_for(request.hardware(), goal, capabilities.version), capabilities)
