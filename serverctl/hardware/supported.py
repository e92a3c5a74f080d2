"""Selects the cards that vLLM supports, and defines the error for unsupported hardware."""

from foundation.errors import EnvironmentLacksError
from serverctl.hardware.facts import Gpu, Hardware

#: The oldest compute capability in vLLM's wheel (its fatbins hold 75, 80, 86, 89, 90, 100, 120).
LEAST_SM = 75

WAYS_OUT = (
    "The built-in literal engine needs no card (--engine literal), and a server on another machine can be named "
    "(--endpoint URL)"
)


class CannotPlanError(EnvironmentLacksError):
    """No plan works on this hardware. The message gives the reason, the remedy the alternatives."""


def usable_cards(hardware: Hardware) -> tuple[Gpu, ...]:
    """Return the cards that vLLM supports. Raises CannotPlanError if there are cards, but no supported one."""
    if not hardware.gpus:
        return ()
    gpu = hardware.gpus[0]
    if hardware.vendor == "apple":
        raise CannotPlanError(
            f"vLLM does not serve these models on {gpu.name}: it has no build for Apple's GPUs.",
            f"Serve the model with another program on this machine (MLX, llama.cpp) and name it. {WAYS_OUT}.",
        )
    usable = tuple(gpu for gpu in hardware.gpus if gpu.vendor != "nvidia" or gpu.sm is None or gpu.sm >= LEAST_SM)
    if usable:
        return usable
    capability = ".".join(str(part) for part in gpu.compute_capability or ())
    raise CannotPlanError(
        f"vLLM no longer serves on {gpu.name}: its compute capability is {capability}, and vLLM's wheels start at 7.5.",
        f"Serve the model with llama.cpp on this card and name it with --endpoint. {WAYS_OUT}.",
    )
