"""Which sizes the screen of a sandbox can have."""

from agent.core.geometry import Size
from foundation.errors import UsageError

#: Below it, dialogs of the common desktops have no room for their buttons.
SMALLEST = Size(640, 480)
#: 8K, also turned: 236 MB for the display, and as much for each picture that is being looked at.
LONGEST = 7680


def check_size(size: Size) -> None:
    """Raise UsageError for a size that no desktop can be used at."""
    if size.width < SMALLEST.width or size.height < SMALLEST.height:
        raise UsageError(f"A sandbox of {size} is too small: its windows would not fit.", f"Take at least {SMALLEST}.")
    if max(size.width, size.height) > LONGEST:
        raise UsageError(f"A sandbox of {size} is too large.", f"Take at most {LONGEST} on a side.")
