"""A desktop as a run uses it: our own windows out of sight and reach, and every action where it was judged to go."""

from collections.abc import Sequence

from agent.desktop.guard.checked_hand import CheckedHand
from agent.desktop.guard.focus import FocusKeeper
from agent.desktop.guard.masked_elements import MaskedElements
from agent.desktop.guard.masked_screen import MaskedScreen
from agent.desktop.guard.own_windows import Own, find_own
from agent.desktop.guard.surroundings import DesktopSurroundings
from agent.desktop.input.hand import RecordingHand
from agent.desktop.protocol.desktop import Desktop, Steered, TakeoverWatch
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.hand import Hand
from agent.desktop.protocol.windows import Connection, WindowId, receiver
from agent.safety.policy import Approver
from agent.screen.capture import Screen


class ProtectedDesktop:
    """Screen, hand and surroundings for one run.

    Args:
        desktop: the real one.
        dry_run: nothing is touched.
        languages: tesseract's names of what the screen is written in.
        ours: whether the terminal that runs us can be on it; not on a throw-away desktop.

    Raises:
        EnvironmentLacksError: the desktop takes no input.
    """

    def __init__(
        self, desktop: Desktop, *, dry_run: bool = False, ours: bool = True, languages: Sequence[str] = ("eng",)
    ) -> None:
        self._desktop = desktop
        self._own = find_own(desktop.open_windows, desktop.shows) if ours else Own()
        self._watching = Connection(desktop.open_windows)  # of the thread that watches for a takeover
        own, home, open_windows = self._own.windows, desktop.home, desktop.open_windows
        self.applications = desktop.applications
        self.open_windows = open_windows
        hidden = own if self._own.placed else frozenset[WindowId]()
        self.screen: Screen = MaskedScreen(desktop.screen, hidden, open_windows) if hidden else desktop.screen
        self.surroundings = DesktopSurroundings(
            self.screen,
            desktop.applications,
            home,
            open_windows,
            lambda windows: receiver(windows, own),
            self.open_elements,
            languages,
            desktop.abilities.untold,
        )
        self.hand: Hand = RecordingHand()
        if not dry_run:
            self.hand = CheckedHand(desktop.hand, open_windows, own, home, lambda: self.surroundings.meant)

    def open_elements(self) -> Elements | None:
        """See `Desktop.open_elements`; what is on our own windows is left out."""
        elements = self._desktop.open_elements()
        own, open_windows = self._own.windows, self._desktop.open_windows
        return MaskedElements(elements, own, open_windows) if elements is not None and own else elements

    def remarks(self, *, judged: bool) -> list[str]:
        """What the person must know about this desktop; `judged` by a policy, more."""
        said = [*self._desktop.abilities.lacks(), self._own.remark, self.surroundings.remark() if judged else ""]
        return [remark for remark in said if remark]

    def approver(self, approver: Approver) -> Approver:
        """The approver, so that its questions leave the windows as they are."""
        return FocusKeeper(approver, self._desktop.open_windows) if self.hand.touches else approver

    def watch(self, stop_key: str, steering: Steered | None) -> str:
        """See `Desktop.watch`; `steering` is told of a takeover, and None where nobody could resume the run."""
        if steering is None or not self.hand.touches:
            return self._desktop.watch(stop_key, None)
        return self._desktop.watch(stop_key, TakeoverWatch(steering, self.hand.rest, self._is_ours))

    def _is_ours(self, at: tuple[int, int] | None) -> bool:
        """Whether a point, or the focus for None, is on one of our own windows."""
        windows = self._watching.get() if self._own.windows else None
        if windows is None:
            return False
        found = windows.active() if at is None else windows.at(*at)
        return found is not None and found.id in self._own.windows

    def close(self) -> None:
        """End the watches; screen and hand are closed on their own threads."""
        self.surroundings.close()
        self._desktop.close()
