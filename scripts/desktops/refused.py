"""Checks that a compositor which cannot be worked with is refused with status 3 and a sentence, by doctor and run."""

import subprocess
import sys

COMMANDS = (
    ["doctor"],
    ["doctor", "--try"],
    ["--engine", "literal", "--dry-run", 'click "OK"'],
    ["--desktop", "wlroots", 'click "OK"'],
)


def main() -> None:
    """Try each; SystemExit names what was said instead."""
    for command in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", "agent", *command], check=False, capture_output=True, text=True, timeout=120
        )
        said = f"{done.stdout}{done.stderr}"
        told = [line for line in said.splitlines() if "Wayland session whose compositor" in line]
        if done.returncode != 3 or len(told) != 1 or "Traceback" in said:
            raise SystemExit(f"{command}: status {done.returncode}: {said}")
        print(f"status 3: {told[0]}")


if __name__ == "__main__":
    main()
