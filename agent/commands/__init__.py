"""One module a subcommand of `mai-agent`; each has `main(arguments) -> exit status`."""

#: Subcommands, which are modules here, and what they do in a few words.
COMMANDS = {
    "run": "do what the instruction says (also without the word run)",
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
    "sandbox": "list or stop throw-away desktops that were kept",
    "families": "list the model families, and what proves each",
    "parse": "read models' answers (JSON lines in, JSON lines out)",
    "prompt": "print the chat messages of a request",
    "fit": "print the size and tokens of an image as a model gets it",
}

#: Names that scripts may rely on later; until then they must not be taken for an instruction.
RESERVED = ("eval",)
