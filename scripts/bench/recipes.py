"""Does the shipped tasks again from recipes of their runs, on a desktop that is not as it was.

    python scripts/bench/recipes.py [FOLDER] [--filter REGEX]

The runs are those in FOLDER, of `mai-agent eval tasks`; without it, they are made first. The desktop then has another
size, font and icons, and a window in the way. Verdicts are those of `mai-agent eval tasks`, by the desktop's state;
times are compared with those of the recorded runs.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from agent.commands.run import read_arguments
from agent.evals.tasks import judge, report, work
from agent.evals.tasks.task_files import read_eval_tasks, shipped_tasks
from agent.literal.client import literal_engine
from agent.options import RunOptions
from agent.recipes.saving import recipe_of
from agent.record.read import read_bundle
from agent.settings import load_settings
from foundation.errors import MaiError

#: What is other than in the recorded runs.
SIZE = "1366x768"
SETUP = {
    "xfce": [
        "xfconf-query -c xsettings -p /Gtk/FontName -n -t string -s 'Sans 13'",
        "xfconf-query -c xsettings -p /Net/IconThemeName -n -t string -s hicolor",
    ],
    "gnome": ["gsettings set org.gnome.desktop.interface text-scaling-factor 1.2"],
}
IN_THE_WAY = "xterm -geometry 90x30+200+120"


def again(name: str, bundle: Path, runs: Path) -> str:
    """Do one task from a recipe of its run, in this process; the verdict with its reasons."""
    path, task = read_eval_tasks(shipped_tasks())[name]
    recipe = recipe_of(read_bundle(bundle), {})
    words = ["--sandbox", "--engine", "literal", f"--sandbox-size={SIZE}", f"--sandbox-session={task.session}"]
    if task.locale:
        words.append(f"--sandbox-locale={task.locale}")
    options = RunOptions.of(read_arguments([*words, f"--runs={runs}", "--", task.say]), load_settings())
    wanted = [what.split()[-1] for what in task.expect.settings]  # set beforehand, nothing would be left to do
    setup = [line for line in SETUP.get(task.session, []) if not any(what in line for what in wanted)]
    changed = {"setup": [*setup, *task.setup], "open": [*task.open, IN_THE_WAY], "person": type(task.person)()}
    other = task.model_copy(update=changed)  # what the person said then is part of the recipe
    _, goal = recipe.with_values({})
    status = work.carry_out(other, path.parent, options, engine=literal_engine(options.engine, goals=[goal]))
    (folder,) = runs.iterdir()
    states, run = work.read_states(folder), read_bundle(folder).run
    if states is None:
        return "not judged"
    found = judge.judge(other, status, states.before, states.after, states.revealed)
    said = "; ".join([*found.missing, *found.harm, run.message])
    return f"{found.verdict}|{run.seconds or 0:.2f}|{said}"


def in_a_process(name: str, bundle: Path) -> str:
    """Do one task in a process of its own; what it says."""
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, __file__, str(bundle), "--one", name, "--runs", runs]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("VERDICT ")]
    return lines[-1].removeprefix("VERDICT ") if lines else f"not judged|0|{done.stderr.strip()[-200:]}"


def main() -> None:
    """Print a line for each task, the counts, and the times beside those of the recorded runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="of `mai-agent eval tasks`")
    parser.add_argument("--filter", default="", help='only tasks whose "CLASS ID SENTENCE" this finds')
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        try:
            print(f"VERDICT {again(given.one, given.folder, given.runs)}")
        except MaiError as error:
            print(f"VERDICT no recipe|0|{error}")
        return
    if given.folder is not None:
        compare(given.folder, given.filter)
        return
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, "-m", "agent", "eval", "tasks", "--engine", "literal", "--out", made]
        subprocess.run([*command, "--filter", given.filter], check=False)
        compare(Path(made), given.filter)


def compare(folder: Path, pattern: str) -> None:
    """Do again what a folder's runs did right."""
    wanted = read_eval_tasks(shipped_tasks(), pattern)
    results = [one for one in report.read_results(folder) if one.id.rpartition("#")[0] in wanted]
    right = [one for one in results if report.verdict_of(one, folder).verdict == "right"]
    names = [one.id.rpartition("#")[0] for one in right]
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(in_a_process, names, [folder / one.bundle for one in right]))
    counts, ratios = Counter[str](), list[float]()
    for name, run, line in zip(names, right, told, strict=True):
        verdict, seconds, said = line.split("|", 2)
        counts[verdict] += 1
        if verdict == "right":
            ratios.append(float(seconds) / run.seconds)
        print(f"{verdict:14} {name:36} {seconds:>6} s  {'' if verdict == 'right' else said[:150]}")
    print(f"{len(names)} recorded: {dict(counts.most_common())}")
    if ratios:
        print(f"a recipe takes {median(ratios):.2f} of its recorded run's time (median)")


if __name__ == "__main__":
    main()
