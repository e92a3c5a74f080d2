"""What is made of several actions: folders and files in the file manager, texts in an editor, sums in a calculator."""

from typing import TypeAlias

from agent.literal.goal_state import GoalState, Stuck, Verdict
from agent.literal.goals import Calculate, MakeFolder, Rename, SaveAs, Trash, WriteFile
from agent.literal.wording import describe_goal

Task: TypeAlias = MakeFolder | Rename | Trash | WriteFile | SaveAs | Calculate


def pursue(now: GoalState, goal: Task) -> Verdict:  # noqa: ARG001
    """The next step of a task."""
    return Stuck(f"I cannot do this yet: {describe_goal(goal)}.")
