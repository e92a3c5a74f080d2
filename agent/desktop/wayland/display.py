"""What any Wayland compositor tells an ordinary client of monitors and keyboards."""

from contextlib import closing

from agent.desktop.linux.xkb import Keymap
from agent.desktop.wayland.layout import keymap_of
from agent.desktop.wayland.outputs import read_outputs
from agent.desktop.wayland.wire import Connection


def describe_display(path: str) -> tuple[list[str], list[str]]:
    """Its monitors, and the layouts of its keyboard, in words. Raises EnvironmentLacksError."""
    with closing(Connection(path)) as connection:
        monitors = [one.words for one in read_outputs(connection)]
    text = keymap_of(path)
    if not text:
        return monitors, []
    with closing(Keymap(text)) as keymap:
        return monitors, keymap.layouts()
