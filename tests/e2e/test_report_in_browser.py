"""The report in a real browser: keys, filter, themes, narrow windows, paper, accessibility, nothing from outside."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from record.bundles import CLICK, a_bundle, a_step, plain
from stubs.browser import lacking

from agent.record.report.page import write_report

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

HOSTILE = "</script><img src=http://127.0.0.1:9/x onerror=\"document.title='broken'\">"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    steps = [
        a_step(1),
        a_step(2, target={"type": "drag", "start": [16, 9], "point": [80, 45]}, thought=HOSTILE, error=HOSTILE,
               answers=[{"raw": HOSTILE, "failure": {"message": "no call"}}, {"raw": "good"}]),
        a_step(3, target={"type": "scroll", "point": None, "dx": 0, "dy": 3}, note="Nothing changed.",
               approval={"reason": "of a rule", "allowed": True, "answer": "allowed", "by": "you", "note": "go on",
                         "milliseconds": 900.0}),
        a_step(4, target={"type": "type", "text": "cherry"}, before=[{"event": "PersonSaid", "text": "hurry"}]),
        *(a_step(number, target=CLICK | {"point": [number, 9]}) for number in range(5, 30)),
        a_step(30, target={"type": "finish", "success": True, "message": HOSTILE}, fate="said", image=None),
    ]  # fmt: skip
    images = [plain(number, 1280, 720) for number in range(1, 30)]
    bundle = a_bundle(tmp_path_factory.mktemp("report") / "run", steps, images, instruction=f"go {HOSTILE}",
                      warnings=["a remark"])  # fmt: skip
    return write_report(bundle).path


class Page:
    """The open report, by what a person sees and does."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def open(self, path: Path, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme])
        self.browser.get("about:blank")
        for kind in ("browser", "performance"):
            self.browser.get_log(kind)
        self.browser.get(path.as_uri())

    def cdp(self, command: str, **arguments: Any) -> Any:
        return self.browser.execute_cdp_cmd(command, arguments)

    def js(self, code: str) -> Any:
        return self.browser.execute_script(f"return {code}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.browser.switch_to.active_element.send_keys(key)

    def text(self, place: str) -> str:
        return self.js(f"document.getElementById('{place}').innerText")

    @property
    def step(self) -> int:
        [chosen] = self.js(
            "[...document.querySelectorAll('#list [aria-selected=true]')].map(x => x.querySelector('.n').textContent)"
        )
        return int(chosen)

    @property
    def picture(self) -> str:
        return self.js("document.querySelector('#stage img').src")


@pytest.fixture
def page(browser: Any, report: Path) -> Page:
    opened = Page(browser)
    opened.open(report)
    return opened


def test_keys_walk_through_the_steps(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    assert page.step == 1
    for key, step in [
        ("j", 2), ("j", 3), ("k", 2), (Keys.ARROW_DOWN, 3), (Keys.ARROW_RIGHT, 4), (Keys.ARROW_UP, 3),
        (Keys.ARROW_LEFT, 2), (Keys.END, 30), ("j", 30), (Keys.HOME, 1), ("k", 1),
    ]:  # fmt: skip
        page.press(key)
        assert page.step == step
    assert "1. click at 80,45" in page.text("title")
    chosen = page.js("document.getElementById('list').getAttribute('aria-activedescendant')")
    assert page.js(f"document.getElementById('{chosen}').getAttribute('aria-selected')") == "true"


def test_the_chosen_step_stays_in_sight(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press(Keys.END)
    for box, item in (("list", "[aria-selected=true]"), ("film", ".on")):
        inside = f"""(() => {{ const box = document.getElementById('{box}'), a = box.getBoundingClientRect(),
            b = box.querySelector('{item}').getBoundingClientRect();
            return b.top >= a.top - 1 && b.bottom <= a.bottom + 1 && b.left >= a.left - 1
                && b.right <= a.right + 1 }})()"""
        assert page.js(inside)


def test_b_shows_the_screen_after_the_action_and_the_one_before_again(page: Page) -> None:
    before = page.picture
    assert page.js("document.querySelectorAll('#mark circle').length") > 0
    page.press("b")
    after = page.picture
    assert after != before
    assert page.js("document.getElementById('show-after').getAttribute('aria-pressed')") == "true"
    assert page.js("document.getElementById('mark')") is None  # the mark belongs to what the model saw
    page.press("b")
    assert page.picture == before
    page.press("j")
    assert page.picture == after


def test_the_mark_lies_on_the_target_at_every_size(page: Page, report: Path) -> None:
    for width in (1400, 390):
        page.open(report, width=width)
        place = page.js("""(() => { const image = document.querySelector('#stage img').getBoundingClientRect(),
            mark = document.querySelector('#mark .dot').getBoundingClientRect();
            return [(mark.left + mark.width / 2 - image.left) / image.width,
                    (mark.top + mark.height / 2 - image.top) / image.height] })()""")
        assert place == pytest.approx([0.5, 0.5], abs=0.01)


def test_a_filter_leaves_the_steps_that_fit_and_keys_walk_among_them(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press("/")
    page.press("cherry")
    assert page.step == 4
    assert page.js("[...document.querySelectorAll('.step')].filter(x => !x.hidden).length") == 1
    assert page.text("count") == "1 of 30 steps"
    page.press(Keys.ENTER)
    page.press("j")
    assert page.step == 4
    page.press("/")
    page.press(Keys.ESCAPE)
    assert page.js("[...document.querySelectorAll('.step')].filter(x => !x.hidden).length") == 30
    page.press("j")
    assert page.step == 5


def test_help_opens_with_a_question_mark_and_escape_closes_it(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press("?")
    assert page.js("document.getElementById('help').open") is True
    page.press("j")
    assert page.step == 1
    page.press(Keys.ESCAPE)
    assert page.js("document.getElementById('help').open") is False


def test_a_step_can_be_chosen_in_the_list_the_film_and_on_the_track(page: Page) -> None:
    from selenium.webdriver.common.by import By

    page.browser.find_element(By.ID, "step-2").click()
    assert page.step == 3
    assert "llowed by you" in page.text("detail") and "after 900 ms" in page.text("detail")
    page.browser.find_element(By.ID, "step-3").click()
    assert "you said: hurry" in page.text("detail")
    page.browser.find_element(
        By.CSS_SELECTOR, "#track svg"
    ).click()  # its middle: step 1 begins at 1.5 s, step 30 is over at 46.4 s
    assert page.step == 15
    page.browser.find_elements(By.CSS_SELECTOR, "#film .thumb")[0].click()
    assert page.step == 2  # in the middle of the first of twelve frames, 3.4 s into the run
    page.browser.find_element(By.ID, "next").click()
    assert page.step == 3


def test_the_film_is_scaled_by_time(page: Page) -> None:
    """Every step takes as much of the track as it took time: of 44.9 s from step 1 to the end, step 3 begins at 3 s."""
    page.press("j", "j")
    here = page.js("[...['x', 'width']].map(name => Number(document.getElementById('here').getAttribute(name)))")
    assert here == pytest.approx([1000 * 3.0 / 44.85, 1000 * (1.35 + 0.9) / 44.85], abs=1.5)
    assert page.js("document.querySelector('#film .on span').textContent") == "3"


def test_what_went_wrong_or_was_asked_about_is_flagged_and_found_by_a_key(page: Page) -> None:
    assert page.js("document.querySelectorAll('#track .flag').length") == 2
    for step in (2, 3, 3):  # one that failed, one that was asked about, and no more
        page.press("e")
        assert page.step == step


def test_it_plays_by_itself_and_a_key_of_the_person_stops_it(page: Page) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    page.press("p")
    assert page.js("document.getElementById('play').getAttribute('aria-pressed')") == "true"
    WebDriverWait(page.browser, 20).until(lambda _: page.step >= 3)
    page.press("k")
    assert page.js("document.getElementById('play').getAttribute('aria-pressed')") == "false"


def test_before_and_after_are_laid_over_each_other_and_parted_by_keys(page: Page) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    page.press("s")
    left, right = page.js("[...document.querySelectorAll('#stage img')].map(image => image.src)")
    assert left != right
    slider = page.browser.find_element(By.ID, "split")
    assert page.js("document.getElementById('other').style.clipPath") == "inset(0px 0px 0px 50%)"
    slider.send_keys(Keys.ARROW_RIGHT)
    assert page.js("document.getElementById('other').style.clipPath") == "inset(0px 0px 0px 51%)"
    assert page.step == 1  # the arrows are the slider's


def test_the_difference_is_bright_where_something_changed(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    images = [plain(1, 640, 360), plain(1, 640, 360), plain(1, 640, 360)]
    images[1].paste((255, 255, 255), (480, 240, 600, 330))
    page = Page(browser)
    page.open(write_report(a_bundle(tmp_path / "run", [a_step(1), a_step(2), a_step(3)], images)).path)
    page.press("d")
    WebDriverWait(browser, 20).until(lambda _: "changed" in page.text("caption") and "%" in page.text("caption"))
    light = "(x, y) => document.getElementById('differs').getContext('2d').getImageData(x, y, 1, 1).data[0]"
    assert page.js(f"({light})(540, 290)") > 240
    assert page.js(f"({light})(100, 100)") < 60
    assert page.text("caption").startswith("Step 1: 5 % of the screen changed")


def test_what_the_model_proposed_is_marked_beside_what_the_person_made_of_it(browser: Any, tmp_path: Path) -> None:
    instead = CLICK | {"point": [40.0, 18.0]}
    asked = {"reason": "a rule", "allowed": True, "answer": "changed", "by": "you", "instead": instead}
    page = Page(browser)
    page.open(write_report(a_bundle(tmp_path / "run", [a_step(1, approval=asked)], [plain(1, 640, 360)])).path)
    middle = """(id => { const all = document.querySelector('#stage img').getBoundingClientRect(),
        ring = document.querySelector(`#${id} .ring`).getBoundingClientRect();
        return [(ring.left + ring.width / 2 - all.left) / all.width,
                (ring.top + ring.height / 2 - all.top) / all.height] })"""
    assert page.js(f"{middle}('mark')") == pytest.approx([0.25, 0.2], abs=0.02)
    assert page.js(f"{middle}('proposed')") == pytest.approx([0.5, 0.5], abs=0.02)
    assert "dashed" in page.text("caption")


def test_the_target_can_be_enlarged_and_is_then_in_the_middle(page: Page) -> None:
    wide = page.js("document.querySelector('#stage img').offsetWidth")
    page.press("z")
    assert page.js("document.querySelector('#stage img').offsetWidth") == pytest.approx(3 * wide, rel=0.03)
    place = page.js("""(() => { const stage = document.getElementById('stage').getBoundingClientRect(),
        mark = document.querySelector('#mark .dot').getBoundingClientRect();
        return [(mark.left + mark.width / 2 - stage.left) / stage.width,
                (mark.top + mark.height / 2 - stage.top) / stage.height] })()""")
    assert place == pytest.approx([0.5, 0.5], abs=0.02)
    page.press("z")
    assert page.js("document.querySelector('#stage img').offsetWidth") == wide


def test_instruction_action_and_raw_answer_can_be_copied(page: Page) -> None:
    page.js("(window.kept = [], navigator.clipboard.writeText = async (text) => { window.kept.push(text); })")
    page.press("j")
    labels = page.js("[...document.querySelectorAll('.copy')].map(x => (x.click(), x.getAttribute('aria-label')))")
    assert "Copy: the instruction" in labels and "Copy: Proposed action on the screen" in labels
    kept = dict(zip(labels, page.js("window.kept"), strict=True))
    assert kept["Copy: the instruction"] == f"go {HOSTILE}"
    assert json.loads(kept["Copy: Proposed action on the screen"])["type"] == "drag"
    assert kept["Copy: Raw answer, attempt 2 of 2"] == "good"


def test_without_scripts_the_steps_are_told_in_short(browser: Any, report: Path) -> None:
    page = Page(browser)
    page.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(report, width=390)
        read = page.cdp("DOM.getDocument", depth=-1)["root"]
        told = page.cdp("DOM.getOuterHTML", nodeId=read["nodeId"])["outerHTML"]
        shown = page.cdp("Page.captureScreenshot")["data"]
    finally:
        page.cdp("Emulation.setScriptExecutionDisabled", value=False)
    assert "<li><div><img alt" in told and "Thought 30." in told
    assert "<img src=http" not in told
    assert shown


def test_a_missing_screenshot_is_said(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press(Keys.END)
    assert "missing" in page.text("stage")


def test_hostile_text_is_shown_as_text_and_does_nothing(page: Page) -> None:
    page.press("j")
    assert HOSTILE in page.text("detail")
    assert HOSTILE in page.text("instruction")
    assert page.browser.title != "broken"
    assert page.js("document.querySelectorAll('img').length") == 1
    page.press("s")
    assert page.js("document.querySelectorAll('img').length") == 2


def test_nothing_is_asked_of_the_network_and_nothing_complains(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press("j", "b", "s", "d", "z", "j", "p", Keys.END, Keys.HOME, "?", Keys.ESCAPE)
    page.js("dispatchEvent(new Event('beforeprint'))")
    events = [json.loads(entry["message"])["message"] for entry in page.browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked, "the log of requests is empty: nothing was checked"
    assert [url[:80] for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
    assert page.browser.get_log("browser") == []


def test_what_is_not_ours_would_be_refused(page: Page) -> None:
    code = """(() => { const node = document.createElement('script'); node.textContent = 'window.ran = 1';
        document.body.append(node); return window.ran === undefined })()"""
    assert page.js(code) is True


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "shown"), [(1400, ""), (900, "s"), (390, ""), (390, "d"), (1400, "z")])
def test_nobody_is_shut_out(page: Page, report: Path, width: int, shown: str, dark: bool) -> None:
    try:
        import axe_core_python
    except ImportError:
        lacking("the package axe-core-python")
    page.open(report, width=width, dark=dark)
    page.press("j", *shown)
    page.browser.execute_script((Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert found["passes"]
    assert [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found["violations"]] == []


@pytest.mark.parametrize("width", [1400, 900, 390, 320])
def test_nothing_is_wider_than_the_window(page: Page, report: Path, width: int) -> None:
    page.open(report, width=width)
    assert page.js("document.documentElement.scrollWidth") <= width


def test_the_theme_follows_the_system_until_it_is_chosen(page: Page, report: Path) -> None:
    from selenium.webdriver.common.by import By

    page.open(report, dark=True)
    assert page.js("document.documentElement.dataset.theme") == "dark"
    page.browser.find_element(By.ID, "theme").click()
    assert page.js("document.documentElement.dataset.theme") == "light"
    page.js("localStorage.clear()")


def test_on_paper_all_steps_are_there(page: Page) -> None:
    pdf = base64.b64decode(page.cdp("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    assert page.js("document.querySelectorAll('#print article').length") == 30


def test_the_file_is_valid_html(report: Path) -> None:
    try:
        import html5lib
    except ImportError:
        lacking("the package html5lib")
    html5lib.HTMLParser(strict=True).parse(report.read_text(encoding="utf-8"))


def test_a_run_without_steps_opens_and_says_so(page: Page, tmp_path: Path) -> None:
    page.open(write_report(a_bundle(tmp_path / "run", [])).path)
    assert "no step was recorded" in page.text("stage")
    page.press("j", "b", "k")
    assert page.browser.get_log("browser") == []
