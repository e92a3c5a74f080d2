"""The door from Python: what its page shows, what it refuses, and that cancelling stops at once."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from PIL import Image
from stubs.display import forget_pyautogui
from stubs.endpoint import MODEL, FakeEndpoint, act, say

import mai_agent
from agent.api.results import Look
from agent.core.geometry import Region
from agent.events.run_events import Acted, Event
from agent.record.read import read_bundle
from agent.screen.outline import Element

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)


NAMES = ("11 notes", "1 note, unsaved", "1 note", "+")
answer = Mock(return_value=False)


@pytest.fixture(scope="class")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[mai_agent.Desktop]:
    forget_pyautogui()
    runs = tmp_path_factory.mktemp("runs")
    with mai_agent.sandbox(engine="literal", runs=runs, approve="risky", approve_by=answer) as opened:
        opened.open("mousepad")
        yield opened


class TestOneDesktop:
    @pytest.fixture(autouse=True)
    def _as_before(self) -> Iterator[None]:
        yield
        answer.side_effect = None

    def test_an_action_is_a_recorded_run(self, desk: mai_agent.Desktop) -> None:
        result = desk.type("Hello")
        assert result.done
        assert result.verified
        assert [step.executed for step in result.steps] == [True]
        assert result.bundle == desk.bundles[-1]
        bundle = read_bundle(desk.bundles[-1])
        assert bundle.outcome == "done"
        assert (bundle.path / "report.html").is_file()

    @pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
    def test_a_signal_ends_the_program_also_when_the_run_is_over_already(
        self, desk: mai_agent.Desktop, number: signal.Signals, error: type[BaseException]
    ) -> None:
        done = desk.type("Bye")

        async def late(*_: object) -> mai_agent.Result:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.3)
            return done

        with patch("agent.api.desktop.AsyncDesktop._carry_out", late), pytest.raises(error):
            desk.type("again")

    def test_a_second_thread_is_told_that_the_desktop_is_used(self, desk: mai_agent.Desktop) -> None:
        first = threading.Thread(target=desk.do, args=("wait 2 seconds",))
        first.start()
        time.sleep(0.5)
        with pytest.raises(mai_agent.MaiError, match="Another thread uses this desktop now"):
            desk.look()
        first.join()
        assert desk.look().elements

    def test_an_error_shows_no_frames_but_those_of_the_caller(self, desk: mai_agent.Desktop) -> None:
        with pytest.raises(mai_agent.NotSeenError) as raised:
            desk.expect("Nowhere", within=0.1)
        assert [entry for entry in raised.traceback.filter(raised) if "asyncio" in str(entry.path)] == []

    def test_what_a_run_changed_is_put_back(self, desk: mai_agent.Desktop) -> None:
        key = ("gsettings", "get", "org.xfce.mousepad.preferences.view", "show-line-numbers")
        before = desk.sandbox.run(*key).stdout
        result = desk.do("turn on Line Numbers").check()
        assert desk.sandbox.run(*key).stdout != before
        assert desk.undo(result) == ()
        assert desk.sandbox.run(*key).stdout == before

    def test_elements_are_found_by_name_and_role(self, desk: mai_agent.Desktop) -> None:
        assert desk.expect("file", role="menu").name == "File"
        assert desk.find("File", role="check box") is None
        seen = desk.look()
        assert seen.image.size == (1280, 800)
        assert seen.windows[0].app == "Mousepad"

    def test_what_is_missing_is_said_with_what_is_there(self, desk: mai_agent.Desktop) -> None:
        with pytest.raises(AssertionError, match=r"No button “Frobnicate” appeared within 0 s; there: .*menu “File”"):
            desk.expect("Frobnicate", role="button", within=0)
        with pytest.raises(mai_agent.NotSeenError, match="is still there after 0 s"):
            desk.expect_gone("File", role="menu", within=0)

    def test_what_the_callers_function_refuses_is_not_done(self, desk: mai_agent.Desktop) -> None:
        with pytest.raises(mai_agent.NotDoneError, match="You did not allow this") as caught:
            desk.press("ctrl+q")
        assert not any(step.executed for step in caught.value.result.steps)
        assert desk.find("File", role="menu")

    def test_a_fault_in_the_callers_function_is_not_told_as_ours(self, desk: mai_agent.Desktop) -> None:
        answer.side_effect = ValueError("nobody is there")
        with pytest.raises(mai_agent.NotDoneError, match="`approve_by` failed: ValueError: nobody is there") as caught:
            desk.press("ctrl+q")
        assert not any(step.executed for step in caught.value.result.steps)

    def test_a_program_that_is_missing_is_named(self, desk: mai_agent.Desktop) -> None:
        with pytest.raises(FileNotFoundError, match="'nonesuch'"):
            desk.sandbox.start("nonesuch")

    @pytest.mark.parametrize("command", [(), ("sleep", 1), ("ls", "a\0b"), ("ls", "\ud800")])
    def test_words_that_start_no_program_are_refused_and_harm_nothing(
        self, desk: mai_agent.Desktop, command: tuple[Any, ...]
    ) -> None:
        for use in (desk.sandbox.start, desk.sandbox.run):
            with pytest.raises(mai_agent.MaiError, match=r"No program is named|is no word of a command"):
                use(*command)
        assert desk.sandbox.run("echo", "there").stdout == "there\n"

    def test_an_async_function_may_approve(self, desk: mai_agent.Desktop) -> None:
        async def approve() -> bool:
            return False

        answer.side_effect = lambda _: approve()
        with pytest.raises(mai_agent.NotDoneError, match="not allow"):
            desk.press("ctrl+q")

    def test_a_stop_from_another_thread_ends_the_run(self, desk: mai_agent.Desktop) -> None:
        threading.Timer(1.0, desk.stop).start()
        assert desk.do("wait 20 seconds").outcome == "stopped"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engin": "literal"}, "--engin=literal. Did you mean --engine?"),
        ({"engine": "literally"}, "--engine: invalid choice: 'literally'"),
        ({"max_steps": 0}, "--max-steps: must be at least 1"),
        ({"sandbox": True, "sandbox_size": "wide"}, "--sandbox-size: .*wide"),
        ({"sandbox_size": "800x600"}, "--sandbox-size needs a throw-away desktop"),
        ({"stop_key": "ctrl+q"}, "--stop-key"),
        ({"tell": 5}, "tell is a int"),
        ({"on_event": None}, "on_event is a NoneType"),
        ({"sandbox": True, "remote": "http://127.0.0.1:9"}, "name two desktops"),
        ({"sandbox": True, "remote": ""}, "name two desktops"),
        ({"desktop": "x11", "remote": "http://127.0.0.1:9"}, "name two desktops"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(mai_agent.MaiError, match=words):
        mai_agent.desktop(**options)


def test_a_second_desktop_is_refused_while_one_is_used(tmp_path: Path) -> None:
    with mai_agent.sandbox(runs=tmp_path) as desk:
        with pytest.raises(mai_agent.MaiError, match="uses a desktop already"), mai_agent.sandbox(runs=tmp_path):
            pass
        assert desk.look().image.size == (1280, 800)


@pytest.mark.slow
def test_a_second_desktop_is_refused_without_with_too(tmp_path: Path) -> None:
    one, other = mai_agent.sandbox(runs=tmp_path), mai_agent.sandbox(runs=tmp_path)
    try:
        assert one.look().image.size == (1280, 800)
        for use in (other.look, lambda: other.type("typed for the other"), lambda: other.sandbox):
            with pytest.raises(mai_agent.MaiError, match="uses a desktop already"):
                use()
    finally:
        one.close()
        other.close()


def test_within_an_event_loop_the_waiting_desktop_says_which_to_use() -> None:
    async def program() -> None:
        with pytest.raises(mai_agent.MaiError, match="async_sandbox"), mai_agent.sandbox():
            pass

    asyncio.run(program())


def test_a_closed_desktop_says_so() -> None:
    desk = mai_agent.sandbox(sandbox_size="800x600")
    desk.close()
    desk.close()
    with pytest.raises(mai_agent.MaiError, match="closed"), desk:
        pass
    for use in (desk.look, lambda: desk.click("Save"), lambda: desk.expect("Save")):
        with pytest.raises(mai_agent.MaiError, match="closed"):
            use()


@pytest.mark.parametrize("use", ["click", "type", "open", "press", "do"])
@pytest.mark.parametrize(("name", "why"), [("", "is empty"), (5, "is a int"), (None, "is a NoneType")])
def test_what_names_nothing_is_refused(use: str, name: Any, why: str) -> None:
    with pytest.raises(mai_agent.MaiError, match=why):
        getattr(mai_agent.sandbox(), use)(name)


@pytest.mark.parametrize(
    ("use", "arguments"),
    [("click", {"window": 5}), ("type", {"into": 5}), ("close_window", {"name": 5}), ("repeat", {"name": 5})],
)
def test_an_argument_that_is_no_text_is_refused(use: str, arguments: dict[str, Any]) -> None:
    first = arguments.pop("name", "a")
    with pytest.raises(mai_agent.MaiError, match="is a int, and not a text"):
        getattr(mai_agent.sandbox(), use)(first, **arguments)


def test_the_display_of_the_process_is_its_own_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":mine")
    forget_pyautogui()
    with mai_agent.sandbox(runs=tmp_path) as desk:
        assert os.environ["DISPLAY"] == desk.sandbox.environ["DISPLAY"]
    assert os.environ["DISPLAY"] == ":mine"


def test_a_model_that_is_not_open_or_would_block_a_loop_says_so(tmp_path: Path) -> None:
    model = mai_agent.server(endpoint="http://127.0.0.1:9")
    with pytest.raises(mai_agent.MaiError, match="is not open"):
        model.ground(tmp_path / "a.png", "the button")
    model.close()
    model.close()

    async def program() -> None:
        with pytest.raises(mai_agent.MaiError, match="event loop"), mai_agent.server(endpoint="http://127.0.0.1:9"):
            pass

    asyncio.run(program())


@pytest.mark.parametrize("value", [None, [1]])
def test_a_control_is_set_to_a_truth_a_text_or_a_number(value: Any) -> None:
    with pytest.raises(mai_agent.MaiError, match="cannot be set to"):
        mai_agent.sandbox().set("Delay", value)


@pytest.mark.slow
@pytest.mark.parametrize(("option", "value"), [("--desktop-size", "big"), ("--desktop-session", "windows95")])
def test_the_plugin_refuses_a_wrong_option_before_any_test(option: str, value: str) -> None:
    words = ["-m", "pytest", "-p", "mai_agent.pytest_plugin", "-p", "no:cacheprovider", option, value, "--co"]
    run = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert option in run.stderr
    assert value in run.stderr
    assert "Traceback" not in run.stderr


def test_a_role_that_no_element_has_is_refused() -> None:
    with pytest.raises(mai_agent.MaiError, match="no role 'knopf'"):
        Look(Image.new("RGB", (4, 4)), (), ()).find("Add", role="knopf")


def test_elements_are_found_by_whole_words() -> None:
    made = [Element(number, "label", name, Region(0, 20 * number, 90, 18)) for number, name in enumerate(NAMES, 1)]
    look = Look(Image.new("RGB", (4, 4)), tuple(made), ())
    assert [one.name for one in look.find_all("1 note")] == ["1 note", "1 note, unsaved"]
    assert [one.name for one in look.find_all("+")] == ["+"]
    assert len(look.find_all("", role="label")) == len(NAMES)
    assert look.listed(2).endswith(" and 2 more")
    for name in ("", None):
        with pytest.raises(mai_agent.MaiError, match="has no name"):
            look.find(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"role": "slidr"}, {"count": 0}, {"count": -3}, {"button": "middle9"}])
def test_a_click_that_there_is_not_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(mai_agent.MaiError, match="There is no"):
        mai_agent.sandbox().click("File", **options)


@pytest.mark.slow
def test_a_display_that_is_gone_is_named_and_nothing_stays(tmp_path: Path) -> None:
    forget_pyautogui()
    with mai_agent.sandbox(engine="literal", runs=tmp_path) as desk:
        desk.look()
        home = Path(desk.sandbox.environ["HOME"])
        own = ["pgrep", "-f", f"^Xvfb .*{desk.sandbox.folder}/"]
        os.kill(int(subprocess.run(own, capture_output=True, text=True, check=True).stdout), signal.SIGKILL)
        with pytest.raises(mai_agent.MaiError, match="can no longer be captured"):
            desk.look()
    assert not home.exists()


@pytest.mark.slow
def test_cancelling_a_task_stops_its_run_at_once(tmp_path: Path) -> None:
    presses, acted = 30, 0

    async def main() -> None:
        forget_pyautogui()
        loop, second = asyncio.get_running_loop(), asyncio.Event()

        def told(event: Event) -> None:
            nonlocal acted
            acted += isinstance(event, Acted)
            if acted >= 2:
                loop.call_soon_threadsafe(second.set)

        async with mai_agent.async_sandbox(engine="literal", runs=tmp_path, on_event=told) as desk:
            await desk.open("mousepad")
            run = asyncio.create_task(desk.do(", ".join(["press ctrl+n"] * presses)))
            await asyncio.wait_for(second.wait(), 60)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            assert read_bundle(desk.bundles[-1]).outcome == "stopped"

    asyncio.run(main())
    assert acted < presses


CLICK, POINT = act("click", "It is there.", coordinate=[500, 500]), '<answer>{"coordinate":[500,250]}</answer>'


def test_a_model_is_asked_about_pictures_without_a_desktop() -> None:
    shot = Image.new("RGB", (800, 400), "white")
    script = [say(POINT), say(CLICK), say("")]
    with FakeEndpoint(script) as endpoint, mai_agent.server(endpoint=endpoint.url) as server:
        assert server.ground(shot, "the Save button") == pytest.approx((400, 100), abs=1)
        decision = server.act(shot, "save")
        assert decision["ok"]
        assert decision["action"]["point"] == pytest.approx([400, 200], abs=1)
        assert server.act(shot, "save")["error"]["kind"] == "empty"
        assert (server.url, server.model) == (f"{endpoint.url.removesuffix('/v1')}/v1", MODEL)
    with FakeEndpoint([say(POINT)]) as endpoint:
        point = mai_agent.ground(shot, "the Save button", endpoint=endpoint.url)
    assert point == pytest.approx((400, 100), abs=1)
    with pytest.raises(mai_agent.MaiError, match="no model to ask"), mai_agent.server(engine="literal"):
        pass


@pytest.mark.parametrize("number", [number for number, text in enumerate(EXAMPLES) if "mai_agent.server" in text])
def test_the_examples_about_a_model_run(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (800, 400), "white").save("screen.png")
    with FakeEndpoint([say(POINT), say(CLICK)]) as endpoint:
        monkeypatch.setenv("MAI_AGENT_ENDPOINT", endpoint.url)
        exec(compile(EXAMPLES[number], f"docs/python.md, example {number}", "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.parametrize("number", [number for number, text in enumerate(EXAMPLES) if "mai_agent.server" not in text])
def test_the_examples_of_its_page_run(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_pyautogui()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    exec(compile(EXAMPLES[number], f"docs/python.md, example {number}", "exec"), {})
    assert "Traceback" not in capsys.readouterr().err
