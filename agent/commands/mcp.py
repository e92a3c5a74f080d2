"""`mai-agent mcp`: an MCP server for coding agents, and its entry in their settings."""

import argparse
import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

from agent.commands.arguments import add_options, check_sandbox
from agent.settings import load_settings
from foundation.command_line import Parser, port_number
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.printing import is_terminal, put, remark

_EPILOG = """\
A host starts it by itself once it is installed there. Approvals are asked through the host, or on a page that opens in
your browser if the host cannot ask. HTTP is on 127.0.0.1 only, with the token of MAI_AGENT_MCP_TOKEN or a new one that
is printed.

examples:
  mai-agent mcp install claude-code
  mai-agent mcp install codex -- --sandbox
  mai-agent mcp uninstall claude-code
  mai-agent mcp --sandbox --http 8765
"""


def main(argv: Sequence[str]) -> int:
    """Serve, or change a host's settings."""
    if argv and argv[0] in ("install", "uninstall"):
        return _change(argv[0], argv[1:])
    if list(argv) == ["skill"]:
        from agent.mcp.server import skill_text

        put(*skill_text().splitlines())
        return ExitStatus.DONE
    arguments = _serving().parse_args(argv)
    check_sandbox(arguments)
    from agent.mcp.server import DesktopTools, build_server, serve_http
    from agent.options import RunOptions
    from foundation.stray_output import stray_output_kept

    tools = DesktopTools(RunOptions.of(arguments, load_settings()))
    server = build_server(tools)

    async def serve_standard_input() -> None:
        loop = asyncio.get_running_loop()

        async def leave(number: int) -> None:
            try:
                await tools.close()
            finally:
                os._exit(128 + number)  # a thread of the SDK reads standard input, and nothing interrupts that read

        for signaled in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signaled, lambda number, _: asyncio.run_coroutine_threadsafe(leave(number), loop))
        await server.run_stdio_async()

    if arguments.http is None:
        if is_terminal("output"):
            remark("This speaks MCP on standard input and output; a host starts it. See mai-agent mcp --help.")
        try:
            asyncio.run(serve_standard_input())
        except* BrokenPipeError:  # the host has gone
            pass
        return ExitStatus.DONE
    try:
        listening = socket.create_server(("127.0.0.1", arguments.http))
    except OSError as error:
        raise EnvironmentLacksError(
            f"Port {arguments.http} cannot be used ({error.strerror}).", "Name another one."
        ) from error
    given = os.environ.get("MAI_AGENT_MCP_TOKEN")
    token = given or secrets.token_urlsafe(24)
    shown = "$MAI_AGENT_MCP_TOKEN" if given else token
    remark(f"MCP on http://127.0.0.1:{arguments.http}/mcp, with the header  Authorization: Bearer {shown}")
    with stray_output_kept():
        asyncio.run(serve_http(server, listening, token))
    return ExitStatus.DONE


def _serving() -> Parser:
    parser = Parser(
        prog="mai-agent mcp",
        usage="mai-agent mcp [options]\n       mai-agent mcp install|uninstall HOST [-- options]\n"
        "       mai-agent mcp skill",
        description="Serve this desktop, or a throw-away one, to coding agents by the Model Context Protocol.",
        epilog=_EPILOG,
    )
    parser.add_argument("--http", metavar="PORT", type=port_number, help="on this port in place of standard input")
    add_options(parser, "policy")
    for group in ("desktop", "runs", "engine", "sandbox", "limits, history and traces"):
        add_options(parser, group)
    return parser


def _with_whole_paths(words: Sequence[str], options: argparse.Namespace) -> list[str]:
    """Return options with paths from the root: the host starts them in another folder."""
    given = [value for value in vars(options).values() if isinstance(value, Path)]
    paths = {str(path): str(path.expanduser().absolute()) for path in given}
    split = ((*word.partition("="),) if word.startswith("--") else ("", "", word) for word in words)
    return [f"{option}{sign}{paths.get(value, value)}" for option, sign, value in split]


def _change(command: str, argv: Sequence[str]) -> int:
    from agent.console.terminal import agreed
    from agent.mcp.hosts import host_names, installed, uninstalled

    own = list(argv)
    rest = own[own.index("--") + 1 :] if "--" in own else []
    parser = Parser(
        prog=f"mai-agent mcp {command}",
        description="Write mai-agent into a host's settings, after showing the change." if command == "install"
        else "Take mai-agent out of a host's settings; the rest stays byte for byte if the host left it so.",
        epilog=f"hosts: {', '.join(host_names())}",
    )  # fmt: skip
    parser.add_argument("host", metavar="HOST", choices=host_names(), help="whose settings")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--file", metavar="FILE", help="its settings file, if it is elsewhere")
    arguments = parser.parse_args(own[: own.index("--")] if "--" in own else own)
    options = _serving().parse_args(rest)  # otherwise only the host would find a wrong option
    check_sandbox(options)
    if options.http is not None:
        raise UsageError("A host starts it on standard input, not with --http.", "Leave --http out.")
    rest = _with_whole_paths(rest, options)
    change = (
        installed(arguments.host, arguments.file, rest)
        if command == "install"
        else uninstalled(arguments.host, arguments.file)
    )
    put(*change.diff())
    if not change.differs:
        put("Nothing to change.")
        return ExitStatus.DONE
    if not arguments.yes and not agreed(f"Write {change.path}?", "Add --yes to write it without a question."):
        put("Nothing was changed.")
        return ExitStatus.NOT_DONE
    change.write()
    put(f"{change.path} is written.")
    return ExitStatus.DONE
