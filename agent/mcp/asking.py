"""The person behind a host. The calling model cannot answer for them: the host asks, or a page in their browser.

Up to protocol 2025-11-25, the server sends the question during the call. From 2026-07-28 on, the call returns that
input is required, and the host calls again with the reply. The run waits in between.
"""

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agent.api.desktop import AsyncDesktop
from agent.conductor import PersonThere, Report, Run, RunBegan, RunClosed
from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.record.bundle import Recorder
from agent.safety.naming import unplaced
from agent.safety.policy import Approval, Question
from agent.safety.question_text import asked
from agent.web.browser import open_browser
from agent.web.start import PageBeside
from foundation.foreign_text import harmless

T = TypeVar("T")

#: Seconds for a reply; the state that the host hands back is valid as long.
_TIMEOUT = 600.0
#: The name of the one question that a call asks at a time.
_QUESTION = "question"
#: Most questions of one call in the newer protocol: the SDK's client gives up after this many.
_MOST_ROUNDS = 10


class Call:
    """One tool call. `context` is that of the host's latest request for it."""

    def __init__(self, context: "Context[Any, Any]") -> None:
        self.context = context
        self.token = secrets.token_urlsafe(12)
        self.asked = asyncio.Event()
        self.question: ElicitRequest | None = None
        self.waits = False  # for a reply
        self._rounds = 0
        self._reply: asyncio.Future[Any] | None = None

    @property
    def rounds_left(self) -> bool:
        """Whether the call may ask once more."""
        return self._rounds < _MOST_ROUNDS

    @property
    def can_ask(self) -> bool:
        """Whether the host can ask its person."""
        known = self.context.client_capabilities
        return known is not None and known.elicitation is not None and self.rounds_left

    async def ask(self, message: str, kind: str, **titles: str) -> Mapping[str, Any]:
        """Ask for values of a JSON type by name, the first of them required.

        Return nothing if the person declines, does not reply, or cannot be asked.
        """
        if not self.can_ask:
            return {}
        properties = {name: {"type": kind, "title": title} for name, title in titles.items()}
        schema = {"type": "object", "properties": properties, "required": [*properties][:1]}
        self.waits = True
        try:
            answer = await self._answer(message, schema)
        finally:
            self.waits = False
        if not isinstance(answer, ElicitResult) or answer.action != "accept":
            return {}
        return answer.content or {}

    async def _answer(self, message: str, schema: dict[str, Any]) -> Any:
        if self.context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            asking = self.context.session.elicit_form(message, schema, related_request_id=self.context.request_id)
            # Over HTTP, nothing tells that a host has gone. An error or a malformed reply agrees to nothing.
            with suppress(TimeoutError, MCPError, ValidationError):
                return await asyncio.wait_for(asking, _TIMEOUT)
            return None
        self._rounds += 1
        self.question = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
        self._reply = asyncio.get_running_loop().create_future()
        self.asked.set()
        done, _ = await asyncio.wait([self._reply], timeout=_TIMEOUT)
        return self._reply.result() if done else None

    def replied(self, context: "Context[Any, Any]") -> None:
        """Go on with the host's next request, which brings the reply."""
        self.context = context
        self.asked.clear()
        if self._reply is not None and not self._reply.done():
            self._reply.set_result((context.input_responses or {}).get(_QUESTION))


class Calls:
    """The calls under way, by the state that their hosts hand back."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Call, asyncio.Future[Any]]] = {}

    async def run(
        self, context: "Context[Any, Any]", work: Callable[[Call], Awaitable[T]]
    ) -> "T | InputRequiredResult":
        """Do the work of a call, or go on with it, until it is done or needs a reply.

        Cancelling it cancels the work. A new call aborts all calls that wait for a reply, because in the newer protocol
        a host does not report that it cancelled a call. Raises ToolError: the reply belongs to an aborted call.
        """
        state = context.request_state
        if state is None:
            await self._give_up()
            call = Call(context)
            task: asyncio.Future[Any] = asyncio.ensure_future(work(call))
        elif state in self._waiting:
            call, task = self._waiting.pop(state)
            call.replied(context)
        else:
            raise ToolError("This call was given up, because another one began or no reply came. Call again.")
        asked = asyncio.ensure_future(call.asked.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            asked.cancel()
        if task.done():
            result: T = task.result()
            return result
        assert call.question is not None  # `asked` was set with it
        self._waiting[call.token] = (call, task)
        return InputRequiredResult(input_requests={_QUESTION: call.question}, request_state=call.token)

    async def _give_up(self) -> None:
        tasks = [task for _, task in self._waiting.values()]
        self._waiting.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


#: Why nobody was asked, in one sentence, because the engine reads it as the reason of a failure.
_NOBODY = (
    "to {} needs a person's approval ({}), but {}, and there is no screen for a browser: do this part by hand, or run "
    "the task with `mai-agent` in a terminal"
)


class HostPerson:
    """A `Person` asked through the host of one call; if it cannot ask, through the person that `page` returns."""

    def __init__(self, call: Call, page: Callable[[], PersonThere | None] = lambda: None) -> None:
        self._call, self._page = call, page

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Ask whether the action may be carried out; refuse it if nobody can be asked."""
        if not self._call.can_ask:
            if (person := self._page()) is not None:
                return await person.approve(action, question)
            why = "the host cannot ask one" if self._call.rounds_left else f"this call asked {_MOST_ROUNDS} times"
            return Approval(False, "mai-agent", note=_NOBODY.format(unplaced(action), question.reason, why))
        request = asked(action, question)
        action_text = " ".join(filter(None, (request.what, request.where)))
        because = f"Asked because {'; '.join(request.reasons)}."
        lines = [f"Allow mai-agent to {action_text}?", request.text, *request.facts, because]
        more = {"for_the_run": f"Also allow {request.scope}"} if request.scope else {}
        answer = await self._call.ask("\n".join(filter(None, lines)), "boolean", allow="Allow this", **more)
        allowed = answer.get("allow") is True
        return Approval(allowed, "you", always=allowed and bool(more) and answer.get("for_the_run") is True)

    async def ask(self, question: str) -> str | None:
        """Return the person's reply; None if nobody can be asked, or they decline."""
        if not self._call.can_ask and (person := self._page()) is not None:
            return await person.ask(question)
        reply = (await self._call.ask(harmless(question), "string", reply="Your reply")).get("reply")
        return reply if isinstance(reply, str) else None

    async def permit(self, question: str) -> bool:
        """Ask a yes/no question; anything but a yes is a no."""
        if not self._call.can_ask and (person := self._page()) is not None:
            return await person.permit(question)
        return (await self._call.ask(question, "boolean", allow="Allow this")).get("allow") is True


class QuestionPage:
    """A page that is opened by the first question, and again if it was closed meanwhile.

    `tell` receives a sentence for the host that says where the person must look.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._environ = dict(os.environ)  # the person's environment; a sandbox changes this process's
        self.desktop: AsyncDesktop | None = None  # set by its first use
        self._page: PageBeside | None = None
        self._shown: list[Report] = []  # reports that a newly opened page gets first

    def post(self, report: Report) -> None:
        """Take a report, on any thread."""
        if isinstance(report, RunBegan | RunClosed):
            self._shown = [report]
        if self._page is not None:
            self._page.post(report)

    def person(self) -> PersonThere | None:
        """Return the person at the page; None if no browser can be opened."""
        if self._page is None or not self._page.is_shown:
            self.close()
            try:
                page = PageBeside(self, None, self._shown)
            except OSError:
                return None
            # The first browser that opens the link may decide: only the person's browser gets it, never the model.
            if not open_browser(page.link, self._environ):
                page.close()
                return None
            self._page = page
        self._tell("A question waits for you in your browser.")
        return PersonThere(self.post)

    @property
    def run(self) -> Run | None:
        """The run that the page shows and steers; see `Runs`."""
        return None if self.desktop is None else self.desktop.run

    @property
    def recorder(self) -> Recorder | None:
        """The recorder of that run."""
        return None if self.desktop is None else self.desktop.recorder

    def stop(self, reason: str) -> None:
        """Stop the run at once."""
        if self.desktop is not None:
            self.desktop.stop(reason)

    def close(self) -> None:
        """End the page."""
        if self._page is not None:
            self._page.close()
            self._page = None
