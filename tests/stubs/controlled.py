"""A machine for the controller: its folders, a fake vLLM, fake cards, and what is left of processes on it."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import psutil

from serverctl.plan.goal import Goal
from serverctl.process import control
from serverctl.process.request import ServerRequest
from serverctl.process.state import MARK, Folder, State, current_state

STUBS = Path(__file__).parent
ROOT = STUBS.parents[1]
#: The slowest start of a fake on a busy machine; only what hangs for ever reaches it.
TIMEOUT = 40.0
MIB = 1024**2


def make_environment(folder: Path, version: str = "0.33.0") -> Path:
    """An environment that has a vLLM of a release: its Python. The `vllm` in it is `fake_vllm.py`."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    info = folder / "lib" / python / "site-packages" / f"vllm-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(sys.executable)
    _script(folder / "bin" / "vllm", STUBS / "fake_vllm.py")
    return folder / "bin" / "python"


def _script(path: Path, source: Path) -> None:
    """A command that runs one of our scripts, in a few hundredths of a second."""
    path.write_text(f'#!/bin/sh\nexec "{os.path.realpath(sys.executable)}" -I -S "{source}" "$@"\n')
    path.chmod(0o755)


def tiny_model(folder: Path) -> Path:
    """A folder with a model that is small enough for any machine's processor; its weights are all the same number."""
    folder.mkdir(parents=True)
    shape = json.loads((ROOT / "configs" / "models" / "shapes" / "qwen3-vl-2b.json").read_text())
    text = {**shape["text_config"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    text |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1000}
    vision = {**shape["vision_config"], "hidden_size": 64, "intermediate_size": 128, "depth": 2, "out_hidden_size": 64}
    vision |= {"deepstack_visual_indexes": [1]}
    config = {**shape, "text_config": text, "vision_config": vision, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps({**shape["image"], "patch_size": 16}))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    letters = {letter: number for number, letter in enumerate("Ġabcdefghijklmnopqrstuvwxyz")}
    tokenizer = {"model": {"type": "BPE", "vocab": letters, "merges": []}, "decoder": {"type": "ByteLevel"}}
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "added_tokens": _special(config)}))
    write_weights(folder / "model.safetensors", tiny_shapes())
    return folder


def tiny_shapes() -> dict[str, tuple[int, ...]]:
    """The names and shapes of all matrices and norms of the tiny model, as transformers saves them."""
    shapes: dict[str, tuple[int, ...]] = {
        "model.language_model.embed_tokens.weight": (1000, 64),
        "model.language_model.norm.weight": (64,),
        "model.visual.patch_embed.proj.weight": (64, 3, 2, 16, 16),
        "model.visual.pos_embed.weight": (2304, 64),
    }
    merger = {"linear_fc1.weight": (256, 256), "linear_fc2.weight": (64, 256)}
    shapes |= {f"model.visual.merger.{name}": shape for name, shape in {"norm.weight": (64,), **merger}.items()}
    shapes |= {
        f"model.visual.deepstack_merger_list.0.{name}": shape
        for name, shape in {"norm.weight": (256,), **merger}.items()
    }
    layer: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (64,), "post_attention_layernorm.weight": (64,),
        "self_attn.q_proj.weight": (64, 64), "self_attn.k_proj.weight": (32, 64), "self_attn.v_proj.weight": (32, 64),
        "self_attn.o_proj.weight": (64, 64), "self_attn.q_norm.weight": (16,), "self_attn.k_norm.weight": (16,),
        "mlp.gate_proj.weight": (128, 64), "mlp.up_proj.weight": (128, 64), "mlp.down_proj.weight": (64, 128),
    }  # fmt: skip
    block: dict[str, tuple[int, ...]] = {
        "norm1.weight": (64,), "norm2.weight": (64,), "attn.qkv.weight": (192, 64), "attn.proj.weight": (64, 64),
        "mlp.linear_fc1.weight": (128, 64), "mlp.linear_fc2.weight": (64, 128),
    }  # fmt: skip
    for number in range(2):
        shapes |= {f"model.language_model.layers.{number}.{name}": shape for name, shape in layer.items()}
        shapes |= {f"model.visual.blocks.{number}.{name}": shape for name, shape in block.items()}
    return shapes


def _special(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The tokens that config.json names, in a tokenizer's list."""
    return [{"id": number, "content": f"<{name}>"} for name, number in config.items() if name.endswith("_token_id")]


def write_weights(path: Path, shapes: dict[str, tuple[int, ...]], dtype: str = "BF16") -> None:
    """A safetensors file, two bytes a number (or one, where they are so): all the same, or a hole where it is large."""
    header: dict[str, Any] = {}
    reached = 0
    for name, shape in shapes.items():
        size = math.prod(shape) * (1 if dtype.startswith(("F8", "I8")) else 2)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [reached, reached + size]}
        reached += size
    raw = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        if reached < 2**24:
            file.write(b"\x3c" * reached)
        file.truncate(8 + len(raw) + reached)


class _Hub(BaseHTTPRequestHandler):
    """A hub that is there, and has nothing."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        return


class Machine:
    """One machine.

    Args:
        folder: for everything.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state_folder = folder / "state"
        self.python = make_environment(folder / "vllm")
        self.model = tiny_model(folder / "tiny")
        self.scenarios = folder / "scenarios.json"
        self.cards_file = folder / "cards.json"
        (folder / "home").mkdir()
        (folder / "config.toml").touch()
        (folder / "bin").mkdir()
        _script(folder / "bin" / "nvidia-smi", STUBS / "fake_nvidia_smi.py")
        self._hub = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
        Thread(target=self._hub.serve_forever, daemon=True).start()
        self.environ = {
            "FAKE_CARDS": str(self.cards_file),
            "FAKE_VLLM": str(self.scenarios),
            "HF_HOME": str(folder / "hub"),
            "HF_ENDPOINT": f"http://127.0.0.1:{self._hub.server_address[1]}",
            "HOME": str(folder / "home"),
            "MAI_AGENT_CONFIG": str(folder / "config.toml"),
            "MAI_SERVER_STATE": str(self.state_folder),
            "MAI_SERVER_VLLM_PYTHON": str(self.python),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }
        self.clients: list[subprocess.Popen[str]] = []
        self.scenario({})

    # What is to happen

    def scenario(self, *scenarios: dict[str, Any]) -> None:
        """What the starts from now on do."""
        self.scenarios.write_text(json.dumps(scenarios))
        Path(f"{self.scenarios}.starts").unlink(missing_ok=True)

    @property
    def starts(self) -> list[dict[str, Any]]:
        """The starts of the fake since the last scenario."""
        path = Path(f"{self.scenarios}.starts")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def flags(self, number: int = -1) -> dict[str, str]:
        """The flags of one start; "" for those without a value."""
        words = self.starts[number]["argv"]
        return {
            word: "" if position + 1 == len(words) or words[position + 1].startswith("--") else words[position + 1]
            for position, word in enumerate(words)
            if word.startswith("--")
        }

    def cards(self, *names: str, free_gib: Any = None, total_mib: int = 24_564, capability: str = "8.9") -> None:
        """Cards of 24 GB with so much free, at once or as [[seconds from now, GiB], ...]."""
        free: Any = total_mib - 800
        if isinstance(free_gib, list):
            free = [[after, round(gib * 1024)] for after, gib in free_gib]
        elif free_gib is not None:
            free = round(free_gib * 1024)
        cards = [
            {"name": name, "uuid": f"GPU-0000000{number}-aaaa-bbbb-cccc-000000000000", "total": total_mib,
             "reserved": 432, "free": free, "capability": capability}
            for number, name in enumerate(names)
        ]  # fmt: skip
        part = self.cards_file.with_suffix(".part")
        part.write_text(json.dumps({"since": time.time(), "cards": cards}))
        part.replace(self.cards_file)

    def lose_hub(self) -> None:
        """From now on no hub can be reached."""
        self._hub.shutdown()
        self._hub.server_close()

    # What is done with it

    def launch(
        self, name: str = control.DEFAULT_NAME, goal: Goal | None = None, gpu: bool = False, port: int | None = None
    ) -> bool:
        """Starts a server in the background, as `up` does."""
        wanted = goal or Goal(model=str(self.model), overrides={"kv_cache_memory_bytes": 64 * MIB})
        return control.launch(name, ServerRequest(wanted, str(self.python), port, None, (), processor=not gpu))

    def up(self, name: str = control.DEFAULT_NAME, goal: Goal | None = None, gpu: bool = False) -> State:
        """Starts a server and waits until it is ready or is not going to be."""
        self.launch(name, goal, gpu)
        return self.wait(name, "ready", "failed", "stopped")

    def refused(self, kind: str, starts: int, goal: Goal | None = None, gpu: bool = False) -> dict[str, Any]:
        """Starts a server that fails with a kind of failure after so many starts and leaves nothing; tells why."""
        state = self.up(goal=goal, gpu=gpu)
        assert state.phase == "failed", state.message
        assert state.failure is not None
        assert (state.failure["kind"], len(self.starts)) == (kind, starts), state.failure
        self.assert_nothing_left(10)
        return state.failure

    def state(self, name: str = control.DEFAULT_NAME) -> State:
        return current_state(Folder(name))

    def wait(self, name: str, *phases: str, attempt: int = 0, seconds: float = TIMEOUT) -> State:
        """Waits for a phase (of a start, counted from 1)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.state(name)
            if state.phase in phases and state.attempt >= attempt:
                return state
            time.sleep(0.02)
        raise AssertionError(f"not {' or '.join(phases)} but {state.phase}: {state.events}\n{self.log(name)[-3000:]}")

    def wait_stage(self, word: str, name: str = control.DEFAULT_NAME) -> State:
        """Waits until a start says that it is at some stage."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            state = self.state(name)
            if word in state.stage_at or word in state.stage:
                return state
            time.sleep(0.01)
        raise AssertionError(f"no stage {word}: {state.stage_at} {state.events}")

    def wait_log(self, text: str, name: str = control.DEFAULT_NAME) -> None:
        """Waits until a server's log says something."""
        end = time.monotonic() + TIMEOUT
        while text not in self.log(name):
            assert time.monotonic() < end, f"not said: {text}\n{self.log(name)[-3000:]}"
            time.sleep(0.02)

    def down(self, name: str = control.DEFAULT_NAME) -> bool:
        return control.stop(name)

    def log(self, name: str = control.DEFAULT_NAME) -> str:
        file = Folder(name).log_file
        return file.read_text(errors="replace") if file.is_file() else ""

    def run(self, *arguments: str, seconds: float = 90, **extra: Any) -> "subprocess.CompletedProcess[str]":
        """`mai-server ...` as a program of its own, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "serverctl", *arguments],
            capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, cwd=ROOT, **extra,
        )  # fmt: skip

    def told(self, *arguments: str) -> Any:
        """What `mai-server ... --json` prints where it succeeds. Flags of vLLM's follow a "--"."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        done = self.run(*arguments[:end], "--json", *arguments[end:])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def ask(self, server: Mapping[str, Any], model: str = "", **more: Any) -> int:
        """The status of a client's question to a server, as `up --json` tells it."""
        asked = {"model": model or server["model"], "messages": [], **more}
        key = {"Authorization": f"Bearer {server['api_key']}"}
        return httpx2.post(f"{server['endpoint']}/chat/completions", json=asked, timeout=60, headers=key).status_code

    def begin(self, *arguments: str, **extra: Any) -> "subprocess.Popen[str]":
        """`mai-server ...` as a program of its own that goes on."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            [sys.executable, "-m", "serverctl", *arguments], text=True, cwd=ROOT, **{**pipes, **extra}
        )
        self.clients.append(process)
        return process

    @property
    def small(self) -> tuple[str, ...]:
        """The arguments of `up` for the tiny model on the processor."""
        return ("--cpu", "--model", str(self.model), "--set", f"kv_cache_memory_bytes={64 * MIB}")

    # What is there

    def processes(self) -> list[psutil.Process]:
        """Every living process of a server of this machine: those with a mark, and what watches them."""
        return [process for process, _ in self._ours()]

    def marked(self) -> list[psutil.Process]:
        """Those that carry a server's mark: the guardian, vLLM, and all it started."""
        return [process for process, environ in self._ours() if MARK in environ]

    def process(self, title: str) -> psutil.Process:
        """The engine ("EngineCore"), the worker ("Worker") or the guardian ("guardian") that lives."""
        for process in self.marked():
            # The system cuts a process's name after 15 characters.
            if process.name() == f"VLLM::{title}"[:15] or title in " ".join(process.cmdline()[:5]):
                return process
        raise AssertionError(f"no {title} among {[process.name() for process in self.marked()]}")

    def _ours(self) -> Iterator[tuple[psutil.Process, dict[str, str]]]:
        mine = {os.getpid(), *(client.pid for client in self.clients)}
        for process in psutil.process_iter():
            try:
                environ = process.environ()
                if (
                    process.pid not in mine
                    and environ.get("MAI_SERVER_STATE") == str(self.state_folder)
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    yield process, environ
            except psutil.Error:
                continue

    def assert_nothing_left(self, seconds: float = 0.0) -> None:
        """No process of any server here, after so many seconds at most."""
        end = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        assert not left, [(process.pid, process.name(), process.cmdline()) for process in left]

    def close(self) -> None:
        """Ends everything of this machine, whatever the test did."""
        self.lose_hub()
        for client in self.clients:
            if client.poll() is None:
                client.kill()
            client.communicate()
        for _ in range(100):
            left = self.processes()
            if not left:
                return
            for process in left:
                try:
                    process.send_signal(signal.SIGKILL)
                except psutil.Error:
                    continue
            time.sleep(0.02)
        raise AssertionError(f"cannot be ended: {left}")


def gone(processes: Sequence[psutil.Process], seconds: float = 10.0) -> bool:
    """Whether these processes have ended, after so many seconds at most."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes):
            return True
        time.sleep(0.02)
    return False
