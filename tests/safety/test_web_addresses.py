"""Web addresses: what they are, whose, and how much they carry; and when a visit is asked about."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.actions import PressKeys, TypeText, VisitPage
from agent.safety.addresses import facts_of, is_web_page, site_of, visited
from agent.safety.policy import Policy
from agent.safety.question_text import asked
from agent.safety.sentence import Sentence
from agent.safety.situation import Place, Situation

RISKY = Policy.load("risky")
SECRET = "hunter2" * 8


@pytest.mark.parametrize(
    "url", ["https://example.org", "http://localhost:8000/a?b=c#d", "https://[::1]/", "http://a.b/"]
)
def test_a_page_of_the_web_is_one(url: str) -> None:
    assert is_web_page(url)


@pytest.mark.parametrize(
    "url",
    [
        "", "example.org", "file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "about:config", "chrome://flags",
        "intent://x#Intent;end", "view-source:https://example.org", "https://", "https:///x", "https://a.b:99999/",
        "https://a.b/ --load-extension=x", "https://a.b/\n", "https://a.b\\@c.d/", "-https://a.b/", "https://[::1/",
        "HTTPS", "blob:https://a.b/x", "https://a.b/\u202egpj.exe",
    ],
)  # fmt: skip
def test_what_is_no_page_of_the_web_is_none(url: str) -> None:
    assert not is_web_page(url)


@pytest.mark.parametrize(
    ("url", "instruction", "facts"),
    [
        ("https://example.org/a", "visit example.org", {"named site"}),
        ("https://www.example.org/a", "look at https://example.org/a, please", {"named site"}),
        ("https://docs.example.org/", "visit www.example.org.", {"named site"}),
        ("http://localhost:8000/", "open localhost:8000", {"named site"}),
        ("https://example.org.evil.net/", "visit example.org", set()),
        ("https://evil.net/example.org", "visit example.org", set()),
        ("https://notexample.org/", "visit example.org", set()),
        ("https://example.org@evil.net/", "visit example.org", {"carries much"}),
        ("https://duckduckgo.com/?q=tall+towers", "how tall is it", {"usual search"}),
        (f"https://duckduckgo.com/?q={SECRET}", "how tall is it", {"usual search", "carries much"}),
        ("https://duckduckgo.com/l/?uddg=x", "how tall is it", set()),
        (f"https://example.org/{SECRET}", "visit example.org", {"named site", "carries much"}),
        (f"https://example.org/?q={SECRET}", f"search example.org for {SECRET}", {"named site"}),
        (f"https://example.org/#{'a-b-c-d-' * 30}", "visit example.org", {"named site", "carries much"}),
    ],
)
def test_an_address_is_held_against_the_instruction(url: str, instruction: str, facts: set[str]) -> None:
    assert facts_of(url, instruction) == facts


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("evil.example", "http://evil.example/"),
        (" EVIL.example/A ", "http://evil.example/A"),
        ("evil.example\\?d=1", "http://evil.example/?d=1"),
        ("evil.example./?d=1", "http://evil.example./?d=1"),
        ("evil%2eexample", "http://evil.example/"),
        ("ｅｖｉｌ．example", "http://evil.example/"),
        ("evil。example/x", "http://evil.example/x"),
        ("u:p@evil.example", "http://u:p@evil.example/"),
        ("2130706433:9800/", "http://127.0.0.1:9800/"),
        ("0x7f.1", "http://127.0.0.1/"),
        ("017700000001/", "http://127.0.0.1/"),
        ("[::1]:80/x", "http://[::1]/x"),
        ("http:evil.example", "http://evil.example/"),
        ("https:\\\\evil.example\\x", "https://evil.example/x"),
        ("e\tvil.example/x", "http://evil.example/x"),
        ("localhost", "http://localhost/"),
        ("router/", "http://router/"),
        *((text, None) for text in ("", "cats", "2026", "cats and dogs", "what is example.org?", "and/or", "note: buy",
                                    "ann@example.org", "file:///etc/passwd", "javascript:alert(1)", "/", "?", "....")),
    ],
)  # fmt: skip
def test_a_line_is_visited_as_browsers_read_it(line: str, address: str | None) -> None:
    assert visited(line) == address


@given(st.text(max_size=60))
def test_any_line_is_an_address_or_a_search(line: str) -> None:
    found = visited(line)
    assert found is None or site_of(found)


@pytest.mark.parametrize(
    "line",
    ["evil.example\\?d=x", "evil.example./", "2130706433:9800/", "u:p@evil.example", "evil%2eexample",
     "evil.example/?d=1", "x.evil.example", "ｅｖｉｌ．example", "http:evil.example/x"],
)  # fmt: skip
@pytest.mark.parametrize("pieces", ["typed at once", "in two pieces", "with its middle typed last", "entered by a key"])
def test_an_address_asks_by_what_stands_in_the_field_when_enter_sends_it(line: str, pieces: str) -> None:
    browser, sentence = Place("Chromium", "New Tab - Chromium"), Sentence("look up cats")
    action: TypeText | PressKeys = PressKeys(("enter",))
    seen = Situation(focused=browser, sent=line)
    if pieces == "typed at once":
        action, seen = TypeText(f"{line}\n"), Situation(focused=browser, sent=line)
    elif pieces == "in two pieces":
        action = TypeText(f"{line[len(line) // 2 :]}\n")
    elif pieces == "with its middle typed last":
        action = TypeText(f"{line[3:5]}\n")
    found = RISKY.question(action, replace(seen, facts=sentence.facts(action, seen)))
    assert found is not None
    assert "does not name this site" in found.reason


@pytest.mark.parametrize("line", ["cats", "cats and dogs", "example.org", "https://example.org", "how tall is 3 foot"])
def test_a_search_or_a_host_alone_is_entered_without_a_question(line: str) -> None:
    enter, browser = PressKeys(("enter",)), Place("Chromium", "New Tab - Chromium")
    seen = Situation(focused=browser, sent=line)
    assert RISKY.question(enter, replace(seen, facts=Sentence("look up cats").facts(enter, seen))) is None


def test_a_field_that_cannot_be_read_asks_before_enter() -> None:
    enter = PressKeys(("enter",))
    unread = Situation(focused=Place("Chromium", "New Tab"), facts=frozenset({"unread field"}))
    assert "cannot be read" in str(RISKY.question(enter, unread))
    assert "cannot be read" in str(RISKY.question(TypeText("cats\n"), unread))
    assert RISKY.question(enter, replace(unread, focused=Place("Mousepad", "a"))) is None


@pytest.mark.parametrize(
    ("url", "instruction", "rule"),
    [
        ("https://example.org/a", "visit example.org", None),
        ("https://duckduckgo.com/?q=towers", "how tall are towers", None),
        ("https://other.org/", "visit example.org", "a site that you did not name"),
        (f"https://example.org/?q={SECRET}", "visit example.org", "an address that carries much"),
        ("https://example.org/setup.exe", "visit example.org", "a page that downloads a program"),
        ("https://example.org/setup.%65xe", "visit example.org", "a page that downloads a program"),
        ("file:///etc/passwd", "visit example.org", "what is no web page"),
        ("javascript:alert(1)", "javascript:alert(1)", "what is no web page"),
    ],
)
def test_a_visit_is_asked_about_by_where_it_leads(url: str, instruction: str, rule: str | None) -> None:
    question = RISKY.question(VisitPage(url), Situation(facts=facts_of(url, instruction)))
    assert (question is None) == (rule is None)
    if rule is not None and question is not None:
        assert f"“{rule}”" in question.reason


def test_the_question_shows_the_whole_address_and_allows_a_site_for_good() -> None:
    url = "https://other.org/a/" + "b/" * 30
    situation = Situation(opens=("Chromium", "chromium"))
    question = RISKY.question(VisitPage(url), situation)
    assert question is not None
    shown = asked(VisitPage(url), question)
    assert shown.text == url
    assert shown.where == "with Chromium"
    assert shown.scope == "visiting pages of “other.org”, for the rest of the run"
    assert site_of(url) == "other.org"
