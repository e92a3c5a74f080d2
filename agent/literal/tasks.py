"""What is made of several actions: folders and files in the file manager, texts in an editor, sums in a calculator."""

from typing import TypeAlias

from agent.literal import tasks_folders, tasks_sum, tasks_text
from agent.literal.goal_state import GoalState, Verdict
from agent.literal.goals import Calculate, MakeFolder, Rename, SaveAs, Trash, WriteFile

Task: TypeAlias = MakeFolder | Rename | Trash | WriteFile | SaveAs | Calculate


def pursue(now: GoalState, goal: Task) -> Verdict:
    """The next step of a task."""
    match goal:
        case MakeFolder():
            return tasks_folders.make_folder(now, goal)
        case Rename():
            return tasks_folders.rename(now, goal)
        case Trash():
            return tasks_folders.trash(now, goal)
        case WriteFile():
            return tasks_text.write_file(now, goal)
        case SaveAs():
            return tasks_text.save_as(now, goal)
        case Calculate():
            return tasks_sum.calculate(now, goal)
