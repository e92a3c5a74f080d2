"""Stands for the process of one task: records states by which it is judged right, and tells the events of a run.

With the word "wrong" in the sentence, nothing changed; with "hold", it waits until a file `go` is beside its runs. With
"broken", the environment fails as long as there is no file `mended`.
"""

import json
import os
import sys
import time
from pathlib import Path

from agent.evals.tasks.judge import State
from agent.evals.tasks.task_files import read_eval_tasks
from agent.evals.tasks.work import STATES, States

words = dict(word.lstrip("-").split("=", 1) for word in sys.argv if "=" in word and word.startswith("--"))
runs, name, sentence = Path(words["runs"]), words["eval-id"], sys.argv[-1]
_, task = read_eval_tasks(map(Path, words["eval-files"].split(os.pathsep)))[name]
assert task.digest == words["eval-digest"]
runs.mkdir(parents=True, exist_ok=True)
with (runs / "begun").open("a") as begun:
    begun.write(f"{name}\n")
while "hold" in sentence and not (runs / "go").exists():
    time.sleep(0.02)
bundle = runs / f"{name}-{os.getpid()}"
bundle.mkdir()
print(json.dumps({"event": "RunStarted", "bundle": str(bundle)}), flush=True)
status = 3 if "broken" in sentence and not (runs / "mended").exists() else 0
((wanted, value),) = task.expect.settings.items()
after = State(settings={} if "wrong" in sentence else {wanted: str(value)})
states = States(task=task, home="/home/me", before=State(), after=after, step_s=[1.5], decide_s=[0.5])
(bundle / STATES).write_text(states.model_dump_json(exclude_defaults=True))
print(json.dumps({
    "event": "RunFinished", "outcome": "done", "status": status, "message": "Done.", "steps": 2, "seconds": 3.0,
    "verified": True, "usage": {"prompt": 10, "completion": 2},
}), flush=True)  # fmt: skip
sys.exit(status)
