"""Shell scripts: one per server that starts, watches and cleans it up without `mai-server`; and, for vLLM on several
machines, one per machine, with multiprocessing or Ray.

Tensor parallel within a machine, where every layer exchanges its sums over NVLink or the bus; pipeline parallel across
machines, where only the hidden states of a stage cross the network.
"""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from foundation.errors import UsageError
from foundation.templates import template
from serverctl.export.common import Document, Server, Source, commented, exports, flag_groups, program_words
from serverctl.hardware.facts import CannotPlanError, Hardware, usable_cards
from serverctl.models.find import find_model
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.group import Group, groups
from serverctl.plan.render import COMMON, Command
from serverctl.planning import AUTOMATIC_MODELS, plan_for
from serverctl.process import api_key_gate as gate


def launch_documents(source: Source) -> Sequence[Document]:
    """A script for each server."""
    return [Document(f"{server.name}.sh", _script(source, server), True) for server in source.servers()]


def _script(source: Source, server: Server) -> str:
    command = server.command
    own = ("--host", "--port", "--served-model-name")
    groups = [group for group in flag_groups(command) if group[0] not in own]
    model = shlex.quote(command.model)
    if source.folder is not None:
        model = f'"${{MODEL_FOLDER:?the folder with the files of {source.folder.name}}}"'
    plan = [
        *(
            f'export {name}="${{{name}:-{_inside(value)}}}"'
            for name, value in command.env.items()
            if name != "PYTHONPATH"
        ),
        f"plan_model() {{ model={model}; }}",
        f"plan_port={server.port}",
        f"plan_name={shlex.quote(source.model)}",
        _array("plan_flags", groups),
        "# Of every plan, also for another model: they do not depend on the card.",
        _array("common_flags", [group for group in groups if group[0] in (*COMMON, "--middleware")]),
        _array("program", [program_words(command)[:-1]]),
    ]
    return template(
        "launch.sh",
        {
            "# @HEADER@\n": commented(source.header()),
            "@NAME@": f"{server.name}.sh",
            "# @PLAN@": "\n".join(plan),
            "# @GATE@\n": gate.source(),
        },
    )


def _array(name: str, groups: Sequence[Sequence[str]]) -> str:
    lines = "".join(f"  {' '.join(map(_element, group))}\n" for group in groups)
    return f"{name}=(\n{lines})"


def _element(word: str) -> str:
    """A word in an array; commas are quoted, so that they do not look like separators."""
    quoted = shlex.quote(word)
    return f"'{word}'" if "," in word and quoted == word else quoted


def _inside(text: str) -> str:
    for mark in ("\\", '"', "$", "`", "}"):
        text = text.replace(mark, "\\" + mark)
    return text


#: vLLM's default for its own group of processes, and Ray's for its cluster.
_MASTER_PORT, _RAY_PORT = 29_501, 6379
#: vLLM's flags for several machines; older releases lack them.
_NEEDED = ("--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless", "--distributed-executor-backend")
#: Flags of the API server: machines with --headless run none, and reject these flags.
_FRONT_END = ("--api-server-count", "--host", "--port", "--middleware")

#: Writes the gate's module, which requires the key on every path.
_PUT_GATE = """\
PYTHONPATH=${XDG_STATE_HOME:-$HOME/.local/state}/mai-server/gate
export PYTHONPATH
(umask 077 && mkdir -p "$PYTHONPATH")
cat >"$PYTHONPATH/mai_gate.py" <<'MAI_GATE'
@GATE@
MAI_GATE
"""


def plan_nodes(hardware: Hardware, goal: Goal, vllm: str, nodes: int) -> Plan:
    """Plan for several machines that are all like this one.

    Raises UsageError without NVIDIA cards or a second machine, CannotPlanError if the model does not fit on them all.
    """
    if nodes < 2:
        raise UsageError("Several machines are at least two.", "Say how many with --nodes N.")
    if hardware.vendor != "nvidia":
        raise UsageError(
            "Several machines are for NVIDIA cards.", "Name them with --gpu NAME --gpus N (of one machine)."
        )
    group = groups(usable_cards(hardware))[0].cards
    name = goal.model or AUTOMATIC_MODELS[0]
    wished = goal.overrides.get("tensor_parallel_size")
    size = int(wished) if wished else max(Group(group).tensor_parallel_sizes(find_model(name)))
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
    goal = replace(goal, model=name, overrides={**goal.overrides, **shared})
    return plan_for(replace(hardware, gpus=cards, links=()), goal, vllm)


def node_documents(source: Source) -> Sequence[Document]:
    """A script for each machine, and three for Ray. Raises UsageError if this vLLM lacks a flag."""
    missing = [flag for flag in _NEEDED if not source.capabilities.has(flag)]
    if missing:
        raise UsageError(f"vLLM {source.capabilities.version} has no {missing[0]}.", "Use a newer one.")
    command = source.servers()[0].command
    headless = replace(command, lines=tuple(line for line in command.lines if line.flag not in _FRONT_END))
    found = []
    for rank in range(source.nodes):
        own = [
            f"--nnodes {source.nodes}",
            f"--node-rank {rank}",
            '--master-addr "$HEAD_ADDRESS"',
            f"--master-port {_MASTER_PORT}",
        ]
        about = source.notes("nodes.worker" if rank else "nodes.head", RANK=rank)
        start = _vllm(source, headless, [*own, "--headless"]) if rank else _vllm(source, command, own)
        found.append(_node_script(source, f"node-{rank}.sh", about, start, serves=rank == 0))
    ray = source.notes("nodes.ray")
    head = f'ray start --head --node-ip-address="$HEAD_ADDRESS" --port={_RAY_PORT}'
    worker = f'ray start --address="$HEAD_ADDRESS:{_RAY_PORT}" --node-ip-address="$OWN_ADDRESS"'
    serve = _vllm(source, command, ["--distributed-executor-backend ray"])
    last = source.notes("nodes.ray_serve")
    return [
        *found,
        _node_script(source, "ray-head.sh", ray, head),
        _node_script(source, "ray-worker.sh", ray, worker),
        _node_script(source, "ray-serve.sh", ray, serve, last, serves=True),
    ]


def _vllm(source: Source, command: Command, own: Sequence[str]) -> str:
    start = shlex.join(program_words(command))
    if source.folder is not None:
        start = 'vllm serve "${MODEL_FOLDER:?the model\'s folder, at the same place on each machine}"'
    return " \\\n  ".join([start, *map(shlex.join, flag_groups(command)), *own])


def _node_script(
    source: Source, name: str, first: list[str], start: str, last: Sequence[str] = (), *, serves: bool = False
) -> Document:
    """The script of one machine. All processes must see the same variables of vLLM."""
    sections = ["nodes.everywhere", *(["nodes.fits_one"] if _fits_one(source) else [])]
    everywhere = source.notes(*sections, TENSOR=source.plan.settings.tensor_parallel_size or 1)
    key = 'export VLLM_API_KEY="${VLLM_API_KEY:?set a key}"\n' if serves else ""
    env = {name: value for name, value in source.servers()[0].unpinned_env.items() if name != "PYTHONPATH"}
    values = {
        "# @PUT_GATE@\n": _PUT_GATE.replace("@GATE@\n", gate.source()) if serves else "",
        "# @HEADER@\n": source.header_comment([*first, *everywhere, *last]),
        "# @ENVIRONMENT@\n": key + exports(env),
        "@COMMAND@": start,
    }
    return Document(name, template("node.sh", values), executable=True)


def _fits_one(source: Source) -> bool:
    own = {name: value for name, value in source.goal.overrides.items() if name != "pipeline_parallel_size"}
    with suppress(CannotPlanError):
        plan_for(source.hardware, replace(source.goal, overrides=own), source.capabilities.version)
        return True
    return False
