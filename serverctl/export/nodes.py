"""vLLM's own ways over several machines: a command line for each, with multiprocessing and with Ray. No engine of ours.

Tensor parallel within a machine, where every layer exchanges its sums over NVLink or the bus; pipeline parallel across
machines, where only the hidden states of a stage cross the network.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from foundation.errors import UsageError
from serverctl.export.common import Document, Source, flag_groups, header_comment, notes
from serverctl.hardware.facts import Hardware
from serverctl.models.find import find_model
from serverctl.plan.cards import best_group, tensor_parallel_sizes, usable_cards
from serverctl.plan.goal import CannotPlanError, Goal, Plan
from serverctl.plan.render import Command
from serverctl.planning import AUTOMATIC_MODELS, plan_for

#: vLLM's default for its own group of processes, and Ray's for its cluster.
_MASTER_PORT, _RAY_PORT = 29_501, 6379
#: vLLM's flags for several machines; a vLLM without them cannot do it.
_NEEDED = ("--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless", "--distributed-executor-backend")


def plan_nodes(hardware: Hardware, goal: Goal, vllm: str, nodes: int) -> Plan:
    """A plan over several machines that are all like this one.

    Raises:
        UsageError: fewer than two machines, or no NVIDIA cards.
        CannotPlanError: the model does not fit on all of them together.
    """
    if nodes < 2:
        raise UsageError("Several machines are at least two.", "Say how many with --nodes N.")
    if hardware.vendor != "nvidia":
        raise UsageError(
            "Several machines are for NVIDIA cards.", "Name them with --gpu NAME --gpus N (of one machine)."
        )
    group = best_group(usable_cards(hardware))
    model = find_model(goal.model or AUTOMATIC_MODELS[0])
    wished = goal.overrides.get("tensor_parallel_size")
    size = int(wished) if wished else max(tensor_parallel_sizes(model, len(group)))
    if size > len(group):
        raise UsageError(
            f"tensor_parallel_size={size} needs more than the {len(group)} cards of one machine.",
            "Tensor parallelism stays within a machine: --gpus N says how many cards each has.",
        )
    cards = tuple(
        replace(gpu, index=node * size + number, uuid="")
        for node in range(nodes)
        for number, gpu in enumerate(group[:size])
    )
    shared = {"tensor_parallel_size": size, "pipeline_parallel_size": nodes}
    goal = replace(goal, model=goal.model or AUTOMATIC_MODELS[0], overrides={**goal.overrides, **shared})
    return plan_for(replace(hardware, gpus=cards, links=()), goal, vllm)


def documents(source: Source) -> Sequence[Document]:
    """A script a machine, and Ray's three. Raises UsageError where this vLLM lacks a flag for it."""
    missing = [flag for flag in _NEEDED if not source.capabilities.has(flag)]
    if missing:
        raise UsageError(f"vLLM {source.capabilities.version} has no {missing[0]}.", "Use a newer one.")
    plain = [Document(f"node-{rank}.sh", _node(source, rank), True) for rank in range(source.nodes)]
    return [*plain, *_ray(source)]


def node_command(source: Source, rank: int) -> tuple[Command, list[list[str]]]:
    """The command of one machine, and the flags that only this way of starting has, as a shell reads them."""
    command = source.servers()[0].command
    own = [
        ["--nnodes", str(source.nodes)],
        ["--node-rank", str(rank)],
        ["--master-addr", '"$HEAD_ADDRESS"'],
        ["--master-port", str(_MASTER_PORT)],
    ]
    if rank == 0:
        return command, own
    # A machine without a front end refuses a number of them, and has no port or key to guard.
    refused = ("--api-server-count", "--host", "--port")
    lines = tuple(line for line in command.lines if line.flag not in refused)
    return replace(command, lines=lines), [*own, ["--headless"]]


def _node(source: Source, rank: int) -> str:
    command, own = node_command(source, rank)
    about = [*notes(source, "nodes.worker" if rank else "nodes.head", RANK=rank), *_everywhere(source)]
    return _shell(source, about, rank == 0, command, own)


def _ray(source: Source) -> list[Document]:
    command = source.servers()[0].command
    common = [*notes(source, "nodes.ray"), *_everywhere(source)]
    intro = "#!/usr/bin/env bash\n" + header_comment(source, common)
    head = f'exec ray start --head --node-ip-address="$HEAD_ADDRESS" --port={_RAY_PORT}\n'
    worker = f'exec ray start --address="$HEAD_ADDRESS:{_RAY_PORT}" --node-ip-address="$OWN_ADDRESS"\n'
    check = [*common, *notes(source, "nodes.ray_serve")]
    own = [["--distributed-executor-backend", "ray"]]
    return [
        Document("ray-head.sh", intro + _settings(source, False) + head, True),
        Document("ray-worker.sh", intro + _settings(source, False) + worker, True),
        Document("ray-serve.sh", _shell(source, check, True, command, own), True),
    ]


def _shell(source: Source, lines: Sequence[str], serves: bool, command: Command, own: list[list[str]]) -> str:
    argv = command.argv()
    start = shlex.join(argv[: len(argv) - len(command.flags)])
    if source.folder is not None:
        start = 'vllm serve "${MODEL_FOLDER:?the model\'s folder, at the same place on each machine}"'
    flags = [shlex.join(group) for group in flag_groups(command)] + [" ".join(group) for group in own]
    return (
        "#!/usr/bin/env bash\n"
        + header_comment(source, lines)
        + _settings(source, serves)
        + "exec "
        + " \\\n  ".join([start, *flags])
        + "\n"
    )


def _settings(source: Source, serves: bool) -> str:
    """What every machine sets first. The processes of all of them must see the same variables of vLLM."""
    lines = [
        "",
        "set -euo pipefail",
        ': "${HEAD_ADDRESS:?the address of machine 0 in the network between the machines}"',
        ': "${OWN_ADDRESS:?the address of this machine in the same network}"',
        'export VLLM_HOST_IP="$OWN_ADDRESS"',
    ]
    if serves:
        lines.append('export VLLM_API_KEY="${VLLM_API_KEY:?set a key}"')
    env = source.servers()[0].unpinned_env
    lines += [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    return "\n".join(lines) + "\n"


def _everywhere(source: Source) -> list[str]:
    sections = ["nodes.everywhere", *(["nodes.fits_one"] if _fits_one(source) else [])]
    return notes(source, *sections, TENSOR=source.plan.settings.tensor_parallel_size or 1)


def _fits_one(source: Source) -> bool:
    goal = source.goal
    own = {name: value for name, value in goal.overrides.items() if name != "pipeline_parallel_size"}
    alone = replace(goal, overrides=own)
    try:
        plan_for(source.hardware, alone, source.capabilities.version)
    except CannotPlanError:
        return False
    return True
