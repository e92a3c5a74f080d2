"""Desktop tests in sentences: a throw-away desktop as a fixture (`pytest -p mai_agent.pytest_plugin`, docs/testing.md).

The reports of a failed test's runs are named in its output and in JUnit's properties.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

import mai_agent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the desktops."""
    group = parser.getgroup("desktop", "throw-away desktops (mai-agent)")
    group.addoption("--desktop-size", default="1280x800", metavar="WxH", help="default 1280x800")
    group.addoption("--desktop-session", default="xfce", metavar="KIND", help="xfce (default), gnome, sway, ...")
    group.addoption("--desktop-locale", metavar="NAME", help="its language, such as de_DE.UTF-8")
    group.addoption("--desktop-engine", default="literal", metavar="ENGINE", help="follows sentences (default literal)")
    group.addoption("--desktop-endpoint", metavar="URL", help="a model that follows sentences instead")
    group.addoption(
        "--desktop-scope", default="function", choices=("function", "class", "module", "session"),
        help="how long one desktop is used (default: for one test)",
    )  # fmt: skip


def _scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001 -- pytest names the arguments
    return config.getoption("--desktop-scope")


@pytest.fixture(scope=_scope)
def desk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[mai_agent.Desktop]:
    """A throw-away desktop that nothing else uses."""
    chosen = request.config.getoption
    endpoint = chosen("--desktop-endpoint")
    with mai_agent.sandbox(
        size=chosen("--desktop-size"),
        session=chosen("--desktop-session"),
        locale=chosen("--desktop-locale"),
        engine="endpoint" if endpoint else chosen("--desktop-engine"),
        endpoint=endpoint,
        runs=tmp_path_factory.mktemp("runs"),
    ) as opened:
        yield opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Name the reports of a failed test's runs."""
    report = yield
    opened = item.funcargs.get("desk") if isinstance(item, pytest.Function) else None
    if call.when == "call" and isinstance(opened, mai_agent.Desktop):
        before = item.stash.get(_BEFORE, 0)
        reports = [str(bundle / "report.html") for bundle in opened.bundles[before:]]
        if report.failed and reports:
            report.sections.append(("runs on the desktop, last one last", "\n".join(reports)))
            item.user_properties += [("mai-agent report", path) for path in reports]
    return report


_BEFORE = pytest.StashKey[int]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Remember how many runs an earlier test made on the same desktop."""
    opened = item.funcargs.get("desk") if isinstance(item, pytest.Function) else None
    if isinstance(opened, mai_agent.Desktop):
        item.stash[_BEFORE] = len(opened.bundles)
    return (yield)
