"""Settings of dconf, read and told without a desktop."""

import os
import subprocess
from pathlib import Path

from agent.desktop.changes.dconf import DconfStore


def written(home: Path, text: str) -> None:
    """Compile a database in a home, as dconf's writer leaves it there."""
    for folder in ("keys", ".config/dconf"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "keys/all").write_text(text)
    subprocess.run(["dconf", "compile", str(home / ".config/dconf/user"), str(home / "keys")], check=True)


def test_settings_at_any_depth_are_told_with_their_types(tmp_path: Path) -> None:
    written(tmp_path, "[/]\ntop='a=b'\n\n[org/x]\nsame=true\nnumber=uint32 5\ngone='x'\n")
    store = DconfStore({"HOME": str(tmp_path), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path)})
    store.begin()
    assert store.changes() == []
    written(tmp_path, "[/]\ntop='[c]'\n\n[org/x]\nsame=true\nnumber=uint32 6\n")
    told = {change.what: (change.before, change.after) for change in store.changes()}
    assert told == {
        "dconf /top": ("'a=b'", "'[c]'"),
        "dconf /org/x/number": ("uint32 5", "uint32 6"),
        "dconf /org/x/gone": ("'x'", None),
    }
    assert store.remark == ""


def test_without_the_tool_it_is_said_that_settings_are_not_told(tmp_path: Path) -> None:
    store = DconfStore({"HOME": str(tmp_path), "PATH": "/nowhere"})
    store.begin()
    assert (store.changes(), store.remark) == ([], "")  # nobody uses dconf here
    written(tmp_path, "[org/x]\nnumber=uint32 5\n")
    assert store.changes() == []
    assert "dconf" in store.remark
