"""How often typed text arrives as it is, in each toolkit and application: a matrix, judged by what they hold then.

python scripts/bench/text_entry.py --tries 5 --load 2
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments
from stubs.sandbox_hand import sandbox_hand
from stubs.typing_fields import CHROMIUM, COMMANDS, Fields
from stubs.typing_situations import APPLICATIONS, SITUATIONS, type_in

from agent.desktop.input.hand import InputHand
from agent.sandbox.desktop import SandboxSpec, start_sandbox


def main() -> int:
    """Print the matrix; 0 when all of it is right."""
    parser = arguments(__doc__)
    parser.add_argument("--tries", type=int, default=5, help="of each (default: 5)")
    parser.add_argument("--load", type=int, default=0, help="processes that do nothing but keep the processors busy")
    parser.add_argument("--only", default="", help="rows whose names have this in them")
    given = parser.parse_args()
    rows = [name for name in (*COMMANDS, CHROMIUM, *APPLICATIONS) if given.only.casefold() in name.casefold()]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.load)]
    sandbox = start_sandbox(SandboxSpec())
    wrong: list[str] = []
    try:
        sandbox.applied()
        hand = sandbox_hand(sandbox.environ)
        for row in rows:
            began, before = time.monotonic(), len(wrong)
            with tempfile.TemporaryDirectory(dir=sandbox.environ["HOME"], ignore_cleanup_errors=True) as folder:
                try:
                    count = _row(row, hand, sandbox.environ, Path(folder), given.tries, wrong)
                except Exception as error:  # it did not even start: the others are tried all the same
                    print(f"{row:34} not tried: {error!r}", flush=True)
                    continue
            right = count - (len(wrong) - before)
            print(f"{row:34} {right:4} of {count:4} right   {time.monotonic() - began:6.1f} s", flush=True)
        hand.close()
    finally:
        sandbox.close()
        for process in busy:
            process.kill()
            process.wait()
    print(*wrong, sep="\n")
    return bool(wrong)


def _row(
    row: str, hand: InputHand, environ: dict[str, str], folder: Path, tries: int, wrong: list[str]
) -> int:  # fmt: skip
    """Try a toolkit in all situations, or an application; how often."""
    if row in APPLICATIONS:
        use, wanted = APPLICATIONS[row]
        for number in range(tries):
            place = folder / str(number)
            place.mkdir()
            try:
                got = use(hand, environ, place)
            except Exception as error:  # what fails is a figure here, not the end
                got = repr(error)
            if got != wanted:
                wrong.append(f"{row}: {got[:100]!r}")
        return tries
    with Fields(row, environ, folder) as fields:
        time.sleep(0.5)
        for name, situation in SITUATIONS.items():
            for _ in range(tries):
                try:
                    what = type_in(hand, fields, situation, environ)
                except Exception as error:  # the same
                    what = repr(error)
                if what:
                    wrong.append(f"{row}, {name}: {what}")
    return tries * len(SITUATIONS)


if __name__ == "__main__":
    sys.exit(main())
