"""`mai-server batch`: many screenshots and instructions from a file, answers into a file."""

import argparse
import asyncio
import json
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from foundation.command_line import Parser
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.families import detect_family, family_names, image_rule
from foundation.printing import counted, put_json, remark
from foundation.processes import signals_raise
from serverctl.commands.endpoint_options import add_target, chosen_target
from serverctl.commands.progress import BarProgress
from serverctl.load.client import MOST_CONNECTIONS, Endpoint, ServerGoneError, connect

if TYPE_CHECKING:  # these modules import pydantic, which --help does not need
    from serverctl.load.batch.lines import Fit, Index
    from serverctl.load.batch.run import AnswersFile, Batch, Outcome

#: Seconds that requests under way have after the first Ctrl-C.
_FINISH_S = 30.0
#: If this program is killed, the server of --offline ends after this many seconds without a request.
_IDLE_S = 120.0
#: Seconds that a request of an offline batch may wait for its turn: a server on the CPU takes minutes per request.
_IN_QUEUE_S = 86_400.0

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
  mai-server batch requests.jsonl --max-pixels 2097152         screenshots made smaller before they are sent
  mai-server batch requests.jsonl --endpoint 127.0.0.1:8000 --model MAI-UI-8B
  mai-server batch requests.jsonl --offline --model MAI-UI-8B

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
    index = index_requests(path, keep_going=options.keep_going)
    began = time.monotonic()
    with AnswersFile(out) as answers, AnswerProgress(program="mai-server batch") as progress:
        outcome = _answer_all(options, index, answers, progress)
    return _finish(outcome, out, time.monotonic() - began, as_json=options.json)


def _parser() -> Parser:
    parser = Parser("mai-server batch", description=_DESCRIPTION, epilog=_EXAMPLES)
    add = parser.add_argument
    add("requests", metavar="REQUESTS", type=Path, help="the requests, one JSON object a line")
    add("--out", metavar="FILE", type=Path, help="the answers (default: REQUESTS with .answers.jsonl)")
    add("--concurrency", metavar="N", type=int, default=32, help="requests under way at once (default %(default)s)")
    add(
        "--keep-going",
        action="store_true",
        help="record broken lines as errors, with ids like “line 7”, instead of refusing the file",
    )
    add("--json", action="store_true", help="print a summary as JSON at the end")
    add = parser.add_argument_group("for lines that do not say").add_argument
    add("--system", metavar="TEXT", help="the system text (default: none)")
    # 2048 is the limit of MAI-UI's own client.
    add("--max-tokens", metavar="N", type=int, default=2048, help="limit of an answer (default %(default)s)")
    add("--temperature", metavar="T", type=float, default=0, help="0 for the same answer every time (default 0)")
    add = parser.add_argument_group("images").add_argument
    add("--max-pixels", metavar="N", type=int, help="make images fit the model's pixel grid, and this budget")
    add("--family", choices=family_names(), help="whose grid (default: found out from the model's name)")
    add_target(parser)
    add = parser.add_argument_group("patience").add_argument
    add("--retries", metavar="N", type=int, default=5, help="after lost connections and full servers (default 5)")
    add("--timeout", metavar="S", type=float, default=600, help="longest wait for one answer (default 600)")
    add = parser.add_argument_group("without a server").add_argument
    add("--offline", action="store_true", help="start vLLM's engine just for this batch")
    add("--python", metavar="FILE", help="the Python of an environment that has vLLM")
    add("--engine", metavar="JSON", default="{}", help="arguments of vLLM's LLM class, over the plan's")
    add("--chunk", metavar="N", type=int, default=64, help="requests given to the engine at once (default 64)")
    return parser


def _check(options: argparse.Namespace) -> None:
    for name, least, most in (
        ("concurrency", 1, MOST_CONNECTIONS),
        ("max_tokens", 1, 10_000_000),
        ("temperature", 0, 2),
        ("retries", 0, 100),
        ("timeout", 1, 1_000_000),
        ("chunk", 1, 100_000),
    ):
        value = getattr(options, name)
        if not least <= value <= most:
            raise UsageError(f"--{name.replace('_', '-')} cannot be {value}.", f"It is {least} to {most}.")
    if options.family is not None and options.max_pixels is None:
        raise UsageError("--family counts with --max-pixels only.", "Add --max-pixels N, or leave it out.")
    if not options.offline and (options.python is not None or options.engine != "{}"):
        raise UsageError("--python and --engine are for --offline.", "Add --offline, or leave them out.")
    if options.offline and (options.endpoint is not None or options.api_key is not None):
        raise UsageError("--offline asks no server, so there is no --endpoint.", "Leave one of them out.")


def _answer_all(
    options: argparse.Namespace, index: "Index", answers: "AnswersFile", progress: AnswerProgress
) -> "Outcome":
    """Send the requests to the server that the options name; with --offline, to a server for this batch alone."""
    from serverctl.load.batch.run import Batch

    defaults = {name: getattr(options, name) for name in ("system", "max_tokens", "temperature")}
    batch = Batch(options.requests, index, answers, defaults, progress.update)
    if not batch.todo:  # no server is needed
        batch.begin()
        return batch.outcome
    if options.offline:
        from serverctl.endpoint import served

        model, flags = _engine(options)
        batch.fit = _fit(options, model)
        server = served(
            "throughput", model, progress.say,
            purpose="batch", flags=flags, vllm_python=options.python, idle_seconds=_IDLE_S,
        )  # fmt: skip
        with signals_raise(KeyboardInterrupt), server as ready:
            own = Endpoint(ready.base_url, ready.api_key, ready.model)
            try:
                return asyncio.run(
                    _run(batch, progress, own, options, min(options.chunk, MOST_CONNECTIONS), _IN_QUEUE_S)
                )
            except ServerGoneError as error:
                raise ServerGoneError(
                    error.what,
                    f"`mai-server logs --name {ready.name}` says why. The same command then goes on.",
                ) from error
    target = chosen_target(options)
    batch.fit = _fit(options, target.model)
    if not target.is_local:
        progress.say(f"Images and instructions go to {target.base_url}, which is not this machine.")
    return asyncio.run(_run(batch, progress, target, options, options.concurrency, options.timeout))


async def _run(
    batch: "Batch",
    shown: AnswerProgress,
    target: Endpoint,
    options: argparse.Namespace,
    concurrency: int,
    timeout: float,
) -> "Outcome":
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
        async with connect(target, timeout) as client:
            batch.begin()
            asker = Asker(client, target, options.retries, shown.say)
            return await batch.run(asker, concurrency, soon, now)
    except MaiError:
        done = batch.outcome
        shown.say(f"{done.before + done.answered} of {done.total} have an answer.")
        raise


def _fit(options: argparse.Namespace, model: str) -> "Fit | None":
    """The function for the size of sent images. Raises UsageError if the model's grid is not known."""
    if options.max_pixels is None:
        return None
    family = options.family or detect_family(model)
    if family is None:
        raise UsageError(f"The name {model!r} does not tell the model's pixel grid.", "Name it with --family.")
    return image_rule(family).capped(options.max_pixels).fit


def _engine(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The model and vLLM's own flags of --engine. Raises UsageError."""
    example = "It looks like '{\"max_model_len\": 16384}'."
    try:
        own = json.loads(options.engine)
    except ValueError as error:
        raise UsageError(f"--engine is not JSON ({error}).", example) from error
    if not isinstance(own, dict):
        raise UsageError("--engine is not a JSON object.", example)
    model = options.model or own.get("model")
    if not isinstance(model, str):
        raise UsageError("--offline needs a model.", "Name it with --model: a folder, or a repository (org/name).")
    flags: list[str] = []
    for name, value in own.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif name != "model":
            flags += [f"--{flag}", value if isinstance(value, str) else json.dumps(value)]
    return model, flags


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
