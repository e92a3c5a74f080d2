"""The tests of examples/gtk-notes pass, and fail for the right reason where the application is broken."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/gtk-notes"
pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(300)]

#: A fault, the test that finds it, and what the failure says.
FAULTS = {
    "nothing is kept": ("json.dump(self.notes, file)", "pass", "added_and_kept", "JSONDecodeError"),
    "deletes at once": ("answer = ask.run()", "answer = Gtk.ResponseType.YES", "asks_first", "Keep it"),
    "does not come up": ("class Notes(", "import nothing\n\nclass Notes(", "starts_empty", "No module named 'nothing'"),
    "a button has another name": ('("Add", self', '("Append", self', "starts_empty", "No button “Add” appeared"),
}


def run(tmp_path: Path, *arguments: str, program: Path | None = None) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        str(EXAMPLE / "pytest.ini"),
        "--basetemp",
        str(tmp_path / "t"),
    ]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    if program is not None:
        environ["NOTES_PROGRAM"] = str(program)
    return subprocess.run(
        [*command, *arguments, str(EXAMPLE / "tests")],
        env=environ, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=290,
    )  # fmt: skip


def test_all_ten_pass_in_two_processes(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "2")
    assert "10 passed" in done.stdout, done.stdout[-3000:]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_for_its_reason_and_the_report_named(fault: str, tmp_path: Path) -> None:
    old, new, test, reason = FAULTS[fault]
    source = (EXAMPLE / "notes.py").read_text()
    assert source.count(old) == 1
    (tmp_path / "notes.py").write_text(source.replace(old, new))
    done = run(tmp_path, "-k", test, "--junit-xml", str(tmp_path / "junit.xml"), program=tmp_path / "notes.py")
    assert done.returncode == 1, done.stdout[-3000:]
    assert reason in done.stdout
    told = [
        (one.get("name"), one.get("value", "")) for one in ElementTree.parse(tmp_path / "junit.xml").iter("property")
    ]
    named = [value for name, value in told if name != "mai-agent output"]
    assert all(Path(path).parent == tmp_path / "junit" and Path(path).is_file() for path in named)
    assert any(path.endswith(".png") for path in named)
    assert any(path.endswith("report.html") for path in named) or "starts_empty" in test
