"""Who decides about actions that need approval, for callers from Python."""

from collections.abc import Awaitable, Callable

from agent.console.terminal import Console
from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.run.loop.context import Person
from agent.safety.policy import Approval, Question
from agent.safety.question_text import asked
from agent.safety.stop import StopSwitch
from foundation.errors import UsageError

#: Takes a question in words and returns whether the action may be carried out.
Approve = Callable[[str], bool | Awaitable[bool]]


class CallbackPerson:
    """A `Person` whose approvals come from the caller's function; the model's questions get no answer."""

    def __init__(self, approve: Approve) -> None:
        self._approve = approve

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Ask the function whether the action may be carried out."""
        request = asked(action, question)
        words = "\n".join(
            filter(None, (" ".join(filter(None, (request.what, request.where))), request.text, *request.reasons))
        )
        return Approval(allowed=await self._says_yes(words), by="the program")

    async def ask(self, question: str) -> str | None:  # noqa: ARG002 -- the protocol's
        """Return None: nobody is there."""
        return None

    async def permit(self, question: str) -> bool:
        """Ask the function a yes/no question of the program itself."""
        return await self._says_yes(question)

    async def _says_yes(self, question: str) -> bool:
        try:
            answer = self._approve(question)
            return (await answer if isinstance(answer, Awaitable) else answer) is True
        except Exception as error:  # the caller's mistake, not ours
            why = f"{type(error).__name__}: {error}"
            raise UsageError(f"`approve_by` failed: {why}.", "Mend that function.") from error


def person_of(approve: Approve | None) -> Callable[[StopSwitch], Person]:
    """Return a factory of a run's person: the caller's function, or the terminal."""
    return Console if approve is None else lambda _: CallbackPerson(approve)
