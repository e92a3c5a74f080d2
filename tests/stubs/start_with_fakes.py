"""Starts `mai-agent fleet` or `mai-agent eval tasks` with a fake program in place of each run."""

import sys
from pathlib import Path

from agent.cli import main
from agent.commands import fleet
from agent.commands.models import eval_tasks
from agent.fleet import process

TESTS = Path(__file__).parents[1]

fleet.PROGRAM = (sys.executable, str(TESTS / "fleet/fake_agent.py"))
eval_tasks.PROGRAM = (sys.executable, str(TESTS / "evals/fake_task.py"))
process.GRACE_S = 1.0
sys.exit(main(sys.argv[1:]))
