"""What a policy asks about single actions, judged as a run judges them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint, Region
from agent.safety.input_history import InputHistory
from agent.safety.policy import Policy, Question
from agent.safety.sentence import Sentence
from agent.safety.situation import Place, Situation
from agent.screen.outline import Element

SHIPPED = Policy.load("risky")


def hit(role: str, name: str = "", **more: Any) -> Element:
    """An element that an action hits, or that has the focus."""
    return Element(1, role, name, **{"box": Region(300, 300, 200, 20), **more})


class Judge:
    """A run in which every action is carried out. `sentence` is what the person asked for."""

    def __init__(self, sentence: str = "") -> None:
        self.history, self.sentence = InputHistory(), Sentence(sentence)

    def asks(
        self, action: Action[DesktopPoint], place: Place, *elements: Element, words: str = "", facts: Any = (),
        **known: Any,
    ) -> Question | None:  # fmt: skip
        """The question about an action in a window that has the focus; `known` is more of the situation."""
        situation = Situation(place, place, words, elements, facts=frozenset(facts), **known)
        seen = self.history.judge(action, situation, place.app)
        self.history.did(action)
        return SHIPPED.question(action, replace(seen, facts=seen.facts | self.sentence.facts(action, seen)))


def asked(
    action: Action[DesktopPoint], place: Place, *elements: Element, sentence: str = "", **known: Any
) -> Question | None:
    """The question about the first action of a run; see `Judge`."""
    return Judge(sentence).asks(action, place, *elements, **known)


def own(folder: Path, text: str, mode: str = "risky") -> Policy:
    """A policy of a file with this text."""
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return Policy.load(mode, path)


def rule(action: str | list[str], rest: str = "", name: str = "n") -> str:
    """A rule as a policy file has it."""
    return f'[[rules]]\nname = "{name}"\naction = {json.dumps(action)}\nreason = "r"\n{rest}\n'
