"""The grammar's rules: an expression for a part of an instruction, and what makes goals of it. The first fit counts."""

import re
from functools import cache

from agent.literal.language.rules import controls, files, keyboard, windows
from agent.literal.language.rules.base import Builder, expanded
from foundation.configs import load_config

BUILDERS = files.BUILDERS | keyboard.BUILDERS | controls.BUILDERS | windows.BUILDERS


@cache
def all_rules() -> list[tuple[re.Pattern[str], Builder]]:
    """All rules in the order in which they are tried."""
    return [
        (re.compile(expanded(pattern), re.IGNORECASE | re.DOTALL), BUILDERS[rule["does"]])
        for rule in load_config("grammar.toml")["rules"]
        for pattern in rule["says"]
    ]
