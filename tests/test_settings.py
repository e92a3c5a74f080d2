"""The person's settings: which source wins, and what is refused by name."""

from pathlib import Path

import pytest

from agent.settings import load_settings, read_text
from foundation.configs import settings_path
from foundation.errors import UsageError


def environ(tmp_path: Path, text: str = "", **more: str) -> dict[str, str]:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return {"MAI_AGENT_CONFIG": str(path), **more}


def test_a_named_file_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no settings in"):
        load_settings({"MAI_AGENT_CONFIG": str(tmp_path / "missing.toml")})


@pytest.mark.parametrize(
    "text", ['history = "nope"', 'image_format = "bmp"', 'style = "fancy"', "max_steps = -3", "max_steps = 2.5"]
)
def test_values_that_the_command_line_would_refuse_are_refused_here_too(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="cannot be"):
        load_settings(environ(tmp_path, text))


def test_without_a_file_nothing_is_set(tmp_path: Path) -> None:
    settings = load_settings(environ(tmp_path))
    assert settings.get("endpoint") is None
    assert settings.api_key == ""
    assert settings.system_prompt("mai-ui") is None


def test_a_file_sets_and_the_environment_wins_over_it(tmp_path: Path) -> None:
    text = 'endpoint = "a:1"\nmodel = "M"\nmax_steps = 7\nmax_seconds = 1.5\n'
    assert load_settings(environ(tmp_path, text)).get("endpoint") == "a:1"
    settings = load_settings(environ(tmp_path, text, MAI_AGENT_ENDPOINT="b:2", MAI_AGENT_MODEL=""))
    assert (settings.get("endpoint"), settings.get("model")) == ("b:2", "M")
    assert (settings.get("max_steps"), settings.get("max_seconds")) == (7, 1.5)


def test_whether_clicks_are_tried_out_is_set_by_the_file_or_the_environment(tmp_path: Path) -> None:
    assert load_settings(environ(tmp_path, 'calibrate = "always"')).get("calibrate") == "always"
    assert load_settings(environ(tmp_path, 'calibrate = "always"', MAI_AGENT_CALIBRATE="off")).get("calibrate") == "off"
    with pytest.raises(UsageError, match="MAI_AGENT_CALIBRATE is 'never'"):
        load_settings(environ(tmp_path, MAI_AGENT_CALIBRATE="never"))


def test_the_key_comes_from_the_environment_only_and_never_shows(tmp_path: Path) -> None:
    settings = load_settings(environ(tmp_path, MAI_AGENT_API_KEY="secret"))
    assert settings.api_key == "secret"
    assert "secret" not in repr(settings)
    with pytest.raises(UsageError, match="api_key"):
        load_settings(environ(tmp_path, 'api_key = "secret"'))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("endpoint = 5", "endpoint"),
        ("max_steps = '5'", "max_steps"),
        ("max_steps = true", "max_steps"),
        ("max_step = 5", "max_step"),
        ("endpoint = ", "config.toml"),
        ("[family_settings.mai-ui]", "system_prompt"),
        ("[family_settings]\nmai-ui = 3", "system_prompt"),
        ("family_settings = 3", "family_settings"),
    ],
)
def test_what_is_no_setting_is_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        load_settings(environ(tmp_path, text))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    named = environ(tmp_path)
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        load_settings(named)


def test_a_familys_system_text_is_read_from_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("Be kind.", encoding="utf-8")
    text = '[family_settings.mai-ui]\nsystem_prompt = "mine.txt"\n'
    settings = load_settings(environ(tmp_path, text))
    assert settings.system_prompt("mai-ui") == "Be kind."
    assert settings.system_prompt("other") is None
    (tmp_path / "mine.txt").unlink()
    with pytest.raises(UsageError, match=r"mine\.txt"):
        settings.system_prompt("mai-ui")


def test_a_familys_own_ways_are_chosen_in_its_table(tmp_path: Path) -> None:
    text = '[family_settings.holo3]\noptions = { format = "native", batch = true }\n'
    settings = load_settings(environ(tmp_path, text))
    assert settings.family_options == {"holo3": {"format": "native", "batch": True}}
    assert settings.system_prompt("holo3") is None


def test_without_a_named_file_the_users_configuration_folder_is_used() -> None:
    path = settings_path({})
    assert path.name == "config.toml"
    assert path.parent.name == "mai-agent"


def test_a_text_that_is_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_bytes(b"\xff\xff")
    with pytest.raises(UsageError, match=r"prompt\.txt"):
        read_text(tmp_path / "prompt.txt")


@pytest.mark.parametrize(("text", "said"), [
    ("approve = 'sometimes'", "approve cannot be 'sometimes'. It must be 'ask', 'risky' or 'never'."),
    ("max_steps = 0", "max_steps cannot be 0. It must be greater than or equal to 1."),
    ("max_seconds = nan", "max_seconds cannot be nan."),
    ("nonsense = 1", "there is no setting 'nonsense'. Settings are: approve, policy,"),
])  # fmt: skip
def test_the_sentence_says_file_entry_and_what_is_allowed(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_settings(environ(tmp_path, text))
    assert str(refused.value).startswith(f"In {tmp_path / 'config.toml'}, {said}")


def test_a_budget_of_time_may_be_without_end(tmp_path: Path) -> None:
    assert load_settings(environ(tmp_path, "max_seconds = inf")).get("max_seconds") == float("inf")
