"""Counts what a fleet's runs do, for Prometheus.

Every number comes from the events of the runs and from their results, so a fleet on a Ray cluster is counted alike.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from typing_extensions import override

from agent.fleet.fleet import Lines
from agent.fleet.tasks import Result, Task
from foundation.errors import EnvironmentLacksError

#: Upper bounds in seconds: of a stage of a step (fitting takes 1 ms, a model on a processor a minute), and of a run.
_STAGE_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_RUN_S = (5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


class Metrics(Lines):
    """Counts, and passes everything on to another view. The numbers are served on 127.0.0.1 only.

    `waiting`: how many tasks are still to be done.
    """

    def __init__(self, view: Lines, port: int, waiting: int) -> None:
        self._view = view
        self._port = port
        self.registry = registry = CollectorRegistry()
        self._runs = Counter("mai_agent_runs", "Runs that ended, by outcome.", ["outcome"], registry=registry)
        self._again = Counter("mai_agent_retries", "Runs that are repeated: the environment failed.", registry=registry)
        self._steps = Counter("mai_agent_steps", "Steps that ended.", registry=registry)
        self._failures = Counter("mai_agent_failed_actions", "Actions that failed or missed.", registry=registry)
        self._tokens = Counter(
            "mai_agent_tokens", "Tokens, by kind: prompt, completion, cached (part of prompt).", ["kind"],
            registry=registry,
        )  # fmt: skip
        self._stages = Histogram(
            "mai_agent_stage_seconds", "A stage of a step; “model” is from the request to its whole answer.", ["stage"],
            buckets=_STAGE_S, registry=registry,
        )  # fmt: skip
        self._seconds = Histogram("mai_agent_run_seconds", "A whole run.", buckets=_RUN_S, registry=registry)
        self._going = Gauge("mai_agent_runs_going", "Runs that go on now.", registry=registry)
        self._waiting = Gauge("mai_agent_tasks_waiting", "Tasks that no slot has taken yet.", registry=registry)
        self._waiting.set(waiting)

    @override
    @contextmanager
    def shown(self) -> Iterator[None]:
        """Serve the numbers, and show the other view. Raises EnvironmentLacksError: the port cannot be used."""
        try:
            server, thread = start_http_server(self._port, "127.0.0.1", self.registry)
        except OSError as error:
            raise EnvironmentLacksError(
                f"Port {self._port} cannot be used ({error.strerror}).", "Name another one with --metrics."
            ) from error
        try:
            with self._view.shown():
                yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    @override
    def started(self, task: Task, tries: int) -> None:
        self._going.inc()
        if tries == 1:
            self._waiting.dec()
        self._view.started(task, tries)

    @override
    def event(self, task: Task, event: dict[str, Any]) -> None:
        with suppress(AttributeError, TypeError, ValueError):  # a program that is not ours may write anything
            self._count(event)
        self._view.event(task, event)

    def _count(self, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "Acted":
                self._failures.inc(event.get("error") is not None)
            case "StepFinished":
                self._steps.inc()
            case "Decided":
                for kind, count in event.get("usage", {}).items():
                    self._tokens.labels(kind).inc(count or 0)
        if event.get("event") not in ("Observed", "Decided", "StepFinished"):
            return  # an action's time is the stage "act" of its step
        for stage, milliseconds in event.get("milliseconds", {}).items():
            self._stages.labels(stage).observe(milliseconds / 1000)

    @override
    def finished(self, result: Result, *, again: bool) -> None:
        self._going.dec()
        if again:
            self._again.inc()
        else:
            self._runs.labels(result.outcome).inc()
            self._seconds.observe(result.seconds)
        self._view.finished(result, again=again)

    @override
    def summary(self, counts: dict[str, Any]) -> None:
        self._view.summary(counts)
