"""The literal engine's files and folders on a real desktop, judged by what is in its home."""

import subprocess

import pytest

from agent.sandbox.desktop import stop_sandbox

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture
def kept():
    """Stops the sandbox that the test's run kept."""
    outcomes = []
    yield outcomes.append
    for outcome in outcomes:
        [line] = [line for line in outcome.err.splitlines() if line.startswith("The sandbox stays")]
        stop_sandbox(line.split("mai-agent sandbox stop ")[1].rstrip("`."))


def in_home(outcome, script):
    """What a shell prints in the home of the kept sandbox."""
    [line] = [line for line in outcome.err.splitlines() if line.startswith("The sandbox stays")]
    entry = line.split("`")[1]
    done = subprocess.run(["sh", "-c", f'{entry}; cd "$HOME"; {script}'], capture_output=True, text=True, timeout=20)
    return done.stdout


def test_a_text_is_written_renamed_and_trashed_in_a_german_home(command, kept):
    outcome = command(
        "--sandbox", "--keep", "--sandbox-locale", "de_DE.UTF-8", "--max-steps", "80",
        "write 'milk and eggs' in the text editor and save it as a.txt, create a folder called Letters in Documents, "
        "rename ~/a.txt to b.txt and move b.txt to the trash",
    )  # fmt: skip
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    assert in_home(outcome, "ls Dokumente").split() == ["Letters"]
    assert in_home(outcome, "cat .local/share/Trash/files/b.txt").strip() == "milk and eggs"
    assert in_home(outcome, "ls a.txt b.txt") == ""


def test_a_sum_is_read_from_the_display(command, no_sandbox_left):
    outcome = command("--sandbox", "calculate 12 times 12")
    assert outcome.status == 0, outcome.out + outcome.err
    assert "12*12 is 144" in outcome.out + outcome.err
