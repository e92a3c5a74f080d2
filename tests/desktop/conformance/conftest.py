"""The desktops that the same questions are asked of."""

import os
from collections.abc import Iterator

import pytest
from stubs.benches import Bench, bench_of

#: scripts/desktops/test asks the same of the session that it runs in.
KINDS = [
    pytest.param(kind, marks=pytest.mark.slow) if kind == "gnome" else kind
    for kind in os.environ.get("MAI_TEST_DESKTOPS", "x11 sway gnome").split()
]


@pytest.fixture(scope="module", params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One for all tests of a module."""
    with bench_of(request.param, tmp_path_factory.mktemp("probe")) as found:
        yield found
