"""Where runs happen: the engine and the desktop that one or several runs share, opened once and given back at the end.

The terminal application and the plain command line both work here, so a run is put together in one place only.
"""

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.model.asking import Patience
from agent.model.endpoint import EngineChoice
from agent.model.engines import Ask, Engine, Tell, choose_engine, named_endpoint
from agent.options import RunOptions
from agent.safety.stop import StopSwitch
from foundation.errors import ExitStatus, MaiError, StoppedError
from foundation.files import cannot_write
from foundation.stray_output import LOG_NAME, kept_in

if TYPE_CHECKING:
    from agent.desktop.protocol.desktop import OpenDesktop
    from agent.events.run_events import Emit, Event, RunFinished
    from agent.record.bundle import Recorder
    from agent.record.traces import RunTrace
    from agent.run.control import Steering
    from agent.run.loop.context import OpenTools, Person
    from agent.run.models.roles import Role
    from agent.run.models.settings import RunSettings
    from agent.run.session import Request
    from agent.sandbox.desktop import Sandbox


class Desk:
    """The desktop to work on: the person's own, or a sandbox that is started and ended here."""

    def __init__(self, options: RunOptions, tell: Tell, ask: Ask | None) -> None:
        self._options = options
        self._tell = tell
        self._ask = ask
        self.sandbox: Sandbox | None = None  # the throw-away desktop; None for the person's own
        self._accessibility: Any = None

    @property
    def environ(self) -> dict[str, str] | None:
        """The environment for applications; None for this process's own."""
        return None if self.sandbox is None else dict(self.sandbox.environ)

    @property
    def open_desktop(self) -> "OpenDesktop":
        """The function that opens the desktop for one run."""
        from agent.desktop.factory import open_desktop

        if self._options.sandbox:
            return open_desktop
        return partial(open_desktop, kind=self._options.desktop, remote=self._options.remote)

    def check(self) -> None:
        """Raise at once if the display, the monitor or the machine is missing, unless a sandbox is wanted."""
        if self._options.remote is not None:
            self.open_desktop(StopSwitch(), self._options.monitor, None).screen.close()
        elif not self._options.sandbox:
            from agent.desktop.factory import check_display

            check_display(os.environ, self._options.desktop, self._options.monitor)

    def open(self, stop: StopSwitch) -> None:
        """Start the sandbox, if one is wanted."""
        if self._options.remote is not None:
            return
        if not self._options.sandbox:
            self._open_accessibility()
            from agent.desktop.factory import asks_first

            if asks := asks_first(os.environ, self._options.desktop):
                self._tell(asks)
            return
        from agent.sandbox.desktop import SandboxSpec, start_sandbox

        options = self._options
        spec = SandboxSpec(
            options.sandbox_size, options.keep, options.sandbox_session, options.sandbox_locale, options.sandbox_network
        )
        self.sandbox = start_sandbox(spec, self._tell, stop.check)
        self.sandbox.applied()

    def _open_accessibility(self) -> None:
        """Switch on accessibility in the person's session, if they agree."""
        if not sys.platform.startswith("linux"):
            return
        from agent.desktop.trees.switch import LentAccessibility

        wish: Any = self._options.accessibility or "ask"
        self._accessibility = LentAccessibility(os.environ, wish, self._ask, self._tell)

    def close(self) -> None:
        """End the sandbox, or say how to look at it; give back what was lent."""
        if self._accessibility is not None:
            self._accessibility.give_back()
        if self.sandbox is None:
            return
        if self._options.keep:
            self._tell(self.sandbox.how_to_look())
        self.sandbox.close()


#: The family of a model that only says what to do.
PLANNER = "planner"
#: With more steps, writing the report takes so long that it is announced.
_MANY_STEPS = 100


@dataclass(frozen=True, slots=True)
class Job:
    """One run that is ready to go, and where it is recorded."""

    request: "Request"
    recorder: "Recorder"
    trace: "RunTrace | None" = None

    async def carry_out(
        self, person: "Person", stop: StopSwitch, show: "Emit", steering: "Steering | None" = None
    ) -> "RunFinished":
        """Carry out the run. Every event is recorded, then shown.

        Raises:
            MaiError: the run could not begin, or could not be recorded; the recording so far is on disk.
            Exception: what `show` raised.
        """
        from agent.run.session import run

        def emit(event: "Event") -> None:
            self.recorder.handle(event)
            if self.trace is not None:
                self.trace.handle(event)
            show(event)

        try:
            with self._library_output(), nullcontext() if self.trace is None else closing(self.trace):
                return await run(self.request, person, stop, emit, steering)
        except (MaiError, OSError) as error:
            self.recorder.abandon(broken_off(error))
            raise

    @contextmanager
    def _library_output(self) -> Iterator[None]:
        from agent.record.read import mask_file

        log = self.recorder.path / LOG_NAME
        try:
            with kept_in(log):
                yield
        finally:
            with suppress(OSError):
                if log.is_file():
                    mask_file(log, self.recorder.redactor)

    def write_report(self, tell: Tell) -> str:
        """Write the run's report. Return words for the line that names the recording; "" if it cannot be written."""
        from agent.record.report.page import write_report

        bundle = self.recorder.path
        try:
            if len(list((bundle / "screens").iterdir())) > _MANY_STEPS:
                tell("writing the report ...")
            log = f"; output of libraries: {LOG_NAME}" if (bundle / LOG_NAME).is_file() else ""
            return f" (report: {write_report(bundle).path.name}{log})"
        except (MaiError, OSError) as error:
            tell(f"The report could not be written: {error}")
            return ""


def broken_off(error: BaseException) -> "RunFinished":
    """Return the last event of a run that could not begin, or that an error ended before the loop could end it."""
    from agent.events.run_events import RunFinished
    from foundation.chat_stream import Usage

    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        error = cannot_write(Path("the output"), error)
    stopped = isinstance(error, StoppedError)
    known = error.exit_status if isinstance(error, MaiError) else ExitStatus.NOT_DONE
    return RunFinished("stopped" if stopped else "failed", known, str(error), 0, 0.0, Usage())


class Workplace:
    """Engine, desktop and policy for the runs of one session; a context manager. `tell` receives progress messages."""

    def __init__(self, options: RunOptions, tell: Tell, ask: Ask | None, *, offers: bool = True) -> None:
        from agent.safety.policy import Policy

        self._options = options
        self._tell = tell
        self._ask = ask
        self._offers = ask if offers else None  # asks whether to fetch publishers' prompts
        self._found: dict[Role, str] = {}  # families of named endpoints
        self._opened = ExitStack()
        self._engine: Engine | None = None
        self._others: dict[Role, Engine] = {}
        self._desk: Desk | None = None
        self.policy: Policy = Policy.load(options.approve or "risky", options.policy)

    def __enter__(self) -> "Workplace":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def run_settings(self, instruction: str) -> "RunSettings":
        """Return the settings of a run of this instruction. Raises UsageError."""
        from agent.run.models.settings import RunSettings

        options = self._options
        wanted = {field.name: getattr(options, field.name, None) for field in fields(RunSettings)}
        style = options.style or "desktop"
        wanted |= {"instruction": instruction, "options": {"style": style, "thinking": options.thinking}}
        if options.history is None and style == "reference":
            wanted["history"] = "sliding"
        return RunSettings(**{name: value for name, value in wanted.items() if value is not None})

    def job(self, instruction: str, stop: StopSwitch, engine: Engine | None = None, secrets: Sequence[str] = ()) -> Job:
        """Return a run that is ready to start. The first call opens the engine and the desktop.

        Args:
            instruction: what is to be done.
            stop: stops the run, also while it is prepared.
            engine: decides this run in place of the engines that the options name.
            secrets: texts that no record may hold.

        Raises:
            MaiError: something that the run needs is missing.
        """
        from agent.desktop.protocol.desktop import DEFAULT_CHORD
        from agent.families.registry import DEFAULT_FAMILY
        from agent.prompts.store import published_words
        from agent.recipes.files import offer
        from agent.record.bundle import Recorder
        from agent.record.redactor import Redactor
        from agent.run.session import Request
        from agent.safety.stop import Registered

        options = self._options
        run_settings = self.run_settings(instruction)
        # Report an unreadable file before a server or a desktop is started.
        options.settings.system_prompt(options.family or DEFAULT_FAMILY, options.system_prompt)
        open_tools, trace = self._open_tools(), self._trace()
        title = Redactor().instruction(instruction)
        with closing(Registered(f"starting-{os.getpid()}", title)):  # a server's start takes minutes
            if engine is None and (hint := offer(instruction)):
                self._tell(hint)
            engines, desk = self._open(stop, engine)
            if engine is None:
                self._offer_prompts(engines)
        families = self._families if engine is None else {}
        recorder = Recorder(options.runs, instruction, Redactor(secrets=secrets))
        request = Request(
            settings=run_settings,
            engines=engines,
            families=families,
            zoom=options.zoom,
            calibrate=options.calibrate,
            tell=self._tell,
            open_tools=open_tools,
            relief_steps=options.relief_steps,
            mask=recorder.redactor.text,
            trace="" if trace is None else trace.parent,
            policy=self.policy,
            family=families.get("actor"),
            system_prompt=lambda family: options.settings.system_prompt(family, options.system_prompt),
            published=lambda family: published_words(family, options.words),
            family_options=options.settings.family_options,
            monitor=options.monitor,
            environ=desk.environ,
            open_desktop=desk.open_desktop,
            sandbox=options.sandbox,
            bundle=str(recorder.path),
            patience=Patience.of(options.patience),
            stop_key=options.stop_key or DEFAULT_CHORD,
            title=title,
        )
        return Job(request, recorder, trace)

    def _open_tools(self) -> "OpenTools | None":
        """Return the function that connects to the MCP servers of the options. Raises UsageError."""
        if self._options.tools is None:
            return None
        from agent.tools.connections import open_tools
        from agent.tools.servers import read_tool_servers

        return partial(open_tools, read_tool_servers(self._options.tools))

    def _trace(self) -> "RunTrace | None":
        """Return the object that sends a trace of the next run. Raises MaiError."""
        if self._options.traces is None:
            return None
        from agent.record.traces import RunTrace

        return RunTrace(self._options.traces, self._tell)

    def _offer_prompts(self, engines: "dict[Role, Engine]") -> None:
        """Offer the published prompts of the models' families, if a person can be asked. Raises UsageError."""
        from agent.families.registry import detect_family
        from agent.prompts.store import offer

        options = self._options
        if self._offers is None or options.words == "ours" or options.system_prompt or options.tools:
            return
        for role, engine in engines.items():
            named = self._families.get(role) or self._found.get(role) or engine.family
            family = named or detect_family(engine.endpoint.model or "")
            if family is not None and family not in options.settings.system_prompts:
                offer(
                    family, self._offers, self._tell, mirror=options.settings.get("prompts_mirror"),
                    reference=options.style == "reference", points=role == "grounder",
                )  # fmt: skip

    def server_load(self) -> str:
        """How busy the server is, in a few words; "" if that cannot be known. Asks the server: may take a second."""
        load = None if self._engine is None else self._engine.load
        return "" if load is None else load()

    @property
    def _main(self) -> "Role":
        """The role of the engine's own model: it finds the places if a planner is named."""
        planned = self._options.planner is not None and self._options.grounder is None
        return "grounder" if planned else "actor"

    @property
    def _families(self) -> "dict[Role, str]":
        """The families that are named or follow from the roles; the others are detected."""
        options = self._options
        found: dict[Role, str | None] = {
            "actor": options.family, "grounder": options.grounder_family, "relief": options.relief_family,
        }  # fmt: skip
        if options.planner is not None:
            found["actor"] = options.planner_family or PLANNER
            found["grounder"] = options.grounder_family or (options.family if self._main == "grounder" else None)
        elif options.grounder is not None:
            found["actor"] = options.family or PLANNER
        return {role: family for role, family in found.items() if family is not None}

    def _open(self, stop: StopSwitch, engine: Engine | None) -> "tuple[dict[Role, Engine], Desk]":
        if self._desk is None:
            Desk(self._options, self._tell, self._ask).check()
            # Check what can be checked at once before a server or a desktop is started.
            if engine is None:
                self._check_named(stop)
        roles: dict[Role, Engine] = self._roles(stop) if engine is None else {"actor": engine}
        return roles, self.desk(stop)

    def desk(self, stop: StopSwitch) -> Desk:
        """The desktop, opened at the first call. Raises MaiError."""
        if self._desk is None:
            desk = Desk(self._options, self._tell, self._ask)
            desk.check()
            self._opened.callback(desk.close)
            desk.open(stop)
            self._desk = desk
        return self._desk

    @property
    def _named(self) -> "dict[Role, EngineChoice | None]":
        options = self._options
        return {"actor": options.planner, "grounder": options.grounder, "relief": options.relief}

    def _check_named(self, stop: StopSwitch) -> None:
        """Ask the named endpoints what they serve. Raises MaiError: an endpoint cannot be used as named."""
        from agent.run.control import Race
        from agent.run.models.roles import open_model

        own = self._options.engine
        choices = [*self._named.items(), (self._main, own if own.name in ("auto", "endpoint") else None)]
        named = [
            (role, choice) for role, choice in choices if choice is not None and choice.url is not None
            if role != "relief"  # optional: a run works without it
        ]  # fmt: skip

        async def ask() -> None:
            patience = Patience.of(self._options.patience)
            async with AsyncExitStack() as opened:
                for role, choice in named:
                    engine = named_endpoint(choice)
                    model = await open_model(engine, self._families.get(role), patience, opened, Race(stop))
                    self._found[role] = model.family.facts.name

        if named:
            asyncio.run(ask())

    def _roles(self, stop: StopSwitch) -> "dict[Role, Engine]":
        options, named = self._options, self._named
        roles: dict[Role, Engine] = {}
        if options.planner is None or options.grounder is None:
            if self._engine is None or self._engine.name == "vllm":  # its server may have gone since
                ours = tuple(one.model for one in named.values() if one and one.name == "vllm" and one.model)
                self._engine = self._choose(replace(options.engine, beside=ours), stop)
            roles[self._main] = self._engine
        for role, choice in named.items():
            if choice is not None:
                roles[role] = self._others[role] = self._others.get(role) or self._choose(choice, stop)
        return roles

    def _choose(self, choice: EngineChoice, stop: StopSwitch) -> Engine:
        return choose_engine(choice, _literal_engine, self._tell, stop.check, self._ask)


def _literal_engine(choice: EngineChoice) -> Engine:
    from agent.literal.client import literal_engine
    from agent.record.redactor import Redactor

    return literal_engine(choice, Redactor().text)
