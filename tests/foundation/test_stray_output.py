"""What libraries print goes into a log and never onto the terminal; what we print does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Everything that prints by itself: C's own streams and descriptors, Python's, warnings, threads, children.
NOISE = """
import ctypes, os, subprocess, sys, threading, warnings
def noise(where):
    os.write(2, f"Error in boxClipToRectangle {where}\\n".encode())
    os.write(1, f"libEGL warning {where}\\n".encode())
    ctypes.CDLL(None).printf(f"C-LIBRARY {where}\\n".encode())
    print(f"PYTHON {where}")
    print(f"PYTHON-ERROR {where}", file=sys.stderr)
    warnings.warn(f"WARNED {where}")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start(); thread.join()
    subprocess.run(["sh", "-c", f"echo CHILD {where} >&2"], check=True)
    subprocess.run(["sh", "-c", f"echo CHILD-OUT {where}"], check=True)
"""
SAID = (
    "boxClipToRectangle", "libEGL", "C-LIBRARY", "PYTHON", "PYTHON-ERROR", "WARNED", "ZeroDivisionError", "CHILD",
    "CHILD-OUT",
)  # fmt: skip


def ran(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHONPATH": str(ROOT), "MAI_AGENT_STATE": str(folder / "state")}
    return subprocess.run(
        [sys.executable, "-c", NOISE + code], capture_output=True, text=True, env=environ, timeout=60, cwd=folder
    )


def test_nothing_a_library_prints_reaches_the_terminal_and_all_of_it_the_log(tmp_path: Path) -> None:
    done = ran(
        """
from pathlib import Path
from foundation.printing import put, remark
from foundation.stray_output import kept_in, stray_output_kept
with stray_output_kept():
    put("ours"); noise("beside")
    with kept_in(Path("run.log")):
        noise("within"); remark("ours too")
    put("ours again")
put("and after"); os.write(1, b"theirs after")
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ours\nours again\nand after\ntheirs after"
    assert done.stderr == "ours too\n"
    logs = {
        "beside": (tmp_path / "state" / "output.log").read_text(),
        "within": (tmp_path / "run.log").read_text(),
    }
    for where, log in logs.items():
        assert [word for word in SAID if word not in log] == []
        assert ("within" in log, "beside" in log) == (where == "within", where == "beside")
    assert (tmp_path / "run.log").stat().st_mode & 0o077 == 0


def test_a_run_in_which_nothing_was_printed_leaves_no_log(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from foundation.stray_output import kept_in, stray_output_kept
with stray_output_kept(), kept_in(Path("run.log")):
    pass
"""
    assert ran(code, tmp_path).returncode == 0
    assert not (tmp_path / "run.log").exists()


def test_a_crash_of_the_interpreter_is_in_the_log(tmp_path: Path) -> None:
    code = """
import faulthandler
from pathlib import Path
from foundation.stray_output import kept_in, stray_output_kept
with stray_output_kept(), kept_in(Path("run.log")):
    ctypes.string_at(0)
"""
    assert ran(code, tmp_path).returncode < 0
    assert "Segmentation fault" in (tmp_path / "run.log").read_text()


def test_where_the_log_cannot_be_written_the_terminal_is_still_clean(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    done = ran(
        """
from foundation.printing import put
from foundation.stray_output import stray_output_kept
with stray_output_kept():
    noise("x"); put("ours")
""",
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ours\n", "")


def test_a_long_log_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from foundation.stray_output import kept_in, stray_output_kept
with stray_output_kept(), kept_in(Path("run.log")):
    os.write(2, b"FIRST\\n")
    for _ in range(40):
        os.write(2, b"x" * 20000)
    os.write(2, b"LAST\\n")
"""
    assert ran(code, tmp_path).returncode == 0
    log = (tmp_path / "run.log").read_bytes()
    assert len(log) < 300_000
    assert (log[:6], log[-5:]) == (b"FIRST\n", b"LAST\n")


def test_a_mistake_of_ours_is_a_sentence_that_says_where_its_traceback_is(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def main(arguments):\n    raise ValueError('bad \\x1b]52;c;eA==\\x07')\n")
    code = """
sys.path.insert(0, ".")
from foundation.command_line import run_command
sys.exit(run_command("prog", "broken", []))
"""
    done = ran(code, tmp_path)
    log = tmp_path / "state" / "output.log"
    assert (done.returncode, done.stdout) == (1, "")
    assert "ValueError: bad \\x1b]52" in done.stderr
    assert str(log) in done.stderr
    assert "\x1b" not in done.stderr
    assert "Traceback" in log.read_text()


@pytest.mark.parametrize("command", [["look"], ["act", "x"], ["run", "--no-tui", "x"]])
def test_commands_end_with_a_sentence_where_there_is_no_screen(command: list[str], tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environ |= {"PYTHONPATH": str(ROOT), "MAI_AGENT_STATE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "agent", *command], capture_output=True, text=True, env=environ, timeout=100
    )
    assert done.returncode == 3
    assert done.stderr.startswith("mai-agent: ")
