"""Makes a theme's words readable: a contrast of 4.5:1 (WCAG 2.2, 1.4.3) on every background of text."""

from textual.color import Color, ColorParseError

LEAST = 4.5
_WORDS = (
    "text-primary", "text-secondary", "text-accent", "text-success", "text-warning", "text-error",
    "footer-key-foreground",
)  # fmt: skip
_GROUNDS = ("background", "surface", "panel")
#: Paler than the other words, in Textual's notation; the theme's own 60 % is too pale on light panels.
_MUTED = "auto 75%"
_STEP = 0.05


def contrast(one: Color, other: Color) -> float:
    """Return the ratio of WCAG 2.2 ("contrast ratio", "relative luminance")."""

    def luminance(color: Color) -> float:
        parts = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized)
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def readable(variables: dict[str, str]) -> dict[str, str]:
    """Return a theme's variables with text colours that are readable on every background; ANSI colours stay."""
    try:
        grounds = [Color.parse(variables[name]) for name in _GROUNDS]
    except (KeyError, ColorParseError):
        return variables
    if any(ground.ansi is not None for ground in grounds):
        return variables
    farthest = most_different(grounds[0])
    made = dict(variables) | {"text-muted": _MUTED}
    for name in _WORDS:
        try:
            color = Color.parse(variables[name])
        except (KeyError, ColorParseError):
            continue
        if color.ansi is None:
            made[name] = _strengthened(color, grounds, farthest).hex
    return made


def most_different(ground: Color) -> Color:
    """Return black or white, whichever contrasts more with a background."""
    return max((Color(0, 0, 0), Color(255, 255, 255)), key=lambda one: contrast(one, ground))


def _strengthened(color: Color, grounds: list[Color], farthest: Color) -> Color:
    share, shown = 0.0, color
    while min(contrast(shown, ground) for ground in grounds) < LEAST and share < 1:
        share += _STEP
        shown = color.blend(farthest, share)
    return shown
