"""Releases the mouse buttons that a killed process held; started by `input.py`.

    python releaser_process.py SOCKET

Standard input gets a line for each button that goes down (+272) or comes up (-272). The input ends when the
process that holds the buttons ends.
"""

import sys
from pathlib import Path


def main() -> None:
    """Track buttons until standard input ends, then release those that are still down."""
    down: set[int] = set()
    for line in sys.stdin:
        button = int(line[1:])
        (down.add if line[0] == "+" else down.discard)(button)
    if down:
        sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
        from agent.desktop.wlroots.input import release_buttons

        release_buttons(sys.argv[1], sorted(down))


if __name__ == "__main__":
    main()
