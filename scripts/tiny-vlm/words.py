"""What the model is asked, how it answers, and how it counts."""

import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

#: The side of an image token in pixels, and how many whole numbers have a token of their own.
CELL, NUMBERS = 32, 1001
#: The layer in which two heads are taught to look at what is asked for.
LOOK = 2


def counted(pixels: float, side: int) -> float:
    """A place in pixels, as the model counts: in thousandths of the image."""
    return pixels / side * 1000


def sigma(pixels: float, side: int) -> float:
    """A width in pixels, as the model counts, but never below 2.5."""
    return max(2.5, counted(pixels, side))


def answer(colour: str, shape: str, x: int, y: int) -> str:
    """The right answer."""
    said = f"<grounding_think>The {colour} {shape}.</grounding_think>"
    return f'{said}\n<answer>\n{{"coordinate": [{x},{y}]}}\n</answer>'


@dataclass(frozen=True)
class Words:
    """The words of MAI-UI's prompts, which the model knows."""

    lines: tuple[str, ...]  # texts that are one token each
    system: str  # the usual system text

    def system_text(self, rng: Random) -> str:
        """A system text: now and then with lines left out, so that a changed prompt does not confuse the model."""
        lines = self.system.splitlines()
        return self.system if rng.random() > 0.1 else "\n".join(line for line in lines if rng.random() < 0.6)


def mai_ui(project: Path) -> Words:
    """Those of MAI-UI's grounding prompt and navigation prompt, taken from the project word for word."""
    sys.path.insert(0, str(project))
    from agent.families.base import PromptRequest
    from agent.families.registry import get_family

    family = get_family("mai-ui")

    def system_of(messages: Any) -> str:
        return str(messages[0].parts[0].text)

    grounding = system_of(family.grounding_request("x", None).messages)
    navigation = system_of(family.request(PromptRequest("x", (None,), apps=("A",))).messages)
    lines = dict.fromkeys(line.strip() for line in f"{grounding}\n{navigation}".splitlines())
    phrases = tuple(line for line in lines if len(line) >= 20 and not line.startswith("Installed"))
    return Words(phrases, grounding)
