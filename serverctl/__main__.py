"""`python -m serverctl` is `mai-server`."""

import sys

from serverctl.cli import main

sys.exit(main())
