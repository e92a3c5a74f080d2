"""Stands in for `vllm serve`: the same command line, log, processes, API and ways to fail, without a model.

Run as a script by a Python without site packages, as it must start in a few hundredths of a second. What it does is told
by the JSON file that FAKE_VLLM names: a list of scenarios, one a start, the last one for all that follow. Beside that
file, `<file>.starts` gets a JSON line for every start: its number, process, arguments and environment.

A scenario is an object; everything is optional:

    log           "gpu" (made from the stages of vLLM 0.33) or "cpu" (a recorded one); by the flags where left out
    before        {STAGE: [action, ...]}: done before that stage is printed (the names of serverctl.diagnose.stages)
    serving       [action, ...]: done once the server answers
    chat          "ok", "fail" (500), "hang", "die" (the engine dies of the question), "no template" (400, as without a chat
                  template), "broken template", "no numbers" (400, as of NaN), "die of an error" (the engine says which)
    reads         "words wrong" (three tokens, whatever is said), "picture wrong" (of another size), "no picture",
                  "all alike" (no token is likelier than another)
    most_logprobs how many a request may ask for (20)
    says          what the answers say ("Hi")
    metrics       "recorded", "none" (404)
    running       requests in flight, as /metrics tells
    port          "taken": the port cannot be had
    rejects       [flag, ...]: the parser does not know them
    card          {...}: memory, see `Card`
    ignore_term   true: SIGTERM is ignored
    setsid        true: engine and worker make sessions of their own

An action is a list: ["sleep", s], ["hang"], ["busy"], ["print", text], ["garbage", bytes], ["flood", bytes, "lines" or
"endless"], ["fail", CLASS], ["exit", status], ["signal", number], ["die"] (the engine), ["deaf"] (/health hangs),
["hung"] (the engine answers no more),
["wait", file] (until the file is there).
"""
# ruff: noqa: E501, PTH100, PTH110, PTH118, PTH120, PTH123, PTH207

import contextlib
import fcntl
import glob
import json
import os
import signal
import socket
import sys
import threading
import time

_LOGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serverctl", "data")
#: The KV cache of a token.
_TOKEN_KIB = 112


class Card:
    """Memory of a card in GiB, and what a model takes of it.

    total, free: free may be [[seconds since `since`, GiB], ...]; weights: by precision; other: what torch does not see;
    activations: peak; graph: a CUDA graph's size.
    """

    def __init__(self, numbers):
        self.total = numbers.get("total", 24.0)
        self.weights = numbers.get("weights", {"16-bit": 4.0, "fp8": 2.6, "w4": 2.0})
        self.other = numbers.get("other", 0.4)
        self.activations = numbers.get("activations", 0.6)
        self.graph = numbers.get("graph", 0.02)
        self.free = numbers.get("free", self.total - 0.3)
        if isinstance(self.free, list):
            age = time.time() - numbers["since"]
            self.free = [gib for after, gib in self.free if age >= after][-1]


class Server:
    def __init__(self, scenario, arguments):
        self.scenario = scenario
        self.model, self.flags = parse(arguments)
        self.port = int(self.flags.get("--port", 8000))
        self.name = self.flags.get("--served-model-name", self.model)
        self.key = os.environ.get("VLLM_API_KEY", "")
        self.card = Card(scenario.get("card", {}))
        self.length = 8192
        self.health = "ok"
        self.engine = None
        self.serving = False
        self.requests = 0
        self.lock = threading.Lock()

    def run(self):
        for flag in self.scenario.get("rejects", ()):
            if flag in self.flags:
                out(f"usage: vllm serve [model_tag] [options]\nvllm serve: error: unrecognized arguments: {flag}\n")
                end(2)
        if self.scenario.get("ignore_term"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        cpu = "--kv-cache-memory-bytes" in self.flags and "--gpu-memory-utilization" not in self.flags
        kind = self.scenario.get("log") or ("cpu" if cpu else "gpu")
        for stage, lines in self.cpu_stages() if kind == "cpu" else self.gpu_stages():
            self.act(self.scenario.get("before", {}).get(stage, ()))
            if stage == "IMPORTED":
                self.bind()
            if stage == "ENGINE":
                self.start_engine()
            if stage == "SERVING":
                self.listen()
            for line in lines:
                out(line)
        self.serving = True
        if not self.scenario.get("ignore_term"):
            signal.signal(signal.SIGTERM, self.shut_down)
        self.act(self.scenario.get("serving", ()))
        while True:
            time.sleep(3600)

    # What it prints

    def cpu_stages(self):
        with open(os.path.join(_LOGS, "logs", "cpu-good-start.log"), encoding="utf-8", newline="") as file:
            text = file.read().split("INFO:     127.0.0.1")[0]
        text = text.replace("18770", str(self.port)).replace("/models/tiny-qwen3-vl", self.model)
        marks = (
            ("IMPORTED", "version 0.32.0"), ("CONFIGURED", "Resolved architecture"), ("ENGINE", "Initializing a V1"),
            ("LOADING", "Starting to load"), ("LOADED", "Loading weights took"), ("KV_CACHE", "Explicitly set"),
            ("WARMED", "init engine"), ("LISTENING", "Starting vLLM server"), ("SERVING", "Application startup"),
        )  # fmt: skip
        stage, lines = "LAUNCHED", []
        left = list(marks)
        for line in text.splitlines(keepends=True):
            if left and left[0][1] in line:
                yield stage, lines
                (stage, _), lines = left.pop(0), []
            lines.append(line)
        yield stage, lines

    def gpu_stages(self):
        wanted = self.flags.get("--max-model-len", "8192")
        share = float(self.flags.get("--gpu-memory-utilization", 0.92))
        api, engine = f"(APIServer pid={os.getpid()}) INFO 11-21 10:00:00", "(EngineCore pid=2) INFO 11-21 10:00:01"
        yield "LAUNCHED", ["/opt/vllm/warnings.py:1: FutureWarning: something is deprecated\n  warnings.warn(\n"]
        yield "IMPORTED", [f"{api} [utils.py:299] vLLM server version 0.33.0, serving model {self.model}\n"]
        yield "CONFIGURED", [f"{api} [model.py:530] Resolved architecture: Qwen3VLForConditionalGeneration\n"]
        yield (
            "ENGINE",
            [f"{engine} [core.py:93] Initializing a V1 LLM engine (v0.33.0) with config: model={self.model}\n"],
        )
        card = self.card
        requested = card.total * share
        if card.free < requested:
            fail("FREE_MEM", free=card.free, total=card.total, share=share, wanted=requested)
        yield (
            "LOADING",
            [
                f"{engine} [gpu_model_runner.py:2602] Starting to load model {self.model}...\n",
                "(EngineCore pid=2) \rLoading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]",
                "(EngineCore pid=2) \rLoading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00, 2.1it/s]",
                "(EngineCore pid=2) \rLoading safetensors checkpoint shards: 100% Completed | 2/2 [00:01<00:00, 1.9it/s]\n",
            ],
        )
        weights = card.weights[self.precision()]
        if weights > min(card.free, card.total - 0.5):
            fail("LOAD_OOM", total=card.total, tried=0.2)
        yield (
            "LOADED",
            [f"{engine} [gpu_model_runner.py:2653] Model loading took {weights:.2f} GiB memory and 1.5 seconds\n"],
        )
        yield (
            "PROFILING",
            [
                f"{engine} [gpu_model_runner.py:3300] Encoder cache will be initialized with a budget of 4096 tokens, and "
                "profiled with 1 image items of the maximum feature size.\n"
            ],
        )
        eager = "--enforce-eager" in self.flags
        if not eager:
            yield "COMPILING", [f"{engine} [monitor.py:34] torch.compile took 12.34 s in total\n"]
        kv = requested - weights - card.other - card.activations
        if kv <= 0:
            fail("NO_KV")
        tokens = int(kv * 1024**2 / _TOKEN_KIB) // 16 * 16
        self.length = min(tokens, 262_144) if wanted in ("auto", "-1") else int(wanted)
        if self.length > tokens:
            needed = self.length * _TOKEN_KIB / 1024**2
            fail("KV_SHORT", length=self.length, needed=needed, available=kv, fits=tokens)
        yield (
            "KV_CACHE",
            [
                f"{engine} [gpu_worker.py:298] Available KV cache memory: {kv:.2f} GiB\n",
                f"{engine} [kv_cache_utils.py:1146] GPU KV cache size: {tokens:,} tokens, Maximum concurrency for "
                f"{self.length:,} tokens per request: {tokens / self.length:.2f}x\n",
            ],
        )
        graphs = 0.0 if eager else card.graph * int(self.flags.get("--max-cudagraph-capture-size", 512))
        if not eager:
            bar = "(EngineCore pid=2) \rCapturing CUDA graphs (decode, FULL): {:>3}%|####      | {}/4 [00:00<00:00, 9.7it/s]"
            yield (
                "GRAPHS",
                [
                    *(bar.format(25 * part, part) for part in (0, 1, 2, 3)),
                    bar.format(100, 4) + "\n",
                    f"{engine} [gpu_model_runner.py:6517] Graph capturing finished in 2 secs, took {graphs:.2f} GiB\n",
                ],
            )
        consumed = weights + card.other
        yield (
            "WARMED",
            [
                f"{engine} [gpu_worker.py:1066] Free memory on device ({card.free:.2f}/{card.total:.2f} GiB) on startup. Desired "
                f"GPU memory utilization is ({share}, {requested:.2f} GiB). Actual usage is {consumed:.2f} GiB for consumed "
                f"memory (weights + non-torch), {card.activations:.2f} GiB for peak activation, and {graphs:.2f} GiB for CUDAGraph "
                f"memory. Replace gpu_memory_utilization config with `--kv-cache-memory=1` (0.0 GiB) to fit into requested "
                f"memory, or `--kv-cache-memory=2` (0.0 GiB) to fully utilize gpu memory. Current kv cache memory in use is "
                f"{kv:.2f} GiB.\n",
                f"{engine} [core.py:210] init engine (profile, create kv cache, warmup model) took 20.11 s\n",
            ],
        )
        yield "LISTENING", [f"{api} [entry.py:140] Starting vLLM server on http://127.0.0.1:{self.port}\n"]
        yield (
            "SERVING",
            [
                "INFO:     Started server process [1]\nINFO:     Waiting for application startup.\n"
                "INFO:     Application startup complete.\n"
            ],
        )

    def precision(self):
        if self.flags.get("--quantization", "").startswith("fp8"):
            return "fp8"
        return "w4" if any(word in self.model.lower() for word in ("awq", "gptq", "4bit")) else "16-bit"

    # What it does

    def act(self, actions):
        for action in actions:
            match action:
                case ["sleep", seconds]:
                    time.sleep(seconds)
                case ["hang"]:
                    while True:
                        time.sleep(3600)
                case ["busy"]:
                    while True:
                        sum(range(10_000))
                case ["print", text]:
                    out(text)
                case ["garbage", size]:
                    out(os.urandom(size) + b"\n")
                case ["flood", size, "lines"]:
                    block = "".join(
                        f"flood line {number:08}: nothing of any interest\n" for number in range(1000)
                    ).encode()
                    for _ in range(size // len(block)):
                        out(block)
                case ["flood", size, "endless"]:
                    for _ in range(size // (1 << 20)):
                        out(b"x" * (1 << 20))
                case ["fail", kind]:
                    fail(kind)
                case ["exit", status]:
                    end(status)
                case ["signal", number]:
                    os.kill(os.getpid(), number)
                case ["die"]:
                    os.kill(self.engine, signal.SIGKILL)
                case ["hung"]:
                    self.scenario["chat"] = "hang"
                case ["deaf"]:
                    self.health = "hang"
                case ["wait", path]:
                    while not os.path.exists(path):
                        time.sleep(0.01)
                case other:
                    raise ValueError(other)

    def bind(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            if self.scenario.get("port") == "taken":
                raise OSError(98, "Address already in use")
            self.socket.bind((self.flags.get("--host", "0.0.0.0"), self.port))
        except OSError as error:
            out(
                'Traceback (most recent call last):\n  File "/opt/vllm/launcher.py", line 348, in create_server_socket\n'
                f"    sock.bind(addr)\nOSError: [Errno {error.errno}] Address already in use\n"
            )
            end(1)

    def start_engine(self):
        """An engine and its worker: both ignore SIGTERM, and outlive whoever started them unless they are killed."""
        started, told = os.pipe()
        self.engine = os.fork()
        if self.engine == 0:
            self.be_engine(told)
        os.close(told)
        os.read(started, 1)  # so that both are there when the next line is printed
        os.close(started)
        threading.Thread(target=self.watch_engine, daemon=True).start()

    def be_engine(self, told):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self.scenario.get("setsid"):
            os.setsid()
        worker = os.fork()
        if worker == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if self.scenario.get("setsid"):
                os.setsid()
            linger("Worker", told)
        if not os.environ.get("SPT_NOENV"):
            linger("EngineCore", told)
        name("EngineCore")
        os.write(told, b"x")
        os.waitpid(worker, 0)
        os._exit(1)

    def watch_engine(self):
        os.waitpid(self.engine, 0)
        out(
            "(APIServer pid=1) ERROR 11-21 10:01:00 [core_client.py:610] Engine core proc EngineCore died unexpectedly, "
        )
        out("shutting down client.\n")
        if self.serving:
            self.health = "503"
            out("(APIServer pid=1) ERROR 11-21 10:01:00 [async_llm.py:849] vllm.v1.engine.exceptions.EngineDeadError: ")
            out("EngineCore encountered an issue. See stack trace (above) for the root cause.\n")
            time.sleep(0.2)
            end(0)
        out(
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}\n"
        )
        end(1)

    def shut_down(self, *_):
        """As vLLM's API server does when it is asked: requests may finish, then it kills its engine."""
        end_by = time.monotonic() + float(self.flags.get("--shutdown-timeout", 0))
        while self.requests and time.monotonic() < end_by:
            time.sleep(0.02)
        out("INFO:     Shutting down\nINFO:     Application shutdown complete.\n")
        with contextlib.suppress(OSError):
            os.kill(self.engine, signal.SIGKILL)
        end(0)

    def listen(self):
        self.socket.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        with connection, contextlib.suppress(OSError, ValueError, IndexError):
            head, body = b"", b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65_536) or b"\r\n\r\n"
            head, _, body = head.partition(b"\r\n\r\n")
            fields = {line.split(b":")[0].lower(): line.split(b":", 1)[1].strip() for line in head.split(b"\r\n")[1:]}
            while len(body) < int(fields.get(b"content-length", 0)):
                body += connection.recv(65_536)
            path = head.split(b" ")[1].decode()
            with self.lock:
                self.requests += path.startswith("/v1/chat")
            try:
                answer = self.reply(path, fields.get(b"authorization", b"").decode(), body)
            finally:
                with self.lock:
                    self.requests -= path.startswith("/v1/chat")
            status, text = answer
            kind = "application/json" if text.startswith(("{", "[")) else "text/plain"
            raw = text.encode()
            connection.sendall(
                f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n\r\n"
                .encode() + raw
            )  # fmt: skip

    def reply(self, path, authorization, body):
        if path == "/health":
            while self.health == "hang":
                time.sleep(0.1)
            return (503, "") if self.health == "503" else (200, "")
        if path == "/metrics":
            return self.metrics()
        if path in ("/tokenize", "/detokenize"):
            return 200, json.dumps(self.tokens(json.loads(body)))
        if not path.startswith("/v1/"):
            return 404, '{"detail":"Not Found"}'
        if self.key and authorization != f"Bearer {self.key}":
            return 401, '{"error":"Unauthorized"}'
        if path == "/v1/models":
            entry = {"id": self.name, "object": "model", "root": self.model, "max_model_len": self.length}
            return 200, json.dumps({"object": "list", "data": [entry]})
        match self.scenario.get("chat", "ok"):
            case "hang":
                time.sleep(3600)
            case "broken template":
                return 400, '{"error":{"message":"unexpected end of template","code":400}}'
            case "no template":
                return 400, '{"error":{"message":"default chat template is no longer allowed","code":400}}'
            case "no numbers":
                return 400, '{"error":{"message":"Out of range float values are not JSON compliant","code":400}}'
            case "fail":
                return 500, '{"error":{"message":"EngineCore encountered an issue.","type":"InternalServerError"}}'
            case "die of an error":
                out("(EngineCore pid=2) ERROR 11-21 10:00:30 [core.py:900] RuntimeError: shape is invalid for input\n")
                os.kill(self.engine, signal.SIGKILL)
                return 500, '{"error":{"message":"EngineCore encountered an issue.","type":"InternalServerError"}}'
            case "die":
                out(
                    "(EngineCore pid=2) ERROR 11-21 10:00:30 [core.py:900] torch.OutOfMemoryError: CUDA out of memory. "
                )
                out("Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 23.5 GiB of which 0.4 GiB is free.\n")
                os.kill(self.engine, signal.SIGKILL)
                return 500, '{"error":{"message":"EngineCore encountered an issue.","type":"InternalServerError"}}'
        request = json.loads(body)
        if request.get("model") != self.name:
            return 404, json.dumps({"error": {"message": f"The model `{request.get('model')}` does not exist."}})
        if request.get("top_logprobs", 0) > self.scenario.get("most_logprobs", 20):
            return (
                400,
                '{"error":{"message":"Requested sample logprobs of 20, which is greater than max allowed","code":400}}',
            )
        time.sleep(request.get("fake_seconds", 0))
        message = {"role": "assistant", "content": self.scenario.get("says", "Hi")}
        alike = self.scenario.get("reads") == "all alike"
        likely = [{"logprob": -5.0 - (0 if alike else rank)} for rank in range(request.get("top_logprobs", 0))]
        return 200, json.dumps(
            {
                "id": "x", "object": "chat.completion", "model": self.name,
                "choices": [
                    {"index": 0, "message": message, "finish_reason": "length",
                     "logprobs": {"content": [{"top_logprobs": likely}]}}
                ],
                "usage": {"prompt_tokens": 16 + self.picture(body), "completion_tokens": 1, "total_tokens": 81},
            }
        )  # fmt: skip

    def tokens(self, request):
        """A token a letter, by the vocabulary of the model's folder where it has one."""
        repo = os.path.join(os.environ.get("HF_HOME", ""), "hub", f"models--{self.model.replace('/', '--')}")
        files = glob.glob(os.path.join(repo, "snapshots", "*", "tokenizer.json"))
        try:
            with open(files[0] if files else os.path.join(self.model, "tokenizer.json"), encoding="utf-8") as file:
                words = json.load(file)["model"]["vocab"]
        except OSError:
            words = {chr(code): code for code in range(97, 123)} | {"Ġ": 32}
        if "tokens" in request:
            letters = {number: letter for letter, number in words.items()}
            return {"prompt": "".join(letters[number] for number in request["tokens"]).replace("Ġ", " ")}
        if "messages" in request:
            return {"count": 16, "tokens": [0] * 16}
        wrong = self.scenario.get("reads") == "words wrong"
        found = [0, 1, 2] if wrong else [words[letter] for letter in request["prompt"].replace(" ", "Ġ")]
        return {"count": len(found), "tokens": found}

    def picture(self, body):
        """Tokens of the picture in a question: 256 x 256 pixels, 32 x 32 a token, and one before and after it."""
        if b"image_url" not in body:
            return 0
        return {"picture wrong": 83, "no picture": 0}.get(self.scenario.get("reads"), 66)

    def metrics(self):
        if self.scenario.get("metrics") == "none":
            return 404, '{"detail":"Not Found"}'
        with open(os.path.join(_LOGS, "metrics", "vllm-0.32.0.txt"), encoding="utf-8") as file:
            text = file.read().replace('model_name="tiny"', f'model_name="{self.name}"')
        running = max(self.requests, self.scenario.get("running", 0))
        text = text.replace(
            f'vllm:num_requests_running{{engine="0",model_name="{self.name}"}} 0.0',
            f'vllm:num_requests_running{{engine="0",model_name="{self.name}"}} {running}',
        )
        return 200, text


def parse(arguments):
    """The model and the flags of `serve MODEL --flag value ...`."""
    words = arguments[1:] if arguments and arguments[0] == "serve" else arguments
    model, flags = words[0], {}
    position = 1
    while position < len(words):
        flag, sign, value = words[position].partition("=")
        if not sign and position + 1 < len(words) and not words[position + 1].startswith("--"):
            position += 1
            value = words[position]
        flags[flag] = value
        position += 1
    return model, flags


def out(text):
    data = text if isinstance(text, bytes) else text.encode()
    while data:
        data = data[os.write(1, data) :]


def end(status):
    """The API server ends at once; its engine and worker do not end with it."""
    os._exit(status)


def linger(title, told):
    name(title)
    if not os.environ.get("SPT_NOENV"):
        # vLLM names its processes by setproctitle, which overwrites the environment that others see.
        os.write(told, b"x")
        os.execve("/bin/sleep", [f"VLLM::{title}", "3600"], {})
    os.write(told, b"x")
    while True:
        signal.pause()


def name(title):
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(f"VLLM::{title}"[:15])


_FAILURES = {
    "FREE_MEM": (
        "ValueError: Free memory on device cuda:0 ({free:.2f}/{total:.2f} GiB) on startup is less than desired GPU memory "
        "utilization ({share}, {wanted:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
        "processes."
    ),
    "NO_KV": (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
        "the engine."
    ),
    "KV_SHORT": (
        "ValueError: To serve at least one request with the model's max seq len ({length}), ({needed:.2f} GiB KV cache is "
        "needed, which is larger than the available KV cache memory ({available:.2f} GiB). Based on the available memory, "
        "the estimated maximum model length is {fits}. Try increasing `gpu_memory_utilization` or decreasing "
        "`max_model_len` when initializing the engine."
    ),
    "LOAD_OOM": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried:.2f} GiB. GPU 0 has a total capacity of "
        "{total:.2f} GiB of which 0.10 GiB is free."
    ),
    "CUDA": "RuntimeError: CUDA error: an illegal memory access was encountered",
    "MODEL": "OSError: nowhere/nothing is not a local folder and is not a valid model identifier",
    "IMPORT": "ModuleNotFoundError: No module named 'nowhere'",
}
_FAILURES["GRAPH_OOM"] = _FAILURES["PROFILE_OOM"] = _FAILURES["RUNTIME_OOM"] = _FAILURES["LOAD_OOM"]


def fail(kind, **numbers):
    """Prints a failure as vLLM does: an engine's traceback, then what only points to it; and ends with status 1."""
    if kind.startswith("KV_SHORT_"):  # and the length that would fit
        kind, fits = "KV_SHORT", int(kind.rpartition("_")[2])
        numbers = {"length": 2 * fits, "needed": 2.0, "available": 1.0, "fits": fits}
    text = _FAILURES[kind].format(**{"total": 23.5, "tried": 1.2, **numbers})
    prefix = "(EngineCore pid=2) ERROR 11-21 10:00:20 [core.py:1510]"
    out(
        f"{prefix} EngineCore failed to start.\n{prefix} Traceback (most recent call last):\n"
        f'{prefix}   File "/opt/vllm/v1/engine/core.py", line 1482, in run_engine_core\n'
        f"{prefix}     raise ValueError(\n{prefix} {text}\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/vllm/v1/engine/utils.py", line 1431, in wait_for_engine_startup\n    raise RuntimeError(\n'
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}\n"
    )
    end(1)


def next_scenario(arguments):
    """This start's scenario; remembers the start."""
    path = os.environ.get("FAKE_VLLM")
    if path is None:
        return {}
    with open(f"{path}.starts", "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        number = sum(1 for _ in file)
        start = {"number": number, "pid": os.getpid(), "argv": arguments, "environ": dict(os.environ)}
        file.write(json.dumps(start) + "\n")
    with open(path, encoding="utf-8") as file:
        scenarios = json.load(file)
    return scenarios[min(number, len(scenarios) - 1)] if scenarios else {}


if __name__ == "__main__":
    Server(next_scenario(sys.argv[1:]), sys.argv[1:]).run()
