"""The window of a trial, as a program of its own: see `agent.desktop.trial.report`.

python trial_window_process.py NUMBER
"""

import sys
from pathlib import Path


def main() -> None:
    """Show it until the other end says so."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from agent.desktop.trial.report import serve
    from agent.desktop.x11.trial_window import X11Window

    serve(X11Window)


if __name__ == "__main__":
    main()
