"""The desktop that a run uses: it hides our own windows and lets actions go only where the policy judged them to go."""

import asyncio
from collections.abc import Sequence
from contextlib import closing

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.desktop.guard.hand import GuardedHand, put_back_above
from agent.desktop.guard.own_windows import Own, find_own
from agent.desktop.guard.reach import MaskedElements, MaskedScreen, Reach
from agent.desktop.guard.sources import unreadable
from agent.desktop.guard.surroundings import DesktopSurroundings
from agent.desktop.input.hand import DryRunHand
from agent.desktop.protocol.desktop import Desktop, Steered, TakeoverWatch
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.hand import Hand
from agent.desktop.protocol.windows import Connection, OpenWindows
from agent.safety.policy import Approval, Approver, Question
from agent.screen.capture import Screen

#: Seconds that window managers need to hand over the focus, and how often the focus is requested: a program that
#: starts at the same moment may take it again.
_HANDOVER, _ASKED = 0.3, 5
_LOST = "The window that had the focus is gone, or does not come to the front: look again."


class GuardedDesktop:
    """Screen, hand and surroundings for one run. Raises EnvironmentLacksError: the desktop accepts no input.

    `ours`: whether our terminal, or a browser with our page, may be on this desktop; False for a sandbox. `languages`
    are tesseract's names of the languages on the screen.
    """

    def __init__(
        self, desktop: Desktop, *, dry_run: bool = False, ours: bool = True, languages: Sequence[str] = ("eng",)
    ) -> None:
        self._desktop = desktop
        own = find_own(desktop.open_windows, desktop.shows) if ours else Own()
        self._remark = own.remark
        self.reach = reach = Reach(desktop.open_windows, own.windows, own.placed, pages=ours)
        self._watching = Connection(desktop.open_windows)  # used by the thread that watches for a takeover
        self.applications = desktop.applications
        self.open_windows = desktop.open_windows
        self.screen: Screen = MaskedScreen(desktop.screen, reach)
        self.surroundings = DesktopSurroundings(
            self.screen, desktop.applications, reach, self.open_elements, languages,
            desktop.abilities.untold,
        )  # fmt: skip
        self.hand: Hand = DryRunHand()
        if not dry_run:
            self.hand = GuardedHand(desktop.hand, reach, lambda: self.surroundings.meant)

    def open_elements(self) -> Elements | None:
        elements = self._desktop.open_elements()
        return None if elements is None else MaskedElements(elements, self.reach)

    def remarks(self, *, judged: bool) -> list[str]:
        """Return what the person should know about this desktop; with `judged`, also whether words can be read."""
        sentences = [*self._desktop.abilities.lacks(), self._remark, unreadable() if judged else ""]
        return [remark for remark in sentences if remark]

    def approver(self, approver: Approver) -> Approver:
        """Wrap an approver so that the focus returns to its window after each question."""
        return FocusKeeper(approver, self.open_windows) if self.hand.touches else approver

    def watch(self, stop_key: str, steering: Steered | None) -> str:
        """Start the watches of `Desktop.watch`. `steering` is notified of a takeover; None if nobody could resume."""
        if steering is None or not self.hand.touches:
            return self._desktop.watch(stop_key, None)
        return self._desktop.watch(stop_key, TakeoverWatch(steering, self.hand.rest, self._is_ours))

    def _is_ours(self, at: tuple[int, int] | None) -> bool:
        windows = self._watching.get() if self.reach.may_own else None
        return windows is not None and self.reach.owns(windows.active() if at is None else windows.at(*at))

    def close(self) -> None:
        """End the watches. Screen and hand are closed on their own threads."""
        self.surroundings.close()
        self._desktop.close()


class FocusKeeper:
    """An `Approver` that gives the focus back to the window that had it before the question.

    To answer, the person focuses and raises the terminal. Without this class, an approved alt+F4 or text would go to
    the terminal, and the terminal would cover the place of an approved click.
    """

    def __init__(self, approver: Approver, open_windows: OpenWindows) -> None:
        self._approver = approver
        self._open_windows = open_windows

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Ask, then refocus the window; if it does not get the focus, deny the action."""
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
            for _ in range(_ASKED):
                if not windows.activate(before.id):
                    break
                await asyncio.sleep(_HANDOVER)
                if (now := windows.active()) is not None and now.id == before.id:
                    return approval
            return Approval(allowed=False, by="mai-agent", note=_LOST)
