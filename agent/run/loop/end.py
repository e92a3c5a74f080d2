"""How a run ends: its outcome, its exit status, and the sentence for the person."""

from agent.core.actions import Absent, Answer, EndAction, Finish, shorten
from agent.events.run_events import Outcome
from agent.evidence.claims import Verdict
from foundation.errors import ExitStatus

DRY_RUN_ENDS = "Dry run: the model repeats itself, because the screen does not show what its actions would change."
DRY_RUN_TOUCHES_NOTHING = "Dry run: nothing was touched."


class RunEnd(Exception):  # noqa: N818 -- not an error: the run is over
    """Ends the run, unless another model takes over. `stuck`: why the active model is stuck, as a clause; or ""."""

    def __init__(
        self,
        outcome: Outcome,
        status: ExitStatus,
        message: str,
        verdict: Verdict | None = None,
        stuck: str = "",
    ) -> None:
        super().__init__(message)
        self.stuck = stuck
        self.outcome: Outcome = outcome
        self.status = status
        self.message = message
        self.verdict = verdict or Verdict()


def looping(actions: str, dry_run: bool) -> RunEnd:
    """Return the end of a run whose model repeats itself."""
    if dry_run:
        return RunEnd("done", ExitStatus.DONE, DRY_RUN_ENDS)
    does = "repeats itself without effect"
    return RunEnd("looping", ExitStatus.NOT_DONE, f"The model {does}: {actions}.", stuck=f"it {does}")


def ending_of(action: EndAction) -> RunEnd:
    """Return the end that a model asks for."""
    match action:
        case Answer(text):
            return RunEnd("done", ExitStatus.DONE, text)
        case Absent(target):
            subject = shorten(target) if target else "What was asked for"
            return RunEnd("gave_up", ExitStatus.NOT_DONE, f"{subject} is not on the screen, the model says.")
        case Finish(success=True, message=message):
            return RunEnd("done", ExitStatus.DONE, message or "The task is done.")
        case Finish(message=message):
            return RunEnd("gave_up", ExitStatus.NOT_DONE, message or "The model gave up on the task.")
