"""What desktops call keys: the names of XKB's keysyms."""

_NAMES = {
    "escape": "Escape", "enter": "Return", "print_screen": "Print", "pause": "Pause", "space": "space",
    "backspace": "BackSpace", "delete": "Delete", "tab": "Tab", "page_up": "Prior", "page_down": "Next",
}  # fmt: skip


def keysym_of(key: str) -> str:
    """The keysym of a key, by its name in `agent.core.keys`."""
    return key if len(key) == 1 else _NAMES.get(key, key.title())
