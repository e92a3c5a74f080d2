"""Which cloud peers there are, and which one an address means; their data is `configs/peers.toml`."""

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
    """A cloud peer."""

    name: Api
    base_url: str  # where its API is
    key: str  # the variable that the key is taken from
    library: str  # through which it is asked
    extra: str  # of this package, that brings the library; "" where every installation has it
    family: str  # that its models are asked in

    def endpoint(self, choice: EngineChoice, environ: Mapping[str, str] | None = None) -> Endpoint:
        """The peer as it is chosen: at its own address, or at one that speaks the same.

        The key is that of the peer's own variable, then the endpoint's. Raises EnvironmentLacksError: the library, or a
        key for the peer's own address, is not there.
        """
        url = _own_address(self, choice.url or "") or self.base_url
        key = (os.environ if environ is None else environ).get(self.key) or choice.api_key
        if not _is_installed(self.library):
            raise EnvironmentLacksError(
                f"Asking {self.name} needs the library {self.library.replace('.', '-')}, which is not installed.",
                f'Install the extra that brings it: pip install "mai-agent[{self.extra or self.name}]".',
            )
        if not key and url == self.base_url:
            raise EnvironmentLacksError(f"There is no key for {self.name}.", f"Set it in the variable {self.key}.")
        return Endpoint(url, key, choice.model, api=self.name, key_variable=self.key)


PEERS: Mapping[str, Peer] = {name: Peer(name=name, **data) for name, data in load_config("peers.toml").items()}  # type: ignore[arg-type]
#: The variables that hold keys.
KEY_VARIABLES = (
    "MAI_AGENT_API_KEY", "MAI_AGENT_PLANNER_API_KEY", "MAI_AGENT_GROUNDER_API_KEY",
    *(peer.key for peer in PEERS.values()),
)  # fmt: skip


def peer_of(address: str) -> Peer | None:
    """The peer that an address means: its name, the bare name of its host, or NAME+URL for any place that speaks it.

    Its host with a path is none: there are chat completions, too, for planners and models that are no computer's.
    """
    plain = address.strip().lower()
    for peer in PEERS.values():
        if plain == peer.name or plain.startswith(f"{peer.name}+http"):
            return peer
        if plain.rstrip("/").removeprefix("https://") == urllib.parse.urlsplit(peer.base_url).hostname:
            return peer
    return None


def _own_address(peer: Peer, address: str) -> str:
    """The address in NAME+URL, without a slash at its end; "" where there is none."""
    name, plus, url = address.strip().partition("+")
    if not plus or name.lower() != peer.name:
        return ""
    path = urllib.parse.urlsplit(url).path.strip("/")
    return normalize_url(url) if path else normalize_url(url).removesuffix("/v1")


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False
