"""The input of every export, the servers of a plan, and the header that says how a file was made."""

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foundation.configs import load_config
from foundation.errors import UsageError
from foundation.printing import counted
from foundation.templates import filled
from serverctl.hardware.facts import Gpu, Hardware
from serverctl.plan.env import PINS, replica_env
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.render import Command, render
from serverctl.process import api_key_gate as gate
from serverctl.vllm.capabilities import Capabilities

#: Seconds that a supervisor waits for a start: the value of VLLM_ENGINE_READY_TIMEOUT_S.
START_SECONDS = 3600
#: Folder of the gate's module inside a container; formats without a container set another PYTHONPATH.
GATE_FOLDER = "/tmp/mai-gate"  # noqa: S108 -- nobody else is in the container
#: vLLM's own flags that hold a secret: exports are copied around.
_SECRET_FLAGS = ("--hf-token", "--api-key")

_WIDTH = 116


@dataclass(frozen=True, slots=True)
class Document:
    """One file of an export."""

    name: str
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Server:
    """One of a plan's independent servers, with its own port and cards."""

    name: str  # of its unit or service: the export's name, with a number from the second on
    port: int
    cards: tuple[Gpu, ...]  # its own
    command: Command

    @property
    def url(self) -> str:
        """Its address on its own machine."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def unpinned_env(self) -> dict[str, str]:
        """The plan's variables without those that pin cards: a container sees only its own cards."""
        return {name: value for name, value in self.command.env.items() if name not in PINS}

    @property
    def health_check(self) -> str:
        """A Python program that fails if the server is not healthy; curl may be missing."""
        return f"import urllib.request as u; u.urlopen('{self.url}/health', timeout=5)"


@dataclass(frozen=True, slots=True)
class Source:
    """The input of an export."""

    plan: Plan
    hardware: Hardware  # detected or imagined
    capabilities: Capabilities  # of the vLLM that will serve
    goal: Goal  # for formats that make further plans
    made_by: str  # the command line that makes this export again
    port: int = 8000  # of the first server; the others follow
    running: tuple[int, ...] = ()  # ports of the plan's servers that already run here; they replace the others
    name: str = "mai-vllm"  # of units and services
    served_name: str | None = None  # the model's name for clients; None for its own
    python: Path | None = None  # of the vLLM on this machine; None without one, and for imagined hardware
    environ: Mapping[str, str] = field(default_factory=dict)  # what a server on this machine needs to find its files
    account: str = "vllm"  # of a server on this machine
    user_unit: bool = False  # whether a systemd unit is for `systemctl --user`
    nodes: int = 1  # machines that share the model
    beside: tuple["Source", ...] = ()  # other models at the same time, each on its cards or with its share of one

    @property
    def model(self) -> str:
        """The model's name for clients."""
        return self.served_name or self.plan.model.name

    @property
    def folder(self) -> Path | None:
        """The model's folder on this machine; None for a repository."""
        path = Path(self.plan.model.source)
        return path if path.is_absolute() else None

    @property
    def slots(self) -> int:
        """Requests at a time of one server: its slots, or the longest requests that its KV cache holds."""
        return self.plan.settings.max_num_seqs or max(1, int(self.plan.max_concurrency))

    @property
    def last_port(self) -> int:
        """The highest port that a server of this export listens on."""
        return max(*self._ports(), *(one.last_port for one in self.beside), 0)

    def _ports(self) -> tuple[int, ...]:
        return self.running or tuple(range(self.port, self.port + len(self.plan.replicas)))

    def servers(self) -> tuple[Server, ...]:
        """The plan's servers, each with its own port and cards."""
        found = []
        for number, (cards, port) in enumerate(zip(self.plan.replicas, self._ports(), strict=True)):
            plan = replace(self.plan, env=replica_env(self.plan, cards, self.capabilities.version))
            command = render(plan, self.capabilities, port, self.served_name)
            command = gate.with_gate(command, self.capabilities, GATE_FOLDER)
            name = self.name if number == 0 else f"{self.name}-{number + 1}"
            found.append(Server(name, port, cards, command))
        return tuple(found)

    def header(self) -> list[str]:
        """Lines that say how a file was made, from which plan, and the plan's warnings."""
        plan, version = self.plan, self.capabilities.version
        images = f"; {counted(plan.settings.images or 0, 'screenshot')} a request" if plan.model.shape.vision else ""
        found = [
            f"Made by: {self.made_by}",
            f"Plan: {plan.model.name}, {plan.weights} weights, on {self._cards()}; preset {plan.preset}; "
            f"context {plan.context:,} tokens{images}.",
            f"vLLM {version}: every flag below was checked against {self.capabilities.parser}.",
        ]
        found += [f"Note: {text}" for text in plan.warnings]
        return found + [f"Left out: {text}" for text in self.servers()[0].command.dropped]

    def _cards(self) -> str:
        plan = self.plan
        if not plan.gpus:
            return "the processor alone"
        cards = f"{len(plan.gpus) // self.nodes} x {plan.gpus[0].name}"
        if self.nodes > 1:
            return f"{cards} in each of {self.nodes} machines"
        return cards if len(plan.replicas) == 1 else f"{cards} each, {len(plan.replicas)} independent servers"

    def header_comment(self, about: Sequence[str]) -> str:
        """The header and the notes on the format, as comments."""
        return commented([*self.header(), "", *about])

    def notes(self, *sections: str, **values: object) -> list[str]:
        """The lines of some sections ("compose.start") of configs/exports/notes.toml that apply to this export.

        The values fill marks (@NAME@), beside those that every export has.
        """
        several = len(self.plan.replicas) > 1
        cuda = "cuda 12" if self.capabilities.version.startswith("0.19.") else "cuda 13"
        traits = {
            "user" if self.user_unit else "root",
            "cpu" if self.plan.vendor == "cpu" else cuda,
            self.plan.vendor,
            "cards" if self.plan.gpus else "",
            "several servers" if several else "",
            "folder" if self.folder is not None else "",
            "no vllm" if self.python is None else "",
            "auto" if self.plan.settings.max_model_len == "auto" else "fixed",
        }
        marks = {
            "NAME": self.name,
            "PORT": self.port,
            "CARDS": len(self.plan.gpus),
            "SERVERS": len(self.plan.replicas),
            "NODES": self.nodes,
            "FOLDER": self.folder and self.folder.name,
            **values,
        }
        texts = {f"@{name}@": str(value) for name, value in marks.items()}
        found = []
        for section in sections:
            entries: Any = load_config("exports/notes.toml")
            for name in section.split("."):
                entries = entries[name]
            for entry in [entries] if isinstance(entries, str) else entries:
                *needed, text = [entry] if isinstance(entry, str) else entry
                if traits.issuperset(needed):
                    found.append(filled(text, texts))
        return found

    def check_portable(self, format_name: str) -> None:
        """Raise UsageError if a format for other machines would name a folder of this machine."""
        if self.folder is not None:
            raise UsageError(
                f"{format_name} cannot use a model's folder of this machine ({self.folder}).",
                "Name the model by its repository: --model ORG/NAME.",
            )


def program_words(command: Command, python: Path | str | None = None) -> list[str]:
    """The beginning of the command line: the program and the model, without any flag."""
    argv = command.argv(python)
    return argv[: len(argv) - len(command.flags)]


def flag_groups(command: Command) -> list[list[str]]:
    """Return the command's flags, each with its value, then the user's own flags."""
    own: list[list[str]] = []
    for word in command.extra:
        if word.startswith("-") or not own:
            own.append([word])
        else:
            own[-1].append(word)
    return [line.words for line in command.lines] + own


def exports(values: Mapping[str, object]) -> str:
    """Variables as lines of a shell."""
    return "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in values.items())


def commented(lines: Sequence[str]) -> str:
    """Lines as comments, long ones wrapped; indented lines are commands and stay as they are."""
    found: list[str] = []
    for line in lines:
        unwrapped = line.startswith((" ", "Made by: ")) or len(line) <= _WIDTH
        found += [line] if unwrapped else textwrap.wrap(line, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}".rstrip() + "\n" for line in found)


def check_secrets(command: Command) -> None:
    """Raise UsageError if a user flag would write a secret into the export."""
    for flag in (word.split("=")[0] for word in command.extra):
        if flag in _SECRET_FLAGS:
            raise UsageError(
                f"{flag} would write a secret into the export.",
                "Leave it out, and set HF_TOKEN in the environment of the server instead.",
            )
