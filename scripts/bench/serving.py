"""What the controller costs: `up` against vLLM's own start, and the answering times of `plan` and `status`.

    python scripts/bench/serving.py --vllm-python .venv-vllm/bin/python --model FOLDER [--rounds 3]

The baseline of `up` is the same command line of vLLM, started by hand, until it answers the same one-token question
about a picture. The baseline of `plan` and `status` is a bare interpreter. Rounds alternate: a warm disk helps both.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm-python", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            **os.environ, "MAI_SERVER_STATE": folder, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT),
            "VLLM_CACHE_ROOT": f"{folder}/vllm-cache", "MAI_SERVER_VLLM_PYTHON": options.vllm_python,
        }  # fmt: skip
        run_rounds(options, environ)
        answer_times(environ)


def run_rounds(options: argparse.Namespace, environ: dict[str, str]) -> None:
    ours: list[float] = []
    theirs: list[float] = []
    argv: list[str] = []
    for number in range(options.rounds + 1):
        began = time.monotonic()
        server("up", "--cpu", "--model", options.model, environ=environ)
        took = time.monotonic() - began
        argv = json.loads(server("status", "--json", environ=environ))["plan"]["argv"]
        began = time.monotonic()
        server("down", environ=environ)
        down = time.monotonic() - began
        bare = by_hand([options.vllm_python, *argv[1:]], environ)
        kind = "warm-up" if number == 0 else f"round {number}"
        print(f"{kind}: up {took:6.2f} s   vLLM alone {bare:6.2f} s   down {down:5.2f} s", flush=True)
        if number:
            ours.append(took)
            theirs.append(bare)
    mine, base = statistics.median(ours), statistics.median(theirs)
    print(f"up {mine:.2f} s, vLLM alone {base:.2f} s: {mine - base:+.2f} s, ratio {mine / base:.3f}")


def server(*arguments: str, environ: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "serverctl", *arguments], env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def by_hand(argv: list[str], environ: dict[str, str]) -> float:
    """Seconds until a vLLM started by hand answers; ends it afterwards."""
    from serverctl.process import probe

    port = int(argv[argv.index("--port") + 1])
    name = argv[argv.index("--served-model-name") + 1]
    began = time.monotonic()
    process = subprocess.Popen(
        argv, env={**environ, "VLLM_NO_USAGE_STATS": "1", "VLLM_ENABLE_STARTUP_PLAN": "1"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        while not probe.is_healthy(port):
            time.sleep(0.02)
        answer = probe.ask_model(port, "", name)
        assert answer.ok, answer.body
        return time.monotonic() - began
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answer_times(environ: dict[str, str]) -> None:
    cases = {
        "bare interpreter": [sys.executable, "-c", "pass"],
        "plan --gpu L4": [sys.executable, "-m", "serverctl", "plan", "--gpu", "L4", "--json"],
        "plan (this machine)": [sys.executable, "-m", "serverctl", "plan", "--model", "MAI-UI-2B", "--json"],
        "status": [sys.executable, "-m", "serverctl", "status", "--json"],
    }
    base = 0.0
    for name, command in cases.items():
        times = []
        for _ in range(11):
            began = time.monotonic()
            subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            times.append(time.monotonic() - began)
        middle = statistics.median(times)
        base = base or middle
        print(f"{name:<22}{middle * 1000:7.0f} ms   {middle / base:5.1f} x")


if __name__ == "__main__":
    main()
