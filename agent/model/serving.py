"""The agent's side of the local server: the only module that imports `serverctl`.

It asks for one thing: an endpoint that is ready, with its limits.
"""

from collections.abc import Callable
from typing import TypeAlias

from agent.model.asking import ServerCondition
from agent.model.endpoint import Endpoint, Limits
from agent.model.engine import Engine, EngineChoice
from foundation.errors import EnvironmentLacksError, MaiError, StoppedError, UsageError

Tell: TypeAlias = Callable[[str], None]
CheckStop: TypeAlias = Callable[[], None]
Ask: TypeAlias = Callable[[str], bool]


def is_running() -> bool:
    """Whether a local server runs or is on its way."""
    from serverctl.endpoint import running_server

    return running_server(None) is not None


def why_no_server() -> str:
    """Why no local server can be started here; "" where one can."""
    from serverctl.endpoint import why_no_accelerator

    return why_no_accelerator()


def local_server(choice: EngineChoice, tell: Tell, check_stop: CheckStop, ask: Ask | None) -> Engine:
    """The local server that runs, or one that is started now; the rest is as in `choose_engine`.

    Raises MaiError: it could not be started; with the controller's own words.
    """
    from serverctl.endpoint import ready_server, server_load, server_now

    try:
        server = ready_server(choice.model, choice.preset, tell, check_stop, ask, choice.beside)
    except (UsageError, StoppedError):
        raise
    except MaiError as error:  # whatever kept it from starting: for a run, it is a server that is lacking
        raise EnvironmentLacksError(error.what, error.remedy) from error

    def condition() -> ServerCondition:
        return ServerCondition(*server_now(server.name))

    limits = Limits(images=server.images, context=server.context, max_pixels=server.max_pixels)
    return Engine(
        "vllm",
        Endpoint(server.base_url, server.api_key, server.model, "vllm", limits),
        remark="The server stays for the next run; `mai-server down` stops it." if server.started else "",
        family=server.family,
        condition=condition,
        load=lambda: server_load(server.name),
    )
