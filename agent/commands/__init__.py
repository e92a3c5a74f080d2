"""The subcommands of `mai-agent`: functions from arguments to an exit status."""

#: Subcommands, and what they do in a few words.
COMMANDS = {
    "run": "do what the instruction says (also without the word run)",
    "save": "make a recipe of a recorded run",
    "record": "make a recipe of what you do with mouse and keyboard",
    "do": "do a recipe again, without a model",
    "recipes": "list, show, check or remove recipes",
    "fleet": "do many tasks, each in a throw-away desktop of its own",
    "calibrate": "find out where a model clicks, before it clicks",
    "act": "one screenshot, one decision, printed",
    "look": "print the elements of the screen now, with a marked picture",
    "stop": "stop the runs that are going on, from another terminal",
    "runs": "list recorded runs",
    "show": "show one recorded run",
    "undo": "put back what a recorded run changed",
    "report": "write one recorded run as an HTML file",
    "replay": "run the decisions of a recorded run again, without a model",
    "doctor": "say what this machine has and lacks",
    "eval": "measure a model on published samples (grounding) or on tasks",
    "mcp": "serve the desktop to coding agents (Claude Code, Codex, Cursor, ...)",
    "sandbox": "list or stop throw-away desktops that were kept",
    "families": "list the model families with their tests",
    "prompts": "fetch the prompts that the models' publishers wrote",
    "parse": "read models' answers (JSON lines in, JSON lines out)",
    "prompt": "print the chat messages of a request",
    "fit": "print the size and tokens of an image as a model gets it",
    "completion": "print a shell completion script, or the man page",
}

#: Where a subcommand is if it is not the `main` of the module with its name.
_ELSEWHERE = {
    "save": "recipes:save_main",
    "record": "recipes:record_main",
    "do": "recipes:do_main",
    "show": "runs:show_main",
    "undo": "runs:undo_main",
    "replay": "runs:replay_main",
    **{name: f"models.{name}" for name in ("act", "calibrate", "eval", "families", "prompts")},
    "fit": "models.families:fit_main",
    "parse": "models.exchanges:parse_main",
    "prompt": "models.exchanges:prompt_main",
}

#: Where each subcommand is, as `run_command` takes it.
MODULES = {name: f"agent.commands.{_ELSEWHERE.get(name, name)}" for name in COMMANDS}
