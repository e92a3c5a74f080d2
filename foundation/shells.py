"""Shell completions and man page of a program, from its parsers, by shtab and argparse-manpage."""

from collections.abc import Mapping
from pathlib import Path

from foundation.command_line import Parser, parser_of
from foundation.printing import put_text

SHELLS = ("bash", "zsh", "fish")
_HOW = """\
bash:  {program} completion bash > ~/.local/share/bash-completion/completions/{program}
zsh:   {program} completion zsh > DIRECTORY/_{program}   (a directory of $fpath)
fish:  {program} completion fish > ~/.config/fish/completions/{program}.fish
man:   {program} completion man > ~/.local/share/man/man1/{program}.1
"""


def completion_main(
    program: str, about: str, commands: Mapping[str, str], modules: Mapping[str, str], arguments: list[str]
) -> int:
    """Print what completes a program's commands and options in a shell, or its man page.

    Args:
        program: its name.
        about: what it does, in a sentence.
        commands: its commands, and what they do in a few words.
        modules: where each command is, as for `run_command`; "" for what runs without a command.
        arguments: the arguments.
    """
    parser = Parser(
        f"{program} completion",
        description=f"Print what completes the commands and options of {program} in a shell, or its man page.",
        epilog=_HOW.format(program=program),
    )
    parser.add_argument("what", choices=(*SHELLS, "man"), help="a shell, or the man page")
    choice = parser.parse_args(arguments).what
    combined = _whole(program, about, commands, modules)
    put_text(_man_page(combined, about) if choice == "man" else _completion(combined, choice))
    return 0


def _whole(program: str, about: str, commands: Mapping[str, str], modules: Mapping[str, str]) -> Parser:
    """Return one parser that describes all commands. It is not used to parse arguments."""
    alone = parser_of(modules[""]) if "" in modules else Parser(program)
    combined = Parser(program, description=about, epilog=alone.epilog or "", add_help=False)
    combined.take_options(alone)
    below = combined.add_subparsers(metavar="COMMAND", title="commands")
    for name, words in commands.items():
        own = parser_of(modules[name])
        below.add_parser(
            name, prog=f"{program} {name}", parents=[own], add_help=False, help=words,
            description=own.description or words, epilog=own.epilog or "", usage=own.usage,
        )  # fmt: skip
    return combined


def _completion(combined: Parser, shell: str) -> str:
    import shtab

    for argument in combined.arguments():
        if argument.type is Path:
            argument.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    return str(shtab.complete(combined, shell))


def _man_page(combined: Parser, about: str) -> str:
    from argparse_manpage.manpage import Manpage

    page = Manpage(combined)
    page.manual, page.description = "User Commands", about
    return str(page)
