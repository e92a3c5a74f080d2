"""The `[server]` table of the person's settings."""

from pathlib import Path

import pytest

from foundation.errors import UsageError
from serverctl.config import ServerConfig, load_server_config


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(path))
    monkeypatch.delenv("MAI_SERVER_VLLM_PYTHON", raising=False)
    return path


def test_without_a_table_nothing_is_set_and_a_named_file_that_is_missing_is_told(file: Path) -> None:
    with pytest.raises(UsageError, match="MAI_AGENT_CONFIG names that file"):
        load_server_config()
    file.write_text('endpoint = "127.0.0.1:1"\n')
    assert load_server_config() == ServerConfig()


def test_a_models_own_knobs_win_and_the_environment_names_the_python(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(
        '[server]\nmodel = "MAI-UI-8B"\nport = 8123\nidle = "15m"\nvllm_python = "~/a"\nmax_model_len = 16384\n'
        'flags = ["--seed", "0"]\n[server.models."MAI-UI-2B"]\nmax_num_seqs = 8\nmax_model_len = 4096\n'
    )
    config = load_server_config()
    assert (config.model, config.port, config.vllm_python) == ("MAI-UI-8B", 8123, "~/a")
    assert (tuple(config.flags), config.idle_seconds) == (("--seed", "0"), 900)
    assert config.overrides("mai-ui-2b") == {"max_model_len": 4096, "max_num_seqs": 8}
    assert config.overrides("other") == config.overrides(None) == {"max_model_len": 16384}
    monkeypatch.setenv("MAI_SERVER_VLLM_PYTHON", "/b")
    assert load_server_config().vllm_python == "/b"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("server = 3", "[server]:"),
        ("[server]\nmodel = 5", "[server]: model cannot be 5. It must be a valid string."),
        ("[server]\nport = 70000", "[server]: port cannot be 70000. It is a number from 1 to 65535."),
        *((f"[server]\nidle = {wrong}", "idle cannot be") for wrong in ("'0m'", "'soon'", "15")),
        ("[server]\nport = true", "[server]: port cannot be True. It is a number from 1 to 65535."),
        ("[server]\nflags = '--seed 0'", "[server]: flags cannot be '--seed 0'. Write flags = "),
        ("[server]\nflags = [0]", "[server]: flags.0 cannot be 0. Write flags = "),
        ("[server]\nmodels = 3", "[server]: models cannot be 3. Write [server.models."),
        ("[server.models.a]\nmax_num_seqs = 0", '[server.models."a"]: max_num_seqs cannot be 0.'),
        ("[server]\nnonsense = 1", "[server]: there is no setting 'nonsense'. Settings are: model, "),
        ("[server]\nmax_num_seqs = 'x'", "[server]: max_num_seqs cannot be 'x'."),
        ("[server", "cannot be read"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        load_server_config()
    assert said in str(refused.value)
    assert str(file) in str(refused.value)
