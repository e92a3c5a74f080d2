"""Every command that the troubleshooting page names is one that our own parsers take, with values that exist."""

import argparse
import importlib
import re
import shlex
from pathlib import Path

import pytest

from agent.options import RunOptions
from foundation.command_line import Parser
from serverctl.commands.plans.comparison import machine_of
from serverctl.plan.settings import parse_assignments
from serverctl.planning import load_presets

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
PROGRAMS = {"mai-server": "serverctl", "mai-agent": "agent"}


def command_lines() -> list[str]:
    """Lines of the code blocks, and what stands between backticks, of our two programs; pipes make several."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```sh\n.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`]+)`", rest)
    parts = [part.strip() for line in lines for part in line.split("|")]
    return sorted({part for part in parts if part.split(" ")[0] in PROGRAMS})


class WordsReadError(Exception):
    """A command has taken its words, and would now begin."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command ends once it has read its words."""
    original = Parser.parse_args

    def parse_and_end(self: Parser, args: list[str] | None = None, namespace: object = None) -> object:
        raise WordsReadError(original(self, args, namespace))  # type: ignore[call-overload]

    def end(given: argparse.Namespace, _: object) -> object:
        raise WordsReadError(given)

    monkeypatch.setattr(Parser, "parse_args", parse_and_end)
    monkeypatch.setattr(RunOptions, "of", end)  # a run reads its words another way, and would go on to the desktop


def test_the_page_has_commands_for_each_of_its_four_troubles() -> None:
    titles = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert len(titles) == 4
    for part in PAGE.split("\n## ")[1:]:
        assert re.search(r"^(mai-server|mai-agent) ", part, re.MULTILINE), part[:40]
    assert len(command_lines()) > 30


@pytest.mark.usefixtures("parsed")
@pytest.mark.parametrize("line", command_lines())
def test_the_command_is_taken(line: str) -> None:
    program, *words = shlex.split(line, comments=True)
    room = PROGRAMS[program]
    commands = importlib.import_module(f"{room}.commands")
    name = words.pop(0) if words and words[0] in commands.COMMANDS else "run"
    assert name in commands.COMMANDS, f"{program} has no {name}"
    module, _, function = commands.MODULES[name].partition(":")
    with pytest.raises(WordsReadError) as ended:
        getattr(importlib.import_module(module), function or "main")(words)
    check_values(ended.value.options)


def check_values(options: argparse.Namespace) -> None:
    """What argparse takes as any text must exist, too."""
    if assignments := getattr(options, "assignments", None):
        parse_assignments(assignments)
    if hasattr(options, "assignments") and options.preset:
        for preset in options.preset.split(","):
            load_presets().get(preset)
    compared = getattr(options, "compare", None)
    if isinstance(compared, str):
        for card in compared.split(","):
            machine_of(card)
    for side in compared if isinstance(compared, list) else ():
        assert side in load_presets().by_name, "a preset, as the page has no addresses here"
