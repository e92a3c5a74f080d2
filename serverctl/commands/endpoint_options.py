"""The options that name a server to ask, and the server they mean."""

import argparse
import asyncio
import os

from foundation.endpoints import normalize_url
from foundation.errors import EnvironmentLacksError, UsageError
from serverctl.load.client import Endpoint, find_endpoint

#: Environment variable with an endpoint's key, as for the agent: every user of the machine can read a command line.
KEY_VARIABLE = "MAI_AGENT_API_KEY"


def foreign_endpoint(options: argparse.Namespace) -> Endpoint:
    """Return the server of `--endpoint`, whatever it serves. Raises UsageError."""
    url = normalize_url(options.endpoint)
    key = options.api_key if options.api_key is not None else os.environ.get(KEY_VARIABLE) or _key_of_ours(url)
    return Endpoint(url, key)


def add_target(parser: argparse.ArgumentParser, model: bool = True) -> None:
    """Add the options --endpoint, --api-key and --model."""
    group = parser.add_argument_group("server (default: the one that `mai-server up` started)").add_argument
    group("--endpoint", metavar="URL", help="an OpenAI-compatible endpoint, for example 127.0.0.1:8000")
    group("--api-key", "--key", metavar="KEY", help=f"its key (better: in the variable {KEY_VARIABLE})")
    if model:
        group("--model", metavar="NAME", help="the served model (default: the one the endpoint serves)")


def chosen_target(options: argparse.Namespace) -> Endpoint:
    """Return the server that the options name; it must answer. Raises EnvironmentLacksError or UsageError."""
    if options.endpoint is not None:
        named = foreign_endpoint(options)
        return asyncio.run(find_endpoint(named.base_url, named.api_key, options.model))
    if options.api_key is not None:
        raise UsageError("--api-key is for a named endpoint.", "Name it with --endpoint URL.")
    from serverctl.process.control import find_ready

    running = find_ready(options.model)
    if running is None:
        which = "No server of ours is running" if options.model is None else f"No server of ours serves {options.model}"
        raise EnvironmentLacksError(
            f"{which}.", "`mai-server up` starts one; another one is named with --endpoint URL."
        )
    return asyncio.run(find_endpoint(running.base_url, running.api_key, running.model))


def _key_of_ours(url: str) -> str:
    """Return the key of our server at an address; "" if no server of ours has this address."""
    from serverctl.process.control import live_servers
    from serverctl.process.state import Folder

    names = [state.name for state in live_servers() if state.url is not None and normalize_url(state.url) == url]
    return Folder(names[0]).key() if names else ""
