"""Sends a run as a trace to an OpenTelemetry collector: spans of the run, its steps, and what each step did.

Names follow OpenTelemetry's conventions for generative AI. Spans hold names, counts and times, but no text of the
instruction, the screen or the answers. A trace is sent once, when the run is over.
"""

import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from agent import __version__
from agent.core.actions import to_json as action_json
from agent.events.run_events import (
    Acted,
    ApprovalGiven,
    Consulted,
    Decided,
    Event,
    Observed,
    RunFinished,
    RunStarted,
    StepFinished,
)
from foundation.endpoints import normalize_url
from foundation.errors import EnvironmentLacksError, ExitStatus

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Span

#: Timeout of sending, in seconds. The run is over by then, but the program waits.
_SENT_WITHIN = 3.0


class RunTrace:
    """The trace of one run, which is given the run's events.

    `url` is the collector's (OTLP over HTTP), such as http://127.0.0.1:4318; `tell` is called with a sentence if the
    trace cannot be sent. Raises EnvironmentLacksError: OpenTelemetry is not installed. UsageError: `url` is invalid.
    """

    def __init__(self, url: str, tell: Callable[[str], None]) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import SimpleSpanProcessor
            from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
            from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        except ImportError as error:
            raise EnvironmentLacksError(
                f"OpenTelemetry is not installed ({error}).", "Install it: pip install 'mai-agent[traces]'."
            ) from error
        base = normalize_url(url).removesuffix("/traces").removesuffix("/v1")
        self._shown, self._tell = re.sub("//[^/]*@", "//", base), tell  # without a password
        self._exporter = OTLPSpanExporter(f"{base}/v1/traces", timeout=_SENT_WITHIN)
        self._ended = InMemorySpanExporter()
        ids = RandomIdGenerator()
        trace, run = ids.generate_trace_id(), ids.generate_span_id()
        #: The run as a W3C `traceparent`, known before its first event. A vLLM with `--otlp-traces-endpoint` puts the
        #: spans of requests that carry it below the run's.
        self.parent = f"00-{trace:032x}-{run:016x}-01"
        ids.generate_trace_id = lambda: trace  # type: ignore[method-assign]
        ids.generate_span_id = chain([run], iter(ids.generate_span_id, 0)).__next__  # type: ignore[method-assign]
        resource = Resource.create({"service.name": "mai-agent"})
        provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=ids)
        provider.add_span_processor(SimpleSpanProcessor(self._ended))
        self._tracer = provider.get_tracer("mai-agent", __version__)
        self._open: list[Span] = []  # the run, and a step in it
        self._step = 0
        self._last = 0.0  # when the last span ended, in seconds since 1970

    @property
    def spans(self) -> "tuple[ReadableSpan, ...]":
        """The spans that ended so far."""
        return self._ended.get_finished_spans()

    def handle(self, event: Event) -> None:
        """Take an event of the run."""
        match event:
            case RunStarted():
                model = {"gen_ai.request.model": event.actor.model, "mai_agent.family": event.actor.family}
                self._begin("invoke_agent mai-agent", event.at, model | {"gen_ai.operation.name": "invoke_agent"})
            case Observed(step, images):
                self._begin_step(step, event.at - sum(event.milliseconds.values()) / 1000)
                self._add("look", event.at, event.milliseconds, {"mai_agent.images": len(images)})
            case Decided(usage=usage):
                attributes: dict[str, Any] = {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.response.model": event.model or None,
                    "gen_ai.usage.input_tokens": usage.prompt,
                    "gen_ai.usage.output_tokens": usage.completion,
                    "gen_ai.usage.cache_read.input_tokens": usage.cached,
                    "error.type": event.failure.kind if event.failure else None,
                }
                self._add("chat", event.at, event.milliseconds, attributes)
            case Consulted():
                attributes = {"gen_ai.operation.name": "chat", "gen_ai.response.model": event.model}
                self._add("chat", event.at, {"model": event.milliseconds}, attributes | {"mai_agent.why": event.why})
            case ApprovalGiven():
                self._add("wait for the person", event.at, {"person": event.milliseconds}, {"allowed": event.allowed})
            case Acted():
                name = str(action_json(event.target)["type"])
                attributes = {"gen_ai.tool.name": name, "gen_ai.operation.name": "execute_tool"}
                attributes |= {"error.type": "failed" if event.error else None, "mai_agent.dry_run": event.dry_run}
                self._add(f"execute_tool {name}", event.at, {"act": event.milliseconds}, attributes)
            case StepFinished():
                if settled := event.milliseconds.get("settle"):
                    self._add("settle", event.at, {"settle": settled}, {})
                self._end(event.at, 1)
            case RunFinished():
                self._finish(event)

    def close(self) -> None:
        """End what is open, and send the trace."""
        self._end(self._last, 0)
        if not self.spans:
            return
        from opentelemetry.sdk.trace.export import SpanExportResult

        if self._exporter.export(self.spans) is not SpanExportResult.SUCCESS:
            self._tell(f"The trace of the run could not be sent to {self._shown}.")
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _finish(self, event: RunFinished) -> None:
        from opentelemetry.trace import StatusCode

        self._end(event.at, 1)
        for run in self._open:
            run.set_attributes(_known({
                "mai_agent.outcome": event.outcome, "mai_agent.verified": event.verified,
                "mai_agent.steps": event.steps, "gen_ai.usage.input_tokens": event.usage.prompt,
                "gen_ai.usage.output_tokens": event.usage.completion,
            }))  # fmt: skip
            run.set_status(StatusCode.OK if event.status == ExitStatus.DONE else StatusCode.ERROR)
        self._end(event.at, 0)

    def _begin_step(self, step: int, at: float) -> None:
        if step == self._step and len(self._open) > 1:
            return  # the step captures the screen again
        self._end(at, 1)
        self._step = step
        self._begin(f"step {step}", max(at, self._last), {"mai_agent.step": step})

    def _begin(self, name: str, at: float, attributes: Mapping[str, Any]) -> None:
        self._last = at
        self._open.append(self._span(name, at, attributes))

    def _add(self, name: str, at: float, milliseconds: Mapping[str, float], attributes: Mapping[str, Any]) -> None:
        """Add a span that ends at `at`. Even if stages overlapped, it begins after the previous span."""
        began = at - sum(took for stage, took in milliseconds.items() if stage != "ttft") / 1000
        stages = {f"mai_agent.{stage}_ms": round(took, 2) for stage, took in milliseconds.items()}
        self._span(name, max(began, self._last), {**stages, **attributes}).end(_nanoseconds(at))
        self._last = at

    def _span(self, name: str, at: float, attributes: Mapping[str, Any]) -> "Span":
        from opentelemetry.trace import StatusCode, set_span_in_context

        context = set_span_in_context(self._open[-1]) if self._open else None
        known = _known(attributes)
        span = self._tracer.start_span(name, context, attributes=known, start_time=_nanoseconds(at))
        if "error.type" in known:
            span.set_status(StatusCode.ERROR)
        return span

    def _end(self, at: float, kept: int) -> None:
        """End all open spans except the `kept` outermost."""
        while len(self._open) > kept:
            self._open.pop().end(_nanoseconds(at))
        self._last = max(self._last, at)


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)
