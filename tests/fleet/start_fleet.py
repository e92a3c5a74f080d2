"""Starts `mai-agent fleet` with a fake program in place of `mai-agent run`."""

import sys
from pathlib import Path

from agent.cli import main
from agent.commands import fleet
from agent.fleet import process

fleet.PROGRAM = (sys.executable, str(Path(__file__).with_name("fake_agent.py")))
process.GRACE_S = 1.0
sys.exit(main(["fleet", *sys.argv[1:]]))
