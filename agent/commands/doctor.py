"""`mai-agent doctor`: says what this machine has and lacks, one line each, and what to do about it."""

import asyncio
import os
import platform
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain

from agent.commands.arguments import add_options, check_sandbox, tell
from agent.desktop.factory import (
    asks_consent,
    asks_first,
    needed_programs,
    open_desktop,
    portal_lacks,
    wants_portal,
)
from agent.desktop.protocol.desktop import DEFAULT_CHORD, Desktop, Finding
from agent.desktop.self_test.capture import what_is_empty
from agent.desktop.self_test.checks import SelfTest, window_environ
from agent.safety.stop import Registered, StopSwitch, stop_signals
from agent.settings import DesktopKind, Settings, load_settings, runs_dir
from foundation.command_line import Parser
from foundation.configs import settings_path
from foundation.errors import ExitStatus, MaiError, StoppedError
from foundation.printing import remark
from foundation.stray_output import stray_output_kept

#: Seconds between the announcement and the first move.
COUNTDOWN = 3
_UNTRIED = "nothing was really clicked, typed or looked for"
_TRY = "`mai-agent doctor --try` does it, in a window of its own."


@dataclass(frozen=True, slots=True, kw_only=True)
class DesktopDoctor:
    """Looks at one desktop."""

    stop: StopSwitch  # ends a trial
    kind: DesktopKind  # how it is captured and controlled
    monitor: int | None  # the monitor's number, from 1; None for the primary
    tried: bool  # whether to really click and type
    #: The stop key of a trial on the person's own desktop; "" for a throw-away desktop, which needs no countdown.
    stop_key: str = DEFAULT_CHORD
    environ: Mapping[str, str] | None = None  # of a sandbox's programs; None for this process

    def findings(self) -> Iterator[Finding]:
        """Yield the findings, the screen first. Raises StoppedError: the person ended the trial."""
        environ = os.environ if self.environ is None else self.environ
        if not self.tried and asks_consent(environ, self.kind):
            yield Finding("screen", ok=None, detail=f"the desktop itself asks you first, so {_UNTRIED}", remedy=_TRY)
            return
        if asks := asks_first(environ, self.kind):
            remark(asks)
        try:
            desktop = open_desktop(self.stop, self.monitor, self.environ, self.kind)
        except MaiError as error:
            yield Finding("screen", ok=False, detail=error.what, remedy=error.remedy)
            return
        with ExitStack() as opened:
            opened.callback(desktop.close)
            opened.callback(desktop.screen.close)
            screen = attempted("screen", lambda: _capture(desktop, tried=self.tried))
            yield screen
            if screen.ok is not False:
                taken = attempted("input", desktop.check_input)
                yield taken if self.tried or not taken.ok else replace(taken, ok=None, remedy=_TRY)
                yield from self._trial(desktop) if self.tried else [Finding("trial", None, _UNTRIED, _TRY)]
            yield from (Finding("limit", ok=True, detail=one) for one in desktop.abilities.lacks())

    def _trial(self, desktop: Desktop) -> Iterator[Finding]:
        environ = window_environ(desktop, os.environ)
        if environ is None:
            detail = "this system cannot show a window of our own, so nothing was tried"
            yield Finding("trial", ok=False, detail=detail)
            return
        with closing(Registered(f"doctor-{os.getpid()}", "doctor --try")):
            if self.stop_key:
                self._announce()
            yield from SelfTest(desktop, environ, self.stop, self.stop_key).run()

    def _announce(self) -> None:
        remark(
            "For some seconds, a window of our own gets the pointer and the keyboard: do not touch them.",
            f"Ctrl-C ends it, and so does {self.stop_key} where that is watched.",
        )
        for left in range(COUNTDOWN, 0, -1):
            remark(f"{left} ...")
            self.stop.sleep(1)


def attempted(name: str, look: Callable[[], str | Finding]) -> Finding:
    """Return what `look` finds, or its error, as a finding."""
    try:
        found = look()
    except StoppedError:
        raise
    except MaiError as error:
        return Finding(name, ok=False, detail=error.what, remedy=error.remedy)
    return Finding(name, ok=True, detail=found) if isinstance(found, str) else found


def _capture(desktop: Desktop, *, tried: bool) -> Finding:
    frame = desktop.screen.grab()
    scale_x, scale_y = frame.viewport.scale
    monitors = ", ".join(f"{region.size} at {region.left},{region.top}" for region in desktop.monitors)
    scale = "" if scale_x == scale_y == 1 else f", captured at scale {scale_x:g}x{scale_y:g}"
    detail = f"{desktop.name} {monitors}{scale}".strip()
    if empty := what_is_empty(frame.image):
        detail = f"{detail}, but {empty}: either nothing is shown, or it is not seen"
        return Finding("screen", ok=None, detail=detail, remedy="" if tried else _TRY)
    return Finding("screen", ok=True, detail=detail)


#: How findings are marked.
_MARKS = {True: "ok     ", False: "MISSING", None: "untried"}


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Look at everything; status 3 when something is missing that every run needs, or a trial failed."""
    options = _parser().parse_args(argv)
    check_sandbox(options)
    settings, settings_finding = _settings()
    stop, bad = StopSwitch(), False
    with stop_signals(stop), ExitStack() as opened:
        found = _of_sandbox(options, stop, opened) if options.sandbox else _of_machine(options, settings, stop)
        for finding in chain([settings_finding], found):
            bad = bad or (finding.needed and finding.ok is False)
            data = {"name": finding.name, "ok": finding.ok, "detail": finding.detail, "remedy": finding.remedy}
            tell(options.json, data, f"{_MARKS[finding.ok]} {finding.name}: {finding.detail}{_then(finding)}")
    return ExitStatus.ENVIRONMENT if bad else ExitStatus.DONE


def _parser() -> Parser:
    parser = Parser(prog="mai-agent doctor", description="Say what this machine has and lacks.")
    parser.add_argument("--json", action="store_true", help="one object per line: name, ok (null: not tried), detail, "
                        "remedy")  # fmt: skip
    parser.add_argument("--try", dest="tried", action="store_true", help="open a window, and test in it what is "
                        "really seen, clicked, typed, dragged, scrolled and copied")  # fmt: skip
    add_options(parser, "desktop", titled=False, without=("remote",))
    add_options(parser, "sandbox")
    return parser


def _then(finding: Finding) -> str:
    if not finding.remedy:
        return ""
    return f"{'' if finding.detail.endswith(('.', '!', '?')) else '.'} {finding.remedy}"


def _of_sandbox(options: Namespace, stop: StopSwitch, opened: ExitStack) -> Iterator[Finding]:
    from agent.sandbox.desktop import SandboxSpec, start_sandbox

    plain = SandboxSpec()
    spec = SandboxSpec(
        options.sandbox_size or plain.size, options.keep, options.sandbox_session or plain.session,
        options.sandbox_locale, options.sandbox_network,
    )  # fmt: skip
    sandbox = start_sandbox(spec, remark, stop.check)
    opened.callback(sandbox.close)
    sandbox.applied()
    doctor = DesktopDoctor(
        stop=stop, kind="auto", monitor=options.monitor, tried=options.tried, stop_key="", environ=sandbox.environ
    )
    yield from _needed(doctor.findings(), tried=options.tried)
    if options.keep:
        remark(sandbox.how_to_look())


def _of_machine(options: Namespace, settings: Settings, stop: StopSwitch) -> Iterator[Finding]:
    kind: DesktopKind = options.desktop or settings.desktop
    yield Finding("python", ok=True, detail=f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield attempted("runs", lambda: _runs(settings))
    chord = settings.get("stop_key") or DEFAULT_CHORD
    doctor = DesktopDoctor(stop=stop, kind=kind, monitor=options.monitor, tried=options.tried, stop_key=chord)
    seen: bool | None = None
    for finding in _needed(doctor.findings(), tried=options.tried):
        seen = finding.ok if finding.name == "screen" else seen
        yield finding
    if sys.platform.startswith("linux"):
        yield from _session(kind)
        yield _accessibility()
    yield _sandbox()
    if sys.platform.startswith("linux"):
        yield _isolation()
    ways = [name for name, ok in (("a screen", seen is not False), ("the sandbox", bool(_sandbox().ok))) if ok]
    detail = f"there is {' and '.join(ways)}" if ways else "there is neither, and one of them is needed"
    yield Finding("screen or sandbox", ok=bool(ways), detail=detail, needed=True)
    for program, package in needed_programs().items():
        found = shutil.which(program) is not None
        remedy = "" if found else f"Install it: apt-get install {package}."
        yield Finding("clipboard", ok=found, detail=program if found else f"{program} is missing", remedy=remedy)
    yield attempted("reading words", _reading)
    url = settings.get("endpoint")
    if url is None:
        yield Finding("local server", ok=True, detail=_local_server())
        yield Finding("endpoint", ok=True, detail="none configured")
    else:
        yield attempted("endpoint", lambda: _endpoint(str(url), settings))


def _needed(found: Iterator[Finding], *, tried: bool) -> Iterator[Finding]:
    """Mark findings as needed after a trial. Without a trial they are not: a sandbox may be used instead."""
    return (replace(one, needed=tried) for one in found)


def _settings() -> tuple[Settings, Finding]:
    path = settings_path()
    try:
        return load_settings(), Finding("settings", ok=True, detail=str(path) if path.exists() else f"none ({path})")
    except MaiError as error:  # the other checks then use default settings
        return Settings(), Finding("settings", ok=False, detail=error.what, remedy=error.remedy, needed=True)


def _runs(settings: Settings) -> Finding:
    """Whether runs can be recorded."""
    folder = runs_dir(None, settings)
    there = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
    if there.is_dir() and os.access(there, os.W_OK):
        return Finding("runs", ok=True, detail=f"recorded in {folder}")
    detail, remedy = f"{there} cannot be written, so no run can be recorded", "Name another folder with --runs."
    return Finding("runs", ok=False, detail=detail, remedy=remedy, needed=True)


def _session(kind: DesktopKind) -> Iterator[Finding]:
    from agent.desktop.linux import session

    if wants_portal(os.environ, kind):
        yield from session.portal(os.environ, portal_lacks(os.environ))


def _local_server() -> str:
    from agent.model import engines

    if engines.is_running():
        return "one runs, and is used (`mai-server status`)"
    reason = engines.why_no_server()
    return f"{reason} Runs use the literal engine." if reason else "can be started here (`mai-server doctor` says more)"


def _accessibility() -> Finding:
    from agent.desktop.trees.switch import answering, is_switched_on, session_bus

    name, session = "accessibility", session_bus(os.environ)
    on = is_switched_on(session) if session else None
    if on is None:
        detail = "not known: no session bus reports it, so only words and pixels are seen"
        return Finding(name, ok=None, detail=detail)
    programs = answering(session)
    if programs is None:
        detail = "its bus does not answer, so only words and pixels are seen"
        return Finding(name, ok=False, detail=detail, remedy="Install it: apt-get install at-spi2-core; log in again.")
    if on:
        return Finding(name, ok=True, detail=f"on, and {programs} programs tell what their buttons and fields are")
    detail = f"off; {programs} programs report elements, browsers do not; a run asks to switch it on"
    return Finding(name, ok=True, detail=f'{detail} (accessibility = "ask", "on" or "off" in the settings)')


def _sandbox() -> Finding:
    from agent.sandbox.sessions import install_line, load_session, session_names

    sessions = [load_session(name) for name in session_names()]
    ready = [session.name for session in sessions if session.can_start()]
    lacking = load_session("xfce").missing()
    detail = f"install: {install_line(lacking)}" if lacking else f"can start: {', '.join(ready)}"
    return Finding("sandbox", ok=not lacking, detail=detail)


def _isolation() -> Finding:
    from agent.sandbox.isolation import open_sockets, why_not

    lack = why_not("host")
    if lack is not None:
        why, remedy = lack
        return Finding(
            "isolation", ok=False, detail=f"programs in a sandbox can reach your files and your network: {why} {remedy}"
        )
    closed = why_not("none")
    if closed is not None:
        detail = f"programs in a sandbox cannot reach your files, but always your network: {closed[0]} {closed[1]}"
        return Finding("isolation", ok=True, detail=detail)
    summary = "programs in a sandbox cannot reach your files; --sandbox-network none keeps them from the network too"
    return Finding("isolation", ok=True, detail=f"{summary}. {open_sockets()}".removesuffix(". "))


def _reading() -> str:
    from agent.screen.ocr import data_folder

    folder = data_folder("Reading words on the screen (the literal engine, rules about what is clicked)")
    return f"tesseract data in {folder}: for the literal engine, and for rules about what is clicked"


def _endpoint(url: str, settings: Settings) -> str:
    from agent.families.registry import detect_family
    from agent.model.clients import client_of
    from agent.model.endpoint import Endpoint, EngineChoice
    from agent.model.engines import named_endpoint
    from agent.run.calibration.remembered import remembered

    choice = EngineChoice("endpoint", url, settings.get("model"), settings.api_key)

    async def ask() -> Endpoint:
        client = client_of(named_endpoint(choice).endpoint)
        try:
            return await client.discover(detect_family)
        finally:
            await client.aclose()

    endpoint = asyncio.run(ask())
    context = f", context {endpoint.limits.context}" if endpoint.limits.context else ""
    known = [f"on {screen}: {one.words}" for screen, one in remembered(endpoint.base_url, endpoint.model or "")]
    clicks = "; ".join(known) or "where it clicks is not known yet (`mai-agent calibrate`)"
    return f"{endpoint.base_url} serves {endpoint.model}{context}. {clicks[0].upper()}{clicks[1:]}"
