"""What the application remembers from one day to the next."""

from pathlib import Path

from agent.tui.remembered import Memory


def test_instructions_are_remembered_the_newest_last_and_each_once(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    for text in ("open settings", "open files", "open settings"):
        memory.add_instruction(text)
    assert Memory(tmp_path).instructions == ["open files", "open settings"]
    assert (tmp_path / "instructions.jsonl").stat().st_mode & 0o777 == 0o600


def test_an_instruction_with_a_secret_is_remembered_until_the_end_only(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.add_instruction("log in with the password: hunter2xyz")
    memory.add_instruction("open files")
    assert memory.instructions == ["log in with the password: hunter2xyz", "open files"]
    assert Memory(tmp_path).instructions == ["open files"]
    assert "hunter2xyz" not in (tmp_path / "instructions.jsonl").read_text()
