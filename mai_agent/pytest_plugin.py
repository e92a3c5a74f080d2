"""Desktop tests in sentences: a throw-away desktop as a fixture (`pytest -p mai_agent.pytest_plugin`, docs/testing.md).

The output of a failed test, and JUnit's properties, name a picture of the screen and the reports of the test's runs.
Both also have what the programs on the desktop printed. With --junitxml FILE.xml, the pictures and reports are copied
to the folder FILE.
"""

import shutil
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import mai_agent
from foundation.errors import MaiError
from foundation.foreign_text import harmless


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


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a wrong option before any test runs."""
    try:
        mai_agent.sandbox(**_options(config))
    except MaiError as error:
        raise pytest.UsageError(str(error).replace("--sandbox-", "--desktop-")) from None


def _options(config: pytest.Config) -> dict[str, Any]:
    chosen = config.getoption
    endpoint = chosen("--desktop-endpoint")
    return {
        "size": chosen("--desktop-size"), "session": chosen("--desktop-session"), "locale": chosen("--desktop-locale"),
        "engine": "endpoint" if endpoint else chosen("--desktop-engine"), "endpoint": endpoint,
    }  # fmt: skip


def _scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001 -- pytest names the arguments
    return config.getoption("--desktop-scope")


@pytest.fixture(scope=_scope)
def desk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[mai_agent.Desktop]:
    """A throw-away desktop for one test or `--desktop-scope`."""
    runs = tmp_path_factory.mktemp("runs")
    with mai_agent.sandbox(runs=runs, **_options(request.config)) as opened:
        request.config.stash[_OPEN] = opened, runs
        yield opened
        del request.config.stash[_OPEN]


#: The desktop in use and the folder of its runs; and how many runs and how much output there were before a test.
_OPEN = pytest.StashKey[tuple[mai_agent.Desktop, Path]]()
_BEFORE = pytest.StashKey[tuple[int, int]]()
#: Most bytes of the programs' output that are shown, the last ones.
_MOST_OUTPUT = 4000


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember what earlier tests did on the same desktop."""
    if (found := item.config.stash.get(_OPEN, None)) is not None:
        item.stash[_BEFORE] = len(found[0].bundles), len(found[0].sandbox.output)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the screen, the runs and the programs' output to the report of a failed test."""
    report = yield
    found = item.config.stash.get(_OPEN, None)
    if found is None or not report.failed or call.when == "teardown":
        return report
    opened, folder = found
    earlier_runs, earlier_output = item.stash.get(_BEFORE, (0, 0))
    files = [("mai-agent report", bundle / "report.html") for bundle in opened.bundles[earlier_runs:]]
    with suppress(MaiError):
        screen = folder / f"{sum(1 for _ in folder.iterdir()):04}-failed.png"
        opened.look().image.save(screen)
        files.append(("mai-agent screen", screen))
    files = [(name, _kept(item.config, path)) for name, path in files]
    report.sections.append(
        ("the desktop: its runs, the last one last, and its screen", "\n".join(f"{path}" for _, path in files))
    )
    item.user_properties += [(name, str(path)) for name, path in files]
    if written := opened.sandbox.output[earlier_output:]:
        text = harmless(written[-_MOST_OUTPUT:].decode("utf-8", "replace"))
        report.sections.append(("what the programs on the desktop wrote", text))
        item.user_properties.append(("mai-agent output", text))
    return report


def _kept(config: pytest.Config, path: Path) -> Path:
    """Copy a file to a folder beside JUnit's, because pytest removes those of earlier sessions. Return where it is."""
    written = config.getoption("xmlpath", None)
    if not written or not path.is_file():
        return path
    folder = Path(written).absolute().with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(path, folder / f"{path.parent.name}-{path.name}"))
