"""The notebook's cells up to a server that answers. `notebook` fills in @NAMES@; code cells share one namespace."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its id, its kind, its text."""

    name: str
    kind: Literal["markdown", "code"]
    text: str


_INTRODUCTION = """
# @MODEL@ on @CARDS@ x @CARD@, with vLLM

This notebook starts a local model that looks at screenshots and says where to click, asks it one question, and shows
the answer on the picture. Run the cells from top to bottom. In Colab, choose the card first: **Runtime > Change runtime
type**.

- The server runs in this notebook's machine and listens on its loopback only, with a key made below. Nothing is sent
  anywhere else.
- The first start downloads the model (about @WEIGHTS@ GiB) and takes minutes; later ones in the same session are short.
- The context is @CONTEXT@ tokens, with up to @IMAGES@ screenshots in a request.

@HEADER@
"""

_SETTINGS_TEXT = """
## 1. What will be started

A plan for each build of vLLM: the newest is for NVIDIA's driver 580 (CUDA 13); older drivers get the last for CUDA 12.
The flags were checked against the parser of each version, so the two differ where the versions do.
"""

_SETTINGS = '''
@HEADER_COMMENT@
import os
import signal
import subprocess
import time

try:
    from IPython.display import display
except ImportError:  # a plain Python can run these cells too
    display = print

CARD, CARD_MIB = @CARD_REPR@, @CARD_MIB@
CARDS = @CARDS@
MODEL = @MODEL_REPR@
PORT = @PORT@
LOG = "vllm.log"
SERVER = globals().get("SERVER")  # this cell may be run again while one runs

PLANS = @PLANS@


def stop():
    """Stops the server and everything it started: vLLM's engine outlives a server that is killed alone."""
    global SERVER
    if SERVER is None:
        return
    for number, seconds in ((signal.SIGTERM, 15), (signal.SIGKILL, 10)):
        try:
            os.killpg(SERVER.pid, number)
        except ProcessLookupError:
            break
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            SERVER.poll()  # collects it, so that the group can be seen to be gone
            try:
                os.killpg(SERVER.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.1)
    SERVER.wait()
    SERVER = None
'''

_CHECK_TEXT = """
## 2. The card and its driver

Stops here if there is no card, a smaller one than the plan is for, or a driver that is too old: better now than after
the download.
"""

_CHECK = '''
import re


def look_at_cards():
    """Name and memory (MiB) of each card, the driver's version, and the newest CUDA it serves (None if not said)."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    try:
        rows = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().splitlines()
        said = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        rows, said = [], ""
    if not rows:
        raise RuntimeError("There is no NVIDIA card here. In Colab: Runtime > Change runtime type, then from the top.")
    cards = [tuple(part.strip() for part in row.split(",")) for row in rows]
    cuda = re.search(r"CUDA (?:UMD )?Version: *([0-9]+)[.]([0-9]+)", said)
    return [(name, int(memory)) for name, memory, _ in cards], cards[0][2], cuda and (int(cuda[1]), int(cuda[2]))


def choose_build(driver, cuda):
    """The first build that the driver serves."""
    for name, plan in PLANS.items():
        if cuda >= plan["least_cuda"] if cuda else int(driver.split(".")[0]) >= plan["least_driver"]:
            return name
    least = min(plan["least_driver"] for plan in PLANS.values())
    raise RuntimeError(f"The driver {driver} is too old: vLLM needs {least} or newer. Choose another machine.")


cards, driver, cuda = look_at_cards()
for name, memory in cards:
    print(f"{name}, {memory / 1024:.1f} GiB")
if len(cards) < CARDS or min(memory for _, memory in cards[:CARDS]) < 0.97 * CARD_MIB:
    raise RuntimeError(
        f"This notebook is for {CARDS} x {CARD} ({CARD_MIB / 1024:.1f} GiB). Make one for the card that is here: "
        "mai-server export notebook --gpu NAME"
    )
if cards[0][0] != CARD:
    print(f"Made for {CARD}: this card has the memory for it, but another kind may have better settings.")
BUILD = choose_build(driver, cuda)
PLAN = PLANS[BUILD]
print(f"Driver {driver}: {PLAN['package']}")
for note in PLAN["notes"]:
    print("Note:", note)
'''

_INSTALL_TEXT = """
## 3. Install vLLM

Into a folder of its own, because vLLM pins its PyTorch and must not change what the notebook itself runs on. About ten
gigabytes; minutes, depending on the network. If the machine has that version of vLLM already, name its command in the
environment variable `MAI_VLLM` and nothing is installed.
"""

_INSTALL = '''
import importlib.util
import sys
from pathlib import Path


def run(*command):
    """Runs a command and shows its output as it comes, with the time."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(f"{time.monotonic() - begin:5.0f} s  {line.rstrip()}", flush=True)
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed with status {process.returncode}: its last lines say why.")


def install():
    """vLLM's command, installed into an environment of its own."""
    folder = Path(PLAN["package"].replace("==", "-")).absolute()
    command = folder / "bin" / "vllm"
    if (folder / "whole").exists():
        return str(command)
    run(sys.executable, "-m", "pip", "install", "--quiet", "uv")
    uv = [sys.executable, "-m", "uv"]
    python = sys.executable if sys.version_info[:2] <= PLAN["python_most"] else "{}.{}".format(*PLAN["python_most"])
    run(*uv, "venv", "--clear", "--python", python, str(folder))
    run(*uv, "pip", "install", "--python", str(folder / "bin" / "python"), PLAN["package"])
    (folder / "whole").touch()  # an installation that broke off is made anew
    return str(command)


# What the cells below use themselves; Colab has both.
modules = {"openai": "openai", "pillow": "PIL"}
missing = [package for package, module in modules.items() if not importlib.util.find_spec(module)]
if missing:
    run(sys.executable, "-m", "pip", "install", "--quiet", *missing)
VLLM = os.environ.get("MAI_VLLM") or install()
print("vLLM:", VLLM)
'''

_START_TEXT = """
## 4. Start the server

In a session of its own, so that it can be stopped whole. The stages are read from its log, `vllm.log`.
It is ready when the model has answered one token, not when the port opens.
"""

_START = r'''
import json
import secrets
import urllib.error
import urllib.request

STAGES = [  # what vLLM logs, in order, and what it means
    (r"vLLM (?:API )?server version|non-default args:", "reading the configuration"),
    (r"Resolved architecture", "preparing the engine"),
    (r"Initializing a V1 LLM engine", "starting the engine"),
    (r"Time spent downloading weights|Fetching \d+ files|\.safetensors: +\d+%", "downloading the model"),
    (r"Loading safetensors checkpoint shards|Starting to load model", "loading the model"),
    (r"Model loading took", "model loaded"),
    (r"Encoder cache will be initialized", "measuring memory"),
    (r"torch\.compile took|Dynamo bytecode transform|Compiling a graph", "compiling"),
    (r"Available KV cache memory|KV cache size: ", "setting up the KV cache"),
    (r"Capturing CUDA graph|Graph capturing finished", "capturing CUDA graphs"),
    (r"init engine \(profile, create kv cache, warmup model\) took", "engine ready"),
    (r"Application startup complete", "serving"),
]
#: Nothing in the log for so long means that it hangs, seconds. A slow download writes less often than a healthy start.
SILENT = 1800


def ask(path, payload=None, seconds=10):
    """Status and text of an answer of the server; status 0 where nothing answers."""
    data = None if payload is None else json.dumps(payload).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError as error:
        return 0, str(error)


def start():
    """Starts the plan's server."""
    global SERVER
    stop()
    flags = [word for flag in PLAN["flags"] for word in ([flag] if isinstance(flag, str) else flag)]
    command = [VLLM, *PLAN["command"], *flags]
    # The key goes into the environment: a command line can be read by everybody on the machine.
    env = {**os.environ, **PLAN["env"], "VLLM_API_KEY": KEY, "PYTHONUNBUFFERED": "1"}
    env["PATH"] = f"{os.path.dirname(VLLM)}:{env.get('PATH', '')}"  # its compilers are beside it
    env.pop("MPLBACKEND", None)  # the notebook's own, which does not exist in vLLM's environment
    with open(LOG, "wb") as log:
        SERVER = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env, start_new_session=True
        )


def wait_until_ready():
    """Shows the stages until the model answers. Raises RuntimeError with the end of the log if it does not."""
    begin = heard = time.monotonic()
    furthest, said, place = -1, "", 0
    while True:
        alive = SERVER.poll() is None
        with open(LOG, "rb") as log:
            log.seek(place)
            new = log.read().decode(errors="replace")
            place = log.tell()
        heard = time.monotonic() if new else heard
        for line in re.split(r"[\r\n]+", new):
            stage = next((n for n in reversed(range(len(STAGES))) if re.search(STAGES[n][0], line)), -1)
            if stage < max(furthest, 0):
                continue
            percent = re.search(r"(\d{1,3})%", line)
            furthest, now = stage, STAGES[stage][1] + (f", {int(percent[1]) // 10 * 10} %" if percent else "")
            if now != said:
                said = now
                print(f"{time.monotonic() - begin:5.0f} s  {said}", flush=True)
        if not alive:
            break
        if ask("/health")[0] == 200:
            payload = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
            status, text = ask("/v1/chat/completions", payload, 300)
            if status == 200:
                print(f"{time.monotonic() - begin:5.0f} s  ready")
                return
            stop()
            raise RuntimeError(f"The model does not answer: {status} {text[:500]}")
        if time.monotonic() - heard > SILENT:
            print("It has said nothing for half an hour: it hangs.")
            break
        time.sleep(1)
    stop()
    with open(LOG, errors="replace") as log:
        print("".join(log.readlines()[-40:]))
    raise RuntimeError("The server did not start. `mai-server diagnose vllm.log` explains its log.")


KEY = secrets.token_hex(24)
try:
    start()
    wait_until_ready()
except KeyboardInterrupt:
    stop()
    raise
'''

SERVE: tuple[Cell, ...] = (
    Cell("introduction", "markdown", _INTRODUCTION),
    Cell("settings-text", "markdown", _SETTINGS_TEXT),
    Cell("settings", "code", _SETTINGS),
    Cell("check-text", "markdown", _CHECK_TEXT),
    Cell("check", "code", _CHECK),
    Cell("install-text", "markdown", _INSTALL_TEXT),
    Cell("install", "code", _INSTALL),
    Cell("start-text", "markdown", _START_TEXT),
    Cell("start", "code", _START),
)
