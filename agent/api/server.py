"""A model to ask about pictures, for programs: a running or new server, or any endpoint. Nothing is touched."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agent.api.decision import Asker, Seen, decision_json, read_image
from agent.core.geometry import Size, Viewport
from agent.literal.client import literal_engine
from agent.model.asking import Patience
from agent.model.engines import Engine, choose_engine
from agent.options import RunOptions
from agent.run.models.roles import open_model
from agent.screen.capture import Frame
from foundation.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from PIL.Image import Image


class ModelServer:
    """A model that decides about pictures; a context manager. A server that was started goes on running."""

    def __init__(self, options: RunOptions, tell: Callable[[str], None]) -> None:
        self._options = options
        self._tell = tell
        self._runner = asyncio.Runner()
        self._opened = AsyncExitStack()
        self._engine: Engine  # set by `__enter__`, like `_asker`
        self._asker: Asker

    def __enter__(self) -> Self:
        """Find or start the server. Raises MaiError."""
        engine = choose_engine(self._options.engine, literal_engine, self._tell)
        self._opened.callback(engine.close)
        try:
            if engine.name == "literal":
                raise EnvironmentLacksError(
                    "There is no model to ask.", "`mai-server up` starts one, or name endpoint=."
                )
            patience = Patience.of(self._options.patience)
            model = self._runner.run(open_model(engine, self._options.family, patience, self._opened))
        except BaseException:
            self.close()
            raise
        self._engine, self._asker = engine, Asker(model, self._options)
        self.model = model.endpoint.model or ""  # the served model's name
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        with self._runner:
            self._runner.run(self._opened.aclose())

    @property
    def url(self) -> str:
        """The base URL of the API, for any OpenAI client."""
        return self._engine.endpoint.base_url

    @property
    def api_key(self) -> str:
        """Its key; "" for servers without one."""
        return self._engine.endpoint.api_key

    def act(self, image: "str | Path | Image", instruction: str) -> dict[str, Any]:
        """Return the decision about a picture, as `mai-agent act --json` prints it. Raises MaiError."""
        return self._ask(instruction, image, grounding=False)

    def ground(self, image: "str | Path | Image", what: str) -> tuple[float, float] | None:
        """Return the point of something on a picture, in pixels; None if the answer has none. Raises MaiError."""
        action = self._ask(what, image, grounding=True).get("action") or {}
        point = action.get("point")
        return (point[0], point[1]) if point else None

    def _ask(self, instruction: str, image: "str | Path | Image", *, grounding: bool) -> dict[str, Any]:
        if isinstance(image, str | Path):
            frame = read_image(Path(image))
        else:
            frame = Frame(image.convert("RGB"), Viewport.of_image(Size(*image.size)), 0.0)
        seen = Seen(frame)
        result, text = self._runner.run(self._asker.ask(instruction, seen, grounding=grounding))
        return decision_json(result, text, seen)
