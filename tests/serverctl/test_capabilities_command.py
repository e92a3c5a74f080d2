"""`mai-server capabilities`: which flags came and went, of an installed vLLM and of a wheel that was downloaded."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from stubs.wheels import torch_wheel, vllm_wheel

from foundation.errors import EnvironmentLacksError, UsageError
from serverctl.commands.plans.capabilities import main
from serverctl.vllm.capabilities import installed
from serverctl.vllm.releases import drift


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Python of an environment whose vLLM has three flags only, and a torch that says nothing."""
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path / "state"))
    (tmp_path / "config.toml").touch()
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    libraries = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    for wheel in (vllm_wheel(tmp_path, "0.33.0"), torch_wheel(tmp_path)):
        zipfile.ZipFile(wheel).extractall(libraries)
    program = tmp_path / "env" / "bin" / "python"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_release_that_is_known_is_not_asked_until_it_is_to_be_refreshed(
    python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--vllm-python", str(python))
    status, kept = told(capsys, *where)
    assert (status, kept["against"], kept["went"]["options"]) == (0, "0.33.0", [])
    status, asked = told(capsys, *where, "--refresh")
    assert status == 1, "flags that plans use went"
    assert "--gpu-memory-utilization" in asked["went"]["options"]
    assert asked["plans_use"]["gpu_memory_utilization"] == "--gpu-memory-utilization"
    assert asked["options"] == 3
    assert not installed(python).has("--gpu-memory-utilization"), "plans believe the parser from now on"
    assert installed(python).has("--max-model-len")


def test_a_wheel_that_was_downloaded_is_asked_without_installing_it(
    python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new").mkdir()
    wheel = vllm_wheel(tmp_path / "new", "0.99.0", requires="")
    status, found = told(capsys, "--vllm-python", str(python), "--wheel", str(wheel))
    assert (status, found["vllm"], found["against"], found["options"]) == (1, "0.99.0", "0.33.0", 3)
    status, found = told(capsys, "--vllm-python", str(python), "--wheel", str(wheel), "--against", "0.19.1")
    assert found["against"] == "0.19.1"
    assert main(["--vllm-python", str(python), "--wheel", str(wheel)]) == 1
    said = capsys.readouterr().out
    assert "flags that went: " in said
    assert "! plans use --limit-mm-per-prompt (images)" in said


def test_releases_that_plans_know_are_compared_without_any_vllm_and_others_say_what_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("serverctl.commands.plans.capabilities.find_environment", lambda *_: None)
    (tmp_path / "config.toml").touch()
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(tmp_path / "config.toml"))
    status, found = told(capsys, "--release", "0.33.0", "--against", "0.19.1")
    assert (status, found["vllm"], found["against"]) == (0, "0.33.0", "0.19.1")
    assert found["came"]["options"]
    with pytest.raises(EnvironmentLacksError, match="Another release's parser needs"):
        main(["--release", "0.99.0"])


def test_what_cannot_be_asked_is_said(python: Path, tmp_path: Path) -> None:
    where = ["--vllm-python", str(python)]
    (tmp_path / "none.whl").write_text("x")
    with pytest.raises(EnvironmentLacksError, match="is no wheel"):
        main([*where, "--wheel", str(tmp_path / "none.whl")])
    with pytest.raises(EnvironmentLacksError, match="not one of vLLM"):
        main([*where, "--wheel", str(torch_wheel(tmp_path))])
    with pytest.raises(UsageError, match="Nothing is known of vLLM 9"):
        main([*where, "--against", "9"])
    with pytest.raises(EnvironmentLacksError, match="There is no Python"):
        main(["--vllm-python", str(tmp_path / "nowhere")])
    with pytest.raises(EnvironmentLacksError, match="pip download failed"):
        main([*where, "--release", "0.99.0"])


def test_differences_are_told_by_name_and_an_option_that_became_another_name_did_not_go() -> None:
    one = {"aliases": [], "takes_value": True, "choices": ["a", "b"]}
    known = {"options": {"--gone": one, "--old": one, "--other": one}, "env": ["VLLM_A"], "architectures": ["X"]}
    now = {
        "options": {
            "--new": {**one, "aliases": ["--old"]},
            "--other": {**one, "choices": ["b", "c"], "takes_value": 0},
        },
        "env": ["VLLM_B"],
    }
    found = drift(known, now)
    assert found.went == {"options": ("--gone",), "env": ("VLLM_A",)}
    assert found.came == {"options": ("--new",), "env": ("VLLM_B",)}
    assert found.changed == ("--other: choices without a, with c", "--other: takes_value was True, is 0")
    assert not drift(known, known)
