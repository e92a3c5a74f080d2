"""Carries out `mai-agent "INSTRUCTION"`: sandbox, engine, recorder, printer and loop, in this order and back."""

import argparse
import asyncio
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from agent.client import Patience, Usage
from agent.commands.arguments import engine_wish, runs_dir
from agent.console import Console, StopSignals
from agent.engine import Engine, choose_engine
from agent.errors import AgentError, EnvironmentLacksError, ExitStatus, StoppedError, UsageError
from agent.run.events import Event, RunFinished
from agent.run.settings import RunSettings
from agent.safety.stop import StopSwitch
from agent.settings import Settings, load_settings, read_text


class Printer(Protocol):
    """Something that shows events."""

    def handle(self, event: Event) -> None:
        """Show one event."""
        ...


def execute(options: argparse.Namespace) -> int:
    """Run it, and return the exit status."""
    settings = load_settings()
    instruction = _instruction(options.instruction)
    stop = StopSwitch()
    with StopSignals(stop):
        return _run(options, settings, instruction, stop)


def _instruction(given: str | None) -> str:
    if given is not None and given.strip():
        return given.strip()
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        print("What shall I do? ", end="", file=sys.stderr, flush=True)
        given = sys.stdin.readline()
        if given.strip():
            return given.strip()
    raise UsageError("There is no instruction.", 'Say what to do: mai-agent "open settings and enable dark mode".')


def _run(options: argparse.Namespace, settings: Settings, instruction: str, stop: StopSwitch) -> int:
    from agent.plain import JsonPrinter, PlainPrinter
    from agent.record.bundle import Recorder
    from agent.run.session import Request
    from agent.safety.policy import Policy

    run_settings = _run_settings(options, settings, instruction)
    mode = options.approve or ("never" if options.sandbox else settings.get("approve") or "risky")
    policy_file = options.policy or (Path(settings.get("policy")).expanduser() if settings.get("policy") else None)
    policy = Policy.load(mode, policy_file)
    printer: Printer = JsonPrinter() if options.json else PlainPrinter()
    desk = _Desk(options, stop)
    desk.check()
    with ExitStack() as opened:
        # What can be wrong at once is found before a desktop is started for it.
        engine = _engine(options, settings, stop)
        opened.callback(engine.close)
        opened.callback(desk.close)
        desk.open()
        recorder = Recorder(runs_dir(options.runs, settings), instruction)
        opened.callback(recorder.close)
        request = Request(
            settings=run_settings,
            engine=engine,
            policy=policy,
            family=options.family or settings.get("family"),
            monitor=options.monitor,
            environ=desk.environ,
            sandbox=options.sandbox,
            bundle=str(recorder.path),
            patience=_patience(options, settings),
        )
        status = asyncio.run(_follow(request, recorder, printer, stop))
        desk.tell_changes()
        _say(f"recorded in {recorder.path}")
        return status


def _run_settings(options: argparse.Namespace, settings: Settings, instruction: str) -> RunSettings:
    def chosen(name: str, default: Any) -> Any:
        given = getattr(options, name)
        stored = settings.get(name)
        return given if given is not None else stored if stored is not None else default

    style = chosen("style", "desktop")
    family = options.family or settings.get("family") or "mai-ui"
    prompt = read_text(options.system_prompt) if options.system_prompt else settings.system_prompt(family)
    defaults = RunSettings(instruction)
    return RunSettings(
        instruction=instruction,
        dry_run=options.dry_run,
        max_steps=chosen("max_steps", defaults.max_steps),
        max_seconds=chosen("max_seconds", defaults.max_seconds),
        max_tokens=chosen("max_tokens", None),
        style=style,
        thinking=not options.no_thinking,
        history=chosen("history", "sliding" if style == "reference" else "block"),
        history_images=chosen("history_images", None),
        max_pixels=chosen("max_pixels", None),
        image_format=chosen("image_format", None),
        system_prompt=prompt,
    )


def _patience(options: argparse.Namespace, settings: Settings) -> Patience:
    wait = options.patience or settings.get("patience")
    return Patience() if wait is None else Patience(first_token=wait, between_tokens=min(wait, 60.0))


def _engine(options: argparse.Namespace, settings: Settings, stop: StopSwitch) -> Engine:
    return choose_engine(engine_wish(options, settings), _say, stop.check)


async def _follow(request: Any, recorder: Any, printer: Printer, stop: StopSwitch) -> int:
    """Give every event to the recorder and the printer; the run's exit status."""
    from agent.run.session import run

    console = Console(stop)
    status: int = ExitStatus.NOT_DONE
    events = run(request, console, console, stop)
    try:
        async for event in events:
            recorder.handle(event)
            _print(printer, event)
            if isinstance(event, RunFinished):
                status = event.status
    except (AgentError, BrokenPipeError) as error:
        await events.aclose()  # type: ignore[attr-defined]  # an async generator
        stopped = isinstance(error, StoppedError)
        known = error.exit_status if isinstance(error, AgentError) else ExitStatus.NOT_DONE
        ending = RunFinished("stopped" if stopped else "failed", known, str(error), 0, 0.0, Usage())
        recorder.abandon(ending)
        raise
    return status


def _print(printer: Printer, event: Event) -> None:
    try:
        printer.handle(event)
    except BrokenPipeError:  # the reader went away, as `head` does: nothing to tell
        raise
    except OSError as error:
        sys.stdout = None  # or the rest is written, and fails, once more at exit
        raise EnvironmentLacksError(
            f"The output cannot be written ({error.strerror or error}).", "Is there space where it goes?"
        ) from error


class _Desk:
    """The desktop to work on: the person's own, or a sandbox that is started and ended here."""

    def __init__(self, options: argparse.Namespace, stop: StopSwitch) -> None:
        self._options = options
        self._stop = stop
        self._sandbox: Any = None
        self._state: dict[str, str] = {}

    @property
    def environ(self) -> dict[str, str] | None:
        """The environment for applications; None for this process's own."""
        return None if self._sandbox is None else dict(self._sandbox.environ)

    def check(self) -> None:
        """Say at once when there is no display and no sandbox is wanted."""
        if not self._options.sandbox:
            from agent.screen.capture import lacks_display

            lacks_display(os.environ)

    def open(self) -> None:
        """Start the sandbox, if one is wanted."""
        if not self._options.sandbox:
            return
        from agent.sandbox.desktop import SandboxSpec, start_sandbox

        spec = SandboxSpec(self._options.sandbox_size, self._options.keep, self._options.sandbox_session)
        self._sandbox = start_sandbox(spec, _say, self._stop.check)
        self._sandbox.applied()
        self._state = self._sandbox.state()

    def tell_changes(self) -> None:
        """Say what the system's own tools tell of settings that changed in the sandbox."""
        if self._sandbox is None:
            return
        for name, value in self._sandbox.state().items():
            if value != self._state.get(name):
                _say(f"in the sandbox, {name} was {self._state.get(name)} and is {value}")

    def close(self) -> None:
        """End the sandbox, or say how to look at it."""
        if self._sandbox is None:
            return
        if self._options.keep:
            _say(self._sandbox.how_to_look())
        self._sandbox.close()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
