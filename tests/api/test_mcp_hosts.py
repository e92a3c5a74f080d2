"""`mai-agent mcp install` writes an entry into hosts' settings; `uninstall` leaves them as they were, to the byte."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.commands import mcp
from agent.mcp.hosts import host_names, insert_json, installed, uninstalled
from agent.tools.commented_json import read_json
from foundation.configs import load_config
from foundation.errors import UsageError

HOSTS = load_config("mcp/hosts.toml")
READ = {"json": read_json, "toml": lambda text: tomllib.loads(text.removeprefix("\ufeff")), "yaml": yaml.safe_load}
FILES = {
    "json": [
        "", "{}", "{}\n", '{\n    "theme": "dark"\n}\n', '{"a": [1, {"mcpServers": {}}]}',
        '// mine\n{\n\t"x": "}{//", /* { */\n\t"KEY": {\n\t\t"other": {"command": "x"}, // last\n\t},\n}\n',
        '{"KEY": {}}', '{\r\n  "KEY": {"b": {"command": "y"}}\r\n}\r\n', '\ufeff{\n  "theme": "dark"\n}\n',
    ],
    "toml": ["", 'model = "x"', '# mine\n[KEY.other]\ncommand = "x"\n\n', '\ufeffmodel = "x"\r\n'],
    "yaml": [
        "", "a: 1", "KEY:\n", "KEY:  # mine\n    other:\n        cmd: x\nb: 2\n", "b: 2\nKEY:\n  other: {cmd: x}\n",
        "a: 1\r\nKEY:\r\n  other:\r\n    cmd: x\r\n", "KEY:  # mine\r\n", "a: 1\r\n",
    ],
}  # fmt: skip
CASES = [(host, text) for host in HOSTS for text in [None, *FILES[HOSTS[host]["format"]]]]


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(("host", "text"), CASES)
def test_a_file_is_as_before_after_install_and_uninstall(host: str, text: str | None, tmp_path: Path) -> None:
    data, file = HOSTS[host], tmp_path / "there" / "settings"
    (key,) = data["keys"]
    before = None if text is None else text.replace("KEY", key).encode()
    if before is not None:
        file.parent.mkdir()
        file.write_bytes(before)
    change = installed(host, str(file), ["--sandbox"])
    assert "mai-agent" in "\n".join(change.diff())
    change.write()
    settings = READ[data["format"]](file.read_bytes().decode())
    entry = settings[key]["mai-agent"]
    words = [*([entry.get("command") or entry["cmd"]]), *entry.get("args", [])]
    assert " ".join(words[-1] if isinstance(words[-1], list) else words).endswith("-m agent mcp --sandbox")
    if before:
        others = READ[data["format"]](before.decode()) or {}
        assert set(others) <= set(settings)
        assert set(others.get(key) or {}) <= set(settings[key])
    uninstalled(host, str(file)).write()
    assert (file.read_bytes() if file.exists() else None) == before


def test_another_install_replaces_the_first(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    for options in ([], ["--sandbox"]):
        installed("cursor", str(file), options).write()
    assert file.read_text().count('"mai-agent"') == 1
    assert "--sandbox" in file.read_text()
    uninstalled("cursor", None).write()
    assert not file.exists()


def test_what_was_changed_elsewhere_since_stays(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text('{\n  "a": 1\n}\n')
    installed("cursor", str(file), []).write()
    file.write_text(file.read_text().replace('"a": 1', '"a": 2'))
    uninstalled("cursor", None).write()
    assert file.read_text() == '{\n  "a": 2\n}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [("[]", "cannot be read as json"),
     ("{", "cannot be read as json"), ('{"mcpServers": {"mai-agent": {}}}', "already"),
     ('{"mcpServers": 3}', "cannot be read as json"), ("\x00", "cannot be read as json")],
)  # fmt: skip
def test_settings_that_cannot_be_read_are_left_alone(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text(text)
    with pytest.raises(UsageError, match=words):
        installed("cursor", str(file), [])
    assert file.read_text() == text


def test_an_entry_that_was_edited_is_not_torn_out(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    installed("cursor", str(file), []).write()
    file.write_text(file.read_text().replace('"agent"', '"agent", "mine"'))
    with pytest.raises(UsageError, match="was changed since"):
        uninstalled("cursor", None)
    with pytest.raises(UsageError, match="was not installed in zed"):
        uninstalled("zed", None)


members = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8,
)  # fmt: skip


KEYS = st.sampled_from(["servers", "a", 'q"', "{"])


@given(st.dictionaries(KEYS, members, max_size=3), st.sampled_from([None, 1, "\t"]))
def test_a_member_is_inserted_and_no_other_changes(settings: dict[str, Any], indent: int | str | None) -> None:
    if not isinstance(settings.get("servers", {}), dict):
        return
    text = json.dumps(settings, indent=indent)
    found = read_json(insert_json(text, ["servers"], "mai-agent", {"command": "x"}))
    assert found.pop("servers") == {"mai-agent": {"command": "x"}} | settings.pop("servers", {})
    assert found == settings


def test_an_entry_is_found_in_a_file_that_its_host_wrote_anew(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    for others, spaces in (({"other": {"command": "x"}}, 4), ({}, None)):
        file.write_text('{"theme": "dark"}')
        installed("claude-code", str(file), []).write()
        settings = json.loads(file.read_text())
        settings["mcpServers"] |= others
        file.write_text(json.dumps(settings, indent=spaces))
        uninstalled("claude-code", str(file)).write()
        assert json.loads(file.read_text()) == {"theme": "dark", "mcpServers": others}


def test_new_lines_end_as_the_files_others(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    for host, text in (("cursor", '{\r\n  "theme": "dark"\r\n}\r\n'), ("codex", 'model = "x"\r\n')):
        file.write_bytes(text.encode())
        installed(host, str(file), []).write()
        written = file.read_bytes()
        assert written.count(b"\n") == written.count(b"\r\n") > 3
        uninstalled(host, str(file)).write()


def test_the_change_is_shown_and_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settings"
    with pytest.raises(UsageError, match="Nobody is here to agree"):
        mcp.main(["install", "codex", "--file", str(file)])
    assert not file.exists()
    assert "+[mcp_servers.mai-agent]" in capsys.readouterr().out
    assert mcp.main(["install", "codex", "--file", str(file), "--yes", "--", "--sandbox"]) == 0
    assert mcp.main(["uninstall", "codex", "--yes"]) == 0
    assert not file.exists()
    assert {
        "claude-code",
        "claude-desktop",
        "codex",
        "cursor",
        "vscode",
        "gemini-cli",
        "opencode",
        "goose",
        "zed",
    } <= set(host_names())


@pytest.mark.parametrize("text", ['{"mcpServers": []}', '{"mcpServers": null}', '{"mcpServers": "x"}', "[]", "5"])
def test_settings_in_which_an_entry_would_not_count_are_left_alone(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text(text)
    with pytest.raises(UsageError, match="cannot be read as json"):
        installed("cursor", str(file), [])


def test_a_file_that_its_person_named_keeps_its_mode_and_its_own_text(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    installed("cursor", str(first), []).write()
    second.write_text("{}")
    second.chmod(0o640)
    installed("cursor", str(second), []).write()
    assert second.stat().st_mode & 0o777 == 0o640
    uninstalled("cursor", None).write()
    assert second.read_text() == "{}"
    assert second.stat().st_mode & 0o777 == 0o640
    assert "mai-agent" in first.read_text()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{\r\n    "mcpServers": {\r\n        ENTRY\r\n    },\r\n    "n": 1.0\r\n}\r\n',
         '{\r\n    "mcpServers": {},\r\n    "n": 1.0\r\n}\r\n'),
        ('{"mcpServers": {"z": {}, ENTRY}, "name": "Ä"}',
         '{\n  "mcpServers": {\n    "z": {}\n  },\n  "name": "Ä"\n}\n'),
    ],
)  # fmt: skip
def test_json_that_was_written_anew_keeps_its_values_and_line_ends(text: str, left: str, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    installed("cursor", str(file), []).write()
    entry = json.dumps(json.loads(file.read_text())["mcpServers"])[1:-1]
    file.write_bytes(text.replace("ENTRY", entry).encode())
    uninstalled("cursor", None).write()
    assert file.read_bytes().decode() == left


@pytest.mark.parametrize("text", ['{"mcpServers": {ENTRY} /* mine */}', r'{"mcpServers": {ENTRY}, "x": "\ud83d"}'])
def test_json_that_would_lose_something_is_left_to_its_person(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    installed("cursor", str(file), []).write()
    entry = json.dumps(json.loads(file.read_text())["mcpServers"])[1:-1]
    file.write_text(text.replace("ENTRY", entry))
    before = file.read_text()
    with pytest.raises(UsageError, match="Remove it by hand"):
        uninstalled("cursor", None)
    assert file.read_text() == before


def test_the_modules_of_a_project_do_not_stand_for_ours(tmp_path: Path) -> None:
    project = tmp_path / "agent"
    project.mkdir()
    (project / "__init__.py").write_text("print('PROJECT CODE RAN')")
    (project / "__main__.py").write_text("")
    installed("cursor", str(tmp_path / "settings"), []).write()
    entry = read_json((tmp_path / "settings").read_text())["mcpServers"]["mai-agent"]
    done = subprocess.run(
        [entry["command"], *entry["args"], "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert "Model Context Protocol" in done.stdout
    assert "PROJECT" not in done.stdout


def test_a_wrong_option_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    with pytest.raises(UsageError, match="--bogus"):
        mcp.main(["install", "cursor", "--file", str(file), "--yes", "--", "--bogus"])
    assert not file.exists()


@pytest.mark.parametrize("text", ['"extensions":\n  other: {cmd: x}\n', "\ufeffextensions:\n  other: {cmd: x}\n"])
def test_no_other_entry_is_lost(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_bytes(text.encode())
    with pytest.raises(UsageError, match="or others would be lost"):
        installed("goose", str(file), [])


def test_an_entry_that_its_host_wrote_anew_or_added_to_is_not_called_gone(tmp_path: Path) -> None:
    goose, codex = tmp_path / "goose", tmp_path / "codex"
    goose.write_text("a: 1\n")
    installed("goose", str(goose), []).write()
    goose.write_text(yaml.safe_dump(yaml.safe_load(goose.read_text()), indent=4))
    installed("codex", str(codex), []).write()
    codex.write_text(codex.read_text() + '\n[mcp_servers.mai-agent.env]\nA = "b"\n')
    for host, file in (("goose", goose), ("codex", codex)):
        before = file.read_text()
        with pytest.raises(UsageError, match="was changed since"):
            uninstalled(host, None)
        assert file.read_text() == before


def test_what_the_host_added_beside_the_entry_stays(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text('{"mcpServers": {}}')
    installed("claude-code", str(file), []).write()
    settings = json.loads(file.read_text())
    settings["mcpServers"] |= {"z": {"command": "z"}}
    file.write_text(json.dumps(settings, indent=2))
    again = installed("claude-code", str(file), ["--sandbox"])
    assert again.differs
    uninstalled("claude-code", None).write()
    assert json.loads(file.read_text()) == {"mcpServers": {"z": {"command": "z"}}}


@pytest.mark.parametrize(
    ("host", "before", "added"),
    [
        ("codex", '[mcp_servers.x]\ncommand = "x"\n', "enabled = false\n"),
        ("goose", "extensions:\n  x:\n    cmd: x\n", ""),
    ],
)
def test_keys_that_were_added_to_the_entry_do_not_go_to_another_one(host, before, added, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text(before)
    installed(host, str(file), []).write()
    text = file.read_text() + added
    file.write_text(text if added else text.replace("    timeout", "    envs: {A: b}\n    timeout"))
    now = file.read_text()
    for change in (lambda: uninstalled(host, None), lambda: installed(host, str(file), ["--sandbox"])):
        with pytest.raises(UsageError, match="was changed since"):
            change()
    assert file.read_text() == now


def test_a_memory_that_was_damaged_is_none(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    change = installed("cursor", str(file), [])
    for damaged in ("{}", "[]", '{"path": 5, "inserted": "x"}', "{"):
        change.memory.parent.mkdir(parents=True, exist_ok=True)
        change.memory.write_text(damaged)
        with pytest.raises(UsageError, match="was not installed"):
            uninstalled("cursor", None)


def test_paths_in_the_options_are_whole_and_http_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "settings"
    assert mcp.main(["install", "cursor", "--yes", "--file", str(file), "--", "--policy", "p.toml", "--runs=runs"]) == 0
    args = json.loads(file.read_text())["mcpServers"]["mai-agent"]["args"]
    assert args[-3:] == ["--policy", str(tmp_path / "p.toml"), f"--runs={tmp_path / 'runs'}"]
    with pytest.raises(UsageError, match="standard input"):
        mcp.main(["install", "cursor", "--yes", "--file", str(file), "--", "--http", "8765"])


def test_a_link_to_a_file_that_is_not_there_yet_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(file)
    installed("cursor", str(link), []).write()
    assert "mai-agent" in file.read_text()
    uninstalled("cursor", None).write()
    assert link.is_symlink()
    assert not file.exists()
