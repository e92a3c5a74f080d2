"""`mai-agent prompts`: fetches the prompts that models' publishers wrote, lists and removes them."""

from collections.abc import Sequence
from typing import Any

from agent.prompts import store
from agent.prompts.store import Recipe, recipes
from agent.settings import load_settings
from foundation.command_line import Parser
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.families import named
from foundation.printing import put, put_json, remark


def main(argv: Sequence[str]) -> int:
    """List, fetch or remove."""
    parser = Parser(
        prog="mai-agent prompts",
        usage="mai-agent prompts [list] [--json]\n       mai-agent prompts fetch [FAMILY ...] [--mirror URL]\n"
        "       mai-agent prompts remove [FAMILY ...]",
        description="This program asks models in its own words. The words of a model's publisher can be fetched from "
        "the publisher's repository, at a fixed commit. Files are checked by SHA-256 and parsed, never run. Runs then "
        "use these words, unless --words ours is given.",
    )
    parser.add_argument("what", choices=("list", "fetch", "remove"), nargs="?", default="list")
    parser.add_argument("families", metavar="FAMILY", nargs="*", help="a family's or a model's name; all without one")
    parser.add_argument(
        "--mirror", metavar="URL",
        help="where the files are, with {repository}, {commit} and {path}, or followed by them (default: the setting "
        "prompts_mirror, or where the repositories are)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    options = parser.parse_args(argv)
    chosen = [store.recipe_of(named(family)) for family in options.families] or list(recipes().values())
    match options.what:
        case "fetch":
            return _fetch(chosen, options.mirror or load_settings().get("prompts_mirror"), as_json=options.json)
        case "remove":
            _tell(
                [(recipe, "removed" if store.remove(recipe) else "was not fetched") for recipe in chosen], options.json
            )
        case _:
            if options.mirror:
                raise UsageError("Only fetch takes a mirror.", "See mai-agent prompts --help.")
            _tell([(recipe, _state(recipe)) for recipe in chosen], options.json)
    return ExitStatus.DONE


def _fetch(chosen: Sequence[Recipe], mirror: str | None, *, as_json: bool) -> int:
    """Fetch the prompts one after the other. A failure does not keep the others from being fetched."""
    status: int = ExitStatus.DONE
    results: list[tuple[Recipe, str]] = []
    for recipe in chosen:
        try:
            store.fetch(recipe, mirror)
        except UsageError:
            raise
        except MaiError as error:
            status = error.exit_status
            remark(f"{recipe.family}: {error}")
            results.append((recipe, "not fetched"))
        else:
            results.append((recipe, "fetched"))
    _tell(results, as_json)
    return status


def _state(recipe: Recipe) -> str:
    try:
        return "not fetched" if store.kept(recipe) is None else "fetched"
    except MaiError as error:
        return error.what


def _tell(rows: Sequence[tuple[Recipe, str]], as_json: bool) -> None:
    if as_json:
        put_json([_as_json(recipe, state) for recipe, state in rows], indent=2)
        return
    width = max((len(recipe.family) for recipe, _ in rows), default=0)
    for recipe, state in rows:
        only = f" ({', '.join(recipe.phone)}: only with --style reference)" if recipe.phone else ""
        put(f"{recipe.family:<{width}}  {state}, {recipe.source}{only}")


def _as_json(recipe: Recipe, state: str) -> dict[str, Any]:
    return {
        "family": recipe.family,
        "state": state,
        "repository": recipe.repository,
        "commit": recipe.commit,
        "files": recipe.files,
        "parts": sorted(recipe.parts),
        "only_reference": sorted(recipe.phone),
    }
