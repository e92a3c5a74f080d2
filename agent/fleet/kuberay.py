"""A fleet on Kubernetes: the manifest of a RayJob, for the KubeRay operator."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.fleet.tasks import Task, option_words
from foundation.endpoints import is_loopback, normalize_url
from foundation.errors import UsageError
from foundation.templates import to_yaml, yaml_template

#: Kubernetes' limit of a ConfigMap, bytes.
_LARGEST = 2**20
#: Desktops of a pod. Each has a core, and twice the memory (GiB) that its actor asks Ray for (`agent.fleet.cluster`).
_DESKTOPS, _GIB = 4, 2
#: Megabytes of a run's record. An estimate: screenshots of 20 to 50 steps.
_RECORD_MB = 20


def manifest(path: Path, tasks: Sequence[Task], image: str, parallel: int, options: Mapping[str, Any]) -> str:
    """Return the manifest of a fleet as YAML: a ConfigMap, a volume claim and a RayJob.

    `path` is the file of the tasks, `image` a container image with mai-agent and Ray, `options` those of
    `mai-agent fleet` by name.

    Raises UsageError: there are too many tasks, or the pods could not reach the server.
    """
    content = path.read_text(encoding="utf-8-sig")
    if len(content.encode()) > 0.9 * _LARGEST:  # the rest is for the command, and for Kubernetes' own entries
        raise UsageError(f"{path} is too large for a ConfigMap (1 MiB).", "Split it into files, one fleet each.")
    for options_of_a_task in {task.options for task in tasks}:
        _check_server({**options, **dict(options_of_a_task)})
    words = ["mai-agent", "fleet", "/tasks/tasks.jsonl", "--out", "/results", "--ray", "127.0.0.1:6379"]
    desktops = min(parallel, _DESKTOPS)
    documents = yaml_template(
        "kuberay.yaml",
        NAME=f"mai-agent-{re.sub('[^a-z0-9]+', '-', path.stem.lower())[:30].strip('-')}".rstrip("-"),
        TASKS=content,
        COMMAND=f"#!/bin/sh\nexec {shlex.join([*words, *option_words({'parallel': parallel, **options})])}\n",
        IMAGE=image,
        WORKERS=math.ceil(parallel / desktops),
        CORES=str(desktops),
        MEMORY=desktops * _GIB,
        STORAGE=math.ceil(1 + len(tasks) * _RECORD_MB / 1000),
    )
    return to_yaml(documents)


def _check_server(options: Mapping[str, Any]) -> None:
    endpoint = options.get("endpoint")
    if endpoint is None and options.get("engine") != "literal":
        raise UsageError(
            "A fleet on Kubernetes does not start a server.", "Name one that the pods reach: --endpoint HOST:PORT."
        )
    if endpoint is not None and is_loopback(normalize_url(endpoint)):
        raise UsageError(f"In a pod, {endpoint} is the pod itself.", "Name the server's address in the cluster.")
