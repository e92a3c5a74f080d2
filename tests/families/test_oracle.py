"""The script that holds public clients' parsers against ours, with a made-up client."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "oracle.py"
#: Reads clicks as ours does, and the wheel the wrong way round.
CLIENT = """
import re
import a_package_that_is_not_installed

def parse_action_to_structure_output(text, factor, height, width, model_type):
    print("noise")
    if "Action: " not in text:
        raise ValueError("no action")
    return text.split("Action: ")[-1]

def parsing_response_to_pyautogui_code(call, height, width, input_swap):
    box = re.search(r"\\((\\d+),(\\d+)\\)", call)
    x, y = (int(box[1]) / 1000 * width, int(box[2]) / 1000 * height) if box else (0, 0)
    if call.startswith("click"):
        return f"import pyautogui\\npyautogui.click({x}, {y}, button='left')"
    return f"pyautogui.scroll(5, x={x}, y={y})" if "direction='down'" in call else ""
"""


def test_differences_are_printed_with_both_readings_and_those_that_are_meant_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "UI-TARS" / "codes" / "ui_tars"
    folder.mkdir(parents=True)
    (folder / "action_parser.py").write_text(CLIENT)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "ui-tars"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert '"dy": 5}]\n  theirs: [{"type": "scroll"' in done.stdout, "the wheel turns the other way"
    *_, differ = next(line for line in done.stdout.splitlines() if " read alike, " in line).split(" read alike, ")
    assert int(differ.split()[0]) == done.stdout.count("--- ui-tars\n") > 0
    assert "The client raises an exception" in done.stdout
