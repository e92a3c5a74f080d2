"""The cloud providers, from `configs/peers.toml`, and which one an address means."""

import importlib.util
import os
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass

from agent.model.endpoint import Api, Endpoint, EngineChoice
from foundation.configs import load_config
from foundation.endpoints import normalize_url
from foundation.errors import EnvironmentLacksError


@dataclass(frozen=True, slots=True)
class Peer:
    """A cloud provider."""

    name: Api
    base_url: str  # address of its API
    key: str  # the environment variable of its key
    library: str  # the library that its client uses
    extra: str  # our package extra that installs the library; "" if it is always installed
    family: str  # the family of its models

    def endpoint(self, choice: EngineChoice) -> Endpoint:
        """Return the provider's endpoint: its own address, or another one with the same API.

        The key comes from the provider's own variable, then from the choice. Raises EnvironmentLacksError: the library
        is missing, or the key for the provider's own address.
        """
        url = _own_address(self, choice.url or "") or self.base_url
        key = os.environ.get(self.key) or choice.api_key
        if not _is_installed(self.library):
            raise EnvironmentLacksError(
                f"Asking {self.name} needs the library {self.library.replace('.', '-')}, which is not installed.",
                f'Install the extra that brings it: pip install "mai-agent[{self.extra or self.name}]".',
            )
        if not key and url == self.base_url:
            raise EnvironmentLacksError(f"There is no key for {self.name}.", f"Set it in the variable {self.key}.")
        return Endpoint(url, key, choice.model, api=self.name, key_variable=self.key)


PEERS: Mapping[str, Peer] = {name: Peer(name=name, **data) for name, data in load_config("peers.toml").items()}  # type: ignore[arg-type]
#: The environment variables that hold keys.
KEY_VARIABLES = (
    "MAI_AGENT_API_KEY", "MAI_AGENT_PLANNER_API_KEY", "MAI_AGENT_GROUNDER_API_KEY",
    *(peer.key for peer in PEERS.values()),
)  # fmt: skip


def peer_of(address: str) -> Peer | None:
    """Return the provider that an address means: its name, its bare host name, or NAME+URL for any server with its API.

    Its host with a path means no provider: that is a chat completions API, for planners and other models without
    computer use.
    """
    plain = address.strip().lower()
    for peer in PEERS.values():
        if plain == peer.name or plain.startswith(f"{peer.name}+http"):
            return peer
        if plain.rstrip("/").removeprefix("https://") == urllib.parse.urlsplit(peer.base_url).hostname:
            return peer
    return None


def _own_address(peer: Peer, address: str) -> str:
    """Return the URL in NAME+URL, without a trailing slash; "" if there is none."""
    name, plus, url = address.strip().partition("+")
    if not plus or name.lower() != peer.name:
        return ""
    path = urllib.parse.urlsplit(url).path.strip("/")
    return normalize_url(url) if path else normalize_url(url).removesuffix("/v1")


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # not even the parent package is installed
        return False
