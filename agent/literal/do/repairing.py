"""Repairs a step of a recipe whose target has another name now: a text model says which of the things there it is.

Only things of the same kind and window come into question. Where a person can be asked, they decide.
"""

from collections.abc import Sequence
from dataclasses import replace

from agent.literal.do.now import Now, Step, Steps, Stuck, wait
from agent.literal.goals import Click, Part, Question, Target, Toggle, Type
from agent.literal.language.wording import describe_goal, describe_target
from agent.screen.outline import Element

_YES = ("y", "yes")


def repaired(
    now: Now, number: int, part: Part, missing: Stuck, others: Sequence[Element], window: str
) -> Steps[Part | Stuck]:
    """Return step `number` with the target that the model names, or why it stays stuck.

    `others` are the things in `window` that come into question. The model is asked while the first step, a wait, is
    carried out. It is not told what the step types, which may be a secret.
    """
    goal = part.goal
    target = goal.into if isinstance(goal, Type) else goal.target if isinstance(goal, Click | Toggle) else None
    if now.repairs is None or target is None or not others:
        return missing
    choices = {one.name: Target(one.name, one.role, inside=window) for one in others}
    words = f"type into {describe_target(target)}" if isinstance(goal, Type) else describe_goal(goal)
    now.question = Question(number, words, choices)
    yield wait(f"{missing.words}: ask the model what it is called now.", 0.2)
    found, told, now.question = now.repairs.get(number), now.question.told, None
    if found is None:
        return Stuck(f"{missing.words}; {told}" if told else missing.words)
    if now.asks:
        question = f"{missing.words}. {told}. Shall I use {describe_target(found)}? (yes or no)"
        move = yield Step("I ask whether that is right.", {"action": "ask_user", "question": question})
        if move.reply.strip(" .!").casefold() not in _YES:
            del now.repairs[number]
            return Stuck(f"{missing.words}; you did not agree to use {describe_target(found)}")
    if isinstance(goal, Type):
        return replace(part, goal=replace(goal, into=found))
    assert isinstance(goal, Click | Toggle)
    return replace(part, goal=replace(goal, target=found))
