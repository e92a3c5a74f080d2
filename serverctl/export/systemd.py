"""A systemd unit for this machine: the plan's command under systemd's own supervision, with the controller's rules.

What systemd does with the text of a unit (systemd.service(5), systemd.syntax(7); checked with systemd 252): words are
split at blanks, quotes of both kinds group, backslashes are C escapes also inside quotes, "%" starts a specifier
everywhere, and "$" a variable in ExecStart= after the first word.
"""

import re
from collections.abc import Sequence

from serverctl.export.common import Document, Server, Source, commented, flag_groups, header_comment

#: Where vLLM is, in a unit for hardware that is not here.
_PLACEHOLDER = "/opt/vllm/bin/python"
#: What systemd refuses in a program's name, however it is quoted ("Executable name contains special characters").
_UNSAFE = re.compile(r"""['"\\\x00-\x1f\x7f]""")
_PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)
#: Hardening that leaves CUDA alone. Not among it, on purpose: PrivateDevices= and ProtectClock= hide /dev/nvidia*, and
#: MemoryDenyWriteExecute= stops the compilers (Triton, CUDA's own).
_HARDENING = (
    "NoNewPrivileges=yes",
    "ProtectSystem=full",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "PrivateTmp=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
)
#: Sandboxing of files needs a user namespace in a user's own manager, which takes the cards' groups away.
_USER_HARDENING = ("NoNewPrivileges=yes", "RestrictSUIDSGID=yes", "LockPersonality=yes")


def documents(source: Source) -> Sequence[Document]:
    """One unit a server."""
    return [Document(f"{server.name}.service", _unit(source, server)) for server in source.servers()]


def quote(word: str, variables: bool = True) -> str:
    """A word as systemd reads it back: `variables` where "$" means something (arguments, not the program's path)."""
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
    """ExecStart='s value: groups of words, a line each. The first word of all is the program."""
    program, *rest = words[0]
    if _UNSAFE.search(program):  # systemd takes such a name as an argument only
        program, rest = "/usr/bin/env", [program, *rest]
    lines = [" ".join([quote(program, variables=False), *map(quote, rest)])]
    lines += [" ".join(map(quote, group)) for group in words[1:]]
    return " \\\n    ".join(lines)


def _unit(source: Source, server: Server) -> str:
    python = str(source.python or _PLACEHOLDER)
    command = server.command
    argv = command.argv(python)
    start = command_line([argv[: len(argv) - len(command.flags)], *flag_groups(command)])
    bin_folder = python.rpartition("/")[0]
    env = {
        # vLLM's kernels are partly compiled on the machine: the tools for it are beside its Python and CUDA.
        "PATH": f"{bin_folder}:/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONUNBUFFERED": "1",
        **source.environ,
        **command.env,
    }
    sections = [
        _unit_section(source),
        ["[Service]", *_how(source), *_who(source), *_environment(source, server, env)],
        [f"ExecStart={start}", f"ExecStartPost={_wait(server, python)}"],
        _ends(),
        list(_USER_HARDENING if source.user_unit else _HARDENING),
        ["[Install]", f"WantedBy={'default.target' if source.user_unit else 'multi-user.target'}"],
    ]
    text = "\n\n".join("\n".join(section) for section in sections)
    return header_comment(source, *_install(source, server)) + "\n" + text + "\n"


def _unit_section(source: Source) -> list[str]:
    lines = ["[Unit]", f"Description=vLLM serving {source.model.replace('%', '%%')}"]
    if not source.user_unit:  # a user's own manager has no network target
        lines += ["Wants=network-online.target", "After=network-online.target"]
    return [
        *lines,
        _note(
            "At most two starts within ten minutes: a server that dies twice so soon is left stopped, as "
            "`mai-server` does it. `systemctl reset-failed` allows the next start."
        ),
        "StartLimitIntervalSec=600",
        "StartLimitBurst=2",
    ]


def _how(source: Source) -> list[str]:
    if source.user_unit or source.plan.vendor != "nvidia":
        return ["Type=exec"]
    return [
        "Type=exec",
        _note(
            "Makes the cards' device files where nothing has yet (a machine without a desktop, just booted). vLLM "
            "cannot: the program for it is setuid, and NoNewPrivileges stops that. + runs it as root; - lets it fail."
        ),
        "ExecStartPre=+-/usr/bin/nvidia-modprobe -u -c=0",
    ]


def _who(source: Source) -> list[str]:
    if source.user_unit:
        return ["WorkingDirectory=%h"]
    return [f"User={source.account}", "WorkingDirectory=~"]


def key_file(source: Source, server: Server) -> str:
    """The file with the key, as the unit names it."""
    folder = "%h/.config/mai-server" if source.user_unit else "/etc/mai-server"
    return f"{folder}/{server.name}.env"


def _environment(source: Source, server: Server, env: dict[str, str]) -> list[str]:
    return [
        *(f"Environment={quote(f'{name}={value}', variables=False)}" for name, value in env.items()),
        _note(
            "VLLM_API_KEY=... in a file of its own, mode 0600, because everybody can read units. Without that file "
            "nothing starts."
        ),
        f"EnvironmentFile={key_file(source, server)}",
    ]


def _wait(server: Server, python: str) -> str:
    """A command that ends when the server answers, or fails when it died: `systemctl start` returns only then."""
    ask = f'"{python}" -c "{server.health_check}"'
    loop = f'while kill -0 "$MAINPID" 2>/dev/null; do {ask} 2>/dev/null && exit 0; sleep 2; done; exit 1'
    return command_line([["/bin/sh", "-c", loop]])


def _ends() -> list[str]:
    return [
        _note("Downloading and loading take as long as they take."),
        "TimeoutStartSec=infinity",
        _note(
            "Whatever the exit status: when vLLM's engine dies, its server exits with 0. Status 2 is a wrong flag: "
            "trying again does not help."
        ),
        "Restart=always",
        "RestartPreventExitStatus=2",
        _note("The driver needs a moment to give the dead server's memory back."),
        "RestartSec=15",
        _note(
            "Requests in flight get five seconds (--shutdown-timeout). vLLM can swallow a SIGTERM while it starts, "
            "and its engine outlives it when it is killed alone: after this time every process of the unit is killed."
        ),
        "TimeoutStopSec=20",
        "KillMode=control-group",
        "LimitNOFILE=65536",
        "UMask=0077",
    ]


def _note(text: str) -> str:
    return commented([text]).rstrip("\n")


def _install(source: Source, server: Server) -> list[str]:
    key = 'printf "VLLM_API_KEY=%s\\n" "$(openssl rand -hex 24)"'
    unit = f"{server.name}.service"
    placeholder = (
        [] if source.python else [f"Put your own vLLM's path in place of {_PLACEHOLDER} (and the account).", ""]
    )
    if source.user_unit:
        return [
            *placeholder,
            "Install (the key is made here and stands only in its own file):",
            "  mkdir -p ~/.config/systemd/user ~/.config/mai-server",
            f"  (umask 077; {key} > ~/.config/mai-server/{server.name}.env)",
            f"  cp {unit} ~/.config/systemd/user/",
            f"  systemctl --user daemon-reload && systemctl --user enable --now {server.name}",
            "  loginctl enable-linger        # so that it starts without a login, and stays after it",
        ]
    return [
        *placeholder,
        "Install (the key is made here and stands only in its own file):",
        "  sudo install -d -m 700 /etc/mai-server",
        f"  {key} | sudo install -m 600 /dev/stdin {key_file(source, server)}",
        f"  sudo install -m 644 {unit} /etc/systemd/system/",
        f"  sudo systemctl daemon-reload && sudo systemctl enable --now {server.name}",
        f"  journalctl -u {server.name} -f",
    ]
