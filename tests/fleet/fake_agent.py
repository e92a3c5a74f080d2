"""Stands for `mai-agent run`: ends as its instruction says, and appends a line to `begun` in the folder of its runs."""

import json
import os
import signal
import sys
import time
from pathlib import Path


def tell(event: str, **fields: object) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


runs = Path(next(word.removeprefix("--runs=") for word in sys.argv if word.startswith("--runs=")))
runs.mkdir(parents=True, exist_ok=True)
instruction = sys.argv[-1]
with (runs / "begun").open("a") as begun:
    begun.write(f"{json.dumps([os.getpid(), instruction, sys.argv[1:-2]])}\n")
print("no event of ours", flush=True)
bundle = runs / instruction.split()[0]
(bundle / "screens").mkdir(parents=True, exist_ok=True)
(bundle / "screens/0001.png").write_bytes(instruction.encode())
tell("RunStarted", bundle=str(bundle))
tell("Observed", step=1, milliseconds={"capture": 2.0, "fit": 4.0})
tell("Decided", step=1, usage={"prompt": 100, "completion": 20, "cached": None}, milliseconds={"model": 700.0})
tell("Acted", step=1, detail="clicked", error=None, milliseconds=30.0)
tell("StepFinished", step=1, milliseconds={"act": 30.0})
match instruction.split():
    case ["crash", *_]:
        sys.stderr.write("Segmentation fault\n")
        os.kill(os.getpid(), signal.SIGKILL)
    case ["hold", *_]:  # until somebody ends it
        while True:
            time.sleep(60)
    case [_, "until", gate]:
        while not Path(gate).exists():
            time.sleep(0.05)
    case ["stubborn", *_]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tell("Acted", step=2, detail="ignores SIGTERM", error=None)
        while True:
            time.sleep(60)
    case ["usage", *_]:
        sys.stderr.write("mai-agent: That is wrong.\n")
        sys.exit(2)
    case ["leak", *_] if os.fork() == 0:  # a program that keeps the run's output open
        time.sleep(300)
    case ["leak", *_]:
        os._exit(0)
outcome, status = {"lost": ("gave_up", 1), "nothing": ("failed", 3)}.get(instruction.split()[0], ("done", 0))
usage = {"prompt": 100, "completion": 20, "cached": None}
tell("RunFinished", outcome=outcome, status=status, message=f"It is {outcome}.", steps=2, seconds=3.0, usage=usage,
     verified=status == 0)  # fmt: skip
if instruction.startswith("lingers"):  # it tells its end, and does not end
    time.sleep(300)
sys.exit(status)
