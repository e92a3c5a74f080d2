"""Sentences as many people say them, and the goals that they come to: `data/sentences.toml`."""

import dataclasses
import tomllib
from pathlib import Path

import pytest

from agent.literal.language.grammar import read_instruction
from agent.literal.language.sentences import NotUnderstoodError

_TABLES = tomllib.loads((Path(__file__).parent / "data" / "sentences.toml").read_text(encoding="utf-8"))


def _told(value):
    """Return a goal as text: its first field, and the others that differ from their defaults."""
    if not dataclasses.is_dataclass(value):
        return repr(value)
    first, *others = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
    named = [f"{field.name}={_told(held)}" for field, held in others if held != field.default]
    begins = [_told(first[1])] if first[1] != first[0].default else []
    return f"{type(value).__name__}({', '.join([*begins, *named])})"


@pytest.mark.parametrize(("sentence", "goals"), _TABLES["understood"].items())
def test_a_sentence_becomes_these_goals(sentence, goals):
    assert "; ".join(map(_told, read_instruction(sentence))) == goals


@pytest.mark.parametrize("sentence", _TABLES["refused"])
def test_what_would_be_done_wrong_is_refused_before_anything_is_done(sentence):
    with pytest.raises(NotUnderstoodError):
        read_instruction(sentence)
