"""The models of a run, by their roles."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent.core.actions import shorten
from agent.events.run_events import ModelInUse
from agent.families.base import Family
from agent.families.published import words_of
from agent.families.registry import DEFAULT_FAMILY, detect_family, detect_folder, get_family
from agent.model.asking import ModelClient, Patience
from agent.model.clients import client_of
from agent.model.endpoint import Endpoint
from agent.model.engines import Engine
from agent.run.control import Race
from foundation.errors import UsageError

#: actor: looks and acts; planner: splits the task; grounder: finds the point; relief: takes over if the actor is stuck;
#: verifier: judges whether the task is done.
Role: TypeAlias = Literal["actor", "planner", "grounder", "relief", "verifier"]


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that is ready to be asked."""

    engine: Engine  # the engine that serves it
    endpoint: Endpoint  # the address, with everything that the server reported
    family: Family  # the prompt format, and the meaning of the answers
    client: ModelClient  # sends the requests; the caller of `open_model` closes it
    remarks: tuple[str, ...] = ()  # messages for the person

    def in_use(self, role: Role = "actor", *, own_prompt: bool = False) -> ModelInUse:
        """Return the model as the run's record names it. `own_prompt`: the user replaced its system prompt."""
        words = "yours" if own_prompt else words_of(self.family.published, points=role == "grounder")
        name = self.family.facts.name
        return ModelInUse(self.engine.name, self.endpoint.model or "", name, self.endpoint.base_url, words)


async def open_model(
    engine: Engine,
    family: str | None,
    patience: Patience,
    opened: AsyncExitStack,
    race: Race | None = None,
    *,
    is_fallback: bool = False,
    trace: str = "",
) -> ServedModel:
    """Ask an engine's endpoint what it serves, and detect the model's family unless it is named.

    `opened` closes the client. `is_fallback`: a fallback model, which is sent no screenshots yet. `trace`: see
    `client_of`. Raises MaiError: the endpoint cannot be asked, or there is no such family.
    """
    client = engine.client or client_of(engine.endpoint, patience, engine.condition, trace)
    opened.push_async_callback(client.aclose)
    discovering = client.discover(detect_family)
    endpoint = await (discovering if race is None else race(discovering))
    remarks = [engine.remark] if engine.remark else []
    if not (endpoint.is_local or is_fallback):
        remarks.append(f"Screenshots are sent to {endpoint.host}, because you named that endpoint.")
    name = family or engine.family or detect_family(endpoint.model or "")
    if name is None:
        name, remark = _found_out(endpoint)
        remarks.append(remark)
    known = get_family(name)
    if known.facts.api not in ("chat", endpoint.api):
        raise UsageError(
            f"The family {known.facts.name} is for {known.facts.api}'s own API.", f"Use --endpoint {known.facts.api}."
        )
    return ServedModel(engine, endpoint, known, client, tuple(remarks))


def _found_out(endpoint: Endpoint) -> tuple[str, str]:
    """Find the family of a model with an unknown name. Return it with a message for the person.

    It follows the origins that the server reports: a model name, or a readable folder of this machine.
    """
    for origin in endpoint.origins:
        if (name := detect_family(origin)) is not None:
            return name, f"The model {endpoint.model!r} is of the family {name}, by {shorten(origin)}."
        if endpoint.is_local and (found := detect_folder(Path(origin))) is not None:
            return found.family, f"The model {endpoint.model!r} is treated as {found.family}, because of {found.by}."
    return DEFAULT_FAMILY, (
        f"The family of the model {endpoint.model!r} is unknown; it is asked in the format of "
        f"{DEFAULT_FAMILY}, which suits any (choose with --family)."
    )
