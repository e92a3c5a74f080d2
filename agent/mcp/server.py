"""The MCP server: tools that look at a desktop and act on it, and the recorded runs as resources.

One call at a time acts. A call that the host cancels stops its run at once.
"""

import asyncio
import io
import json
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations

import agent
from agent.api.desktop import AsyncDesktop
from agent.api.results import Look, NotDoneError, Result
from agent.conductor import RunBegan, RunClosed
from agent.events.run_events import Acted, Decided, Event
from agent.mcp.arguments import (
    Instruction,
    Picture,
    QuestionText,
    RecipeName,
    Role,
    RunName,
    Target,
    Text,
    Values,
    Window,
    strict_tool,
)
from agent.mcp.asking import Call, Calls, HostPerson, QuestionPage
from agent.options import RunOptions
from agent.recipes.files import all_recipes, recipe_names
from agent.recipes.recipe import Recipe
from agent.record.read import Bundle, find_bundle, list_bundles
from agent.record.undo_run import RunUndo
from agent.safety.stop import StopSwitch
from foundation.configs import configs_dir
from foundation.errors import MaiError, UsageError
from foundation.foreign_text import printable

#: Runs in the list of runs, and elements in a look.
_MOST_RUNS, _MOST_ELEMENTS = 50, 400
#: Most characters of an instruction in the list of runs.
_LONGEST = 500
_LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)

#: Characters of a progress message.
_MOST_CHARS = 200


class DesktopTools:
    """The tools, over one desktop that is opened at the first call."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._desktop: AsyncDesktop | None = None
        self._lock = asyncio.Lock()
        self._calls = Calls()
        self._call: Call | None = None  # the call that acts now
        self._loop: asyncio.AbstractEventLoop | None = None
        self._page = QuestionPage(self._tell)

    async def close(self) -> None:
        """Stop what runs, and end a sandbox."""
        if self._desktop is not None:
            await self._desktop.close()
        self._page.close()

    async def do(self, instruction: Instruction, context: "Context[Any, Any]", picture: Picture = False) -> Any:
        """Do a task on the desktop: a sentence such as "open settings and enable dark mode".

        mai-agent looks at the screen, decides and acts until it is done, which takes seconds to minutes. The result
        says whether the task is done, what changed on the computer, and what shows it; on request with a picture of the
        screen afterwards.
        """
        return await self._carry_out(context, lambda desktop: desktop.do(instruction), picture=picture)

    async def recipes(self) -> str:
        """Return the person's recipes: tasks that `repeat` does again without a model, with their parameters."""
        try:
            listed = [
                {"name": name, "instruction": one.instruction, "parameters": {key: value.default for key, value in
                 one.parameters.items()}} for name, one in all_recipes() if isinstance(one, Recipe)
            ]  # fmt: skip
        except MaiError as error:
            raise ToolError(str(error)) from error
        return json.dumps(listed, ensure_ascii=False, indent=1)

    async def repeat(self, name: RecipeName, context: "Context[Any, Any]", values: Values = None) -> Any:
        """Do a recipe again, without a model and within seconds. `values` are those of its parameters."""
        return await self._carry_out(context, lambda desktop: desktop.repeat(_own(name), **(values or {})))

    async def look(self, context: "Context[Any, Any]", picture: Picture = False) -> list[Any]:
        """Return the elements on the screen now (role, name, value, box in pixels), on request with a picture."""
        if self._call is not None and self._call.waits and self._desktop is not None:  # for a reply, maybe for long
            seen = await self._desktop.look()
        else:
            async with self._turn(Call(context)) as desktop:
                seen = await desktop.look()
        return [json.dumps(_seen(seen), ensure_ascii=False), *([_picture(seen)] if picture else [])]

    async def act(
        self,
        action: Literal["click", "double_click", "right_click", "type", "set", "press", "open", "close_window"],
        context: "Context[Any, Any]",
        target: Target = "",
        role: Role = "",
        window: Window = "",
        text: Text = "",
    ) -> Any:
        """Carry out one action. `target` is the name of an element, as `look` tells it; `role` and `window` narrow it.

        click, double_click, right_click: the target. type: `text`, into the target if one is named. set: the target, a
        switch ("on", "off"), number field or choice, to `text`. press: the chord in `text`, such as "ctrl+s". open: the
        application or file in `text`. close_window: the front window, or the one titled `window`.
        """
        _check_act(action, {"target": target, "role": role, "window": window, "text": text})
        return await self._carry_out(context, lambda desktop: _act(desktop, action, target, role, window, text))

    async def _carry_out(
        self, context: "Context[Any, Any]", act: Callable[[AsyncDesktop], Awaitable[Result]], *, picture: bool = False
    ) -> Any:
        async def work(call: Call) -> list[Any]:
            async with self._turn(call) as desktop:
                self._page.post(RunBegan("", 0))
                try:
                    result = await act(desktop)
                except NotDoneError as error:
                    result = error.result
                finally:
                    self._page.post(RunClosed())
                told = json.dumps(_told(result), ensure_ascii=False)
                return [told, *([_picture(await desktop.look())] if picture else [])]

        return await self._calls.run(context, work)

    async def ask(self, question: QuestionText, context: "Context[Any, Any]") -> Any:
        """Ask the person at the desktop a question, and return the reply."""

        async def work(call: Call) -> str:
            reply = await self._asked(call).ask(question)
            return "Nobody replied." if reply is None else reply

        return await self._calls.run(context, work)

    async def undo(self, run: RunName, context: "Context[Any, Any]") -> Any:
        """Put back the settings and files that a run changed, after asking the person. `run` is its name, or "last"."""
        if Path(run).name != run:
            raise ToolError(f"{run!r} is not the name of a run: the resource runs lists them.")

        async def work(call: Call) -> list[str]:
            async with self._turn(call):
                undoing = await asyncio.to_thread(lambda: RunUndo(find_bundle(self._options.runs, run, paths=False)))
                if not undoing.able:
                    return ["Nothing can be put back."]
                listed = "\n".join(f"{item.change}: {item.words}" for item in undoing.able)
                if not await self._asked(call).permit(f"Undo this?\n{listed}"):
                    return ["Nobody agreed; nothing was undone."]
                results = await asyncio.to_thread(undoing.carry_out)
                return [f"{one.item.change.what}: {'' if one.done else 'not undone: '}{one.words}" for one in results]

        return await self._calls.run(context, work)

    def runs(self) -> str:
        """The recorded runs, newest first."""
        listed = [
            {
                "run": one.path.name,
                "instruction": one.run.instruction[:_LONGEST],
                "outcome": one.outcome,
                "started": one.run.started,
            }
            for one in list_bundles(self._options.runs, _MOST_RUNS)
        ]
        return json.dumps(listed, ensure_ascii=False, indent=1)

    def run(self, run: str) -> str:
        """One recorded run: outcome, receipt, evidence and figures."""
        return self._recorded(run).run.model_dump_json(indent=1)

    def report(self, run: str) -> str:
        """The report of a run, as one HTML page with its screenshots."""
        path = self._recorded(run).path / "report.html"
        if not path.is_file():
            raise ResourceNotFoundError(f"The run {run} has no report: it is still going on, or was broken off.")
        return path.read_text(encoding="utf-8")

    def _recorded(self, run: str) -> Bundle:
        try:
            return find_bundle(self._options.runs, run, paths=False)
        except MaiError as error:
            raise ResourceNotFoundError(str(error)) from error

    @asynccontextmanager
    async def _turn(self, call: Call) -> AsyncIterator[AsyncDesktop]:
        """Yield the desktop for one call at a time. Errors become the tool's answer."""
        async with self._lock:
            self._call, self._loop = call, asyncio.get_running_loop()
            try:
                if self._desktop is None:
                    desktop = AsyncDesktop(self._options, self._person, self._tell, self._progress)
                    self._desktop = self._page.desktop = await desktop.__aenter__()
                yield self._desktop
            except MaiError as error:
                raise ToolError(str(error)) from error
            except (KeyboardInterrupt, SystemExit) as error:  # the signal that stopped the run is meant for the server
                signal.raise_signal(signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM)
                raise ToolError("The server is stopped.") from None
            finally:
                self._call = None

    def _person(self, _: StopSwitch) -> HostPerson:
        assert self._call is not None
        return self._asked(self._call)

    def _asked(self, call: Call) -> HostPerson:
        return HostPerson(call, self._page.person)

    def _tell(self, text: str) -> None:
        self._report(0, text)

    def _progress(self, event: Event) -> None:
        self._page.post(event)
        match event:
            case Decided(step=step, thought=words) if words:
                self._report(step, words)
            case Acted(step=step, detail=words):
                self._report(step, words)

    def _report(self, step: int, words: str) -> None:
        call, loop = self._call, self._loop
        if call is not None and loop is not None:  # messages about starts come from another thread
            message = " ".join(printable(words).split())[:_MOST_CHARS]
            asyncio.run_coroutine_threadsafe(call.context.report_progress(step, None, message), loop)


def _own(name: str) -> str:
    """Return the name of one of the person's recipes. Raises UsageError for other names, such as a path from a host."""
    if name not in recipe_names():
        raise UsageError(f"There is no recipe {name!r}.", "The tool `recipes` lists them.")
    return name


#: The arguments that each action needs, and the further arguments that it takes.
_TAKES: dict[str, tuple[set[str], set[str]]] = {
    "type": ({"text"}, {"target"}), "set": ({"target", "text"}, set()), "press": ({"text"}, set()),
    "open": ({"text"}, set()), "close_window": (set(), {"window"}),
}  # fmt: skip
_CLICK = ({"target"}, {"role", "window"})


def _check_act(action: str, values: Mapping[str, str]) -> None:
    """Raise ToolError if a needed value is missing, or an unused one is given."""
    needs, takes = _TAKES.get(action, _CLICK)
    present = {name for name, value in values.items() if value}
    hint = f"it takes {' and '.join(sorted(needs | takes))}"
    if missing := needs - present:
        raise ToolError(f"{action} needs {' and '.join(sorted(missing))}; {hint}.")
    if unused := present - needs - takes:
        raise ToolError(f"{action} takes no {' and no '.join(sorted(unused))}; {hint}.")


async def _act(desktop: AsyncDesktop, action: str, target: str, role: str, window: str, text: str) -> Result:
    match action:
        case "type":
            return await desktop.type(text, target)
        case "set":
            value = {"on": True, "off": False}.get(text.strip().lower())
            return await desktop.set(target, text if value is None else value)
        case "press":
            return await desktop.press(text)
        case "open":
            return await desktop.open(text)
        case "close_window":
            return await desktop.close_window(window)
    button: Literal["left", "right"] = "right" if action == "right_click" else "left"
    return await desktop.click(target, role, window, button=button, count=2 if action == "double_click" else 1)


def _seen(look: Look) -> dict[str, Any]:
    elements = [
        {"role": one.role, "name": one.name or one.label, "box": one.to_json()["box"]}
        | ({"value": one.value} if one.value else {})
        | ({"states": sorted(one.states)} if one.states else {})
        for one in look.elements[:_MOST_ELEMENTS]
    ]
    left_out = max(0, len(look.elements) - _MOST_ELEMENTS)
    windows = [window.to_json() for window in look.windows]
    return {"windows": windows, "elements": elements, "left_out": left_out, "lacks": look.lacks}


def _picture(seen: Look) -> Image:
    written = io.BytesIO()
    seen.image.save(written, "PNG")
    return Image(data=written.getvalue(), format="png")


def _told(result: Result) -> dict[str, Any]:
    return {
        "done": result.done, "outcome": result.outcome, "message": result.message, "verified": result.verified,
        "evidence": list(result.evidence), "changes": [str(change) for change in result.changes],
        "steps": [asdict(step) for step in result.steps], "run": result.bundle.name if result.bundle else "",
    }  # fmt: skip


def build_server(tools: DesktopTools) -> MCPServer[Any]:
    """Return the MCP server over these tools."""

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await tools.close()

    listed = [
        strict_tool(function, annotations) for function, annotations in (
            (tools.do, _ACTS), (tools.repeat, _ACTS), (tools.recipes, _LOOKS), (tools.act, _ACTS), (tools.look, _LOOKS),
            (tools.ask, _LOOKS), (tools.undo, _ACTS),
        )
    ]  # fmt: skip
    server: MCPServer[Any] = MCPServer(
        "mai-agent", version=agent.__version__, instructions=skill_text(), lifespan=lifespan, log_level="ERROR",
        tools=listed,
    )  # fmt: skip
    server.resource("mai-agent://runs", mime_type="application/json")(tools.runs)
    server.resource("mai-agent://runs/{run}", mime_type="application/json")(tools.run)
    server.resource("mai-agent://runs/{run}/report", mime_type="text/html")(tools.report)
    return server


def skill_text() -> str:
    """Return the text that explains to a host's model when to use these tools."""
    return (configs_dir() / "mcp" / "SKILL.md").read_text(encoding="utf-8")


class TokenGate:
    """An ASGI application that answers 401 to a request without the token."""

    def __init__(self, application: Any, token: str) -> None:
        self._application, self._wanted = application, token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        header = dict(scope.get("headers", ())).get(b"authorization", b"")
        scheme, _, token = header.partition(b" ")
        known = scheme.lower() == b"bearer" and secrets.compare_digest(token, self._wanted)
        if scope["type"] == "http" and not known:
            await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._application(scope, receive, send)


async def serve_http(server: MCPServer[Any], listening: socket.socket, token: str) -> None:
    """Serve until a signal ends it. Only requests with the token, and from this host, are answered."""
    import uvicorn

    port = listening.getsockname()[1]
    names = [f"127.0.0.1:{port}", f"localhost:{port}"]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    application = TokenGate(server.streamable_http_app(transport_security=security), token)
    await uvicorn.Server(uvicorn.Config(application, log_level="error")).serve(sockets=[listening])
