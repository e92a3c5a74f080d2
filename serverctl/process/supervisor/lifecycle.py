"""The task that owns a server: it plans, starts, watches, repairs, restarts and stops it."""

import asyncio
import contextlib
import errno
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from foundation.errors import ExitStatus, MaiError
from foundation.files import is_full, write_atomically
from foundation.processes import ProcessIdentity, identity_of
from serverctl.diagnose.classify import Failure
from serverctl.diagnose.failures import Kind
from serverctl.diagnose.ladder import Step, next_step
from serverctl.diagnose.stages import Stage
from serverctl.load.client import Endpoint, on_loopback
from serverctl.models.files import NoStartError, needs_no_hub
from serverctl.plan.goal import Plan
from serverctl.plan.render import Command, render
from serverctl.planning import keep_adjustments, measure, recall_adjustments
from serverctl.process import api_key_gate as gate
from serverctl.process import probe
from serverctl.process.load_record import LoadRecord
from serverctl.process.logs import LogWriter
from serverctl.process.request import Prepared, ServerRequest, prepare
from serverctl.process.state import Folder, State, cannot_write, end_left_behind, failure_json, has_room
from serverctl.process.supervisor.before_start import refuse_hopeless
from serverctl.process.supervisor.child import Child, server_env
from serverctl.process.supervisor.door import Door
from serverctl.process.supervisor.publisher import Publisher
from serverctl.process.supervisor.readiness import Verdict, question
from serverctl.process.supervisor.turns import FINISH, TICK, Turns
from serverctl.process.supervisor.watchdog import (
    StallWatch,
    Watchdog,
    back_off,
    deaths_lately,
    grace,
    memory_wanted,
    timeouts,
    wait_for_memory,
)

#: Intervals of /health checks, seconds, while starting (cheap: the port is closed until the end) and while serving.
_POLL_STARTING, _POLL_SERVING = 0.1, 2.0


class Owner:
    """Runs one server from the request to its end. The caller holds the lock of its folder.

    `echo` is called with every line of the server's output, `changed` with every new state.
    """

    def __init__(
        self,
        folder: Folder,
        request: ServerRequest,
        echo: Callable[[str], None] | None = None,
        changed: Callable[[State], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._request = request
        self._echo = echo
        self._timeouts = timeouts()
        self._goal = request.goal
        self._fallback: ServerRequest | None = None  # the request before the last change, until the change serves
        self._earlier: tuple[Kind, ...] = ()
        self._dropped: tuple[str, ...] = ()
        self._first_plan: Plan | None = None
        self._log = LogWriter(folder.log_file)
        self._key = ""
        self._door = Door(folder, self._timeouts.hold)
        self._door.models = {each.name: {} for each in request.models}
        self._turns = Turns(folder, self._door, self._timeouts.hold)
        self._engine_port, self._engine = 0, Endpoint("")
        self._before = folder.read() or State()
        self.state = State(
            phase="planning", name=folder.name, started=time.time(), log=str(folder.log_file),
            supervisor=identity_of(os.getpid()) or ProcessIdentity(os.getpid(), f"{time.time():.2f}"),
            models=list(self._door.models), run=self._before.run,  # kept until the processes with this mark are gone
        )  # fmt: skip
        self._publisher = Publisher(folder, self.state, self._log, changed)
        self._set = self._publisher.set
        self._set("planning", "Looking at the hardware and planning.")

    def stop(self) -> None:
        """Request the end. Safe to call from the event loop's signal handlers."""
        self._turns.stop()

    async def run(self) -> ExitStatus:
        """Run until stopped, or until no repair is left to try."""
        left = await asyncio.to_thread(end_left_behind, self._before.guardian, self.state.run)
        if left:
            self.state.note(time.time(), f"Ended {len(left)} processes that an earlier server had left behind.")
        changes = asyncio.create_task(
            self._turns.look(lambda: (self._request, self.state.is_ready), lambda text: self._set("restarting", text))
        )
        try:
            status = await self._run()
            if status == ExitStatus.DONE:
                self._set("stopped", "Stopped.")
            return status
        finally:
            changes.cancel()
            await self._door.close()
            self._log.close()

    async def _run(self) -> ExitStatus:
        while not self._turns.stopping:
            self._take_change()
            if self._turns.nap:
                await self._sleep_until_asked()
                continue
            given_up = await self._attempt()
            if given_up is not None and not self._go_back(*given_up):
                return self._fail(*given_up)
        return ExitStatus.DONE

    async def _attempt(self) -> tuple[dict[str, Any], str] | None:
        """Run one start to its end. Return a failure that is not repaired, and why; None after any other end."""
        try:
            prepared = await asyncio.to_thread(self._prepare)
            if not self._key:  # unchanged after a restart, so that clients continue
                self._key = self._folder.new_key(self._request.key, self._request.keep_key)
            taken = None if self._door.is_listening else await self._listen()
            command = self._command(prepared)
        except MaiError as error:
            kind = error.kind if isinstance(error, NoStartError) else "CANNOT_PLAN"
            return failure_json(kind, error.what), error.remedy
        except OSError as error:
            told_so = cannot_write(self._folder.path, error)
            why = Kind.DISK if is_full(error) else Kind.PERMISSION
            return failure_json(why.name, told_so.what), told_so.remedy
        if self._turns.came.is_set():
            return None
        failure = taken or await self._life(prepared, command)
        if failure is None:
            return None
        step = self._decide(failure, prepared.plan)
        self.state.failure = failure.to_json()
        if step.action == "stop":
            return failure.summary(), step.because
        await self._repair(step, failure, prepared.plan)
        if not self._turns.came.is_set():
            self._set("planning", "Looking at the hardware and planning.")
        return None

    async def _sleep_until_asked(self) -> None:
        """Run without an engine until a client waits at the door, or a change or stop is requested."""
        because, self._turns.nap = self._turns.nap, ""
        self._turns.begin()
        self._set("asleep", because)
        await self._turns.asked()
        if (request := self._request.for_model(self._door.wanted())) is not None:
            self._use(request)
        if not self._turns.came.is_set():
            self._set("planning", "A client asks something: waking.")

    def _take_change(self) -> None:
        if (change := self._turns.take_change()) is None:
            return
        self._turns.nap = ""
        if self.state.ready_at is not None:
            self._fallback = self._request
        self.state.refused = None
        self._use(change.request)
        self._set("restarting", "Restarting.")

    def _go_back(self, failure: dict[str, Any], because: str) -> bool:
        """Restore the request from before a failed change. Return whether to go on."""
        if self._fallback is None or self._turns.came.is_set():
            return self._turns.came.is_set()
        before, self._fallback = self._fallback, None
        if self._request.models and self._request.served_name != before.served_name:
            self._door.give_up(self._request.served_name or "", failure["title"].rstrip("."))
        self.state.refused = {**failure, "remedy": failure["remedy"] or because, "stopped_because": because}
        self._use(before)
        self._set("restarting", f"{failure['title'].rstrip('.')}. Going back to the settings before.")
        return True

    def _use(self, request: ServerRequest) -> None:
        """Start with another request from now on."""
        self._request, self._goal = request, request.goal
        self._first_plan, self._dropped, self._earlier, self.state.deaths = None, (), (), []
        with contextlib.suppress(OSError):  # a full disk
            write_atomically(self._folder.request_file, request.to_json())
        self._turns.begin()

    async def _listen(self) -> Failure | None:
        """Open the door on the requested port; else on the earlier one, which clients may know, or on any."""
        reason = ""
        for port in [self._request.port] if self._request.port else [self._before.port, None]:
            try:
                self.state.port = await self._door.listen(port, self._key)
                return None
            except OSError as error:
                reason = error.strerror or str(error)
        kind = Kind.PORT if self._request.port else Kind.LOOPBACK
        return Failure(kind, Stage.LAUNCHED, f"port {self._request.port} is in use: {reason}", {})

    def _prepare(self) -> Prepared:
        """Plan for the current hardware with the adjustments that last worked. Raises MaiError if no start can succeed.

        Raises OSError if the disk is full.
        """
        if not has_room(self._folder.path):
            raise OSError(errno.ENOSPC, "No space left on device", str(self._folder.path))
        prepared = prepare(self._request, self._goal)
        if self._first_plan is None:
            self._first_plan = prepared.plan
            values, because = recall_adjustments(prepared.plan, self._goal, prepared.capabilities.version)
            values = {name: value for name, value in values.items() if name not in self._goal.adjustments}
            if values:
                goal = self._goal.adjusted(values, {name: because[name] for name in values})
                # Adjustments from earlier may fail with less free memory or another model on disk; then skip them.
                with contextlib.suppress(MaiError):
                    prepared = prepare(self._request, goal)
                    self._goal = goal
        if not self._goal.force:
            refuse_hopeless(prepared, Path(self._request.vllm_python))
        offline = not self._goal.force and needs_no_hub(prepared.plan.model, self._goal.extra)
        return replace(prepared, offline=offline)

    def _command(self, prepared: Prepared) -> Command:
        self._engine_port = probe.free_port()
        command = render(prepared.plan, prepared.capabilities, self._engine_port, self._request.served_name)
        lines = tuple(line for line in command.lines if line.flag not in self._dropped)
        env = {**command.env, **({"HF_HUB_OFFLINE": "1"} if prepared.offline else {})}
        return gate.with_gate(replace(command, lines=lines, env=env), prepared.capabilities)

    async def _life(self, prepared: Prepared, command: Command) -> Failure | None:
        """Run one start until its end. Return None if it was stopped, the failure otherwise."""
        state, run = self.state, secrets.token_hex(8)
        state.run, state.model = run, self._request.served_name or prepared.plan.model.name
        self._publisher.show_start(prepared, command)
        self._engine = on_loopback(self._engine_port, self._key, state.model)
        self._log.write(f"mai-server: start {state.attempt}: {' '.join(command.argv())}")
        self._folder.open_gate()
        child = Child(self._log, self._publisher.show_stage, self._echo)
        argv = command.argv(self._request.vllm_python)
        try:
            await child.start(argv, server_env(os.environ, command.env, self._key, run), self._folder.path)
        except OSError as error:
            return Failure(Kind.IMPORT, Stage.LAUNCHED, f"{argv[0]}: {error.strerror or error}", {})
        try:
            return await self._watch(child, prepared)
        finally:
            self._door.disconnect()
            self._publisher.show_process(None)
            await child.end(0.1)

    async def _watch(self, child: Child, prepared: Prepared) -> Failure | None:
        """Wait until the child exits, hangs, or a stop is requested. Return None for a stop, the failure otherwise."""
        self._publisher.show_process(child)
        watchers = [
            asyncio.create_task(watcher)
            for watcher in (self._serve(child, prepared), self._look_around(child, prepared.plan))
        ]
        ends = [asyncio.create_task(event.wait()) for event in (self._turns.came, child.exited)]
        try:
            await asyncio.wait((*watchers, *ends), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*watchers, *ends):
                task.cancel()
        if self._turns.came.is_set():
            await self._turns.drain()
            if self._turns.stopping:
                self._set("stopping", "Stopping.")
                await self._door.drain(FINISH, leaving=True)
            is_ready = self.state.ready_at is not None
            await child.end(await asyncio.to_thread(grace, self._engine if is_ready else None))
            return None
        if child.exited.is_set():
            await child.close()
            return self._ended(child)
        return next(watcher for watcher in watchers if watcher.done()).result()

    async def _serve(self, child: Child, prepared: Prepared) -> Failure:
        """Wait until the server is ready, then watch it. Return the failure when it answers wrong or not at all."""
        verdict = await self._become_ready(child, prepared)
        if not verdict.ok:
            # If the question crashed the server, report the crash: its output has the cause.
            if verdict.silent:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(child.exited.wait(), self._timeouts.last_words)
            kind = Kind.NO_ANSWER if verdict.silent else Kind.MISREADS
            return Failure(kind, Stage.SERVING, (verdict.silent or verdict.wrong)[:600], {}, None, child.report)
        self._became_ready(child, prepared)
        evidence = await self._watch_over(verdict.seconds, on_processor=not prepared.plan.gpus)
        return replace(child.failure(), kind=Kind.HUNG, evidence=evidence)

    async def _look_around(self, child: Child, plan: Plan) -> Failure:
        """Keep the state file up to date. Return the failure if the start is stuck."""
        stall = StallWatch(lambda: self._publisher.progress(child, plan), self._timeouts)
        while True:
            await asyncio.sleep(TICK)
            if self.state.server_pid != child.server_pid:
                self._publisher.show_process(child)
            if not self._publisher.refresh():
                self.stop()
            if self.state.ready_at is None and (silent := await stall.check()):
                return replace(child.failure(), kind=Kind.STALLED, evidence=silent)

    def _ended(self, child: Child) -> Failure:
        """Return the failure for an unexpected exit, even with exit status 0."""
        failure = child.failure()
        if failure.kind is Kind.NONE:
            failure = replace(failure, kind=Kind.EXITED, evidence="\n".join(child.last_lines(3)))
        if self.state.ready_at is not None and failure.stage < Stage.SERVING:
            failure = replace(failure, stage=Stage.SERVING)
        return failure

    async def _become_ready(self, child: Child, prepared: Prepared) -> Verdict:
        """Wait for /health, then check that the server answers requests correctly."""
        # Another program may answer on this port before our server binds it, so also wait for the engine in the log.
        while child.report.stage < Stage.ENGINE or not await asyncio.to_thread(probe.is_healthy, self._engine):
            await asyncio.sleep(_POLL_STARTING)
        self._set("probing", "Asking about a picture and words whose tokens are known.")
        arguments = (self._engine, prepared.plan, self._timeouts.answer)
        verdict = await asyncio.to_thread(question, *arguments)
        if verdict.silent and not verdict.refused and not child.exited.is_set():
            verdict = await asyncio.to_thread(question, *arguments)
        context = await asyncio.to_thread(probe.served_context, self._engine) if verdict.ok else None
        if context is not None:
            self.state.limits["context"] = context
        return verdict

    def _became_ready(self, child: Child, prepared: Prepared) -> None:
        state = self.state
        state.ready_at = time.time()
        state.failure = None
        self._earlier = ()
        took = state.ready_at - (state.stage_at.get("LAUNCHED") or state.ready_at)
        state.report = child.report.to_json()
        state.stage, state.percent, state.download = "serving", None, None
        self._fallback = None
        if self._turns.came.is_set():
            return
        if self._door.models:
            self._door.models[state.model] = {"max_model_len": state.limits.get("context")}
        self._door.connect(self._engine_port, state.model)
        self._set("ready", f"{state.model} answers on port {state.port}, {took:.0f} s after its start.")
        assert self._first_plan is not None
        keep_adjustments(self._first_plan, self._goal, prepared.capabilities.version)
        measure(child.report, prepared.plan, prepared.capabilities.version)

    async def _watch_over(self, slow: float, on_processor: bool) -> str:
        """Watch a ready server until it hangs, and return the reason. Report temporary problems in the state."""
        state = self.state
        watchdog = Watchdog(self._engine, state.server_pid, self._timeouts, slow, on_processor)
        record, idle, used = LoadRecord(self._folder), self._request.idle_seconds, time.monotonic()
        while True:
            if record.is_due():
                page = await asyncio.to_thread(self._engine.metrics_page, 1.0)
                if record.take(page, watchdog.heartbeat.asked):
                    used = time.monotonic()
                elif idle is not None and time.monotonic() - used >= idle:
                    span = f"{idle:g} s" if idle < 120 else f"{idle / 60:g} minutes"
                    self._turns.rest(f"Nobody asked anything for {span}: asleep until the next request.")
            await asyncio.sleep(_POLL_SERVING)
            trouble, end = await asyncio.to_thread(watchdog.look)
            state.heartbeat = watchdog.heartbeat
            if trouble and state.phase == "ready":
                self._set("degraded", trouble)
            if end:
                return end
            if not trouble and state.phase == "degraded":
                self._set("ready", "Answers again.")

    def _decide(self, failure: Failure, plan: Plan) -> Step:
        """Choose the step after a failure. Count the crashes of a server that was ready."""
        state = self.state
        if state.ready_at is not None:
            state.deaths = deaths_lately(state.deaths, time.time())
            self._earlier = ()
            if len(state.deaths) >= 2:
                return Step("stop", "It died twice within ten minutes, so it is not started again by itself.")
        if failure.kind is Kind.PORT and not self._door.is_listening:
            text = f"Port {self._request.port} is your own choice, so no other one is taken."
            return Step("stop", text)
        if state.ready_at is None and failure.serving:  # the first question crashed it, and would do so again
            failure = replace(failure, stage=Stage.LISTENING)
        step = next_step(failure, plan, self._goal, self._earlier)
        self._earlier = (*self._earlier, failure.kind)
        return step

    async def _repair(self, step: Step, failure: Failure, plan: Plan) -> None:
        """Change the goal, and wait for the back-off after a crash and for the card's memory to become free."""
        if step.changes:
            self._goal = self._goal.adjusted(step.changes, dict.fromkeys(step.changes, step.because))
        self._dropped += step.drop_flags
        self.state.note(time.time(), f"{failure.to_json()['title']}: {step.because}.")
        self._log.write(f"mai-server: {self.state.message}")
        self._set("restarting" if self.state.deaths else "waiting", self.state.message)
        if not await self._turns.sleep(back_off(len(self.state.deaths))):
            wanted = memory_wanted(step, failure, plan)
            await wait_for_memory(wanted, self._request.hardware, self._turns.sleep, self._timeouts.memory)

    def _fail(self, failure: dict[str, Any], because: str) -> ExitStatus:
        self.state.failure = {**failure, "remedy": failure["remedy"] or because, "stopped_because": because}
        self._set("failed", f"{failure['title'].rstrip('.')}. {because}".strip())
        return ExitStatus.NOT_DONE
