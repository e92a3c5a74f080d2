"""What an X server tells of monitors and keyboards."""

from contextlib import closing

from agent.desktop.x11.connection import open_display, read_property, text_of


def describe_display() -> tuple[list[str], list[str]]:
    """Its monitors, and the layouts of its keyboard, in words. Raises EnvironmentLacksError."""
    with closing(open_display()) as display:
        root = display.screen().root.id
        resources = text_of(read_property(display, root, "RESOURCE_MANAGER"))
        dots = next((line.split()[-1] for line in resources.splitlines() if line.startswith("Xft.dpi:")), "")
        # Rules, model, layouts, variants, options.
        rules = text_of(read_property(display, root, "_XKB_RULES_NAMES")).split("\0")
        screen = display.screen()
        whole = f"{screen.width_in_pixels}x{screen.height_in_pixels} in all"
        fonts = f", texts are drawn for {dots} dots an inch" if dots else ""
        return [f"{whole}, scale 1{fonts}"], [one for one in rules[2].split(",") if one] if len(rules) > 2 else []
