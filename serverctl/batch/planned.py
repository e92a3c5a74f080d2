"""The offline engine as the plan has it: the same limits as a server of the preset throughput, without a server."""

from pathlib import Path
from typing import Any

from foundation.errors import EnvironmentLacksError
from serverctl.plan.goal import Plan

#: Knobs whose names vLLM's engine takes as they are.
_SAME = (
    "dtype",
    "quantization",
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "kv_cache_dtype",
    "enforce_eager",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "mm_encoder_tp_mode",
)


def planned_engine(model: str | None) -> tuple[Path, dict[str, Any]]:
    """The Python with vLLM, and the engine's arguments, for this machine.

    Raises:
        EnvironmentLacksError: vLLM is not installed, or no plan works here.
    """
    from serverctl.commands.options import request_for

    request = request_for(model, "throughput", None)
    plan = request.plan()
    if request.vllm is None:
        raise EnvironmentLacksError(
            "There is no vLLM here.", "`mai-server install` makes an environment with it, or name one with --python."
        )
    return request.vllm.python, engine_arguments(plan)


def engine_arguments(plan: Plan) -> dict[str, Any]:
    """A plan's settings as arguments of vLLM's `LLM` class."""
    settings = plan.settings
    arguments: dict[str, Any] = {name: value for name in _SAME if (value := settings.get(name)) is not None}
    arguments["model"] = plan.model.source
    arguments["max_model_len"] = plan.context
    arguments["generation_config"] = "vllm"
    if settings.images is not None:
        arguments["limit_mm_per_prompt"] = {"image": settings.images, "video": 0}
    if settings.longest_edge is not None:
        size = {"shortest_edge": plan.model.min_pixels, "longest_edge": settings.longest_edge}
        arguments["mm_processor_kwargs"] = {"size": size}
    return arguments
