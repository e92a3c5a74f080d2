"""Colours of the theme for what is drawn line by line."""


def plain_colour(variables: dict[str, str], name: str) -> str | None:
    """A theme's colour as Rich takes it; None where the theme says `auto`."""
    from textual.color import Color, ColorParseError

    try:
        return Color.parse(variables.get(name, "")).rich_color.name
    except ColorParseError:
        return None
