"""Starts `mai-agent eval tasks` with a fake process for each task."""

import sys
from pathlib import Path

from agent.cli import main
from agent.commands.models import eval_tasks
from agent.fleet import process

eval_tasks.PROGRAM = (sys.executable, str(Path(__file__).with_name("fake_task.py")))
process.GRACE_S = 1.0
sys.exit(main(["eval", "tasks", *sys.argv[1:]]))
