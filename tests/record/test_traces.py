"""The trace of a run: sent to a collector, with times and counts and no text."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from stubs.events import finished, started, step

from agent.events.run_events import Event, RunFinished
from agent.record.traces import RunTrace
from foundation.chat_stream import Usage
from foundation.errors import ExitStatus, UsageError


class Collector:
    """Takes traces as a collector does."""

    def __init__(self) -> None:
        collector = self
        self.requests: list[tuple[str, ExportTraceServiceRequest]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = ExportTraceServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                collector.requests.append((self.path, request))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def spans(self) -> list[Any]:
        [(path, request)] = self.requests
        assert path == "/v1/traces"
        return [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def told(messages: list[str], url: str, *events: Event) -> None:
    trace = RunTrace(url, messages.append)
    for event in events:
        trace.handle(event)
    trace.close()


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def whole_run() -> list[Event]:
    return [started(), *step(1), *step(2), finished()]


def test_a_run_is_one_trace_of_steps_and_what_they_did(collector: Collector) -> None:
    messages: list[str] = []
    told(messages, collector.url, *whole_run())
    spans = collector.spans
    assert messages == []
    assert len({span.trace_id for span in spans}) == 1
    names = {span.span_id: span.name for span in spans}
    assert [(names.get(span.parent_span_id), span.name) for span in spans] == [
        ("step 1", "look"), ("step 1", "chat"), ("step 1", "execute_tool click"), ("invoke_agent mai-agent", "step 1"),
        ("step 2", "look"), ("step 2", "chat"), ("step 2", "execute_tool click"), ("invoke_agent mai-agent", "step 2"),
        (None, "invoke_agent mai-agent"),
    ]  # fmt: skip
    by_id = {span.span_id: span for span in spans}
    for span in spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        if span.parent_span_id:
            parent = by_id[span.parent_span_id]
            assert parent.start_time_unix_nano <= span.start_time_unix_nano, span.name
            assert span.end_time_unix_nano <= parent.end_time_unix_nano, span.name


def test_models_tokens_and_the_outcome_are_told_by_the_fields_names(collector: Collector) -> None:
    told([], collector.url, *whole_run())
    chat, run = collector.spans[1], collector.spans[-1]
    assert attributes(chat)["gen_ai.usage.input_tokens"] == 100
    assert attributes(chat)["gen_ai.usage.cache_read.input_tokens"] == 60
    assert attributes(chat)["mai_agent.model_ms"] == 500.0
    assert attributes(run)["gen_ai.request.model"] == "MAI-UI-8B"
    assert attributes(run)["mai_agent.outcome"] == "done"
    assert run.status.code == run.status.STATUS_CODE_OK


def test_what_servers_are_sent_names_the_run_as_the_parent_of_their_spans(collector: Collector) -> None:
    trace = RunTrace(collector.url, [].append)
    for event in whole_run():
        trace.handle(event)
    trace.close()
    run = collector.spans[-1]
    assert trace.parent == f"00-{run.trace_id.hex()}-{run.span_id.hex()}-01"


def test_no_text_of_the_run_is_in_it(collector: Collector) -> None:
    secret = "open settings hunter2"
    told([], collector.url, started(secret), *step(1, thought="I read hunter2 there."), finished())
    sent = collector.requests[0][1].SerializeToString()
    assert b"hunter2" not in sent
    assert b"open settings" not in sent


def test_a_run_that_breaks_off_is_sent_as_far_as_it_went(collector: Collector) -> None:
    told([], collector.url, started(), *step(1)[:2])
    assert [span.name for span in collector.spans] == ["look", "step 1", "invoke_agent mai-agent"]


def test_a_run_that_fails_is_an_error(collector: Collector) -> None:
    end = RunFinished("failed", ExitStatus.ENVIRONMENT, "It broke.", 0, 0.1, Usage())
    told([], collector.url, started(), end)
    [run] = collector.spans
    assert run.status.code == run.status.STATUS_CODE_ERROR


def test_a_run_that_never_began_sends_nothing(collector: Collector) -> None:
    told([], collector.url)
    assert collector.requests == []


def test_a_collector_that_is_not_there_is_one_sentence_without_its_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    messages: list[str] = []
    told(messages, f"http://me:secret@127.0.0.1:{port}", *whole_run())
    assert messages == [f"The trace of the run could not be sent to http://127.0.0.1:{port}."]


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/traces"])
def test_the_address_may_be_written_in_any_of_its_forms(collector: Collector, ending: str) -> None:
    told([], collector.url + ending, started())
    assert len(collector.spans) == 1


def test_what_is_no_address_is_said_at_once() -> None:
    with pytest.raises(UsageError):
        RunTrace("ftp://x", print)
