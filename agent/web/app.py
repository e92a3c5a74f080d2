"""The server of the live page. It answers this machine only, requires a token, and rejects other origins.

The first browser that opens the person's link decides from then on; that link is then void. Any number of browsers may
open the link for watchers.
"""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.record.report.page import fill_page, part
from agent.web.live import Live

#: Seconds without data after which a keepalive is sent: proxies and tunnels cut silent connections.
_SIGN_OF_LIFE = 15.0
_HOST = re.compile(r"(?:127\.0\.0\.1|localhost)(?::\d{1,5})?", re.IGNORECASE)
#: Bytes of a request at most: a decision with a text.
_MOST = 100_000
_HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
}  # fmt: skip


class Door:
    """Who may see the page, and who may decide."""

    def __init__(self) -> None:
        self.once = secrets.token_urlsafe(24)  # the person's link
        self.watch = secrets.token_urlsafe(24)  # the watchers' link
        self._decides = secrets.token_urlsafe(24)  # cookie of the browser that decides
        self._watches = secrets.token_urlsafe(24)
        self._opened = False
        #: Cookies are by host and not by port: two pages on one machine must not take each other's.
        self.cookie = f"mai-agent-{secrets.token_hex(4)}"

    def open(self, token: str) -> str | None:
        """Return the cookie that a link gives; None if the link is not valid (any more)."""
        if not self._opened and _same(token, self.once):
            self._opened = True
            return self._decides
        return self._watches if _same(token, self.watch) else None

    def sees(self, request: Request) -> bool:
        """Whether a request may see the run."""
        return self.decides(request) or _same(request.cookies.get(self.cookie, ""), self._watches)

    def decides(self, request: Request) -> bool:
        """Whether a request comes from the browser that decides."""
        return _same(request.cookies.get(self.cookie, ""), self._decides)


def make_app(live: Live, door: Door) -> ASGIApp:
    """Return the application."""
    routes = _Routes(live, door)
    return _Guard(
        Starlette(
            routes=[
                Route("/open", routes.open),
                Route("/", routes.page),
                Route("/data", routes.data),
                Route("/events", routes.events),
                Route("/screens/{name}", routes.screen),
                Route("/decide", routes.decide, methods=["POST"]),
                Route("/control", routes.control, methods=["POST"]),
            ]
        ),
        door,
    )


class _Guard:
    """Rejects requests with another host name, from another origin, without a token, or that are too large."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no web sockets; start-up events pass
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope)
        refusal = self._refusal(request)
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        # Any port: an SSH tunnel may have another one at its other end.
        if _HOST.fullmatch(host) is None:
            return _plain("This page is reached as 127.0.0.1 or localhost only.", 421)
        if origin is not None and origin != f"http://{host}":
            return _plain("Request from another site.", 403)
        if request.url.path == "/open":  # a link may be followed from a mail or a chat
            return None
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _plain("Another page asked for this.", 403)
        if not self._door.sees(request):
            return _plain("Open the link that mai-agent printed. It works once; a new one needs a new start.", 403)
        if request.method == "POST":
            if not self._door.decides(request):
                return _plain("This browser watches; another one decides.", 403)
            sent = request.headers.get("content-length", "")
            if origin is None or request.headers.get("content-type") != "application/json":
                return _plain("This request is not from the page.", 403)
            if not sent.isdecimal() or int(sent) > _MOST:
                return _plain("This is too long.", 413)
        return None


class _Routes:
    def __init__(self, live: Live, door: Door) -> None:
        self._live, self._door = live, door

    async def open(self, request: Request) -> Response:
        if request.method == "HEAD":  # previews of links send it: it would use up a link that works once
            return _plain("Open this link in a browser.", 405)
        cookie = self._door.open(request.query_params.get("key", ""))
        if cookie is None:
            return _plain("This link was used already, or is of an earlier start.", 403)
        # No redirect: after a link on another page, it would count as that page's request, and bring no cookie.
        answer = HTMLResponse('<meta http-equiv="refresh" content="0; url=/">', headers=_HEADERS)
        answer.set_cookie(self._door.cookie, cookie, httponly=True, samesite="strict")
        return answer

    async def page(self, request: Request) -> Response:
        data = self._live.data()
        decides = self._door.decides(request)
        data["live"] |= {"decides": decides, "watch": f"/open?key={self._door.watch}" if decides else ""}
        page = fill_page(
            data, data["live"]["title"], data["run"]["instruction"] or "mai-agent",
            plain="<p>This page needs JavaScript.</p>", style=part("live.css", "agent.web"),
            script=part("live.js", "agent.web"), live=part("live.html", "agent.web"),
        )  # fmt: skip
        # The page contains its own policy, but only a header can forbid frames.
        return HTMLResponse(page, headers=_HEADERS)

    async def data(self, request: Request) -> Response:
        data = self._live.data()
        data["live"]["decides"] = self._door.decides(request)
        return JSONResponse(data, headers=_HEADERS)

    async def events(self, _: Request) -> Response:
        return StreamingResponse(self._versions(), media_type="text/event-stream", headers=_HEADERS)

    async def _versions(self) -> AsyncIterator[str]:
        version = self._live.version
        self._live.watchers += 1
        try:
            yield f"data: {version}\n\n"
            while not self._live.over:
                try:
                    version = await asyncio.wait_for(self._live.changed(version), _SIGN_OF_LIFE)
                except TimeoutError:
                    yield ": still there\n\n"
                else:
                    yield f"data: {version}\n\n"
        finally:
            self._live.watchers -= 1

    async def screen(self, request: Request) -> Response:
        file = self._live.screen(request.path_params["name"])
        return _plain("There is no such screenshot.", 404) if file is None else FileResponse(file, headers=_HEADERS)

    async def decide(self, request: Request) -> Response:
        texts = await _said(request, "question", "answer", "text")
        try:
            return _done(texts is not None and self._live.decide(texts["question"], texts["answer"], texts["text"]))
        except ValueError as error:
            return _plain(f"The action was not changed: {error}.", 422)

    async def control(self, request: Request) -> Response:
        texts = await _said(request, "what", "text")
        return _done(texts is not None and self._live.control(texts["what"], texts["text"]))


async def _said(request: Request, *names: str) -> dict[str, str] | None:
    """Return the texts of a JSON request; None for any other request."""
    try:
        body: Any = json.loads(await request.body())
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not all(isinstance(body.get(name, ""), str) for name in names):
        return None
    return {name: body.get(name, "") for name in names}


def _done(done: bool) -> Response:
    return JSONResponse({"done": done}, 200 if done else 409, headers=_HEADERS)


def _plain(text: str, status: int) -> Response:
    return Response(f"{text}\n", status, media_type="text/plain", headers=_HEADERS)


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())
