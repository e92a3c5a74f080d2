"""`mai-agent completion` and `mai-server completion`: what a shell offers, and the man page."""

import subprocess

import pytest
from commandline import CommandLine

from agent.commands import COMMANDS, MODULES
from foundation.command_line import SHELLS, parser_of
from serverctl.cli import main as server

#: Asks bash's completion for the last of the words.
ASK = """
eval "$1"; program=$2; shift
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p "$program" | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
"$function" "$program" "${COMP_WORDS[$COMP_CWORD]}" ""
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(script: str, *words: str) -> list[str]:
    done = subprocess.run(["bash", "-c", ASK, "bash", script, *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rep"], ["report", "replay"]),
        (["--sandbox-n"], ["--sandbox-network"]),
        (["--approve", "r"], ["risky"]),
        (["report", "--web"], ["--webp"]),
        (["sandbox", "st"], ["stop"]),
        (["report", "last", "--output", "pyproject"], ["pyproject.toml"]),
    ],
)
def test_bash_completes_commands_options_choices_and_files(
    mai: CommandLine, words: list[str], expected: list[str]
) -> None:
    ran = mai("completion", "bash")
    assert ran.status == 0
    assert sorted(offered(ran.out, "mai-agent", *words)) == sorted(expected)


def test_the_servers_commands_complete_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert server(["completion", "bash"]) == 0
    assert offered(capsys.readouterr().out, "mai-server", "plan", "--comp") == ["--compare"]


@pytest.mark.parametrize("what", [*SHELLS, "man"])
def test_every_command_is_in_what_every_shell_and_man_get(mai: CommandLine, what: str) -> None:
    written = mai("completion", what).out.replace("\\-", "-")
    assert "--sandbox-session" in written if what != "fish" else "sandbox-session" in written
    for name, words in COMMANDS.items():
        assert name in written
        if what == "man":
            assert f"'mai-agent {name}'" in written
            assert words.split()[0] in written


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_parser_of_a_command_is_had_without_running_it(name: str) -> None:
    assert parser_of(MODULES[name]).prog in ("mai-agent", f"mai-agent {name}")


def test_a_shell_that_is_not_known_is_a_usage_error(mai: CommandLine) -> None:
    ran = mai("completion", "dos")
    assert (ran.status, ran.out) == (2, "")
    assert "bash" in ran.err
