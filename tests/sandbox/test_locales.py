import subprocess
from pathlib import Path

import pytest

from agent.sandbox import sessions
from agent.sandbox.sessions import locale_environ
from foundation.errors import EnvironmentLacksError, UsageError

pytestmark = pytest.mark.slow

SOURCES = ("de_DE", "de_AT", "fr_FR", "sr_RS@latin")


@pytest.fixture
def system(monkeypatch, tmp_path):
    """A system with the sources of some locales and none made; notes what is made."""
    made = []

    def run(command, **_):
        if command[0] == "localedef":
            made.append(command[-1])
            Path(command[-1]).mkdir()
            Path(command[-1], "LC_CTYPE").touch()
        return subprocess.CompletedProcess(command, 1, "C\nC.utf8\nit_IT.utf8\n", "[warning] something")

    (tmp_path / "sources").mkdir()
    for name in SOURCES:
        (tmp_path / "sources" / name).touch()
    monkeypatch.setattr(sessions, "_SOURCES", tmp_path / "sources")
    monkeypatch.setattr(sessions.shutil, "which", lambda program: f"/bin/{program}")
    monkeypatch.setattr(sessions.subprocess, "run", run)
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path / "state"))
    return made


@pytest.mark.parametrize("name", ["de_DE.UTF-8", "de_DE", "de_DE.utf8"])
def test_a_locale_that_is_not_there_is_made_once(system, tmp_path, name):
    wanted = {"LANG": "de_DE.UTF-8", "LANGUAGE": "de_DE", "LOCPATH": str(tmp_path / "state/locales")}
    assert locale_environ(name) == wanted
    assert locale_environ(name) == wanted
    assert len(system) == 1
    assert (tmp_path / "state/locales/de_DE.UTF-8/LC_CTYPE").is_file()


def test_a_variant_is_part_of_the_name(system):
    assert locale_environ("sr_RS@latin")["LANG"] == "sr_RS.UTF-8@latin"


def test_an_installed_one_is_taken_as_it_is(system):
    assert locale_environ("it_IT.UTF-8") == {"LANG": "it_IT.UTF-8", "LANGUAGE": "it_IT"}
    assert system == []


@pytest.mark.parametrize("name", ["", "de", "german", "de_DE.ISO-8859-1", "../../de_DE", "de_DE.UTF-8/..", "C; rm"])
def test_what_is_no_name_of_a_locale_is_refused(system, name):
    with pytest.raises(UsageError, match="as in de_DE"):
        locale_environ(name)


def test_an_unknown_country_is_answered_with_the_known_ones(system):
    with pytest.raises(UsageError, match=r"knows de_AT, de_DE\."):
        locale_environ("de_XX")


def test_the_package_is_named_where_nothing_can_be_made(system, monkeypatch):
    monkeypatch.setattr(sessions.shutil, "which", lambda _: None)
    with pytest.raises(EnvironmentLacksError, match=r"apt-get install .*locales"):
        locale_environ("de_DE")
