"""Recipes as YAML files that a person can read and change. They are checked strictly, and errors name their line."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from agent.recipes.recipe import VERSION, Recipe
from foundation.command_line import meant_by
from foundation.configs import data_folder
from foundation.errors import UsageError
from foundation.files import cannot_write, write_atomically

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*", re.IGNORECASE)
#: A longer file is no recipe.
_MOST_CHARS = 200_000
#: Mistakes of one file that are told at once.
_MOST_MISTAKES = 5


def recipes_folder() -> Path:
    """Return the folder of the person's recipes. It may not exist yet."""
    return data_folder() / "recipes"


def path_of(name: str) -> Path:
    """Return the file of a recipe by its name, or by its path. Raises UsageError for a name that cannot be one."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return Path(name)
    if not _NAME.fullmatch(name):
        raise UsageError(f"A recipe cannot be called {name!r}.", "Use letters, digits, -, _ and dots.")
    return recipes_folder() / f"{name}.yaml"


def recipe_names() -> list[str]:
    """Return the names of the person's recipes, sorted."""
    return sorted(path.stem for path in recipes_folder().glob("*.yaml"))


def all_recipes() -> Iterator[tuple[str, Recipe | UsageError]]:
    """Yield the person's recipes by name, and what is wrong with those that cannot be read."""
    for name in recipe_names():
        try:
            yield name, load_recipe(name)
        except UsageError as error:
            yield name, error


def offer(instruction: str) -> str:
    """Return a sentence that names the recipe of an instruction and its values; "" if there is none."""
    for name, recipe in all_recipes():
        if isinstance(recipe, Recipe) and (values := recipe.values_in(instruction)) is not None:
            words = ["mai-agent", "do", name, *(f"{key}={value}" for key, value in values.items())]
            return f"A recipe does this without a model: {shlex.join(words)}"
    return ""


def load_recipe(name: str) -> Recipe:
    """Read a recipe by its name or path. Raises UsageError: there is none, or it is wrong."""
    path = path_of(name)
    try:
        text = path.read_bytes()[: _MOST_CHARS + 1].decode("utf-8")
    except FileNotFoundError:
        meant = meant_by(name, recipe_names())
        hint = f"Did you mean {meant}?" if meant else "`mai-agent recipes` lists them."
        raise UsageError(f"There is no recipe {name!r}.", hint) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Is it a recipe?") from error
    return read_recipe(text, str(path))


def keep_recipe(recipe: Recipe, name: str, *, replace: bool = False) -> Path:
    """Write a recipe to its file, and return its path. Raises UsageError if it exists and `replace` is not set."""
    path = check_free(name, replace=replace)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(path, recipe.text)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def check_free(name: str, *, replace: bool) -> Path:
    """Return the file of a new recipe. Raises UsageError if there is one and `replace` is not set."""
    path = path_of(name)
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(f"A recipe's file ends in .yaml, and {name!r} does not.", f"Name it {name}.yaml.")
    if path.exists() and not replace:
        raise UsageError(f"There is a recipe {name!r} already.", "Choose another name, or add --replace.")
    return path


def read_recipe(text: str, source: str) -> Recipe:
    """Read a recipe's text. Raises UsageError naming the line and the step that is wrong."""
    if len(text) > _MOST_CHARS:
        raise UsageError(f"{source} is too long for a recipe.", f"At most {_MOST_CHARS} characters are read.")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise UsageError(f"{source} is empty.", "docs/recipes.md shows a recipe.")
        data = _plain(node, set())
        version = str(data.get("version", "")) if isinstance(data, dict) else ""
        if version.isdecimal() and int(version) > VERSION:
            raise UsageError(f"{source} was made by a newer mai-agent (version {version}).", "Update this one.")
        return Recipe.model_validate(data)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise UsageError(f"{source}{line}: {error.problem}.", "docs/recipes.md shows a recipe.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{source} is not YAML: {' '.join(str(error).split())}.", "Fix it.") from error
    except ValidationError as error:
        raise _wrong(error, node, source) from error  # type: ignore[arg-type]  # a document, as it was read


def _plain(node: yaml.Node, seen: set[int]) -> Any:
    """Return a node's value; every scalar is text, so that `on`, `no` and `1.10` mean what they look like."""
    if id(node) in seen:
        raise yaml.MarkedYAMLError(problem="an alias (*name) is not read", problem_mark=node.start_mark)
    seen.add(id(node))
    match node:
        case yaml.MappingNode():
            table: dict[str, Any] = {}
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode) or key.value in table:
                    problem = f"{key.value!r} occurs twice" if isinstance(key, yaml.ScalarNode) else "not a plain name"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                table[str(key.value)] = _plain(value, seen)
            return table
        case yaml.SequenceNode():
            return [_plain(one, seen) for one in node.value]
    return str(node.value)


def _wrong(failed: ValidationError, root: yaml.Node, source: str) -> UsageError:
    """Return the first mistakes as an error, each with its line and its step."""
    mistakes = dict.fromkeys(_mistake(error, root) for error in failed.errors())
    return UsageError(f"{source}, {'; '.join([*mistakes][:_MOST_MISTAKES])}.", "docs/recipes.md shows a recipe.")


def _mistake(error: "ErrorDetails", root: yaml.Node) -> str:
    names = [part for part in error["loc"] if not str(part).startswith("function-")]
    step = f", step {int(names[1]) + 1}" if len(names) > 1 and names[0] == "steps" else ""
    problem = str(error["msg"]).removeprefix("Value error, ")
    match error["type"]:
        case "extra_forbidden":
            problem = f"there is no {names[-1]!r} here"
        case "missing":
            problem = f"{names[-1]!r} is missing"
        case "value_error":
            pass
        case _:
            field = names[-1] if names else "the file"
            problem = f"{field} cannot be {str(error['input'])[:60]!r}: {problem[:1].lower()}{problem[1:]}"
    return f"line {_line_of(root, names)}{step}: {problem}"


def _line_of(node: yaml.Node, names: list[int | str]) -> int:
    """Return the line of the deepest node that exists on a path."""
    line = node.start_mark.line
    for name in names:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == name), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(name, int) and name < len(node.value):
            node = node.value[name]
            line = node.start_mark.line
    return int(line) + 1
