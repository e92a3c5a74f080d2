"""What is made of several actions: folders and files in the file manager, texts in an editor, sums in a calculator."""

from typing import TypeAlias

from agent.literal.goals import Calculate, MakeFolder, Rename, SaveAs, Trash, WriteFile
from agent.literal.state.goal_state import GoalState, Verdict
from agent.literal.tasks import folders, sums, texts

Task: TypeAlias = MakeFolder | Rename | Trash | WriteFile | SaveAs | Calculate


def pursue(now: GoalState, goal: Task) -> Verdict:
    """The next step of a task."""
    match goal:
        case MakeFolder():
            return folders.make_folder(now, goal)
        case Rename():
            return folders.rename(now, goal)
        case Trash():
            return folders.trash(now, goal)
        case WriteFile():
            return texts.write_file(now, goal)
        case SaveAs():
            return texts.save_as(now, goal)
        case Calculate():
            return sums.calculate(now, goal)
