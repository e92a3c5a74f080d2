"""`mai-agent prompts`: the words of models' publishers, fetched from a made-up repository on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, Ran
from stubs.publisher import CLIENT, COMMIT, Repository, prompts_data, serving

from agent.prompts import store
from foundation.errors import ExitStatus, UsageError

SOURCE = f"made-up/client@{COMMIT[:12]}"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "mai-agent" / "prompts"


@pytest.fixture
def repository(data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A made-up repository, which this program knows in place of the real ones."""
    with serving() as served:
        know(monkeypatch, prompts_data(served.url + "/{repository}/{commit}/{path}"))
        yield served
    store._prompts.cache_clear()


def know(monkeypatch: pytest.MonkeyPatch, told: dict[str, Any]) -> None:
    monkeypatch.setattr(store, "load_config", lambda _: told)
    store._prompts.cache_clear()


def messages(mai: CommandLine, family: str, *options: str) -> list[list[str]]:
    request = {"instruction": "Open {x}", "width": 1000, "height": 1000}
    ran = mai("prompt", "--family", family, "--request", "-", *options, stdin=json.dumps(request).encode())
    assert (ran.status, ran.err) == (ExitStatus.DONE, "")
    parts = [message["content"] for message in json.loads(ran.out)]
    return [[part["text"] for part in said if part["type"] == "text"] for said in parts]


def families(mai: CommandLine, name: str) -> str:
    (told,) = json.loads(mai("families", "--json", name).out)
    return str(told["words"])


def test_fetched_words_are_used_word_for_word(mai: CommandLine, repository: Repository) -> None:
    before = messages(mai, "qwen3-vl")
    assert families(mai, "qwen3-vl").startswith("ours (mai-agent prompts fetch qwen3-vl")
    ran = mai("prompts", "fetch", "qwen3-vl")
    assert (ran.status, ran.out) == (ExitStatus.DONE, f"qwen3-vl  fetched, {SOURCE}\n")
    assert repository.asked == [f"/made-up/client/{COMMIT}/made/up client.py"]
    assert families(mai, "qwen3-vl") == f"published, {SOURCE}"
    system, asked = messages(mai, "qwen3-vl")
    assert system == ['You use a made-up computer of 992x992.\n\n# Tools\n{"name": "computer_use"}']
    assert asked == ["\nTask of today: Open {x}\nSo far:\nNone"]
    assert messages(mai, "qwen3-vl", "--words", "ours") == before
    assert mai("prompts", "remove", "qwen3-vl").out == f"qwen3-vl  removed, {SOURCE}\n"
    assert messages(mai, "qwen3-vl") == before


def test_words_about_a_phone_are_for_the_reference_style_alone(mai: CommandLine, repository: Repository) -> None:
    ours = messages(mai, "mai-ui")
    mai("prompts", "fetch", "mai-ui")
    assert messages(mai, "mai-ui") == ours
    assert messages(mai, "mai-ui", "--style", "reference")[0] == ["A made-up phone."]
    assert messages(mai, "mai-ui", "--grounding")[0] == ["Where is it?"]


def test_a_file_of_the_person_goes_before_the_publishers_words(
    mai: CommandLine, repository: Repository, tmp_path: Path
) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Mine.")
    mai("prompts", "fetch", "qwen3-vl")
    system, asked = messages(mai, "qwen3-vl", "--system-prompt", str(own))
    assert system == ["Mine."]
    assert "Task of today" not in asked[0]


def test_tools_need_our_words(mai: CommandLine, repository: Repository) -> None:
    mai("prompts", "fetch", "qwen3-vl")
    request = {"instruction": "x", "tools": [{"name": "weather", "parameters": {}}]}
    ran = mai("prompt", "--family", "qwen3-vl", "--request", "-", stdin=json.dumps(request).encode())
    assert "weather" in ran.out
    assert "made-up" not in ran.out


def test_all_are_fetched_and_kept_for_the_person_alone(mai: CommandLine, repository: Repository, data: Path) -> None:
    assert mai("prompts", "fetch").status == ExitStatus.DONE
    kept = [path for path in data.rglob("*") if path.is_file()]
    assert sorted(path.relative_to(data).as_posix() for path in kept) == [
        f"made-up/client/{COMMIT}/made/phone.py", f"made-up/client/{COMMIT}/made/up client.py",
    ]  # fmt: skip
    for path in (data, *kept):
        assert path.stat().st_mode & 0o077 == 0
    states = {one["family"]: one["state"] for one in json.loads(mai("prompts", "--json").out)}
    assert states == {"mai-ui": "fetched", "qwen3-vl": "fetched"}
    mai("prompts", "remove")
    assert not any(path.is_file() for path in data.rglob("*"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (CLIENT + b"\n", "has other contents than expected"),
        (b"x" * (3 << 20), "longer than any prompt"),
        (None, "status 404"),
    ],
)
def test_another_file_is_refused_and_not_kept(
    mai: CommandLine, repository: Repository, data: Path, content: bytes | None, says: str
) -> None:
    repository.files.pop(f"/made-up/client/{COMMIT}/made/up client.py")
    if content is not None:
        repository.files[f"/made-up/client/{COMMIT}/made/up client.py"] = content
    ran = mai("prompts", "fetch")
    assert ran.status == ExitStatus.ENVIRONMENT
    assert says in ran.err
    assert ran.out.splitlines() == [f"mai-ui    fetched, {SOURCE} (system: only with --style reference)",
                                    f"qwen3-vl  not fetched, {SOURCE}"]  # fmt: skip
    assert len([path for path in data.rglob("*") if path.is_file()]) == 1


def test_a_file_that_was_changed_on_the_disk_is_refused(mai: CommandLine, repository: Repository, data: Path) -> None:
    mai("prompts", "fetch", "qwen3-vl")
    (path,) = (path for path in data.rglob("*.py"))
    path.write_bytes(CLIENT.replace(b"computer", b"toaster"))
    ran = mai("prompt", "--family", "qwen3-vl", "--request", "-", stdin=b'{"instruction": "x"}')
    assert ran.status == ExitStatus.ENVIRONMENT
    assert "was changed since it was fetched" in ran.err
    assert "was changed since" in mai("prompts", "list", "qwen3-vl").out
    assert messages(mai, "qwen3-vl", "--words", "ours")


def test_without_a_network_it_is_said(
    mai: CommandLine, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.close()
    ran = mai("prompts", "fetch", "mai-ui")
    assert ran.status == ExitStatus.ENVIRONMENT
    assert "cannot be fetched" in ran.err
    assert messages(mai, "mai-ui")


@pytest.mark.parametrize("written", ["{url}", "{url}/", "{url}/{repository}/{commit}/{path}"])
def test_a_mirror_is_named_by_a_flag_or_in_the_settings(
    mai: CommandLine, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: str
) -> None:
    know(monkeypatch, prompts_data("https://127.0.0.1:1/{repository}/{commit}/{path}"))
    mirror = written.replace("{url}", repository.url)
    assert mai("prompts", "fetch", "mai-ui", "--mirror", mirror).status == ExitStatus.DONE
    mai("prompts", "remove")
    settings = tmp_path / "config.toml"
    settings.write_text(f'prompts_mirror = "{mirror}"\n')
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(settings))
    assert mai("prompts", "fetch", "mai-ui").status == ExitStatus.DONE
    assert len(repository.asked) == 2


def mistaken(mai: CommandLine, *arguments: str) -> Ran:
    ran = mai("prompts", *arguments)
    assert ran.status == ExitStatus.USAGE
    return ran


def test_mistakes_are_said(mai: CommandLine, repository: Repository) -> None:
    assert "begins with https://" in mistaken(mai, "fetch", "--mirror", "http://example.invalid").err
    assert "No published prompt of the family 'holo3'" in mistaken(mai, "fetch", "holo3").err
    assert "Only fetch takes a mirror" in mistaken(mai, "list", "--mirror", "https://example.invalid").err
    assert mistaken(mai, "get").out == ""


def test_the_keys_of_the_data_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    told = prompts_data("https://127.0.0.1:1")
    told["families"]["mai-ui"]["comit"] = "x"
    know(monkeypatch, told)
    with pytest.raises(UsageError, match="there is no setting"):
        store.recipes()
    store._prompts.cache_clear()


def test_every_family_in_the_data_is_one_of_ours() -> None:
    from agent.families.registry import family_names

    assert store.recipes().keys() <= set(family_names())
