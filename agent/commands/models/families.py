"""`mai-agent families`: every model family, its numbers, and its proofs; `fit`: the size of an image as sent."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.commands.arguments import size
from agent.core.geometry import Counted
from agent.families.published import OURS
from agent.families.registry import DEFAULT_FAMILY, detect_folder, family_names, get_family
from agent.prompts.store import is_kept, recipes
from foundation.command_line import Parser, positive
from foundation.errors import UsageError
from foundation.families import family_data, family_folder, image_rule
from foundation.printing import counted, put, put_json, remark


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    parser = Parser(
        prog="mai-agent families",
        description="Lists the model families: their models, the grid that points count on, how images are resized, "
        "what of the past a request shows, published scores, and the proofs that come with the program.",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    parser.add_argument(
        "family", nargs="?", metavar="NAME", help="only that family: its name, a model's, or its folder"
    )
    options = parser.parse_args(argv)
    names = family_names() if options.family is None else [_meant(options.family)]
    descriptions = [described(name) for name in names]
    put_json(descriptions, indent=2) if options.json else put(
        *(line for one in descriptions for line in (*_lines(one), ""))
    )
    return 0


def _meant(written: str) -> str:
    """The family with this name, of this model, or of the model in this folder. Raises UsageError."""
    folder = Path(written).expanduser().resolve()
    if not (folder / "config.json").is_file():
        return get_family(written).facts.name
    found = detect_folder(folder)
    if found is None:
        raise UsageError(
            f"The files in {folder} match no known family.", f"It would be asked in the format of {DEFAULT_FAMILY}."
        )
    remark(f"{folder}: {found.family}, by {found.by}")
    return found.family


def described(name: str) -> dict[str, Any]:
    """One family as JSON."""
    facts = get_family(name).facts
    rule = facts.image
    return {
        "name": facts.name,
        "models": list(facts.models),
        "grid": facts.navigation,
        "grounding_grid": facts.grounding,
        "image": {"factor": rule.factor, "min_pixels": rule.min_pixels, "max_pixels": rule.max_pixels},
        "history": facts.history or f"{facts.reference_images} images",
        "words": _words(name),
        "scores": family_data(name).get("scores", {}),
        "proven_by": proofs(name),
    }


def _words(name: str) -> str:
    """Say which prompt a family gets by default: ours, or the fetched one of its publisher."""
    recipe = recipes().get(name)
    if recipe is None:
        return OURS
    if is_kept(recipe):
        return f"published, {recipe.source}"
    return f"{OURS} (mai-agent prompts fetch {name} gets those of {recipe.source})"


def proofs(name: str) -> list[str]:
    """The tests that come with a family: answers and calls with their known results."""
    folder = family_folder(name)
    answers = [
        json.loads(line)
        for path in sorted((folder / "samples").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    broken = sum(bool(answer.get("malformed") or "failure" in answer) for answer in answers)
    calls = folder / "calls.jsonl"
    written = len(calls.read_text(encoding="utf-8").splitlines()) if calls.is_file() else 0
    golden = folder / "golden.json"
    steps = sorted(map(int, json.loads(golden.read_text(encoding="utf-8"))["requests"])) if golden.is_file() else []
    return [
        *([f"{counted(len(answers), 'answer')}, {broken} of them malformed"] if answers else []),
        *([f"{counted(written, 'call')} written and read back"] if written else []),
        *([f"requests of steps {', '.join(map(str, steps))}"] if steps else []),
        *family_data(name).get("proven_by", ()),
    ]


def _lines(family: dict[str, Any]) -> list[str]:
    image = family["image"]
    grids = dict.fromkeys(_grid(family[key]) for key in ("grid", "grounding_grid"))
    rows = {
        "models": ", ".join(family["models"]),
        "grid": "; grounding: ".join(grids),
        "image": f"sides in steps of {image['factor']}, {image['min_pixels']:,} to {image['max_pixels']:,} pixels",
        "history": family["history"],
        "words": family["words"],
        "scores": "; ".join(f"{name}: {_score(value)}" for name, value in family["scores"].items()),
        "proven by": "; ".join(family["proven_by"]),
    }
    return [family["name"], *(f"  {title:<10} {text}" for title, text in rows.items() if text)]


def _grid(counted: Counted) -> str:
    if counted == 1:
        return "fractions of the screen"
    return "pixels of the image as sent" if isinstance(counted, str) else f"0 to {counted}"


def _score(value: Any) -> str:
    return ", ".join(f"{size} {score}" for size, score in value.items()) if isinstance(value, dict) else str(value)


def fit_main(argv: Sequence[str]) -> int:
    """Print {"width", "height", "tokens"}."""
    parser = Parser(prog="mai-agent fit", description="Print the size and tokens of an image as it is sent.")
    parser.add_argument("--family", required=True, metavar="NAME", help="for example mai-ui, qwen3-vl, qwen2.5-vl")
    parser.add_argument("size", metavar="WIDTHxHEIGHT", type=size)
    parser.add_argument("--max-pixels", metavar="N", type=positive, help="a lower budget than the family's own")
    options = parser.parse_args(argv)
    rule = image_rule(options.family).capped(options.max_pixels)
    width, height = rule.fit(options.size.width, options.size.height)
    put_json({"width": width, "height": height, "tokens": rule.tokens(width, height)})
    return 0
