"""`mai-server models`: what is on this machine, got and deleted."""

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from serverctl.commands.machine import models
from serverctl.process.state import State


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path / "state"))
    folder = tmp_path / "hub" / "models--Tongyi-MAI--MAI-UI-2B"
    revision = "0" * 40
    (folder / "snapshots" / revision).mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(revision)
    (folder / "snapshots" / revision / "config.json").write_text("{}" * 500)
    return folder


def listed(capsys: pytest.CaptureFixture[str]) -> Any:
    assert models.main(["--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_models_are_listed_and_deleted_unless_served(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = listed(capsys)
    assert (row["repository"], row["name"], row["bytes"]) == ("Tongyi-MAI/MAI-UI-2B", "MAI-UI-2B", 1000)
    serving = [State(phase="ready", name="mine", source="Tongyi-MAI/MAI-UI-2B")]
    monkeypatch.setattr(models.control, "live_servers", lambda: serving)
    with pytest.raises(MaiError, match="down --name mine"):
        models.main(["rm", "mai-ui-2b"])
    serving.clear()
    assert models.main(["rm", "mai-ui-2b"]) == 0
    assert "Deleted: Tongyi-MAI/MAI-UI-2B" in capsys.readouterr().out
    assert not cache.exists()
    assert listed(capsys) == []
    with pytest.raises(UsageError, match="not on this machine"):
        models.main(["rm", "MAI-UI-2B"])


def test_a_model_is_got_before_a_start(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def got(repository: str, **_: Any) -> str:
        asked.append(repository)
        return str(cache / "snapshots")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", got)
    assert models.main(["pull", "MAI-UI-2B", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == 1000
    assert asked == ["Tongyi-MAI/MAI-UI-2B"]

    def refuse(*_: Any, **__: Any) -> str:
        raise OSError("no route to host\nand more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(EnvironmentLacksError, match="cannot be got: no route to host"):
        models.main(["pull", "o/m"])


@pytest.mark.parametrize("words", [["pull"], ["rm"], ["list", "o/m"], ["pull", "no such model"]])
def test_a_name_that_is_missing_too_much_or_none_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        models.main(words)
