"""Writes down what the program does, as files that `diff -r` compares before and after a change of its structure.

    scripts/behaviour FOLDER

Command lines (help, wrong arguments, JSON), the plans of all cards, every sample answer as it is read, the goals of
every sentence of the bench, and what the policy asks about the bench's actions. Nothing in it depends on the time.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "families"), str(ROOT / "scripts" / "bench")]

MODELS = ("MAI-UI-2B", "MAI-UI-8B", "Qwen3-VL-32B-Instruct")
#: Wrong and odd command lines; none of them touches a desktop or starts a server.
WRONG = (
    "agent --frobnicate", "agent parse", "agent parse --family nonsense", "agent fit --family mai-ui 0x0",
    "agent show nothing", "agent fit --family mai-ui 1920x1080", "agent families --json", "agent do what",
    "agent --sandbox-size 10x10 hello", "agent --approve sometimes x", "agent undo nothing", "agent replay nothing",
    "serverctl plan --gpu nonsense",
    "serverctl frobnicate", "serverctl plan --gpu L4 --set nonsense=1", "serverctl export nonsense",
    "serverctl up --port 0", "serverctl plan --gpu L4 -- --no-such-flag",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder to be made for the files")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True)
    for name, lines in (
        ("commands.txt", commands()), ("plans.txt", plans()), ("answers.txt", answers()), ("goals.txt", goals()),
        ("questions.txt", questions()),
    ):  # fmt: skip
        count = 0
        with (folder / name).open("w", encoding="utf-8") as file:
            for line in lines:
                count += file.write(f"{line}\n") > 0
        print(f"{count:7,} {name}", flush=True)


def said(line: str) -> str:
    """What a command line prints, and its exit status."""
    half, *arguments = line.split()
    nowhere = {
        "HOME": "/nowhere",
        "MAI_AGENT_STATE": "/nowhere/state",
        "MAI_SERVER_STATE": "/nowhere/server",
        "COLUMNS": "120",
    }
    environ = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **nowhere}
    done = subprocess.run(
        [sys.executable, "-m", half, *arguments], cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    return f"$ {line}\n{done.stdout}{done.stderr}= {done.returncode}"


def commands() -> Iterator[str]:
    from agent.commands import COMMANDS as OF_AGENT
    from serverctl.commands import COMMANDS as OF_SERVER

    helps = [
        f"{half} {name} --help" for half, names in (("agent", OF_AGENT), ("serverctl", OF_SERVER)) for name in names
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(said, ["agent --help", "serverctl --help", *helps, *WRONG])


def plans() -> Iterator[str]:
    from serverctl.hardware.catalogue import card_names

    lines = [
        f"serverctl plan --gpu {name.replace(' ', '-')} --model {model} --json"
        for name in card_names()
        for model in MODELS
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(said, lines)


def answers() -> Iterator[str]:
    from samples import samples_of, told

    from agent.core.actions import to_json
    from agent.core.geometry import Size
    from agent.families.base import ParseFailure
    from agent.families.registry import family_names, get_family
    from foundation.chat_stream import Answer, ToolCall

    for family in family_names():
        for sample in samples_of(family):
            data, written = sample.data, sample.data["answer"]
            calls = tuple(ToolCall("", each["name"], each["arguments"]) for each in written.get("tool_calls", ()))
            answer = Answer(written.get("content", ""), written.get("reasoning", ""), calls)
            sent = [Size(*data.get("sent", (1920, 1088)))]
            outline = told(data["outline"]) if "outline" in data else None
            reads = get_family(family)
            found = (
                reads.parse_grounding(answer, sent)
                if data.get("grounding")
                else reads.parse_seen(answer, sent, outline)
            )
            failed = isinstance(found, ParseFailure)
            result = [found.kind, found.message] if failed else [to_json(action) for action in found.actions]
            yield f"{sample.name}: {json.dumps(result, ensure_ascii=False)}"


def goals() -> Iterator[str]:
    from agent.literal.language.grammar import read_instruction
    from agent.literal.language.sentences import NotUnderstoodError

    paths = [*(ROOT / "scripts/bench/sentences").glob("*.toml"), *(ROOT / "configs/tasks").glob("*.toml")]
    for path in sorted(paths):
        for entry in _entries(tomllib.loads(path.read_text(encoding="utf-8"))):
            try:
                yield f"{entry}: {read_instruction(entry)}"
            except NotUnderstoodError as error:
                yield f"{entry}: refused: {error}"


def _entries(data: object) -> Iterator[str]:
    """The sentences of a file of the bench, wherever they stand in it."""
    if isinstance(data, dict):
        if isinstance(data.get("say"), str):
            yield data["say"]
        for value in data.values():
            yield from _entries(value)
    elif isinstance(data, list):
        for value in data:
            yield from _entries(value)


def questions() -> Iterator[str]:
    done = subprocess.run(
        [sys.executable, "scripts/bench/questions.py", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    yield done.stdout


if __name__ == "__main__":
    main()
