"""The person behind a host. The calling model cannot answer for them: the host asks, or a page in their browser."""

from collections.abc import Callable

from agent.conductor import PersonThere
from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.mcp.calls import Call
from agent.safety.naming import unplaced
from agent.safety.policy import Approval, Question
from agent.safety.question_text import asked

_NOBODY = (
    "This needs a person's approval. The host cannot ask one (it offers no elicitation), and there is no screen for a "
    "browser. Do this part by hand, or run the task with `mai-agent` in a terminal."
)


class HostPerson:
    """A `Person` who is asked through the host of one call, or, if it cannot ask, through what `page` returns."""

    def __init__(self, call: Call, page: Callable[[], PersonThere | None] = lambda: None) -> None:
        self._call, self._page = call, page

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Ask whether the action may be carried out; refuse it if nobody can be asked."""
        if not self._call.can_ask:
            if (person := self._page()) is not None:
                return await person.approve(action, question)
            return Approval(allowed=False, by="mai-agent", note=f"{unplaced(action)}: {question.reason}. {_NOBODY}")
        request = asked(action, question)
        action_text = " ".join(filter(None, (request.what, request.where)))
        lines = [
            f"Allow mai-agent to {action_text}?",
            request.text,
            *request.facts,
            f"Asked because {'; '.join(request.reasons)}.",
        ]
        more = {"for_the_run": f"Also allow {request.scope}"} if request.scope else {}
        answer = await self._call.ask("\n".join(filter(None, lines)), "boolean", allow="Allow this", **more)
        allowed = answer.get("allow") is True
        return Approval(allowed, "you", always=allowed and bool(more) and answer.get("for_the_run") is True)

    async def ask(self, question: str) -> str | None:
        """Return the person's reply; None if nobody can be asked, or they decline."""
        if not self._call.can_ask and (person := self._page()) is not None:
            return await person.ask(question)
        reply = (await self._call.ask(question, "string", reply="Your reply")).get("reply")
        return reply if isinstance(reply, str) else None

    async def permit(self, question: str) -> bool:
        """Ask a yes/no question; anything but a yes is a no."""
        if not self._call.can_ask and (person := self._page()) is not None:
            return await person.permit(question)
        return (await self._call.ask(question, "boolean", allow="Allow this")).get("allow") is True
