"""What the windows of fields have in common: rows at fixed places, and a file with what stands in them."""

import json
import os
import sys
from pathlib import Path

#: What every field begins with.
BEGIN = {
    "entry": "what stood there",
    "password": "old secret",
    "spin": "42",
    "combo": "first choice",
    "text": "the first line\nthe second line",
}
#: The rows that they stand in, in pixels.
ROW, LEFT, WIDTH = 50, 20, 440
TOPS = {name: 10 + ROW * number for number, name in enumerate(BEGIN)}
HEIGHTS = {name: 140 if name == "text" else 36 for name in BEGIN}
SIZE = (480, 360)
_path = Path(sys.argv[1] if len(sys.argv) > 1 else os.devnull)
_answered = [0]


def write(values, answered=None):
    """Write what stands in the fields; `answered` is the number of the last command that was carried out."""
    if answered is not None:
        _answered[0] = answered
    new = _path.with_suffix(".new")
    new.write_text(json.dumps({"answered": _answered[0], **values}), encoding="utf-8")
    new.replace(_path)
