"""The README's pictures are made by a script from today's program."""

import subprocess
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_script_makes_both_pictures(tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / "pictures", tmp_path], cwd=ROOT, check=True, timeout=300)
    for name in ("dark-mode.jpg", "terminal.png"):
        with Image.open(tmp_path / name) as made, Image.open(ROOT / "docs" / "images" / name) as shown:
            assert made.width > 900 and abs(made.width - shown.width) < 100
