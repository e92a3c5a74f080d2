"""Keys and buttons that a run holds down between actions, and when they are released."""

import asyncio
import time

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.core.notes import Note
from agent.run.loop.context import RunContext
from agent.safety.held_input import HELD_AT_MOST, LIFTING, Held

#: Seconds between two checks of whether keys may stay down.
_LOOK = 0.1


class HeldKeys:
    """Tracks what is held down, and releases it in time. Used on the run's event loop."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._notes: list[Note] = []
        self._guard: asyncio.Task[None] | None = None
        self.held = Held()

    def take_notes(self) -> list[Note]:
        """Return notes on what was released since the last call, for the model."""
        notes, self._notes = self._notes, []
        return notes

    def did(self, action: Action[DesktopPoint]) -> None:
        """Record an effective action that was carried out."""
        if isinstance(action, LIFTING):
            self._drop()
        self.held.did(action)
        if self.held and self._guard is None:
            self._guard = asyncio.ensure_future(self._watch())

    async def lift(self) -> None:
        """Release the keys. Modifiers are pressed again for the next action; other keys stay released."""
        if self.held.keys:
            await self._context.acting.call(self._context.hand.lift)
            self._drop()

    async def let_go(self) -> None:
        """Release everything for good."""
        if words := self.held.forget():
            self._notes.append(Note("let_go", words))
            await self._context.acting.call(self._context.hand.release_all)

    def end(self) -> None:
        """Stop watching at the end of the run. Closing the hand releases what is down."""
        if self._guard is not None:
            self._guard.cancel()

    def _drop(self) -> None:
        if gone := self.held.lift():
            self._notes.append(Note("let_go", " and ".join(gone)))

    async def _watch(self) -> None:
        """Release everything if the person wants the computer, or if a button is held without further actions."""
        steering, rest = self._context.steering, self._context.hand.rest
        try:
            while self.held:
                await asyncio.sleep(_LOOK)
                idle = not rest.busy and time.monotonic() - rest.since > HELD_AT_MOST
                if steering.paused or steering.acted or (idle and self.held.button is not None):
                    await self.let_go()
        finally:
            self._guard = None
