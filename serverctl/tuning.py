"""Tunes a server: observes or generates a load, tries changed settings with restarts, and keeps improvements."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from foundation.errors import MaiError
from foundation.printing import counted
from foundation.processes import signals_raise
from serverctl.load.bench.measure import measure
from serverctl.load.bench.report import Report
from serverctl.load.bench.workload import Workload
from serverctl.load.client import OURS, Endpoint
from serverctl.load.tune.advice import Advice, Reading
from serverctl.load.tune.bottleneck import enough, limits
from serverctl.load.tune.trial import Verdict, judge, workload_like
from serverctl.load.window import Snapshot, Window, last_load, since_start, snapshot_of
from serverctl.planning import keep_adjustments
from serverctl.process import control, probe
from serverctl.process.load_record import read_record
from serverctl.process.request import ServerRequest, prepare
from serverctl.process.state import Folder, State, current_state

#: Interval between two snapshots of a load, seconds.
_LOOK_EVERY = 0.5
#: Longest observation of a current load, while too few of its requests have ended, seconds.
_MOST_WATCH_S = 60.0
#: Maximum number of changes to try: each needs a restart and a benchmark.
_MOST_TRIES = 2


def observe(
    server: Endpoint,
    load: int | None,
    seconds: float,
    say: Callable[[str], None] = lambda _: None,
    screen: tuple[int, int] = (1920, 1080),
    state: State | None = None,
) -> Window | None:
    """Return the load to judge; None if the server reports no metrics.

    The load is, in this order: `load` generated requests at once, the current load, the last recorded load of our own
    server, which has a `state`, or everything since the start. Raises MaiError if the load cannot be generated.
    """
    now = snapshot_of(server)
    if now is None:
        return None
    with _looking(server) as seen:
        if load is not None:
            say(f"making a load of {counted(load, 'request')} at once ...")
            _bench(server, _own_load(screen, load))
        elif now.busy:
            say(f"watching the load for {seconds:.0f} s ...")
            _watch(seen, seconds)
    seen = [now, *seen]
    own = last_load(seen)
    if state is None or load is not None or enough(own):
        return own or since_start(seen[-1])  # an earlier load may be of another kind
    # Skip later records: they overlap with `seen`, so that counters would seem to fall.
    recorded = [one for one in read_record(Folder(state.name)) if (state.ready_at or 0) <= one.at < now.at]
    return last_load([*recorded, *seen]) or since_start(seen[-1])


def _watch(live: Sequence[Snapshot], seconds: float) -> None:
    """Wait for `seconds`, or longer if too few requests have ended."""
    end, latest = time.monotonic() + seconds, time.monotonic() + max(seconds, _MOST_WATCH_S)
    while (now := time.monotonic()) < latest:
        if now >= end and (not live or not live[-1].busy or enough(last_load(live))):
            return
        time.sleep(_LOOK_EVERY)


def _own_load(screen: tuple[int, int], clients: int) -> Workload:
    """Return a workload like an agent's: a new screenshot of the screen, some history, an action."""
    bounds = limits("trial")
    requests = max(bounds["least_requests"], bounds["requests_per_client"] * clients)
    return Workload(
        sizes=(screen,), requests=min(requests, 4 * bounds["most_requests"]), concurrency=(clients,),
        max_tokens=64, text_tokens=800, cache="cold",
    )  # fmt: skip


@contextmanager
def _looking(server: Endpoint) -> Iterator[list[Snapshot]]:
    """Take snapshots of a server during a block; the list is complete afterwards."""
    seen: list[Snapshot] = []
    over = threading.Event()

    def look() -> None:
        while True:
            last = over.is_set()
            if (one := snapshot_of(server)) is not None:
                seen.append(one)
            if last:
                return
            over.wait(_LOOK_EVERY)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _bench(server: Endpoint, workload: Workload) -> Report:
    """Send a load. The door of our own server lets it in while it holds other requests."""
    ours = replace(server, headers={OURS: "1"})
    return asyncio.run(measure("server", ours, workload, max_seconds=limits("trial")["most_seconds"]))


@dataclass(frozen=True, slots=True)
class Change:
    """The server to tune, and how to restart it."""

    name: str  # of the server
    request: ServerRequest  # its current request
    wait: float  # for running requests, seconds
    force: bool  # whether running requests are aborted instead
    say: Callable[[str], None]  # receives a message for each step
    update: Callable[[State], None]  # receives the state of a starting server


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of one change."""

    advice: Advice
    verdict: Verdict
    before: Report | None = None  # None if nothing was measured
    after: Report | None = None

    def to_json(self) -> dict[str, Any]:
        """The result with its measurements as JSON values."""
        halves = {"before": self.before, "after": self.after}
        return {
            "setting": self.advice.setting, "value": self.advice.value, "was": self.advice.now,
            **self.verdict.to_json(),
            **{name: None if half is None else half.to_json() for name, half in halves.items()},
        }  # fmt: skip


def try_changes(change: Change, reading: Reading, wanted: Sequence[Advice]) -> list[Tried]:
    """Try changes in turn until one is better. The server then runs with that change, otherwise as before.

    Meanwhile clients' new requests wait at the server's door, so that only the trial's requests are measured and,
    without `force`, none aborted. After Ctrl-C the server is also restored, unless a change was better.

    Raises MaiError if running requests do not end in time (then nothing changed), or if the server cannot be restored.
    """
    assert reading.window is not None
    folder = Folder(change.name)
    state = current_state(folder)
    model = prepare(change.request, change.request.goal).plan.model
    large = reading.bottleneck.kind == "images"
    workload = workload_like(reading.window, model, change.request.goal.screen, reading.settings, large)
    tried: list[Tried] = []
    with signals_raise(KeyboardInterrupt), folder.restarting():
        _wait_empty(change, state)
        change.say(f"Measuring as it is: {counted(workload.requests, 'request')}, {workload.concurrency[0]} at once.")
        before = _bench(control.endpoint_of(state), workload)
        for advice in wanted[:_MOST_TRIES]:
            tried.append(_try(change, advice, before, workload))
            if tried[-1].verdict.better:
                break
    return tried


def _wait_empty(change: Change, state: State) -> None:
    """Wait until all clients' requests are answered. Raises MaiError after a timeout."""
    if change.force:
        return
    change.say("New requests wait from now on. Waiting for those that run.")
    end = time.monotonic() + change.wait
    while (left := probe.inside(control.endpoint_of(state))) != 0:  # also those that the engine does not have yet
        if time.monotonic() >= end:
            raise MaiError(
                f"Requests went on for {change.wait:.0f} s ({'?' if left is None else left} run now), "
                "so nothing was changed.",
                "Pause the clients, wait longer with --wait, or break requests off with --force.",
            )
        time.sleep(_LOOK_EVERY)


def _try(change: Change, advice: Advice, before: Report, workload: Workload) -> Tried:
    """Restart with one change and measure. Revert it if it is not better or anything fails."""
    kept = is_back = False
    try:
        change.say(f"Restarting with {advice.setting} = {advice.value}.")
        state = _restart(change, _changed(change.request, advice))
        is_back = state.refused is not None
        failure = control.refusal_of(state) or (None if control.as_ready(state) else control.failure_of(state))
        if failure is not None:
            return Tried(advice, Verdict(False, f"it did not start: {failure.what}", None), before)
        change.say("Measuring again.")
        try:
            after = _bench(control.endpoint_of(state), workload)
        except MaiError as error:
            return Tried(advice, Verdict(False, f"it could not be measured: {error.what}", None), before)
        verdict = judge(before, after)
        kept = verdict.better
        return Tried(advice, verdict, before, after)
    finally:
        if not kept:
            _forget(change.request)
        if not kept and not is_back:
            change.say("Going back.")
            control.ready(_restart(change, change.request))


def _changed(request: ServerRequest, advice: Advice) -> ServerRequest:
    """Return the request with one setting changed. A user setting remains a user setting, with the new value."""
    goal = request.goal
    if advice.setting in goal.overrides:
        return replace(request, goal=replace(goal, overrides={**goal.overrides, advice.setting: advice.value}))
    because = {advice.setting: f"tuned: {advice.because}"}
    return replace(request, goal=goal.adjusted({advice.setting: advice.value}, because))


def _restart(change: Change, request: ServerRequest) -> State:
    control.change(change.name, request)
    return control.wait_ready(change.name, change.update)


def _forget(request: ServerRequest) -> None:
    """Store the original adjustments, so that the next start does not use a reverted change."""
    with contextlib.suppress(MaiError):
        prepared = prepare(request, request.goal)
        keep_adjustments(prepared.plan, request.goal, prepared.capabilities.version)
