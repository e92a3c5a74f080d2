"""A Kubernetes manifest: secret, volume, deployment and service, for a cluster with NVIDIA's device plugin."""

import math
from collections.abc import Sequence
from typing import Any

from serverctl.export.common import START_SECONDS, Document, Source, header_comment, portable
from serverctl.export.container import (
    HUB_CACHE,
    SHM_GIB,
    VLLM_CACHE,
    common_marks,
    container_notes,
    to_yaml,
    yaml_template,
)
from serverctl.hardware.facts import GIB

#: How long an agent's address stays with the same server after its last request, seconds: Kubernetes' own default.
_AFFINITY_SECONDS = 10_800
#: Main memory of a vLLM process beside the model: images, pinned buffers, compilers. An estimate, for the scheduler.
_BASE_GIB, _CARD_GIB = 8, 4


def documents(source: Source) -> Sequence[Document]:
    """The manifest: one file, several objects."""
    portable(source, "A manifest")
    about = container_notes(source, "kubernetes", MINUTES=START_SECONDS // 60)
    return [Document(f"{source.name}.yaml", header_comment(source, about) + to_yaml(data(source)))]


def data(source: Source) -> list[dict[str, Any]]:
    """The objects, in the order in which they are needed."""
    plan, server = source.plan, source.servers()[0]
    cpu, cards, several = plan.vendor == "cpu", len(plan.gpus), len(plan.replicas) > 1
    key = {"secretKeyRef": {"name": f"{source.name}-key", "key": "VLLM_API_KEY"}}
    environment = [{"name": name, "value": _literal(value)} for name, value in server.unpinned_env.items()]
    weights = plan.model.weight_bytes(plan.model.own_precision) / GIB
    return yaml_template(
        "kubernetes.yaml",
        **common_marks(source, server, _literal),
        NAME=source.name,
        ENVIRONMENT=[{"name": "VLLM_API_KEY", "valueFrom": key}, *environment],
        HUB_CACHE=HUB_CACHE,
        VLLM_CACHE=VLLM_CACHE,
        SERVERS=len(plan.replicas),
        PORT_TEXT=str(server.port),
        STARTUP_CHECKS=START_SECONDS // 10,
        ACCESS="ReadWriteMany" if several else "ReadWriteOnce",
        # The weights, as much again for another model or revision, and compiled kernels.
        STORAGE=math.ceil(2 * weights + 10),
        MEMORY=math.ceil(plan.budget.requested / GIB) + SHM_GIB if cpu else _BASE_GIB + _CARD_GIB * cards,
        LIMITS=None if cpu else {"nvidia.com/gpu": str(cards)},
        # vLLM's CPU build binds its threads and memory to the processor's nodes (set_mempolicy, move_pages).
        CAPABILITIES=["SYS_NICE"] if cpu else None,
        SECCOMP="Unconfined" if cpu else "RuntimeDefault",
        AFFINITY="ClientIP" if several else None,
        AFFINITY_CONFIG={"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}} if several else None,
    )


def _literal(text: str) -> str:
    """Text that Kubernetes takes as it is: it replaces $(NAME) in arguments and values."""
    return text.replace("$(", "$$(")
