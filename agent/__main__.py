"""`python -m agent` is `mai-agent`."""

import sys

from agent.cli import main

if __name__ == "__main__":
    sys.exit(main())
