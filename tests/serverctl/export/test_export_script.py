"""The exported script, run for real with a stand-in for vLLM: it waits, watches, stops, and leaves nothing behind."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from serverctl.commands.plans.export import main

pytestmark = pytest.mark.slow

#: The version in the development lock, whatever else is installed.
SHELLCHECK = Path(sys.executable).parent / "shellcheck"

#: Behaves as vLLM does towards its starter: log lines, a port, a key, children, signals that it does not heed.
STAND_IN = r'''#!@PYTHON@
"""Stands in for vLLM. STAND_IN says what it is like: good, stubborn, dies, mute, broken."""
import base64, io, json, os, signal, struct, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

argv = sys.argv[1:]
kind = os.environ.get("STAND_IN", "good")
value = lambda flag: argv[argv.index(flag) + 1]
with open(os.environ["STAND_IN_RECORD"], "a") as record:
    seen = {"argv": argv, "env": dict(os.environ), "session": os.getsid(0), "pid": os.getpid()}
    record.write(json.dumps(seen) + "\n")
if kind in ("stubborn", "dies"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The engine: a process of its own that outlives its parent and does not end when asked.
    subprocess.Popen([sys.executable, "-c", "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(600)"])
for line in (
    "(APIServer pid=1) INFO 11-21 00:25:12 [api_server.py:1] vLLM server version 0.33.0",
    "(APIServer pid=1) INFO 11-21 00:25:13 [model.py:1] Resolved architecture: Qwen3VLForConditionalGeneration",
    "(EngineCore pid=2) INFO 11-21 00:25:14 [core.py:1] Initializing a V1 LLM engine (v0.33.0) with config",
    "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01]",
    "(EngineCore pid=2) INFO 11-21 00:25:15 [r.py:1] Model loading took 4.0 GiB memory and 9.1 seconds",
    "(EngineCore pid=2) INFO 11-21 00:25:16 [k.py:1] GPU KV cache size: 131,072 tokens, Maximum concurrency: 16.00x",
    "(EngineCore pid=2) INFO 11-21 00:25:16 [c.py:1] init engine (profile, create kv cache, warmup model) took 3 s",
    "said on both: % $HOME 'quoted' \\ back",
):
    print(line, flush=True)
if kind == "broken":
    print("ValueError: No available memory for the cache blocks", file=sys.stderr, flush=True)
    sys.exit(1)
time.sleep(float(os.environ.get("STAND_IN_SECONDS", "0.3")))
asked = 0


class Handler(BaseHTTPRequestHandler):
    def reply(self, status, content):
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(content, str) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/metrics":
            self.reply(200, METRICS % (32 * asked, 64 * asked))
        else:
            self.reply(200 if self.path == "/health" else 404, {})

    def do_POST(self):
        global asked
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer " + os.environ["VLLM_API_KEY"]:
            return self.reply(401, {"error": "Unauthorized"})
        if body["model"] != value("--served-model-name") or kind == "mute":
            return self.reply(500, {"error": "no"})
        asked += 1
        text = "Hello"
        content = body["messages"][-1]["content"]
        if isinstance(content, list):
            url = next(part["image_url"]["url"] for part in content if part["type"] == "image_url")
            png = base64.b64decode(url.split(",")[1])
            size = struct.unpack(">II", png[16:24])
            x, y = round(1052 / size[0] * 1000), round(247 / size[1] * 1000)
            text = ("<grounding_think>The row [1, 2] is Dark mode.</grounding_think>\n<answer>\n"
                    '{"coordinate": [%d, %d]}\n</answer>' % (x, y))
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1036, "completion_tokens": 20, "total_tokens": 1056}
        self.reply(200, {"id": "c", "object": "chat.completion", "created": 0, "model": body["model"],
                         "choices": [choice], "usage": usage})

    def log_message(self, *arguments):
        pass


METRICS = """# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.125
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="131072",num_gpu_blocks="8192"} 1.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} %d.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} %d.0
"""
server = ThreadingHTTPServer((value("--host"), int(value("--port"))), Handler)
print("INFO:     Application startup complete.", flush=True)
if kind == "dies":
    import threading
    # As when vLLM's engine dies: the server ends with status 0.
    threading.Timer(2.0, lambda: os._exit(0)).start()
server.serve_forever()
'''


def put_stand_in(folder: Path) -> Path:
    """A `vllm` in a folder, to be put into PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "vllm"
    program.write_text(STAND_IN.replace("@PYTHON@", sys.executable), encoding="utf-8")
    program.chmod(0o755)
    return program


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Launched:
    """The script as a process, with what it left on the disk."""

    def __init__(self, folder: Path, *arguments: str, kind: str = "good", options: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.port = free_port()
        self.script = folder / "serve.sh"
        if not self.script.exists():
            words = ("script", "--gpu", "T4", "--port", str(self.port), "--out", str(self.script), *options)
            assert main(list(words)) == 0
        put_stand_in(folder / "bin")
        self.record = folder / "record.jsonl"
        self.logs = folder / "logs"
        environ = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
        environ |= {
            "PATH": f"{folder / 'bin'}:{environ['PATH']}",
            "HOME": str(folder),
            "LOG_FOLDER": str(self.logs),
            "STOP_SECONDS": "1",
            "STAND_IN": kind,
            "STAND_IN_RECORD": str(self.record),
        }
        filled = [str(self.port) if word == "PORT" else word for word in arguments]
        self.process = subprocess.Popen(
            [self.script, *filled], env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self.output = ""

    def read_until(self, words: str) -> str:
        """Reads its output up to a line with some words. The limit only catches what would never come."""
        assert self.process.stdout is not None
        end = time.monotonic() + 60
        while time.monotonic() < end:
            line = self.process.stdout.readline()
            self.output += line
            if words in line:
                return line
            assert line, f"it ended before it said {words!r}:\n{self.output}"
        raise AssertionError(self.output)

    def finish(self) -> int:
        assert self.process.stdout is not None
        self.output += self.process.stdout.read()
        return self.process.wait(60)

    @property
    def seen(self) -> dict[str, object]:
        """What the stand-in was started with."""
        found: dict[str, object] = json.loads(self.record.read_text().splitlines()[-1])
        return found

    def left_over(self) -> list[str]:
        """Processes of the server's session that still run."""
        session = self.seen["session"]
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline()))
        return found

    def log(self) -> str:
        (file,) = self.logs.glob("*.log")
        return file.read_text()

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.record.exists():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(str(self.seen["session"])), signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[list[Launched]]:
    running: list[Launched] = []
    yield running
    for one in running:
        one.end()


def launch(running: list[Launched], folder: Path, *arguments: str, **options: str) -> Launched:
    one = Launched(folder, *arguments, **options)  # type: ignore[arg-type]
    running.append(one)
    return one


def test_without_arguments_it_starts_the_plan_and_says_when_the_model_answers(
    launched: list[Launched], tmp_path: Path
) -> None:
    one = launch(launched, tmp_path)
    one.read_until("ready after")
    argv, env = one.seen["argv"], one.seen["env"]
    assert isinstance(argv, list)
    assert isinstance(env, dict)
    assert argv[:2] == ["serve", "Tongyi-MAI/MAI-UI-2B"]
    assert argv[argv.index("--port") + 1] == str(one.port)
    assert argv[argv.index("--host") + 1] == "127.0.0.1"
    assert argv[argv.index("--limit-mm-per-prompt") + 1] == '{"image":4,"video":0}'
    assert argv.count("--port") == argv.count("--host") == argv.count("--served-model-name") == 1
    assert env["VLLM_NO_USAGE_STATS"] == "1"
    assert one.seen["session"] == one.seen["pid"], "the server is in a session of its own"
    (key_file,) = one.logs.glob("*.key")
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert key_file.read_text().strip() == env["VLLM_API_KEY"]
    assert len(env["VLLM_API_KEY"]) == 48
    assert env["VLLM_API_KEY"] not in one.output
    assert env["VLLM_API_KEY"] not in " ".join(argv)
    lines = one.log().splitlines()
    assert len(lines) >= 9
    for line in lines:  # each has its time and its own text
        time.strptime(line[:19], "%Y-%m-%d %H:%M:%S")
    assert lines[7].endswith(r" said on both: % $HOME 'quoted' \ back")


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_ends_it_and_everything_it_started_even_what_does_not_heed_signals(
    launched: list[Launched], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    one = launch(launched, tmp_path, kind="stubborn")
    one.read_until("ready after")
    assert len(one.left_over()) == 2, "the server and its engine"
    os.killpg(one.process.pid, number)  # as a terminal does: to the script and everything in its foreground
    assert one.finish() == status
    assert one.left_over() == []
    assert not Path(f"/proc/{one.seen['pid']}").exists()


def test_a_signal_during_the_start_leaves_nothing_either(launched: list[Launched], tmp_path: Path) -> None:
    one = launch(launched, tmp_path, kind="stubborn")
    one.read_until("Model loading took")
    one.process.send_signal(signal.SIGINT)
    assert one.finish() == 130
    assert "ready after" not in one.output
    assert one.left_over() == []


@pytest.mark.parametrize(
    "kind, said, ready",
    [
        ("dies", "ended by itself (exit status 0)", True),
        ("broken", "ended by itself (exit status 1)", False),
        ("mute", "the model does not answer", False),
    ],
)
def test_a_server_that_does_not_serve_is_a_failure_and_its_engine_is_ended(
    launched: list[Launched], tmp_path: Path, kind: str, said: str, ready: bool
) -> None:
    one = launch(launched, tmp_path, kind=kind)
    assert one.finish() == 1
    assert said in one.output
    assert ("ready after" in one.output) is ready
    assert one.left_over() == []
    assert ("No available memory for the cache blocks" in one.log()) is (kind == "broken")


def test_a_port_in_use_is_refused_before_anything_starts(launched: list[Launched], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        one = launch(launched, tmp_path, "org/model", port, "name")
        assert one.finish() == 1
    assert f"something already answers on port {port}" in one.output
    assert not one.record.exists()


NASTY = '{"image": 4, "note": "it\'s 100% $HOME `id` \\\\ \\"x\\""}'


@pytest.mark.parametrize(
    "given, flags",
    [
        (("--limit-mm-per-prompt", NASTY, "--seed", "0"), ["--limit-mm-per-prompt", NASTY, "--seed", "0"]),
        # One word with all flags, as older scripts have it.
        (('--seed 32  --limit-mm-per-prompt {"image":4}',), ["--seed", "32", "--limit-mm-per-prompt", '{"image":4}']),
    ],
)
def test_another_model_gets_its_own_flags_and_those_of_every_plan_only(
    launched: list[Launched], tmp_path: Path, given: tuple[str, ...], flags: list[str]
) -> None:
    one = launch(launched, tmp_path, "org/other", "PORT", "second", *given)
    one.read_until("ready after")
    argv = one.seen["argv"]
    assert isinstance(argv, list)
    assert argv[:2] == ["serve", "org/other"]
    assert argv[-4:] == flags
    assert argv[argv.index("--served-model-name") + 1] == "second"
    assert "--generation-config" in argv
    assert "--gpu-memory-utilization" not in argv, "the plan's numbers are for the plan's model"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("org/model",), "usage:"),
        (("org/model", "http", "name"), "http is no port"),
        (("org/model", "70000", "name"), "70000 is no port"),
        (("org/model", "PORT", 'a"b'), "the name for clients may hold"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(
    launched: list[Launched], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    one = launch(launched, tmp_path, *arguments)
    assert one.finish() in (1, 2)
    assert said in one.output
    assert not one.record.exists()


def test_a_machine_without_vllm_is_told_so(launched: list[Launched], tmp_path: Path) -> None:
    one = launch(launched, tmp_path)
    one.end()
    bare = tmp_path / "bare"
    bare.mkdir()
    for tool in ("bash", "env", "curl", "setsid", "mkdir", "od", "tr", "chmod", "sleep"):
        (bare / tool).symlink_to(shutil.which(tool) or tool)
    done = subprocess.run(
        ["bash", one.script], env={"PATH": str(bare), "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "vllm is not in PATH" in done.stderr


def test_the_key_of_the_environment_is_used_and_a_models_folder_is_named_by_a_variable(tmp_path: Path) -> None:
    folder = tmp_path / "MAI-UI-2B"
    folder.mkdir()
    shape = Path(__file__).resolve().parents[3] / "configs" / "models" / "shapes" / "qwen3-vl-2b.json"
    (folder / "config.json").write_text(shape.read_text())
    out = tmp_path / "serve.sh"
    assert main(["script", "--gpu", "T4", "--model", str(folder), "--out", str(out)]) == 0
    text = out.read_text()
    assert str(tmp_path) not in text
    assert "${MODEL_FOLDER:?" in text
    done = subprocess.run(
        ["bash", out], env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "MODEL_FOLDER" in done.stderr


@pytest.mark.parametrize(
    "options",
    [("--gpu", "T4"), ("--gpu", "cpu"), ("--gpu", "H100", "--gpus", "2", "--preset", "throughput")],
)
def test_bash_and_shellcheck_accept_the_script(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert main(["script", *options, "--out", f"{tmp_path}/out/"]) == 0
    scripts = sorted((tmp_path / "out").iterdir())
    assert len(scripts) == (2 if "--gpus" in options else 1)
    for script in scripts:
        assert subprocess.run(["bash", "-n", script]).returncode == 0
        assert os.access(script, os.X_OK)
        assert subprocess.run([SHELLCHECK, "--norc", script]).returncode == 0


def test_each_replica_has_a_script_with_its_own_port_and_card(tmp_path: Path) -> None:
    assert main(["script", "--gpu", "H100", "--gpus", "2", "--preset", "throughput", "--out", f"{tmp_path}/out/"]) == 0
    first, second = ((tmp_path / "out" / name).read_text() for name in ("mai-vllm.sh", "mai-vllm-2.sh"))
    assert "plan_port=8000\n" in first
    assert "plan_port=8001\n" in second
    assert 'CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"' in first
    assert 'CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-1}"' in second
