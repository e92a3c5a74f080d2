import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_packages_and_the_configuration(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"agent/cli.py", "serverctl/__init__.py", "foundation/__init__.py", "agent/py.typed"} <= names
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "configs").rglob("*") if path.is_file()}
    assert {f"foundation/{name}" for name in shipped} <= names
    families = {str(path.relative_to(ROOT)) for path in (ROOT / "agent" / "families").rglob("*.toml")}
    assert len(families) > 3
    assert families <= names


def test_the_installed_wheel_works_from_any_folder(wheel, tmp_path):
    target = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(target)
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from agent.cli import main; sys.exit(main())", "fit", "--family", "mai-ui",
         "1920x1080"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"width": 1920, "height": 1088, "tokens": 2040}
    where = subprocess.run(
        [sys.executable, "-c", "import agent; print(agent.__file__)"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
    )
    assert where.stdout.startswith(str(target))


def test_help_loads_nothing_heavy_and_touches_no_display():
    code = (
        "import sys, agent, agent.cli\n"
        "try: agent.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'openai', 'PIL', 'numpy', 'mss', 'pyautogui', 'tesserocr', 'asyncio', 'Xlib'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    environ = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stderr.strip() == "[]"
    assert "mai-agent" in done.stdout


def test_the_locks_name_no_index():
    for lock in ("requirements.lock", "requirements-dev.lock", "requirements-wayland.lock", "requirements-ray.lock"):
        text = (ROOT / lock).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text


def test_what_ray_needs_is_locked_as_for_development():
    alone, all_of_it = ((ROOT / name).read_text() for name in ("requirements-ray.lock", "requirements-dev.lock"))
    assert "\nray==" in alone
    assert set(alone.splitlines()) <= set(all_of_it.splitlines())


def test_what_wayland_needs_is_locked_in_one_version():
    alone = (ROOT / "requirements-wayland.lock").read_text()
    pins = [line.split()[0] for line in alone.splitlines() if not line.startswith(" ")]
    assert len(pins) == len(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["wayland"]
    )
    for pin in pins:
        assert f"\n{pin} " in (ROOT / "requirements-dev.lock").read_text()
