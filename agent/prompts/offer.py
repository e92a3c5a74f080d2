"""Offers to fetch a publisher's prompt before the first run of its family: once, and only if there is a network."""

import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from agent.families.published import GROUNDING
from agent.prompts import store
from agent.prompts.recipes import Recipe, recipes
from foundation.configs import state_folder
from foundation.endpoints import is_loopback
from foundation.errors import MaiError
from foundation.files import keep_json, read_json_object

#: An address of documentation (RFC 5737). Nothing is sent there: only the route to it is looked up.
_FAR_AWAY = ("192.0.2.1", 443)


def offer(
    family: str,
    ask: Callable[[str], bool],
    tell: Callable[[str], None],
    *,
    mirror: str | None = None,
    reference: bool = False,
    points: bool = False,
) -> None:
    """Ask whether to fetch the prompt of a family, and fetch it. A failure is only reported.

    Args:
        family: the family's name.
        ask: asks the person a yes/no question.
        tell: receives sentences for the person.
        mirror: the address of a mirror.
        reference: whether the run uses the style "reference".
        points: whether the model only finds places.
    """
    recipe = recipes().get(family)
    if recipe is None or store.is_kept(recipe) or not _suits(recipe, reference=reference, points=points):
        return
    answered = read_json_object(_answers())
    if recipe.commit in answered.get(family, ()) or not network_at_hand(store.address_of(recipe, mirror)):
        return
    question = (
        f"This program has its own prompt for models of {family}. The prompt of their public client can be fetched "
        f"from {recipe.source}, and is used from then on. Fetch it?"
    )
    if ask(question):
        try:
            store.fetch(recipe, mirror)
        except MaiError as error:
            tell(f"The model is asked in our own words. {error}")
            return
        tell(f"Fetched; `mai-agent prompts remove {family}` removes it.")
    else:
        tell(f"The model is asked in our own words. `mai-agent prompts fetch {family}` gets the client's later.")
    keep_json(_answers(), {**answered, family: [recipe.commit]})


def network_at_hand(url: str) -> bool:
    """Return whether this machine has a route to an address. Sends nothing."""
    if is_loopback(url):
        return True
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_FAR_AWAY)
    except OSError:
        return False
    return bool(urlsplit(url).hostname)


def _suits(recipe: Recipe, *, reference: bool, points: bool) -> bool:
    if points:
        return GROUNDING in recipe.parts
    return any(part != GROUNDING and (reference or part not in recipe.phone) for part in recipe.parts)


def _answers() -> Path:
    return state_folder() / "prompts.json"
