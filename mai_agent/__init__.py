"""mai-agent from Python: carries out instructions and single actions on a desktop (docs/python.md).

Only what this module exports is public.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.api.desktop import AsyncDesktop, Desktop
from agent.api.person import Approve, person_of
from agent.api.results import Look, NotDoneError, NotSeenError, Result, Step
from agent.api.server import ModelServer
from agent.commands.arguments import check_sandbox
from agent.commands.run import add_run_options
from agent.core.changes import Change
from agent.events.run_events import Event
from agent.fleet.tasks import option_words
from agent.options import RunOptions
from agent.screen.outline import Element
from agent.settings import load_settings
from foundation.command_line import Parser
from foundation.errors import MaiError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "AsyncDesktop", "Change", "Desktop", "Element", "Look", "MaiError", "ModelServer", "NotDoneError", "NotSeenError",
    "Result", "Step", "async_desktop", "async_sandbox", "desktop", "ground", "sandbox", "server",
]  # fmt: skip

for _public in (AsyncDesktop, Desktop, Element, Look, MaiError, ModelServer, NotDoneError, NotSeenError, Result, Step):
    _public.__module__ = __name__  # so that messages call them by the name that others import


def _silent(_: object) -> None:
    pass


def _run_options(options: dict[str, Any]) -> RunOptions:
    parser = Parser("mai-agent", add_help=False, allow_abbrev=False)
    add_run_options(parser)
    arguments = parser.parse_args(option_words(options))
    check_sandbox(arguments)
    return RunOptions.of(arguments, load_settings())


def async_desktop(
    *,
    approve_by: Approve | None = None,
    tell: Callable[[str], None] = _silent,
    on_event: Callable[[Event], None] = _silent,
    **options: Any,
) -> AsyncDesktop:
    """Return the person's own desktop, for `async with`.

    Args:
        approve_by: decides about actions that need approval; None to ask at the terminal.
        tell: receives messages about starts.
        on_event: receives every event of every run.
        options: the options of the command line by name, such as `engine="literal"`, `endpoint=URL` or
            `max_steps=10` (docs/configuration.md).

    Raises:
        UsageError: there is no such option, or it cannot have that value.
    """
    for name, called in (("approve_by", approve_by or _silent), ("tell", tell), ("on_event", on_event)):
        if not callable(called):
            raise UsageError(f"{name} is a {type(called).__name__}, and no function.")
    return AsyncDesktop(_run_options(options), person_of(approve_by), tell, on_event)


def async_sandbox(
    *,
    size: str = "1280x800",
    session: str = "xfce",
    locale: str | None = None,
    network: str | None = None,
    **options: Any,
) -> AsyncDesktop:
    """Return a throw-away desktop for `async with`, which starts it in 1 to 3 s. Other arguments: `async_desktop`."""
    kind = {"sandbox_size": size, "sandbox_session": session, "sandbox_locale": locale, "sandbox_network": network}
    return async_desktop(**{"sandbox": True, **kind, **options})


def desktop(**options: Any) -> Desktop:
    """Return the person's own desktop, for `with`. Arguments: `async_desktop`."""
    return Desktop(async_desktop(**options))


def sandbox(**options: Any) -> Desktop:
    """Return a throw-away desktop, for `with`. Arguments: `async_sandbox`."""
    return Desktop(async_sandbox(**options))


def server(*, tell: Callable[[str], None] = _silent, **options: Any) -> ModelServer:
    """Return a model to ask about pictures, for `with`: the running server, a new one, or `endpoint=URL`.

    Args:
        tell: receives messages about starts.
        options: the options of the command line by name, such as `model="MAI-UI-2B"` or `endpoint=URL`.
    """
    return ModelServer(_run_options(options), tell)


def ground(image: "str | Path | Image", what: str, **options: Any) -> tuple[float, float] | None:
    """Return the point of something on a picture, in pixels; None if the model finds none.

    For many pictures, `server()` opens the model once. Other arguments: `server`.

    Raises:
        MaiError: there is no model, it cannot be asked, or the picture cannot be read.
    """
    with server(**options) as model:
        return model.ground(image, what)
