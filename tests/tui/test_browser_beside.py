"""The sitting in a browser beside the terminal: one run, one person, whichever of the two they use."""

import asyncio
import json
import urllib.request
from http.cookiejar import CookieJar
from typing import Any

from stubs.terminal import CLICK, RISK, SUDO, Bench

from agent.conductor import QuestionOver, RunClosed


class Browser:
    """Opens the link as a browser does."""

    def __init__(self, link: str) -> None:
        self._origin = link.partition("/open?key=")[0]
        no_proxy = urllib.request.ProxyHandler({})
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()), no_proxy)
        self._opener.open(link, timeout=20).close()

    async def live(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await asyncio.to_thread(self._ask, "/data", None))["live"]
        return found

    async def post(self, path: str, **said: str) -> bool:
        done: bool = json.loads(await asyncio.to_thread(self._ask, path, json.dumps(said).encode()))["done"]
        return done

    def _ask(self, path: str, body: bytes | None) -> bytes:
        headers = {"Origin": self._origin, "Content-Type": "application/json"}
        with self._opener.open(urllib.request.Request(self._origin + path, body, headers), timeout=20) as answer:
            found: bytes = answer.read()
            return found


async def test_a_question_that_waits_already_can_be_answered_there(bench: Bench) -> None:
    app = bench.app()
    async with app.run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.asked(1, SUDO, *RISK))
        app.action_browser()  # `w` would be an answer's beginning while the panel has the keys
        assert app._page is not None
        browser = await asyncio.to_thread(Browser, app._page.link)
        live = await browser.live()
        assert (live["running"], live["state"]) == (True, "IT ASKS YOU")
        assert await browser.post("/decide", question=live["question"]["id"], answer="allow", text="")
        assert [answer.allowed for answer in bench.answers] == [True]
        await bench.feed(pilot, QuestionOver())
        assert (await browser.live())["question"] is None
    app.close_page()
    assert not app._page._thread.is_alive()


async def test_both_show_and_steer_the_same_run(bench: Bench) -> None:
    app = bench.app()
    async with app.run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK))
        await pilot.press("w")
        assert app._page is not None
        link = app._page.link
        browser = await asyncio.to_thread(Browser, link)
        assert await browser.post("/control", what="pause", text="")
        assert bench.run.steering.held_by == "paused"
        await bench.feed(pilot, *bench.ends(1), RunClosed())
        await pilot.press("escape", "w")
        assert app._page.link == link, "the same page"
        assert await browser.post("/control", what="start", text="open the terminal")
        while bench.conductor.started[1:] != ["open the terminal"]:
            await pilot.pause(0.05)
        assert app.last_view is not None
        assert app.last_view.instruction == "open the terminal"
    app.close_page()
