"""Text that is typed where something is selected, judged by what the applications and the selections hold then."""

import tempfile
import time
from pathlib import Path

import pytest
from stubs.sandbox_hand import sandbox_hand
from stubs.typing_fields import CHROMIUM, COMMANDS, Fields
from stubs.typing_situations import APPLICATIONS, SITUATIONS, type_in

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(240)]
#: Swing is only in scripts/bench/text_entry.py: Java is large.
TOOLKITS = [*(name for name in COMMANDS if name != "Swing"), CHROMIUM]


@pytest.fixture
def hand(sandbox):
    used = sandbox_hand(sandbox.environ)
    yield used
    used.close()


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_text_replaces_what_is_selected_and_arrives_once_and_the_clipboards_are_as_before(
    hand, sandbox, tmp_path, toolkit
):
    with Fields(toolkit, sandbox.environ, tmp_path) as fields:
        time.sleep(0.5)
        wrong = {name: type_in(hand, fields, situation, sandbox.environ) for name, situation in SITUATIONS.items()}
    assert {name: what for name, what in wrong.items() if what} == {}


@pytest.mark.parametrize("application", APPLICATIONS)
def test_text_arrives_as_it_is_in_real_applications(hand, sandbox, application):
    use, wanted = APPLICATIONS[application]
    folder = Path(tempfile.mkdtemp(dir=sandbox.environ["HOME"]))  # what runs inside sees no other
    assert use(hand, sandbox.environ, folder) == wanted
