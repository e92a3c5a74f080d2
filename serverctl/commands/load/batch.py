"""`mai-server batch`: many screenshots and instructions from a file, answers into a file."""

import argparse
import asyncio
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from foundation.command_line import Parser
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.printing import counted, put_json, remark
from serverctl.commands.endpoint_options import add_target, chosen_target
from serverctl.commands.progress import BarProgress
from serverctl.load.client import MOST_CONNECTIONS, Endpoint, connect

if TYPE_CHECKING:  # these modules import pydantic, which --help does not need
    from serverctl.load.batch.run import AnswersFile, Batch, Outcome

#: Seconds that requests under way have after the first Ctrl-C.
_FINISH_S = 30.0

_DESCRIPTION = """Ask a model about many screenshots. REQUESTS has one JSON object a line:

  {"id": "a1", "image": "shots/1.png", "instruction": "Where is the Save button?"}

image is a path (relative to REQUESTS), a data: URL, or a list of them. Optional: id (default: the line's number),
system, max_tokens, temperature, schema (JSON schema of the answer) or regex; messages (a whole chat in OpenAI's format)
instead of image and instruction. Other fields are left alone.

The answers file gets one line for each, in the order in which they are done:

  {"id": "a1", "ok": true, "text": "...", "finish_reason": "stop", "usage": {...}, "seconds": 1.2}
  {"id": "a2", "ok": false, "error": {"kind": "image", "message": "..."}}

The whole file is checked before anything is sent. After a stop, a crash or failures, the same command goes on:
answered requests are skipped, failed ones are sent again."""

_EXAMPLES = """examples:
  mai-server batch requests.jsonl                              the running server, into requests.answers.jsonl
  mai-server batch requests.jsonl --out answers.jsonl --concurrency 64
  mai-server batch requests.jsonl --endpoint 127.0.0.1:8000 --model MAI-UI-8B

Exit status: 0 all have an answer, 1 some failed, 2 usage (broken lines, for example), 3 no server, 130 stopped."""


class AnswerProgress(BarProgress):
    """The answers of a batch, their rate and the time left."""

    _first = 0.0  # when the first request ended; excluded from the rate, because it includes warm-up

    def update(self, outcome: "Outcome") -> None:
        """Show how far the batch is."""
        done = outcome.answered + outcome.failed
        if done == 0:
            before = f", {outcome.before} of them answered before" if outcome.before else ""
            self.show(
                "", f"answers{before}", outcome.before, outcome.total, f"{counted(outcome.total, 'request')}{before}"
            )
            return
        now = time.monotonic()
        self._first = self._first or now
        parts = [f"{outcome.failed} failed"] if outcome.failed else []
        if done > 1 and now > self._first:
            rate = (done - 1) / (now - self._first)
            left = timedelta(seconds=round((outcome.total - outcome.before - done) / rate))
            parts.append(f"{rate:.2f} a second, about {left} left")
        reached = outcome.before + done
        line = ", ".join([f"{reached} of {outcome.total}", *parts])
        self.show("", ", ".join(["answers", *parts]), reached, outcome.total, line)


def main(arguments: list[str]) -> int:
    """Answer the requests that have no answer yet."""
    options = _parser().parse_args(arguments)
    _check(options)
    from serverctl.load.batch.lines import index_requests
    from serverctl.load.batch.run import AnswersFile

    path: Path = options.requests
    out: Path = options.out or path.with_suffix(".answers.jsonl")
    if out.exists() and path.exists() and out.samefile(path):
        raise UsageError("--out is the file with the requests.", "Name another one.")
    ids = index_requests(path)
    began = time.monotonic()
    with AnswersFile(out) as answers, AnswerProgress(program="mai-server batch") as progress:
        outcome = _answer_all(options, ids, answers, progress)
    return _finish(outcome, out, time.monotonic() - began, as_json=options.json)


def _parser() -> Parser:
    parser = Parser("mai-server batch", description=_DESCRIPTION, epilog=_EXAMPLES)
    add = parser.add_argument
    add("requests", metavar="REQUESTS", type=Path, help="the requests, one JSON object a line")
    add("--out", metavar="FILE", type=Path, help="the answers (default: REQUESTS with .answers.jsonl)")
    add("--concurrency", metavar="N", type=int, default=32, help="requests under way at once (default %(default)s)")
    add("--json", action="store_true", help="print a summary as JSON at the end")
    add = parser.add_argument_group("for lines that do not say").add_argument
    add("--system", metavar="TEXT", help="the system text (default: none)")
    # 2048 is the limit of MAI-UI's own client.
    add("--max-tokens", metavar="N", type=int, default=2048, help="limit of an answer (default %(default)s)")
    add("--temperature", metavar="T", type=float, default=0, help="0 for the same answer every time (default 0)")
    add_target(parser)
    add = parser.add_argument_group("patience").add_argument
    add("--retries", metavar="N", type=int, default=5, help="after lost connections and full servers (default 5)")
    add("--timeout", metavar="S", type=float, default=600, help="longest wait for one answer (default 600)")
    return parser


def _check(options: argparse.Namespace) -> None:
    for name, least, most in (
        ("concurrency", 1, MOST_CONNECTIONS),
        ("max_tokens", 1, 10_000_000),
        ("temperature", 0, 2),
        ("retries", 0, 100),
        ("timeout", 1, 1_000_000),
    ):
        value = getattr(options, name)
        if not least <= value <= most:
            raise UsageError(f"--{name.replace('_', '-')} cannot be {value}.", f"It is {least} to {most}.")


def _answer_all(
    options: argparse.Namespace, ids: dict[int, str], answers: "AnswersFile", progress: AnswerProgress
) -> "Outcome":
    """Send the requests to the server that the options name."""
    from serverctl.load.batch.run import Batch

    defaults = {name: getattr(options, name) for name in ("system", "max_tokens", "temperature")}
    batch = Batch(options.requests, ids, answers, defaults, progress.update)
    if not batch.todo:  # no server is needed
        batch.begin()
        return batch.outcome
    target = chosen_target(options)
    if not target.is_local:
        progress.say(f"Images and instructions go to {target.base_url}, which is not this machine.")
    return asyncio.run(_run(batch, progress, target, options))


async def _run(batch: "Batch", shown: AnswerProgress, target: Endpoint, options: argparse.Namespace) -> "Outcome":
    """Run the batch; the first Ctrl-C lets running requests finish, the second one gives them up."""
    from serverctl.load.batch.run import Asker

    soon, now = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if soon.is_set():
            now.set()
            return
        soon.set()
        loop.call_later(_FINISH_S, now.set)
        shown.say("Stopping: what is under way is finished; Ctrl-C again gives it up.")

    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, now.set)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores SIGHUP; keep that
        loop.add_signal_handler(signal.SIGHUP, now.set)
    try:
        async with connect(target, options.timeout) as client:
            batch.begin()
            asker = Asker(client, target, options.retries, shown.say)
            return await batch.run(asker, options.concurrency, soon, now)
    except MaiError:
        done = batch.outcome
        shown.say(f"{done.before + done.answered} of {done.total} have an answer.")
        raise


def _finish(outcome: "Outcome", out: Path, seconds: float, *, as_json: bool) -> int:
    answered = outcome.before + outcome.answered
    if as_json:
        document = {
            "requests": outcome.total,
            "answered_before": outcome.before,
            "answered": outcome.answered,
            "cut_off": outcome.cut_off,
            "failed": outcome.failed,
            "errors": dict(outcome.errors),
            "stopped": outcome.stopped,
            "seconds": round(seconds, 3),
            "out": str(out),
        }
        put_json(document)
    if outcome.cut_off:
        _say(f"{outcome.cut_off} answers were cut off by the token limit (finish_reason length); see --max-tokens.")
    if outcome.stopped:
        _say(f"Stopped: {answered} of {outcome.total} have an answer, in {out}. The same command goes on.")
        return ExitStatus.STOPPED
    if outcome.failed:
        kinds = ", ".join(f"{count} {kind}" for kind, count in outcome.errors.most_common())
        _say(f"{outcome.failed} of {outcome.total} failed ({kinds}); the same command tries them again. See {out}.")
        return ExitStatus.NOT_DONE
    _say(f"All {outcome.total} have an answer, in {out}.")
    return ExitStatus.DONE


def _say(text: str) -> None:
    remark(f"mai-server batch: {text}")
