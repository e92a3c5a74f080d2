"""A systemd unit for this machine: the plan's command under systemd's supervision.

Rules of a unit's text (systemd.service(5), systemd.syntax(7); checked with systemd 252): words are split at blanks,
quotes of both kinds group, backslashes are C escapes also inside quotes, "%" starts a specifier everywhere, and "$" a
variable in ExecStart= after the first word.
"""

import re
from collections.abc import Sequence

from foundation.templates import template
from serverctl.export.common import Document, Server, Source, flag_groups, program_words
from serverctl.process import api_key_gate as gate

#: The location of vLLM in a unit for imagined hardware.
_PLACEHOLDER = "/opt/vllm/bin/python"
#: systemd refuses these in a program's name, also quoted ("Executable name contains special characters").
_UNSAFE = re.compile(r"""['"\\\x00-\x1f\x7f]""")
#: A shell command that writes the module of the gate. The module's text is passed to the shell as $0.
_PUT_GATE = 'printf %s "$0" >"$RUNTIME_DIRECTORY/mai_gate.py"'
_PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)


def documents(source: Source) -> Sequence[Document]:
    """A unit for each server."""
    return [Document(f"{server.name}.service", _unit(source, server)) for server in source.servers()]


def quote(word: str, variables: bool = True) -> str:
    """Quote a word for systemd: `variables` if "$" has a meaning (in arguments, not in the program's path)."""
    text = word.replace("%", "%%")
    if variables:
        text = text.replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return text
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    if "'" not in word:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', '\\"') + '"'


def command_line(words: Sequence[Sequence[str]]) -> str:
    """The value of ExecStart=: a line for each group of words. The first word is the program."""
    program, *rest = words[0]
    if _UNSAFE.search(program):  # systemd accepts such a name only as an argument
        program, rest = "/usr/bin/env", [program, *rest]
    lines = [" ".join([quote(program, variables=False), *map(quote, rest)])]
    lines += [" ".join(map(quote, group)) for group in words[1:]]
    return " \\\n    ".join(lines)


def _unit(source: Source, server: Server) -> str:
    python = str(source.python or _PLACEHOLDER)
    command = server.command
    env = {
        # vLLM's kernels are partly compiled on the machine: the tools for it are beside its Python and CUDA.
        "PATH": f"{python.rpartition('/')[0]}:/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONUNBUFFERED": "1",
        **source.environ,
        **command.env,
    }
    del env["PYTHONPATH"]  # the template sets it, because its folder begins with the specifier %t
    user = source.user_unit
    ask = f'"{python}" -c "{server.health_check}"'
    # Ends when the server answers, or fails when it died: `systemctl start` returns only then.
    wait = f'while kill -0 "$MAINPID" 2>/dev/null; do {ask} 2>/dev/null && exit 0; sleep 2; done; exit 1'
    key_file = f"{'%h/.config/mai-server' if user else '/etc/mai-server'}/{server.name}.env"
    install = source.notes("systemd.install", SERVER=server.name, KEY_FILE=key_file, PLACEHOLDER=_PLACEHOLDER)
    values = {
        "# @HEADER@": source.header_comment(install),
        "@MODEL@": source.model.replace("%", "%%"),
        **{f"# @{part}@\n": _lines(source, part) for part in ("NETWORK", "DEVICES", "ACCOUNT", "HARDENING")},
        "# @ENVIRONMENT@": "\n".join(f"Environment={quote(f'{name}={env[name]}', variables=False)}" for name in env),
        "@KEY_FILE@": key_file,
        "@PUT_GATE@": command_line([["/bin/sh", "-c", _PUT_GATE], [gate.source()]]),
        "@NAME@": server.name,
        "@START@": command_line([program_words(command, python), *flag_groups(command)]),
        "@WAIT@": command_line([["/bin/sh", "-c", wait]]),
        "@TARGET@": "default.target" if user else "multi-user.target",
    }
    return template("server.service", values)


def _lines(source: Source, part: str) -> str:
    return "".join(f"{line}\n" for line in source.notes(f"systemd.{part.lower()}", ACCOUNT=source.account))
