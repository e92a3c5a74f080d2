"""Finds the focused application from the accessibility bus, because GNOME reports it nowhere else."""

from contextlib import suppress

from agent.desktop.guard.own_windows import processes_above
from agent.desktop.trees.applications import Application, introduce, registered
from agent.desktop.trees.bus import Bus, Limits, Question
from agent.desktop.trees.roles import ACTIVE, has
from agent.desktop.trees.switch import buses
from agent.desktop.trees.tree import children, method, refs, states_of
from foundation.errors import EnvironmentLacksError

_MOST_WINDOWS = 50
#: Timeouts in seconds. A query takes some 10 ms; an application that hangs must not delay typing.
_LIMITS = Limits(silence=0.2, total=0.3, working=1.0)


def active_application(session: str) -> str:
    """Return the accessible name of the application with the focus; "" if none reports it."""
    found = _look(session)
    return "" if found is None else found.name


def terminal_has_focus(session: str) -> bool:
    """Whether the terminal that runs us has the focus. Also true if nothing reports it, as many terminals do not."""
    found, own = _look(session), processes_above()
    return bool(own) and (found is None or found.pid in own)


def _look(session: str) -> Application | None:
    """Return the focused application, or None unless exactly one reports the focus."""
    with suppress(EnvironmentLacksError):
        for address in buses(session):
            bus = Bus(address, _LIMITS)
            try:
                return bus.ask(_active())
            finally:
                bus.close()
    return None


def _active() -> Question[Application | None]:
    applications = yield from registered()
    replies = yield [children(ref) for ref in applications or ()]
    windows = [
        (application, window)
        for application, body in zip(applications or (), replies, strict=True)
        for window in refs(body, _MOST_WINDOWS)
    ]
    states = yield [method(window, "Accessible", "GetState", "au") for _, window in windows]
    having = [one for (one, _), body in zip(windows, states, strict=True) if has(states_of(body), ACTIVE)]
    if len(having) != 1:  # an application that hangs may still report an old focus
        return None
    return (yield from introduce(having[0]))
