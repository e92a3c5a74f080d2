"""`mai-agent --web` in a real browser: what waits is shown, one browser decides and others watch."""

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stubs.display import PlainDisplay, wait_until
from stubs.endpoint import DONE, FakeEndpoint, act, say
from stubs.program import Program

from agent.record.read import list_bundles

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(240)]

HOSTILE = "<img src=x onerror=\"document.title='broken'\">"
TYPE = act("type", "I type.\n" + HOSTILE, text=HOSTILE + "\n" * 60 + "the end")


def link(program: Program) -> str:
    wait_until(lambda: "/open?key=" in program.err, "the link is printed", 60)
    found = re.search(r"http://\S+", program.err)
    assert found is not None
    return found[0]


def test_a_run_is_watched_decided_and_ended_in_the_browser(tmp_path: Path, browser: Any) -> None:
    def part(name: str) -> Any:
        return browser.find_element("id", name)

    def button(name: str) -> Any:
        return browser.find_element("css selector", f"[data-answer={name}]")

    def when(true: Callable[[], object], what: str) -> None:
        wait_until(lambda: part("state").is_displayed() and true(), what, 60)

    with (
        PlainDisplay() as display,
        FakeEndpoint([say(TYPE), say(act("click", coordinate=[500, 500])), say(DONE), say(DONE)]) as endpoint,
    ):
        display.start("xterm", "-geometry", "100x40+100+50", "-e", "cat")
        words = ("--web", "--approve", "ask", "--endpoint", endpoint.url, "do the task")
        with Program(tmp_path, display.environ, *words) as program:
            browser.get(f"data:text/html,<a id='there' href='{link(program)}'>a link in a mail</a>")
            part("there").click()
            wait_until(lambda: browser.find_elements("id", "ask"), "the page that the link leads to", 60)
            when(part("ask").is_displayed, "it asks about the text")
            assert "IT ASKS YOU" in part("state").text
            assert HOSTILE in part("ask-text").get_property("textContent")
            assert not button("allow").is_enabled(), "its end was not in sight"
            browser.execute_script(
                "const text = document.getElementById('ask-text'); text.scrollTop = text.scrollHeight;"
            )
            wait_until(button("allow").is_enabled, "the whole text was in sight")
            assert part("mark" if browser.find_elements("id", "mark") else "shot").is_displayed()

            part("ask-note").send_keys("jkp click it instead")  # keys of the report do nothing here
            button("refuse").click()
            when(lambda: "click" in part("ask-what").text, "it asks about the click")
            assert "jkp click it instead" in str(endpoint.requests[1]["messages"])

            watch = browser.execute_script("return JSON.parse(document.getElementById('data').textContent).live.watch")
            decides = browser.get_cookies()
            browser.delete_all_cookies()
            browser.get(link(program).split("/open")[0] + watch)
            when(part("ask").is_displayed, "a watcher sees the question")
            assert not button("allow").is_enabled()
            assert not part("stop").is_enabled()
            browser.delete_all_cookies()
            for cookie in decides:
                browser.add_cookie(cookie)

            browser.refresh()  # as after a closed laptop: the question still stands
            when(part("ask").is_displayed, "it still asks")
            browser.execute_script("document.getElementById('step-0').click()")
            browser.execute_script("for (const one of document.querySelectorAll('#detail details')) one.open = true")
            folds = len(browser.find_elements("css selector", "#detail details[open]"))
            assert folds
            button("change").click()
            assert re.fullmatch(r"\d+,\d+", part("ask-note").get_property("value"))
            part("ask-note").clear()
            part("ask-note").send_keys("99999,200")
            assert not button("allow").is_enabled(), "what it would do is not what stands there"
            button("change").click()
            when(lambda: "not on the screen" in part("told-now").text, "the point is nowhere")
            part("ask-note").clear()
            part("ask-note").send_keys("300,200")
            button("change").click()
            when(lambda: part("ask-note").get_property("value") == "", "it asks about the changed click")
            assert "300,200" in part("ask-what").text
            assert "xterm" not in part("ask-what").text.lower(), "of the place that the model chose"
            assert len(browser.find_elements("css selector", "#detail details[open]")) == folds
            assert part("title").text.startswith("1.")
            browser.execute_script("arguments[0].click()", button("allow"))
            when(lambda: part("state").text == "NO RUN", "the run is over")
            assert part("outcome").text == "done"
            assert len(browser.find_elements("css selector", "#list .step")) == 3
            assert "mai-agent" in browser.title

            here, first_tab = browser.current_url.split("#")[0], browser.current_window_handle
            for _ in range(7):  # more than a browser has connections to a host
                browser.switch_to.new_window("tab")
                browser.get(here)
                when(lambda: part("state").text == "NO RUN", "another tab shows it, too")
            browser.switch_to.window(first_tab)
            part("say-text").send_keys("do less")  # a run with fewer steps than the one before
            part("say-send").click()
            when(lambda: part("instruction").text == "do less" and part("state").text == "NO RUN", "it ended as well")
            assert len(browser.find_elements("css selector", "#list .step")) == 1
            (first, _) = sorted(list_bundles(program.runs), key=lambda one: one.run.started)
            assert "300,200" in first.steps[1].actions[0].changed_to
            program.signal(signal.SIGINT)
            assert program.wait() == 0
            assert program.left_over() == []
            assert [one.outcome for one in list_bundles(program.runs)] == ["done", "done"]
            wait_until(
                lambda: part("state").text == "ENDED" or part("lost").is_displayed(), "the page says that it is over"
            )
    told = [entry["message"] for entry in browser.get_log("browser")]
    assert not [message for message in told if "Security Policy" in message or "TypeError" in message]
