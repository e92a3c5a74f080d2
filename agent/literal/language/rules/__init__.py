"""The grammar's rules: a regular expression for a part of an instruction, and the builder of its goals."""

import re
from functools import cache

from agent.literal.language.rules import controls, files, keyboard, windows
from agent.literal.language.rules.base import Builder, expanded
from foundation.configs import load_config

BUILDERS = files.BUILDERS | keyboard.BUILDERS | controls.BUILDERS | windows.BUILDERS


@cache
def all_rules() -> list[tuple[re.Pattern[str], Builder]]:
    """Return all rules in the order in which they are tried. The first match counts."""
    return [
        (re.compile(expanded(pattern), re.IGNORECASE | re.DOTALL), BUILDERS[rule["does"]])
        for rule in load_config("grammar.toml")["rules"]
        for pattern in rule["says"]
    ]
