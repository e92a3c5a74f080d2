"""The page before the first run: examples, the last runs, and the state of engine, server and desktop.

Reading this state takes longer than the first paint, so a thread reads it, and the page shows it afterwards.
"""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from textual.content import Content

from agent.options import RunOptions
from agent.tui.view import TONES, Tone
from foundation.errors import MaiError
from foundation.foreign_text import harmless

#: Sentences that every engine understands.
EXAMPLES = ("open settings and enable dark mode", "open the text editor and type “hello”", "open the file manager")
#: How many of the last runs are shown, and seconds that an endpoint has to answer.
_RUNS, _TIMEOUT = 3, 1.0


@dataclass(frozen=True, slots=True)
class Here:
    """The engine, the server, the desktop and the last runs; "" for a fact that is not known yet."""

    engine: str = ""
    server: str = ""
    desktop: str = ""
    has_desktop: bool = True
    runs: list[tuple[str, Tone, str]] = field(default_factory=list)  # how it ended, and what was asked for


def look(options: RunOptions) -> Here:
    """Find out which engine, server, desktop and runs there are. May take a second."""
    engine, server = _engine(options)
    desktop, has_desktop = _desktop(options)
    return Here(engine, server, desktop, has_desktop, _last_runs(options))


def _engine(options: RunOptions) -> tuple[str, str]:
    from agent.model.engines import is_running, why_no_server

    choice = options.engine
    if choice.url is not None and choice.name != "literal":
        return f"the endpoint {choice.url}", _answers(choice.url)
    running = is_running()
    reason = "" if running else why_no_server()
    server = "runs" if running else f"none: {reason}" if reason else "none runs; the first run starts one"
    if choice.name == "literal" or (choice.name == "auto" and not running and reason):
        return "built in, without a model: it follows simple sentences", server
    return "a local server (vLLM)", server


def _answers(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    with suppress(OSError, ValueError):
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname, port), _TIMEOUT):
            return "can be reached"
    return "cannot be reached"


def _desktop(options: RunOptions) -> tuple[str, bool]:
    from agent.desktop.factory import check_display

    if options.sandbox:
        return f"a throw-away one ({options.sandbox_session}), started with the first run", True
    if options.remote is not None:
        return options.remote, True
    try:
        check_display(os.environ, options.desktop, options.monitor)
    except MaiError as error:
        return error.what, False
    return "yours", True


def _last_runs(options: RunOptions) -> list[tuple[str, Tone, str]]:
    from agent.record.read import list_bundles
    from agent.tui.recorded import view_of

    views = [view_of(bundle) for bundle in list_bundles(options.runs, _RUNS)]
    return [(*view.ending, view.title) for view in views]


def words(here: Here) -> Content:
    """The page as text."""
    parts = [*_key("Enter", "does what you wrote on the line below"), *_key("Tab", "puts one of these there:")]
    parts += [(f"{'':9}{example}\n", "") for example in EXAMPLES]
    facts = [("engine", here.engine), ("server", here.server), ("desktop", here.desktop)]
    for name, fact in facts:
        colour = "$text-warning" if name == "desktop" and not here.has_desktop else ""
        parts += [(f"{name:>7} ", "$text-muted"), (f" {harmless(fact or '...')}\n", colour)]
    if not here.has_desktop:
        parts += _key("F2", "works in a throw-away desktop (sandbox) instead")
    for at, (ended, tone, instruction) in enumerate(here.runs):
        parts += [("   last " if at == 0 else " " * 8, "$text-muted"), (f" {ended:<14}", TONES[tone])]
        parts += [(f"{instruction}\n", "")]
    parts += _key("↑", "what you asked for before; ctrl+r searches it")
    parts += _key("Esc, o", "recorded runs: look, compare, run again")
    parts += _key("Esc, ?", "the keys, by what you want to do")
    parts += _key("ctrl+p", "everything there is, by name")
    return Content.assemble(*parts).rstrip()


def _key(key: str, description: str) -> list[tuple[str, str]]:
    return [(f"{key:>7} ", "bold"), (f" {description}\n", "$text-muted")]
