"""What a run holds down between its actions: let go of for the person, for time, and while a model thinks."""

import asyncio
import time

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.core.notes import Note
from agent.run.control.worker import Worker
from agent.run.loop.context import RunContext
from agent.safety.held_input import HELD_AT_MOST, LIFTING, Held

#: Between two looks at whether what is held down may stay so, in seconds.
_LOOK = 0.1


class HeldKeys:
    """Keeps account of what is down, and lets go of it in time. Used on the run's event loop.

    Args:
        context: of the run.
        acting: the thread of the hand.
    """

    def __init__(self, context: RunContext, acting: Worker) -> None:
        self._context = context
        self._acting = acting
        self._notes: list[Note] = []
        self._guard: asyncio.Task[None] | None = None
        self.held = Held()

    def take_notes(self) -> list[Note]:
        """What was let go that the model was not told yet."""
        notes, self._notes = self._notes, []
        return notes

    def did(self, action: Action[DesktopPoint]) -> None:
        """An effective action was carried out."""
        if isinstance(action, LIFTING):
            self._drop()
        self.held.did(action)
        if self.held and self._guard is None:
            self._guard = asyncio.ensure_future(self._watch())

    async def lift(self) -> None:
        """Let go of the keys for now; of those that cannot be pressed again without doing anything, for good."""
        if self.held.keys:
            await self._acting.call(self._context.hand.lift)
            self._drop()

    async def let_go(self) -> None:
        """Let go of everything for good."""
        if words := self.held.forget():
            self._notes.append(Note("let_go", words))
            await self._acting.call(self._context.hand.release_all)

    def end(self) -> None:
        """The run ends: what is down is let go of by whoever closes the hand."""
        if self._guard is not None:
            self._guard.cancel()

    def _drop(self) -> None:
        if gone := self.held.lift():
            self._notes.append(Note("let_go", " and ".join(gone)))

    async def _watch(self) -> None:
        """Let go when the person wants the computer, and of a button after which nothing came."""
        steering, rest = self._context.consent.steering, self._context.hand.rest
        try:
            while self.held:
                await asyncio.sleep(_LOOK)
                idle = not rest.busy and time.monotonic() - rest.since > HELD_AT_MOST
                if steering.paused or steering.acted or (idle and self.held.button is not None):
                    await self.let_go()
        finally:
            self._guard = None
