"""What the controller costs: `up` against vLLM's own start, and the answering times of `plan` and `status`.

    python scripts/bench/serving.py --vllm-python .venv-vllm/bin/python --model FOLDER [--rounds 3] [--warm-ups 1]

The baseline of `up` is the same command line of vLLM, started by hand, until it answers the same one-token question
about a picture. The baseline of `plan` and `status` is a bare interpreter. Rounds alternate: a warm disk helps both.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from common import ROOT, Times, arguments

from serverctl.load.client import on_loopback
from serverctl.process import probe

SERVER = (sys.executable, "-m", "serverctl")


def main() -> None:
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--vllm-python", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--warm-ups", type=int, choices=(0, 1), default=1, help="rounds that do not count (default 1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            "VLLM_CACHE_ROOT": f"{folder}/vllm-cache", **os.environ, "MAI_SERVER_STATE": folder, "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": str(ROOT), "MAI_SERVER_VLLM_PYTHON": options.vllm_python,
        }  # fmt: skip
        run_rounds(options, environ)
        answer_times(environ, 3 * options.rounds + 2)


def run_rounds(options: argparse.Namespace, environ: dict[str, str]) -> None:
    times = Times()
    for number in range(1 - options.warm_ups, options.rounds + 1):
        if number == 1:
            times.taken.clear()  # the first was the warm-up
        with times.of("up"):
            server("up", "--cpu", "--model", options.model, environ=environ)
        argv = json.loads(server("status", "--json", environ=environ))["plan"]["argv"]
        with times.of("down"):
            server("down", environ=environ)
        gate = argv.index("--middleware")  # our key check lives in our own folder: a vLLM started by hand has none
        by_hand([options.vllm_python, *argv[1:gate], *argv[gate + 2 :]], environ, times)
        kind = f"round {number}" if number else "warm-up"
        up, down, bare = (times.taken[name][-1] / 1000 for name in ("up", "down", "vLLM alone"))
        print(f"{kind}: up {up:6.2f} s   vLLM alone {bare:6.2f} s   down {down:5.2f} s", flush=True)
    mine, base = times.median("up") / 1000, times.median("vLLM alone") / 1000
    print(f"up {mine:.2f} s, vLLM alone {base:.2f} s: {mine - base:+.2f} s, ratio {mine / base:.3f}")


def server(*words: str, environ: dict[str, str]) -> str:
    done = subprocess.run([*SERVER, *words], env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def by_hand(argv: list[str], environ: dict[str, str], times: Times) -> None:
    """Times a vLLM started by hand until it answers; ends it afterwards."""
    port, name = (argv[argv.index(flag) + 1] for flag in ("--port", "--served-model-name"))
    began = time.perf_counter()
    process = subprocess.Popen(
        argv, env={**environ, "VLLM_NO_USAGE_STATS": "1", "VLLM_ENABLE_STARTUP_PLAN": "1"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    server = on_loopback(int(port), model=name)
    try:
        while not probe.is_healthy(server):
            if process.poll() is not None:
                sys.exit(f"vLLM started by hand ended with status {process.returncode}: {' '.join(argv)}")
            time.sleep(0.02)
        answer = probe.ask_model(server)
        assert answer.ok, answer.body
        times.since(began, "vLLM alone")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answer_times(environ: dict[str, str], rounds: int) -> None:
    cases = {
        "bare interpreter": (sys.executable, "-c", "pass"),
        "plan --gpu L4": (*SERVER, "plan", "--gpu", "L4", "--json"),
        "plan (this machine)": (*SERVER, "plan", "--model", "MAI-UI-2B", "--json"),
        "status": (*SERVER, "status", "--json"),
    }
    times = Times()
    for name, command in cases.items():
        for _ in range(rounds):
            with times.of(name):
                subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        print(f"{name:<22}{times.median(name):7.0f} ms   {times.ratio(name, 'bare interpreter'):5.1f} x")


if __name__ == "__main__":
    main()
