"""Tool calls that may ask the person through the host (MCP elicitation) while they run.

Up to protocol 2025-11-25 the server sends the question during the call. From 2026-07-28 on, the call answers that input
is required, and the host calls again with the reply; the run waits in between.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

T = TypeVar("T")

#: Seconds for a reply; the state that the host hands back is valid as long.
_PATIENCE = 600.0
#: The name of the one question that a call asks at a time.
_QUESTION = "question"


class Call:
    """One tool call. `context` is that of the host's latest request for it."""

    def __init__(self, context: "Context[Any, Any]") -> None:
        self.context = context
        self.token = secrets.token_urlsafe(12)
        self.asked = asyncio.Event()
        self.question: ElicitRequest | None = None
        self._reply: asyncio.Future[Any] | None = None

    @property
    def can_ask(self) -> bool:
        """Whether the host can ask its person."""
        known = self.context.client_capabilities
        return known is not None and known.elicitation is not None

    async def ask(self, message: str, kind: str, **titles: str) -> Mapping[str, Any]:
        """Ask for values of a JSON type by name, the first of them required.

        Return nothing if the person declines, does not reply, or cannot be asked.
        """
        if not self.can_ask:
            return {}
        properties = {name: {"type": kind, "title": title} for name, title in titles.items()}
        schema = {"type": "object", "properties": properties, "required": [*properties][:1]}
        if self.context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            session = self.context.session
            answer = await session.elicit_form(message, schema, related_request_id=self.context.request_id)
        else:
            self.question = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
            self._reply = asyncio.get_running_loop().create_future()
            self.asked.set()
            done, _ = await asyncio.wait([self._reply], timeout=_PATIENCE)
            answer = self._reply.result() if done else None
        if not isinstance(answer, ElicitResult) or answer.action != "accept":
            return {}
        return answer.content or {}

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

        Cancelling it cancels the work.
        """
        state = context.request_state
        call, task = self._waiting.pop(state, (None, None)) if state else (None, None)
        if call is None or task is None:
            call = Call(context)
            task = asyncio.ensure_future(work(call))
        else:
            call.replied(context)
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
