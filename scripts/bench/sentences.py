"""Says sentences to the literal engine on real desktops, and has the desktops' own state judge what came of it.

    python scripts/bench/sentences.py [--filter REGEX] [--class CLASS] [--repeat 3] [--json FILE] [--undo] [--keep]
    python scripts/bench/sentences.py --selfcheck      # is the judge right where the state was made by hand?

Every sentence gets a fresh sandbox; settings, files, windows, clipboard and controls are read before and after by the
desktop's own tools (scripts/bench/judging). A verdict is one of: right; right refusal; honest miss (it said so, and
nothing else changed); false unverified (it is so, but it was not told); harmful miss (something else changed); false
done (told as done, and it is not so, or something else changed). The runs' bundles are kept under --runs.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from common import ROOT
from judging.entries import CLASSES, BadEntryError, Entry, load
from judging.receipts import left_over, receipt_errors
from judging.state import Looker, State
from judging.verdicts import GOOD, VERDICTS, Judgement, judge, lacking

HERE = Path(__file__).with_name("sentences")
_START = threading.Lock()  # starting a sandbox changes this process's environment for a moment


@dataclass
class Result:
    """One run of one sentence."""

    id: str
    cls: str
    say: str
    size: str
    language: str
    session: str
    verdict: str
    status: int | None = None
    message: str = ""
    missing: list[str] = field(default_factory=list)
    harm: list[str] = field(default_factory=list)
    receipt: list[str] = field(default_factory=list)
    undo: list[str] = field(default_factory=list)
    decide: list[float] = field(default_factory=list)  # seconds a step from looking to a decision
    step: list[float] = field(default_factory=list)  # seconds a step, acting and settling included
    seconds: float = 0.0
    bundle: str = ""

    @property
    def good(self) -> bool:
        return self.verdict in GOOD


class Desk:
    """A sandbox that one sentence is said on."""

    def __init__(self, entry: Entry) -> None:
        from agent.sandbox.desktop import start_sandbox

        self.entry = entry
        with _START:
            before = dict(os.environ)
            if entry.locale:
                os.environ |= {"LANG": entry.locale, "LANGUAGE": entry.locale.split(".")[0]}
            try:
                self.sandbox = start_sandbox(_spec(entry))
            finally:
                os.environ.clear()
                os.environ.update(before)
        self.environ = self.sandbox.environ | {"PYTHONPATH": str(ROOT)}
        self.looker = Looker(self.environ)

    def prepare(self) -> None:
        """Files, settings, applications, as the entry has them."""
        home = self.looker.home
        for name, text in self.entry.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(exist_ok=True) if name.endswith("/") else path.write_text(text)
        for name in self.entry.pages:
            shutil.copy(self.entry.folder / "pages" / name, home / name)
        for command in self.entry.setup:
            self.looker.run(command)
        for command in self.entry.open:
            shown = self._windows()
            self._spawn(command)
            if not _until(lambda shown=shown: self._windows() - shown, 25):
                raise RuntimeError(f"{command} showed no window")
            time.sleep(0.8)
        for command in self.entry.after:
            self.looker.run(command)
            time.sleep(0.3)
        self._settled()

    def pause(self) -> None:
        """Stop the processes that the entry wants hung."""
        for process in self._named(self.entry.paused):
            process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        for process in self._named(self.entry.paused):
            process.send_signal(signal.SIGCONT)

    def agent(self, *words: str, seconds: float = 150) -> tuple[int | None, str]:
        """Run mai-agent on this desktop; its exit status (None when it had to be ended) and what it printed."""
        command = [sys.executable, "-m", "agent", *words]
        program = subprocess.Popen(
            command, env=self.environ, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            out, _ = program.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            out, _ = program.communicate()
            return None, out.decode("utf-8", "replace")
        return program.returncode, out.decode("utf-8", "replace")

    def close(self) -> None:
        self.resume()
        self.sandbox.close()

    def _named(self, names: list[str]) -> list[Any]:
        from agent.sandbox.processes import marked

        return [process for process in marked(self.sandbox.name) if process.name() in names] if names else []

    def _windows(self) -> set[str]:
        return set(self.looker.run("wmctrl -l | cut -d' ' -f1").split())

    def _spawn(self, command: str) -> None:
        self.sandbox.start("bash", "-c", command)

    def _settled(self) -> None:
        """Wait until the settings and windows stay as they are: programs write some of theirs after their start."""
        last: Any = None
        for _ in range(12):
            time.sleep(0.4)
            state = self.looker.state([])
            now = (state.settings, state.windows)
            if now == last:
                return
            last = now


def _spec(entry: Entry) -> Any:
    from agent.core.geometry import Size
    from agent.sandbox.desktop import SandboxSpec

    known = {one.name for one in fields(SandboxSpec)}
    wanted = {"size": Size.parse(entry.size), "session": entry.session}
    if entry.locale and "locale" in known:
        wanted["locale"] = entry.locale
    return SandboxSpec(**wanted)


def _until(holds: Any, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (held := bool(holds())) and time.monotonic() < deadline:
        time.sleep(0.1)
    return held


def run(entry: Entry, options: argparse.Namespace) -> Result:
    """Say one sentence on a fresh desktop and judge what came of it."""
    result = Result(entry.id, entry.cls, entry.say, entry.size, entry.language, entry.session, "not judged")
    began = time.monotonic()
    try:
        desk = Desk(entry)
    except Exception as error:
        result.message = f"no desktop: {error}"
        return result
    try:
        desk.prepare()
        before = desk.looker.state(entry.watch)
        desk.pause()
        words = ["run", "--engine", "literal", "--approve", entry.approve, "--json", "--runs", str(options.runs)]
        result.status, out = desk.agent(*words, "--max-seconds", "120", entry.say)
        desk.resume()
        events = [json.loads(line) for line in out.splitlines() if line.startswith('{"event"')]
        _read(result, events, out)
        time.sleep(options.grace)
        after = desk.looker.state(entry.watch)
        judgement = judge(entry, 130 if result.status is None else result.status, before, after, desk.looker)
        _settle(result, judgement, entry)
        _check_receipt(result, events, before, after, desk)
        if options.undo and result.bundle:
            _check_undo(result, before, after, desk, options)
        if options.pictures and not result.good and result.bundle:
            desk.looker.run(f"import -window root {result.bundle}/after.png 2>/dev/null")
        if options.keep and not result.good:
            desk.sandbox.spec = _kept(desk.sandbox.spec)
    except Exception as error:
        result.message = f"{type(error).__name__}: {error}"
    finally:
        result.seconds = time.monotonic() - began
        desk.close()
    return result


def _settle(result: Result, judgement: Judgement, entry: Entry) -> None:
    result.verdict, result.missing, result.harm = judgement.verdict, judgement.missing, judgement.harm
    if entry.slow and result.decide and max(result.decide) > entry.slow:
        result.missing.append(f"a decision took {max(result.decide):.2f} s, longer than {entry.slow}")


def _kept(spec: Any) -> Any:
    from dataclasses import replace

    return replace(spec, keep=True)


def _read(result: Result, events: list[dict[str, Any]], out: str) -> None:
    """What the run told of itself."""
    looked = 0.0
    previous = 0.0
    for event in events:
        at = _seconds(event["at"])
        match event["event"]:
            case "RunStarted":
                result.bundle = event["bundle"]
                previous = at
            case "Observed":
                looked = sum(event["milliseconds"].values())
            case "Decided":
                result.decide.append(
                    (looked + sum(event["milliseconds"].get(name, 0) for name in ("prompt", "model", "parse", "map")))
                    / 1000
                )
            case "StepFinished":
                result.step.append(at - previous)
                previous = at
            case "RunFinished":
                result.message = event["message"] or ""
    if not events:
        result.message = out.strip()[-400:]


def _seconds(at: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(at).timestamp()


def _check_receipt(result: Result, events: list[dict[str, Any]], before: State, after: State, desk: Desk) -> None:
    receipts = [event for event in events if event["event"] == "Receipt"]
    if receipts:
        result.receipt = receipt_errors(receipts[-1]["changes"], before, after, str(desk.looker.home))


def _check_undo(result: Result, before: State, after: State, desk: Desk, options: argparse.Namespace) -> None:
    if not left_over(before, after):
        return
    status, out = desk.agent("undo", Path(result.bundle).name, "--yes", "--runs", str(options.runs), seconds=60)
    time.sleep(1)
    left = left_over(before, desk.looker.state([]))
    if left or status != 0:
        result.undo = [f"undo ended with status {status}: {out.strip()[-300:]}", *left]


def selfcheck(entry: Entry) -> Result:
    """Bring about by hand what an entry expects, and see whether the judge agrees; and that it did not hold before."""
    result = Result(entry.id, entry.cls, entry.say, entry.size, entry.language, entry.session, "not judged")
    commands = entry.by_hand or _by_gsettings(entry)
    if not commands:
        result.message = "nothing to do by hand"
        return result
    desk = Desk(entry)
    try:
        desk.prepare()
        before = desk.looker.state(entry.watch)
        held = not lacking(entry, before, desk.looker)
        for command in commands:
            desk.looker.run(command)
            time.sleep(0.5)
        time.sleep(1)
        judgement = judge(entry, 0, before, desk.looker.state(entry.watch), desk.looker)
        result.verdict, result.missing, result.harm = judgement.verdict, judgement.missing, judgement.harm
        result.message = "it held before" if held else ""
    finally:
        desk.close()
    return result


def _by_gsettings(entry: Entry) -> list[str]:
    """Commands that set what an entry expects of GSettings, which knows its keys and their kinds."""
    commands = []
    for name, wanted in entry.expect.settings.items():
        kind, _, rest = name.partition(" ")
        value = wanted[-1] if isinstance(wanted, list) else wanted
        if kind == "gsettings" and not value.startswith("/"):
            commands.append(f"gsettings set {rest} {shlex.quote(value)}")
    return commands


def table(results: list[Result], of: str) -> str:
    """Verdicts by a property of the results, as lines of text."""
    groups: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[getattr(result, of)].append(result)
    lines = [f"{of:16} runs  good   " + "  ".join(VERDICTS)]
    for name, some in [*sorted(groups.items()), *([("all", results)] if len(groups) > 1 else [])]:
        counts = Counter(result.verdict for result in some)
        good = sum(result.good for result in some)
        cells = "  ".join(f"{counts[verdict] or '':>{len(verdict)}}" for verdict in VERDICTS)
        lines.append(f"{CLASSES.get(name, name):16} {len(some):4}  {100 * good / len(some):3.0f} %  {cells}")
    return "\n".join(lines)


def summary(results: list[Result]) -> str:
    """All tables, and the times."""
    lines = [table(results, of) + "\n" for of in ("cls", "size", "language")]
    decided = [seconds for result in results for seconds in result.decide]
    stepped = [seconds for result in results for seconds in result.step]
    if decided and stepped:
        lines.append(
            f"median of a step: {statistics.median(decided):.2f} s from look to decision, "
            f"{statistics.median(stepped):.2f} s whole"
        )
    wrong = [result for result in results if result.receipt]
    undone = [result for result in results if result.undo]
    lines.append(
        f"receipts that differ from the snapshots: {len(wrong)}; runs that undo did not take back: {len(undone)}"
    )
    return "\n".join(lines)


def told(result: Result) -> str:
    """A result as lines for a person."""
    lines = [
        f"{result.verdict.upper() if not result.good else result.verdict:18} {result.id}  [{result.seconds:.0f} s]"
    ]
    if not result.good:
        lines.append(f"    said: {result.say}")
        lines.append(f"    status {result.status}: {result.message[:300]}")
        lines += [f"    lacks: {line}" for line in result.missing[:6]]
        lines += [f"    harm: {line}" for line in result.harm[:6]]
        lines += [f"    bundle: {result.bundle}"] if result.bundle else []
    lines += [f"    receipt {line}" for line in result.receipt[:6]]
    lines += [f"    undo {line}" for line in result.undo[:6]]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="entries (default: all that lie beside this script)")
    parser.add_argument("--filter", default="", help="only ids or sentences that this regular expression finds")
    parser.add_argument(
        "--class", dest="cls", choices=CLASSES, action="append", help="only this class (may be repeated)"
    )
    parser.add_argument("--size", help="on desktops of this size, whatever the entries say")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth entry")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=1, help="sandboxes at a time")
    parser.add_argument(
        "--grace", type=float, default=1.0, help="seconds between the end of a run and the look at the state"
    )
    parser.add_argument("--undo", action="store_true", help="undo every run that changed something, and compare again")
    parser.add_argument("--keep", action="store_true", help="leave the sandboxes of failures running")
    parser.add_argument("--pictures", action="store_true", help="keep a picture of the screen after failures")
    parser.add_argument("--selfcheck", action="store_true", help="judge what `by_hand` does, without the agent")
    parser.add_argument("--list", action="store_true", help="print the entries")
    parser.add_argument("--runs", type=Path, default=Path("/tmp/sentences-runs"), help="folder of the bundles")
    parser.add_argument("--json", type=Path, help="write all results there")
    options = parser.parse_args()
    try:
        entries = load(options.files or sorted(HERE.glob("*.toml")))
    except BadEntryError as error:
        sys.exit(str(error))
    entries = [entry for entry in entries if re.search(options.filter, f"{entry.id} {entry.say}")]
    entries = [entry for entry in entries if not options.cls or entry.cls in options.cls][:: options.every]
    if options.size:
        entries = [
            Entry(**{one.name: getattr(entry, one.name) for one in fields(Entry)} | {"size": options.size})
            for entry in entries
        ]
    if options.list:
        for entry in entries:
            print(f"{entry.cls:15} {entry.language} {entry.id:40} {entry.say}")
        print(dict(Counter(entry.cls for entry in entries)), len(entries))
        return
    if options.selfcheck:
        entries = [entry for entry in entries if entry.by_hand or _by_gsettings(entry)]
    options.runs.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []

    def work(entry: Entry) -> None:
        result = selfcheck(entry) if options.selfcheck else run(entry, options)
        results.append(result)
        print(told(result), flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(one) for one in results], indent=1))

    with ThreadPoolExecutor(options.parallel) as pool, suppress(KeyboardInterrupt):
        list(pool.map(work, [entry for entry in entries for _ in range(options.repeat)]))
    print(summary(results))


if __name__ == "__main__":
    main()
