"""Exports as a test makes and reads them: what was printed, units as systemd reads them, words of a shell."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from serverctl.cli import main as cli
from serverctl.commands.plans import export as command
from serverctl.export import systemd
from serverctl.export.common import Source
from serverctl.hardware.catalogue import imagine
from serverctl.hardware.facts import Hardware
from serverctl.plan.goal import Goal
from serverctl.planning import plan_for
from serverctl.vllm.capabilities import snapshot


def options_for(name: str, *more: str) -> list[str]:
    """A command line of a format on an imagined machine."""
    several = {"multi-node": ("--gpus", "4", "--nodes", "2"), "haproxy": ("--gpus", "2", "--preset", "throughput")}
    return [name, "--gpu", "L40S", *several.get(name, ()), *more]


def exported(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert command.main(list(options)) == 0
    return capsys.readouterr().out


def files(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    """The files of an export by their names."""
    document = json.loads(exported(capsys, options[0], "--json", *options[1:]))
    return {file["name"]: file["text"] for file in document["files"]}


def source_for(gpu: str = "L40S", count: int = 1, **changes: Any) -> Source:
    hardware = changes.pop("hardware", None) or imagine(gpu, count)
    goal = changes.pop("goal", Goal())
    capabilities = snapshot("0.32.0-cpu" if hardware.vendor == "cpu" else changes.pop("version", "0.33.0"))
    plan = plan_for(hardware, goal, capabilities.version)
    return Source(plan, hardware, capabilities, goal, "mai-server export", **changes)


def here(count: int = 2) -> Hardware:
    """Cards that are in this machine: with names of their own, which plans pin."""
    found = imagine("L40S", count)
    cards = tuple(replace(gpu, uuid=f"GPU-0000000{gpu.index}-1111-2222-3333-444444444444") for gpu in found.gpus)
    return replace(found, gpus=cards, imagined=False)


def read_words(text: str, variables: bool) -> list[str]:
    """Words of a unit's line as systemd reads them (systemd.service(5), systemd.syntax(7)); strict where unclear."""
    words: list[str] = []
    word, quote, inside, at = "", "", False, 0
    escapes = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
    while at < len(text):
        char = text[at]
        if char == "\\":
            assert text[at + 1] in escapes, text[at : at + 4]
            word, inside, at = word + escapes[text[at + 1]], True, at + 2
            continue
        if quote:
            if char == quote:
                quote = ""
                assert at + 1 == len(text) or text[at + 1].isspace(), "a quote ends in the middle of a word"
            else:
                word += char
        elif char in "'\"":
            assert not inside, "a quote starts in the middle of a word"
            quote, inside = char, True
        elif char.isspace():
            if inside:
                words.append(word)
            word, inside = "", False
        else:
            word, inside = word + char, True
        at += 1
    assert not quote, "an open quote"
    if inside:
        words.append(word)
    assert words[0][0] not in "@-:+!" or words[0].startswith("+-/"), "the program's first character means something"
    done = []
    for number, found in enumerate(words):
        assert found != ";", "a lone semicolon starts another command"
        assert not re.search(r"(?<!%)(%%)*%(?!%)", found), "an open specifier"
        plain = found.replace("%%", "%")
        if variables and number:
            assert not re.search(r"(?<!\$)(\$\$)*\$(?!\$)", found), "a variable"
            plain = plain.replace("$$", "$")
        done.append(plain)
    return done


def settings(unit: str) -> dict[str, list[str]]:
    """The unit's settings, continued lines joined."""
    found: dict[str, list[str]] = {}
    for line in unit.replace("\\\n", " ").splitlines():
        if line and line[0] not in "#;[":
            name, sign, value = line.partition("=")
            assert sign and re.fullmatch(r"[A-Za-z]+", name), line
            found.setdefault(name, []).append(value)
    return found


def shell_words(text: str) -> list[str]:
    """The words of the last command of a script."""
    start = text.rindex("exec ")
    return shlex.split(text[start:].replace("\\\n", " "))[1:]


def run_plan(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert cli(["plan", *options, "--json"]) == 0
    return capsys.readouterr().out


def command_lines(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """Arguments after `vllm serve` of every format, for cards of every kind."""
    for gpu, count, *more in (("T4", 1), ("L4", 1), ("B200", 1, "--preset", "throughput"), ("RTX 3090", 2)):
        options = ("--gpu", str(gpu), "--gpus", str(count), *map(str, more))
        loaded = yaml.safe_load(exported(capsys, "compose", *options))
        yield loaded["services"]["mai-vllm"]["command"]
        for document in systemd.documents(source_for(str(gpu), int(count))):
            yield read_words(settings(document.text)["ExecStart"][0], True)[2:]
    found = files(capsys, "multi-node", "--gpu", "RTX 3090", "--gpus", "2", "--nodes", "2", "--model", "MAI-UI-32B")
    for name in ("node-0.sh", "node-1.sh", "ray-serve.sh"):
        yield [word.replace("$HEAD_ADDRESS", "10.0.0.1") for word in shell_words(found[name])[2:]]
