"""What every test gets: an environment without the developer's own settings, keys and proxies."""

import os

import pytest
from hypothesis import settings

# What CI tries is the same every time; on a person's machine every run tries something new.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("person", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "person")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("MAI_AGENT_ENDPOINT", "MAI_AGENT_MODEL", "MAI_AGENT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings_file = tmp_path_factory.getbasetemp() / "no-settings.toml"
    settings_file.touch()
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(settings_file))
