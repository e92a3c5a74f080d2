"""`mai-agent save`, `record`, `do` and `recipes`: tasks kept as recipes, and done again without a model."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from agent.commands.arguments import add_options, add_recorded_run, check_sandbox, open_own_desktop, recorded_run
from agent.commands.run import add_run_options, execute, with_event
from agent.settings import load_settings, runs_dir
from foundation.command_line import Parser, plain_text
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.files import cannot_write
from foundation.foreign_text import on_one_line
from foundation.printing import counted, put, put_json, put_text, remark
from foundation.stray_output import stray_output_kept

if TYPE_CHECKING:
    from agent.events.run_events import Event
    from agent.literal.goals import Target
    from agent.recipes.recipe import Recipe
    from agent.record.read import Bundle


def save_main(argv: Sequence[str]) -> int:
    """Make a recipe of a recorded run."""
    parser = Parser(prog="mai-agent save", description="Make a recipe of a recorded run: a file that you can change.")
    add_recorded_run(parser)
    _add_recipe(parser)
    options = parser.parse_args(argv)
    return _keep(recorded_run(options), options)


def record_main(argv: Sequence[str]) -> int:
    """Make a recipe of what the person does."""
    parser = Parser(
        prog="mai-agent record",
        description="Record what you do with mouse and keyboard, and make a recipe of it. "
        "End with Ctrl-C here, or with ctrl+alt+shift+escape anywhere. What is done in this terminal is not recorded. "
        "Texts that no field shows, such as passwords, become parameters and are never kept.",
    )
    _add_recipe(parser)
    parser.add_argument("instruction", metavar="INSTRUCTION", nargs="?", type=plain_text,
                        help="what the recipe does, in a sentence (default: its name)")  # fmt: skip
    parser.add_argument("--monitor", metavar="N", type=int, help="which monitor you work on")
    add_options(parser, "runs", titled=False)
    options = parser.parse_args(argv)
    from agent.recipes.files import check_free
    from agent.record.read import read_bundle

    pairs(options.param)
    path = check_free(options.name, replace=options.replace)
    try:  # now, and not after the demonstration
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise cannot_write(path, error) from error
    return _keep(read_bundle(_record(options)), options)


@stray_output_kept()
def _record(options: argparse.Namespace) -> Path:
    import asyncio
    from contextlib import closing

    from agent.events.run_events import Acted, RunStarted
    from agent.recipes.demonstration import demonstrate
    from agent.record.bundle import Recorder
    from agent.safety.stop import StopSwitch, stop_signals
    from agent.workplace import broken_off

    stop = StopSwitch()
    desktop = open_own_desktop(stop, options.monitor)
    instruction = options.instruction or options.name
    recorder = Recorder(runs_dir(options.runs, load_settings()), instruction)

    def emit(event: "Event") -> None:
        recorder.handle(event)
        match event:
            case RunStarted():
                remark("Do the task now. End with Ctrl-C here, or with ctrl+alt+shift+escape anywhere.")
            case Acted(step, detail=detail):
                remark(f"{step:3}  {on_one_line(recorder.redactor.text(detail))}")

    with closing(recorder), stop_signals(stop):
        try:
            asyncio.run(demonstrate(desktop, instruction, recorder.path, stop, emit))
        except MaiError as error:
            recorder.abandon(broken_off(error))
            raise
    return recorder.path


def _add_recipe(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=plain_text, help="what to call it")
    parser.add_argument("--param", metavar="NAME=TEXT", type=plain_text, action="append", default=[],
                        help="make a parameter of a typed text or of a name's words; may be repeated")  # fmt: skip
    parser.add_argument("--replace", action="store_true", help="replace a recipe of that name")
    parser.add_argument("--json", action="store_true", help="the recipe as one JSON object")


def _keep(bundle: "Bundle", options: argparse.Namespace) -> int:
    from agent.recipes.files import keep_recipe
    from agent.recipes.saving import recipe_of

    recipe = recipe_of(bundle, pairs(options.param))
    path = keep_recipe(recipe, options.name, replace=options.replace)
    if options.json:
        put_json({"name": options.name, "path": str(path), "recipe": _as_json(recipe)})
        return 0
    put_text(recipe.text)
    put(f"saved as {path}", f"do it again: mai-agent do {quote(options.name)}{_asked(recipe)}")
    if not recipe.expect:
        remark("It expects no change at its end, so a repeat may end unconfirmed: see `expect` in docs/recipes.md.")
    return 0


def do_main(argv: Sequence[str]) -> int:
    """Do a recipe again."""
    return with_event(_do, argv)


def _do(argv: Sequence[str]) -> int:
    parser = Parser(
        prog="mai-agent do",
        description="Do the steps of a recipe, without a model. If --endpoint names one, it is asked for the new name "
        "of a control that is missing under its recorded name.",
    )
    parser.add_argument("name", metavar="NAME", type=plain_text, help="a recipe's name, or its file")
    parser.add_argument(
        "values", metavar="NAME=VALUE", nargs="*", default=[], type=plain_text, help="values of its parameters"
    )
    parser.add_argument("--repair", action="store_true", help="keep such new names in the recipe's file without asking")
    add_run_options(parser)
    arguments, rest = parser.parse_known_args(argv)
    if wrong := [word for word in rest if word.startswith("-") or "=" not in word]:
        parser.unrecognized(wrong)
    check_sandbox(arguments)
    from functools import partial

    from agent.literal.client import literal_engine
    from agent.options import RunOptions
    from agent.recipes.files import load_recipe
    from agent.record.redactor import Redactor

    recipe, values = load_recipe(arguments.name), pairs([*arguments.values, *rest])
    arguments.instruction, goal = recipe.with_values(values)
    options = RunOptions.of(arguments, load_settings())
    secrets = recipe.secrets(values)
    repairs: dict[int, Target] = {}
    engine = partial(literal_engine, options.engine, Redactor(secrets=secrets).text, [goal], repairs)
    status = execute(options, as_json=arguments.json, engine=engine, secrets=secrets)
    if repairs and status == ExitStatus.DONE:
        _offer_repairs(arguments.name, recipe, repairs, unasked=arguments.repair)
    return status


def _offer_repairs(name: str, recipe: "Recipe", repairs: "dict[int, Target]", *, unasked: bool) -> None:
    """Write what a model found into the recipe's file, if the person wants that."""
    import difflib

    from agent.console.terminal import terminal_ask
    from agent.recipes.files import keep_recipe

    repaired = recipe.repaired(repairs)
    if repaired == recipe:
        return
    for line in difflib.ndiff(recipe.text.splitlines(), repaired.text.splitlines()):
        if line.startswith(("+", "-")):
            remark(on_one_line(line))
    ask = terminal_ask()
    if unasked or (ask is not None and ask(f"The run went well with this change. Keep it in {name}?")):
        remark(f"saved as {keep_recipe(repaired, name, replace=True)}")
    elif ask is None:
        remark("The run went well with this change. --repair keeps it in the recipe.")


def main(argv: Sequence[str]) -> int:
    """List recipes; show, check or remove one."""
    parser = Parser(prog="mai-agent recipes", description="List your recipes; show, check or remove one.")
    parser.add_argument("what", nargs="?", choices=("show", "check", "remove"), help="what to do with a recipe")
    parser.add_argument("name", nargs="?", metavar="NAME", type=plain_text, help="a recipe's name, or its file")
    parser.add_argument("--json", action="store_true", help="JSON: one object per recipe")
    options = parser.parse_args(argv)
    if options.what is not None and options.name is None:
        raise UsageError(f"No recipe is named to {options.what}.", "`mai-agent recipes` lists them.")
    from agent.recipes.files import load_recipe, path_of

    match options.what:
        case None:
            return _list(as_json=options.json)
        case "remove":
            return _remove(path_of(options.name), options.name, as_json=options.json)
    recipe, path = load_recipe(options.name), path_of(options.name)
    if options.json:
        put_json({"name": options.name, "path": str(path), "recipe": _as_json(recipe)})
    elif options.what == "show":
        put_text(recipe.text)
    else:
        put(f"{path} is a recipe of {counted(len(recipe.steps), 'step')}: mai-agent do {options.name}{_asked(recipe)}")
        for name in sorted(recipe.braces_kept):
            put(f"{{{name}}} is no parameter of it: it is used as it stands.")
    return 0


def _list(*, as_json: bool) -> int:
    from agent.recipes.files import all_recipes, recipes_folder

    found = list(all_recipes())
    for name, one in found:
        if isinstance(one, UsageError):
            put_json({"name": name, "error": str(one)}) if as_json else put(f"{name:24} {on_one_line(str(one))}")
        elif as_json:
            data = {"name": name, "instruction": one.instruction, "parameters": [*one.parameters]}
            put_json({**data, "steps": len(one.steps)})
        else:
            put(f"{name:24} {len(one.steps):2} steps  {on_one_line(one.instruction[:70])}")
    if not found and not as_json:
        put(f"There are no recipes in {recipes_folder()}. `mai-agent save last NAME` makes one.")
    return 0


def _remove(path: Path, name: str, *, as_json: bool) -> int:
    try:
        path.unlink()
    except FileNotFoundError:
        raise UsageError(f"There is no recipe {name!r}.", "`mai-agent recipes` lists them.") from None
    put_json({"name": name, "removed": str(path)}) if as_json else put(f"removed {path}")
    return 0


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Return the values of NAME=VALUE arguments by their names. Raises UsageError."""
    values: dict[str, str] = {}
    for one in words:
        name, sign, value = one.partition("=")
        if not sign or name in values:
            raise UsageError(f"{one[:60]!r} is not NAME=VALUE with a new name.", "Write NAME=VALUE, each name once.")
        values[name] = value
    return values


def _asked(recipe: "Recipe") -> str:
    return "".join(f" {name}=…" for name in recipe.parameters)


def _as_json(recipe: "Recipe") -> dict[str, Any]:
    return recipe.model_dump(by_alias=True, exclude_defaults=True)
