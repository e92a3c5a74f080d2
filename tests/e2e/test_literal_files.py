"""The literal engine's files and folders on a real desktop, judged by what is in its home."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(240)]


def test_a_text_is_written_renamed_and_trashed_in_a_german_home(command, kept):
    outcome = command(
        "--sandbox", "--keep", "--sandbox-locale", "de_DE.UTF-8", "--max-steps", "80",
        "write 'milk and eggs' in the text editor and save it as a.txt, create a folder called Letters in Documents, "
        "rename ~/a.txt to b.txt and move b.txt to the trash",
    )  # fmt: skip
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    assert outcome.in_home("ls Dokumente").split() == ["Letters"]
    assert outcome.in_home("cat .local/share/Trash/files/b.txt").strip() == "milk and eggs"
    assert outcome.in_home("ls a.txt b.txt") == ""


def test_a_sum_is_read_from_the_display(command, no_sandbox_left):
    outcome = command("--sandbox", "calculate 12 times 12")
    assert outcome.status == 0, outcome.out + outcome.err
    assert "12*12 is 144" in outcome.out + outcome.err
