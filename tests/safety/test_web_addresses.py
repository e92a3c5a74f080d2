"""Web addresses: what they are, whose, and how much they carry; and when a visit is asked about."""

import pytest

from agent.actions import VisitPage
from agent.safety.addresses import facts_of, is_web_page, site_of
from agent.safety.asking import asked
from agent.safety.policy import Policy
from agent.safety.situation import Situation

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
    assert shown.scope == "visiting pages of “other.org”"
    assert site_of(url) == "other.org"
