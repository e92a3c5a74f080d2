"""`mai-agent doctor`: says what this machine has and lacks, one line each, and what to do about it."""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from agent.desktop.base import Desktop
from agent.desktop.factory import needed_programs, open_desktop
from agent.safety.stop import StopSwitch
from agent.settings import Settings, load_settings
from foundation.arguments import Parser
from foundation.errors import ExitStatus, MaiError
from foundation.printing import put, put_json
from foundation.settings_file import settings_path
from foundation.stray_output import stray_output_kept


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `needed` marks what nothing works without."""

    name: str
    ok: bool
    detail: str
    needed: bool = False


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Look at everything; status 3 when something is missing that every run needs."""
    parser = Parser(prog="mai-agent doctor", description="Say what this machine has and lacks.")
    parser.add_argument("--json", action="store_true", help="one object per line")
    options = parser.parse_args(argv)
    lacking = False
    for finding in findings(load_settings()):
        lacking = lacking or (finding.needed and not finding.ok)
        if options.json:
            put_json({"name": finding.name, "ok": finding.ok, "detail": finding.detail})
        else:
            put(f"{'ok     ' if finding.ok else 'MISSING'} {finding.name}: {finding.detail}")
    return ExitStatus.ENVIRONMENT if lacking else ExitStatus.DONE


def findings(settings: Settings) -> Iterator[Finding]:
    """What there is, from the ground up."""
    yield Finding("python", ok=True, detail=f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    path = settings_path()
    yield Finding("settings", ok=True, detail=str(path) if path.is_file() else f"none ({path})")
    desktop = list(_desktop())
    yield from desktop
    if sys.platform.startswith("linux"):
        yield Finding("accessibility", ok=True, detail=_accessibility())
    yield _sandbox()
    if sys.platform.startswith("linux"):
        yield _isolation()
    yield Finding(
        "screen or sandbox", ok=desktop[0].ok or _sandbox().ok, detail="one of the two is needed", needed=True
    )
    for program, package in needed_programs().items():
        found = shutil.which(program) is not None
        yield Finding("clipboard", ok=found, detail=program if found else f"install it: apt-get install {package}")
    yield _try("reading words", _reading)
    url = settings.get("endpoint")
    if url is None:
        yield Finding("local server", ok=True, detail=_local_server())
        yield Finding("endpoint", ok=True, detail="none configured")
    else:
        yield _try("endpoint", lambda: _endpoint(str(url), settings))


def _local_server() -> str:
    from agent.model import serving

    if serving.is_running():
        return "one runs, and is used (`mai-server status`)"
    reason = serving.why_no_server()
    return f"{reason} Runs use the literal engine." if reason else "can be started here (`mai-server doctor` says more)"


def _try(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, ok=True, detail=look())
    except MaiError as error:
        return Finding(name, ok=False, detail=str(error))


def _desktop() -> Iterator[Finding]:
    """The screen and, where there is one, what takes input."""
    try:
        desktop = open_desktop(StopSwitch(), kind=load_settings().desktop)
    except MaiError as error:
        yield Finding("screen", ok=False, detail=str(error))
        return
    with closing(desktop.screen):
        screen = _try("screen", lambda: _capture(desktop))
        yield screen
        if screen.ok:
            yield _try("input", desktop.check_input)


def _capture(desktop: Desktop) -> str:
    scale_x, scale_y = desktop.screen.grab().viewport.scale
    monitors = ", ".join(f"{region.size} at {region.left},{region.top}" for region in desktop.monitors)
    scale = "" if scale_x == scale_y == 1 else f", captured at scale {scale_x:g}x{scale_y:g}"
    return f"{desktop.name} {monitors}{scale}".strip()


def _accessibility() -> str:
    from agent.desktop.accessibility import is_switched_on, session_bus

    session = session_bus(os.environ)
    on = is_switched_on(session) if session else None
    if on is None:
        return "not known here: no session bus tells of it, so only words and pixels are seen"
    if on:
        return "on: applications tell what their buttons and fields are"
    return (
        'off: browsers tell nothing; a run asks to switch it on (accessibility = "ask", "on" or "off" in the settings)'
    )


def _sandbox() -> Finding:
    from agent.sandbox.sessions import install_line, load_session, session_names

    sessions = [load_session(name) for name in session_names()]
    ready = [session.name for session in sessions if session.can_start()]
    lacking = load_session("xfce").missing()
    detail = f"install: {install_line(lacking)}" if lacking else f"can start: {', '.join(ready)}"
    return Finding("sandbox", ok=not lacking, detail=detail)


def _isolation() -> Finding:
    """Whether a sandbox keeps a person's files out of the reach of its programs."""
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
    told = "programs in a sandbox cannot reach your files; --sandbox-network none keeps them from the network too"
    return Finding("isolation", ok=True, detail=f"{told}. {open_sockets()}".removesuffix(". "))


def _reading() -> str:
    from agent.screen.ocr import data_folder

    folder = data_folder("Reading words on the screen (the literal engine, rules about what is clicked)")
    return f"tesseract data in {folder}: for the literal engine, and for rules about what is clicked"


def _endpoint(url: str, settings: Settings) -> str:
    from agent.families.registry import detect_family
    from agent.model.choose import named_endpoint
    from agent.model.clients import client_of
    from agent.model.endpoint import Endpoint
    from agent.model.engine import EngineChoice
    from agent.run.calibration.memory import remembered

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
