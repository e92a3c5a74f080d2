"""Compares what public clients' parsers and ours read in the same answers, and prints every difference.

    scripts/oracle CHECKOUTS [FAMILY...]

The answers are each family's samples, and its calls with other points, texts and amounts. Differences that are meant
are named in `oracle.toml`, and only counted. Exit status 1: there are others.
"""

import json
import random
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from agent.core.actions import map_points, to_json  # noqa: E402
from agent.core.geometry import DesktopPoint, Grid, Region, Size, Viewport  # noqa: E402
from agent.families.base import ArgumentError, Call, Family, ParseFailure  # noqa: E402
from agent.families.registry import get_family  # noqa: E402
from agent.families.shared.code_calls import code_calls, read_code_call  # noqa: E402
from agent.families.shared.computer_use import Vocabulary  # noqa: E402
from foundation.chat_stream import Answer  # noqa: E402
from foundation.families import family_folder  # noqa: E402

SCREEN = Size(1920, 1080)
#: Pixels by which two points may differ: clients round, and divide by another number.
NEAR = 3
VARIATIONS = 12
#: Characters of an answer that are printed.
LONGEST = 600
TEXTS = ("hello world", "it's 5", "a\nb", "sent\n", "C:\\tmp", "Grüße 世界", 'say "x"', "")
#: What a client writes that is no action.
SKIPPED = ("time.sleep", "import ", "#", "'''", '"""')

Json = dict[str, Any]


def main() -> int:
    checkouts, *chosen = sys.argv[1:]
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    others = 0
    for name, client in data["clients"].items():
        folder = Path(checkouts) / client["repository"].rpartition("/")[2]
        if (chosen and name not in chosen) or not folder.is_dir():
            continue
        others += compare(name, client, folder, data["meant"])
    return 1 if others else 0


def compare(name: str, client: Mapping[str, str], folder: Path, meant: Sequence[Mapping[str, str]]) -> int:
    """Print the differences of one family; return how many are not meant."""
    family = get_family(name)
    sent = Size(*family.facts.image.fit(SCREEN.width, SCREEN.height))
    answers = list(dict.fromkeys(generated(name, family)))
    counts: Counter[str] = Counter()
    for answer, made in zip(answers, run_client(client, folder, answers, sent), strict=True):
        ours, theirs = read_ours(family, answer, sent), read_theirs(made)
        if alike(ours, theirs):
            counts["equal"] += 1
            continue
        told = {"answer": answer, "ours": written(ours), "theirs": written(theirs)}
        reason = next((one["reason"] for one in meant if stands_in(one, told)), "")
        counts[reason] += 1
        if not reason:
            sys.stdout.write(f"--- {name}\n{answer[:LONGEST]}\n  ours:   {told['ours']}\n  theirs: {told['theirs']}\n")
    sys.stdout.write(f"{name}: {len(answers)} answers, {counts.pop('equal', 0)} read alike, {counts['']} differ\n")
    sys.stdout.writelines(f"{count:7,} {reason}\n" for reason, count in counts.items() if reason)
    return counts[""]


def stands_in(one: Mapping[str, str], told: Mapping[str, str]) -> bool:
    return all(re.search(one[part], told[part], re.DOTALL) for part in told if part in one)


def generated(name: str, family: Family) -> Iterator[str]:
    """Yield a family's sample answers, and its calls with other values."""
    for path in sorted((family_folder(name) / "samples").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            sample = json.loads(line)
            if not sample.get("grounding") and not sample["answer"].get("tool_calls"):
                yield sample["answer"].get("content", "")
    chance = random.Random(name)
    for line in (family_folder(name) / "calls.jsonl").read_text(encoding="utf-8").splitlines():
        call = json.loads(line)["call"]
        for _ in range(VARIATIONS):
            arguments = {key: varied(key, value, chance) for key, value in call["arguments"].items()}
            yield family.written("I go on.", [Call(call["name"], arguments)])


def varied(key: str, value: Any, chance: random.Random) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(one, int | float) for one in value):
        return [chance.randint(0, 990), chance.randint(0, 990)]
    if key in ("text", "content", "message") and isinstance(value, str):
        return chance.choice(TEXTS)
    if key in ("pixels", "clicks") and isinstance(value, int):
        return chance.choice((-30, -5, -1, 1, 3, 40))
    return value


def run_client(client: Mapping[str, str], folder: Path, answers: Sequence[str], sent: Size) -> list[Json]:
    """Return what the client makes of each answer."""
    told = {"width": SCREEN.width, "height": SCREEN.height, "sent": [sent.width, sent.height]}
    lines = "".join(json.dumps({"answer": answer, **told}) + "\n" for answer in answers)
    run = [sys.executable, str(Path(__file__).with_name("oracle_client.py")), str(folder / client.get("folder", ""))]
    done = subprocess.run(
        [*run, client["module"], client["code"]], input=lines, capture_output=True, text=True, check=False, cwd=folder
    )
    if done.returncode:
        raise SystemExit(f"{client['repository']}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def read_ours(family: Family, answer: str, sent: Size) -> list[Json] | str:
    """Return our reading, with points in pixels of the screen."""
    read = family.parse(Answer(answer), [sent])
    if isinstance(read, ParseFailure):
        return f"cannot be carried out: {read.message}"
    viewport = Viewport(Region(0, 0, SCREEN.width, SCREEN.height), SCREEN)
    return merged([to_json(map_points(action, viewport.to_desktop)) for action in read.actions])


def read_theirs(made: Json) -> list[Json] | str:
    """Return the client's code as actions."""
    if "error" in made:
        return f"the client fails: {made['error']}"
    words = Vocabulary(Grid.pixels(SCREEN), at_pointer=True)
    found: list[Json] = []
    for line in "\n".join(map(str, made["code"])).splitlines():
        if (
            not line.strip()
            or line.strip().startswith(SKIPPED)
            or not line.startswith(("pyautogui.", "WAIT", "DONE", "FAIL"))
        ):
            continue
        calls = code_calls(line)
        if isinstance(calls, ParseFailure):
            return f"code that we do not read: {line}"
        try:
            actions = [action for call in calls for action in read_code_call(call, words)]
        except ArgumentError as error:
            return f"code that we do not read: {line} ({error})"
        found += [to_json(map_points(action, lambda at: DesktopPoint(at.x, at.y))) for action in actions]
    return merged(found) or "nothing"


def merged(actions: Sequence[Json]) -> list[Json]:
    """Join typing that is written key by key, and leave out what only concerns time and words."""
    found: list[Json] = []
    for action in actions:
        text = typed(action)
        if text is not None:
            if found and found[-1]["type"] == "type":
                found[-1] = {"type": "type", "text": found[-1]["text"] + text}
            else:
                found.append({"type": "type", "text": text})
        elif action["type"] == "drag" and action["start"] is None and found and found[-1]["type"] == "move":
            found[-1] = action | {"start": found[-1]["point"]}
        elif action["type"] == "wait":
            found.append({"type": "wait"})
        else:
            found.append({key: value for key, value in action.items() if key not in ("message", "seconds")})
    return found


def typed(action: Json) -> str | None:
    """Return the text that an action types; None if it types none."""
    if action["type"] == "type":
        return str(action["text"])
    keys = action.get("keys", ()) if action["type"] == "key" else ()
    if len(keys) != 1 or not (len(keys[0]) == 1 or keys[0] in ("enter", "space", "tab")):
        return None
    return {"enter": "\n", "space": " ", "tab": "\t"}.get(keys[0], keys[0])


def alike(ours: list[Json] | str, theirs: list[Json] | str) -> bool:
    """Whether both readings do the same."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return isinstance(ours, str) and isinstance(theirs, str)
    return len(ours) == len(theirs) and all(map(same, ours, theirs))


def same(one: Json, other: Json) -> bool:
    if one.keys() != other.keys():
        return False
    points = [key for key in one if key in ("point", "start")]
    if any(str(one[key]).casefold() != str(other[key]).casefold() for key in one if key not in points):
        return False
    return all(near(one[key], other[key]) for key in points)


def near(one: Sequence[float] | None, other: Sequence[float] | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(abs(mine - theirs) <= NEAR for mine, theirs in zip(one, other, strict=True))


def written(reading: list[Json] | str) -> str:
    return reading if isinstance(reading, str) else json.dumps(reading, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
