"""The grammar's rules: an expression for a part of an instruction, and what makes goals of it. The first fit counts."""

import re
from functools import cache

from agent.literal.language.rules import controls, files, keyboard, windows
from agent.literal.language.rules.base import Builder


@cache
def all_rules() -> list[tuple[re.Pattern[str], Builder]]:
    """All rules in the order in which they are tried."""
    patterns = [*files.RULES, *keyboard.RULES, *controls.RULES, *windows.RULES]
    return [(re.compile(pattern, re.IGNORECASE | re.DOTALL), build) for pattern, build in patterns]
