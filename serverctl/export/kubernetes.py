"""A Kubernetes manifest: secret, volume, deployment and service, for a cluster with NVIDIA's device plugin."""

import math
from collections.abc import Sequence
from typing import Any

from serverctl.export.common import START_SECONDS, Document, Server, Source, header_comment, portable
from serverctl.export.container import HUB_CACHE, SHM_GIB, VLLM_CACHE, argv, container_notes, image, to_yaml
from serverctl.hardware.facts import GIB

#: Not base64, on purpose: the cluster refuses it, so nothing runs with a key that everybody can read here.
PLACEHOLDER = "<the key, in base64>"
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
    server = source.servers()[0]
    return [_secret(source), _volume(source), _deployment(source, server), _service(source, server)]


def _object(source: Source, kind: str, name: str, api: str = "v1", **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": _labels(source)}, **rest}


def _labels(source: Source) -> dict[str, str]:
    return {"app.kubernetes.io/name": source.name}


def _secret(source: Source) -> dict[str, Any]:
    return _object(source, "Secret", f"{source.name}-key", type="Opaque", data={"VLLM_API_KEY": PLACEHOLDER})


def _volume(source: Source) -> dict[str, Any]:
    weights = source.plan.model.weight_bytes(source.plan.model.own_precision) / GIB
    spec = {
        "accessModes": ["ReadWriteMany" if len(source.plan.replicas) > 1 else "ReadWriteOnce"],
        # The weights, as much again for another model or revision, and compiled kernels.
        "resources": {"requests": {"storage": f"{math.ceil(2 * weights + 10)}Gi"}},
    }
    return _object(source, "PersistentVolumeClaim", f"{source.name}-cache", spec=spec)


def _deployment(source: Source, server: Server) -> dict[str, Any]:
    scraping = {"scrape": "true", "port": str(server.port), "path": "/metrics"}
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "containers": [_container(source, server)],
        "volumes": [
            {"name": "cache", "persistentVolumeClaim": {"claimName": f"{source.name}-cache"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{SHM_GIB}Gi"}},
        ],
    }
    annotations = {f"prometheus.io/{name}": value for name, value in scraping.items()}
    spec = {
        "replicas": len(source.plan.replicas),
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": _labels(source)},
        "template": {"metadata": {"labels": _labels(source), "annotations": annotations}, "spec": pod},
    }
    return _object(source, "Deployment", source.name, "apps/v1", spec=spec)


def _container(source: Source, server: Server) -> dict[str, Any]:
    program, subcommand, *arguments = argv(source, server)
    key = {"secretKeyRef": {"name": f"{source.name}-key", "key": "VLLM_API_KEY"}}
    return {
        "name": "vllm",
        "image": image(source),
        "command": [program, subcommand],
        "args": [literal(word) for word in arguments],
        "env": [
            {"name": "VLLM_API_KEY", "valueFrom": key},
            *({"name": name, "value": literal(value)} for name, value in server.unpinned_env.items()),
        ],
        "ports": [{"name": "http", "containerPort": server.port}],
        "resources": _resources(source),
        "securityContext": _security(source),
        "volumeMounts": [
            {"name": "cache", "mountPath": HUB_CACHE, "subPath": "huggingface"},
            {"name": "cache", "mountPath": VLLM_CACHE, "subPath": "vllm"},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
        ],
        "startupProbe": {**_health(), "periodSeconds": 10, "failureThreshold": START_SECONDS // 10},
        "readinessProbe": {**_health(), "periodSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**_health(), "periodSeconds": 10, "failureThreshold": 6},
    }


def _security(source: Source) -> dict[str, Any]:
    # vLLM's CPU build binds its threads and memory to the processor's nodes (set_mempolicy, move_pages).
    binds = source.plan.vendor == "cpu"
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], **({"add": ["SYS_NICE"]} if binds else {})},
        "seccompProfile": {"type": "Unconfined" if binds else "RuntimeDefault"},
    }


def literal(text: str) -> str:
    """Text that Kubernetes takes as it is: it replaces $(NAME) in arguments and values."""
    return text.replace("$(", "$$(")


def _health() -> dict[str, Any]:
    return {"httpGet": {"path": "/health", "port": "http"}, "timeoutSeconds": 10}


def _resources(source: Source) -> dict[str, Any]:
    if source.plan.vendor == "cpu":
        memory = math.ceil(source.plan.budget.requested / GIB) + SHM_GIB
        return {"requests": {"cpu": "4", "memory": f"{memory}Gi"}}
    cards = len(source.plan.gpus)
    return {
        "requests": {"cpu": "4", "memory": f"{_BASE_GIB + _CARD_GIB * cards}Gi"},
        "limits": {"nvidia.com/gpu": str(cards)},
    }


def _service(source: Source, server: Server) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "type": "ClusterIP",
        "selector": _labels(source),
        "ports": [{"name": "http", "port": server.port, "targetPort": "http"}],
    }
    if len(source.plan.replicas) > 1:
        spec["sessionAffinity"] = "ClientIP"
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    return _object(source, "Service", source.name, spec=spec)
