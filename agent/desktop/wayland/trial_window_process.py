"""The window of a trial, as a program of its own: see `agent.desktop.trial.report`.

python trial_window_process.py NUMBER
"""

import os
import sys
from pathlib import Path


def main() -> None:
    """Show it until the other end says so."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from agent.desktop.trial.report import serve
    from agent.desktop.wayland.trial_window import WaylandWindow
    from agent.desktop.wayland.wire import socket_of

    serve(lambda pattern, copied, report: WaylandWindow(socket_of(os.environ), pattern, copied, report))


if __name__ == "__main__":
    main()
