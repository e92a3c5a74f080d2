"""Releases the buttons that a process held that was killed: see `input.py`.

    python releaser_process.py SOCKET NOTES

Standard input holds a line for each button that goes down (+272) or comes up (-272), and ends with that process.
"""

import sys
from pathlib import Path


def main() -> None:
    """Listen until the other end is closed, and release what is still down then."""
    down: set[int] = set()
    for line in sys.stdin:
        button = int(line[1:])
        (down.add if line[0] == "+" else down.discard)(button)
    if down:
        sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
        from agent.desktop.wlroots.input import release_buttons

        release_buttons(sys.argv[1], sorted(down))
    Path(sys.argv[2]).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
