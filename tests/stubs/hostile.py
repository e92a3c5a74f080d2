"""Text as an attacker writes it, and what of it must never reach a terminal or a page as it is."""

import re

#: Steering, hiding and turning characters. Restated here, apart from the gate that is tested with it.
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
#: One of every kind, each with a mark by which it is found again: M1 to M9.
HOSTILE = (
    "M1\x1b]52;c;ZXZpbA==\x07 M2\x1b[2J\x1b[31m M3\x9b31m\x9d M4\u202egnp.exe\u2066\u200f\u061c M5\u200b\ufeff\u00ad "
    "M6\U000e0041\U000e007f M7\u2028forged: done\u2029\x85 M8\x00\x08\x7f\r M9[link=https://x.example]here[/link][red]red[/red]"
)
