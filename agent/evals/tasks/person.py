"""The person of a task: answers, approvals, and what they do while the run is under way."""

import re
from collections.abc import Callable

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.evals.tasks.task import Person
from agent.events.run_events import Event, StepFinished
from agent.run.control import Steering
from agent.safety.policy import Approval, Question
from agent.safety.stop import StopSwitch


class ScriptedPerson:
    """Plays the person of a task; also an `Approver` and a `Person` of the run.

    Args:
        script: what they answer and do.
        stop: stops the run.
        on_desktop: runs a shell command on the desktop.
    """

    def __init__(self, script: Person, stop: StopSwitch, on_desktop: Callable[[str], object]) -> None:
        self._script = script
        self._stop = stop
        self._on_desktop = on_desktop
        self.steering = Steering()
        self.stopped = False  # by the script
        self._before(1)

    def handle(self, event: Event) -> None:
        """Do what is to be done before the next step."""
        if isinstance(event, StepFinished):
            self._before(event.step + 1)

    def _before(self, step: int) -> None:
        for doing in self._script.at:
            if doing.step != step:
                continue
            if doing.does:
                self._on_desktop(doing.does)
            if doing.say:
                self.steering.tell(doing.say)
            if doing.stops:
                self.stopped = True
                self._stop.stop("the person of the task stopped it")

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:  # noqa: ARG002 -- the protocol's
        """Approve all or nothing."""
        return Approval(allowed=self._script.approves, by="the person of the task")

    async def ask(self, question: str) -> str | None:
        """Return the reply that is foreseen for a question; None if there is none."""
        return next((reply for pattern, reply in self._script.answers.items() if re.search(pattern, question)), None)

    async def permit(self, question: str) -> bool:  # noqa: ARG002 -- the protocol's
        """Permit it if the person approves actions."""
        return self._script.approves
