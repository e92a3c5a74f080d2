"""UI-TARS 1.5 as a `Family`: points in pixels of the image, and box tokens in answers that are replayed."""

import re
from pathlib import Path

from agent.families.ui_tars.base import UiTars, texts_of

_BOX = re.compile(r"(start_box|end_box)='(\([0-9]+,[0-9]+\))'")


def with_box_tokens(answer: str) -> str:
    """An answer as the published client shows it to the model again: with the tokens that servers leave out.

    That is `add_box_token` of codes/ui_tars/action_parser.py: only boxes of two numbers without a space get them, and a
    second `Action: ` becomes a blank line.
    """
    before, mark, rest = answer.partition("Action: ")
    if not mark or "start_box=" not in answer:
        return answer
    actions = "\n\n".join(action.strip() for action in rest.split(mark))
    return before + mark + _BOX.sub(r"\1='<|box_start|>\2<|box_end|>'", actions)


def create() -> UiTars:
    """The family, as the registry asks for it."""
    return UiTars("ui-tars-1.5", texts_of(Path(__file__).parent), with_box_tokens)
