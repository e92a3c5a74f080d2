"""Gives the keyboard focus back to the window that had it before a question on the terminal.

Answering takes the focus to the terminal; an approved alt+F4 or text would go there instead of where it was meant to.
It also raises the terminal, which then covers what was approved to be clicked: the windows go back to their order.
"""

import asyncio
from contextlib import closing

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.windows import OpenWindows, WindowId, Windows
from agent.safety.policy import Approval, Approver, Question

#: Window managers need about this long to hand over the focus.
_HANDOVER = 0.3


class FocusKeeper:
    """An `Approver` around another one, for hands that touch the desktop of these windows."""

    def __init__(self, approver: Approver, open_windows: OpenWindows) -> None:
        self._approver = approver
        self._open_windows = open_windows

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Ask, then bring the window back; without it, an allowed action is not carried out."""
        windows = self._open_windows()
        if windows is None:
            return await self._approver.approve(action, question)
        with closing(windows):
            before, order = windows.active(), windows.stacking()
            approval = await self._approver.approve(action, question)
            now = windows.active()
            if not approval.allowed or before is None or (now is not None and now.id == before.id):
                return approval
            if now is not None:
                put_back_above(windows, order, now.id)
            if windows.activate(before.id):
                await asyncio.sleep(_HANDOVER)
                return approval
            return Approval(allowed=False, by="mai-agent", note="The window that had the focus is gone: look again.")


def put_back_above(windows: Windows, order: list[WindowId], raised: WindowId) -> None:
    """Raise the windows that were above one that has come to the front, in the order that they had."""
    if raised in order:
        for identifier in order[order.index(raised) + 1 :]:
            if windows.is_ordinary(identifier):
                windows.activate(identifier)
