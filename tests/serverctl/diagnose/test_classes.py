"""Every class of failure is named from its log, whatever stands before, after and around what says so."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from excerpts import EXCERPTS, Excerpt, log
from hypothesis import assume, given
from hypothesis import settings as rounds
from hypothesis import strategies as st

from serverctl.diagnose.classify import Failure, classify_log
from serverctl.diagnose.failures import WORDS, Kind

WITHOUT_EXCERPT = {
    "RUNTIME_OOM",
    "NO_ANSWER",
    "ENGINE_DIED",
    "NONE",
    "HUNG",
    "MISREADS",
}  # while serving, or from outside the log
STAMP = "2025-08-21T15:04:45.450656877Z "

#: What collectors of logs put around a line.
DRESSES: dict[str, Callable[[str], str]] = {
    "docker": lambda line: STAMP + line,
    "kubernetes": lambda line: f"2025-08-21T15:04:45.450656877+00:00 stdout F {line}",
    "compose": lambda line: f"vllm-1  | {line}",
    "compose with times": lambda line: f"vllm-1  | {STAMP}{line}",
    "journal": lambda line: f"Aug 19 18:34:27 gpu-box vllm[8727]: {line}",
    "colours": lambda line: f"\x1b[1m{line}\x1b[0m",
    "our own": lambda line: f"2026-11-21T00:24:41.123Z {line}",
    "rank": lambda line: f"[rank0]: {line}",
    "ray": lambda line: f"(RayWorkerWrapper pid=1861983, ip=192.168.10.60) {line}",
    "two names": lambda line: f"(Worker pid=13) (Worker_TP1 pid=13) {line}",
    "old worker": lambda line: f"(VllmWorker rank=2 pid=267) {line}",
    "windows": lambda line: f"{line}\r\n",
}  # fmt: skip


def named(excerpt: Excerpt, lines: list[str]) -> Failure:
    found = classify_log(lines)
    assert found.kind.name == excerpt.kind, f"{found.kind.name}: {found.evidence}"
    return found


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda excerpt: excerpt.name)
@pytest.mark.parametrize("version", ["0.33", "bare"])
def test_a_failure_is_named_with_the_line_that_says_so(excerpt: Excerpt, version: str) -> None:
    found = named(excerpt, log(excerpt, version))
    said = " ".join(" ".join(excerpt.lines).split())
    assert found.evidence
    assert found.evidence[:60] in said or "exit code: -9" in found.evidence
    assert "Engine core initialization failed" not in found.evidence
    assert found.words.cause
    assert found.words.remedy


def test_every_class_has_words_and_all_but_those_from_outside_have_an_excerpt() -> None:
    assert set(WORDS) == set(Kind)
    assert {kind.name for kind in Kind} - {excerpt.kind for excerpt in EXCERPTS} - WITHOUT_EXCERPT == set()
    for kind, words in WORDS.items():
        assert words.title
        assert words.cause
        assert words.remedy or kind is Kind.NONE


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda excerpt: excerpt.name)
def test_several_workers_that_fail_at_once_are_one_failure(excerpt: Excerpt) -> None:
    whole = log(excerpt, "bare")
    start, failing = whole[: -len(excerpt.lines)], excerpt.lines
    mixed = [f"(Worker_TP{rank} pid={40 + rank}) ERROR 11-21 00:25:33 [multiproc_executor.py:1057] {line}"
             for line in failing for rank in range(4)]  # fmt: skip
    tail = [
        "(EngineCore_DP0 pid=39) ERROR 11-21 00:25:34 [core.py:1584] EngineCore failed to start.",
        "(EngineCore_DP0 pid=39) ERROR 11-21 00:25:34 [core.py:1584] Exception: WorkerProc initialization failed due to"
        " an exception in a background process. See stack trace for root cause.",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s):"
        " {'EngineCore_DP0': 1}",
    ]
    if excerpt.kind not in ("KILLED", "CRASHED"):
        named(excerpt, [*start, *mixed, *tail])


@pytest.mark.parametrize("excerpt", EXCERPTS[::4], ids=lambda excerpt: excerpt.name)
def test_a_cause_long_before_the_end_is_found(excerpt: Excerpt) -> None:
    noise = [f"INFO 11-21 00:25:33 [loggers.py:1] line {number}" for number in range(9000)]
    bare = [f"some library says something, number {number}" for number in range(9000)]
    named(
        excerpt,
        [*log(excerpt), *noise, *bare, "RuntimeError: Engine core initialization failed. See root cause above."],
    )


@rounds(max_examples=60)
@given(
    st.sampled_from(EXCERPTS),
    st.lists(st.text(max_size=60).filter(lambda text: not any(c in text for c in "\n\r")), max_size=12),
    st.randoms(use_true_random=False),
)
def test_garbage_around_a_failure_does_not_change_its_class(
    excerpt: Excerpt, garbage: list[str], chance: random.Random
) -> None:
    lines = log(excerpt)
    first = next(place for place, line in enumerate(lines) if excerpt.lines[0] in line)
    for text in garbage:
        assume(classify_log([f"<<{text}>>"]).kind is Kind.NONE)  # what names a failure by itself is no garbage
        # Between, but not within: what belongs together stays together.
        places = [*range(first), *range(first + len(excerpt.lines), len(lines) + 1)]
        place = chance.choice(places)
        lines.insert(place, f"<<{text}>>")
        first += place <= first
    named(excerpt, lines)


@rounds(max_examples=100)
@given(st.lists(st.binary(max_size=80), max_size=20))
def test_any_bytes_are_answered(chunks: list[bytes]) -> None:
    found = classify_log([chunk.decode("utf-8", "replace") for chunk in chunks])
    assert found.kind in Kind


def test_numbers_of_the_evidence_are_read() -> None:
    by_kind: dict[str, dict[str, Any]] = {}
    for excerpt in EXCERPTS:
        by_kind.setdefault(excerpt.kind, classify_log(log(excerpt)).numbers)
    assert by_kind["FREE_MEM"] == {"free_gib": 7.41, "total_gib": 14.56, "utilization": 0.92, "wanted_gib": 13.4}
    assert by_kind["KV_SHORT"] == {"max_model_len": 262144, "needed_gib": 28.0, "available_gib": 3.61, "fits": 33792}
    assert by_kind["LOAD_OOM"] == {"tried_gib": 0.219, "free_gib": 0.183}
    assert by_kind["QUANT_CC"] == {"needed": 100, "has": 89}
    assert by_kind["MAX_LEN"] == {"max_model_len": 300000, "most": 262144}
    assert by_kind["TENSOR_PARALLEL"] == {"heads": 16, "cards": 3}
    assert by_kind["TOO_FEW_GPUS"] == {"wanted": 4, "has": 2}
    assert by_kind["FLAG"] == {"flags": ["--swap-space"]}, "a flag's value is no flag"
    assert by_kind["FLAG_VALUE"] == {"flag": "--dtype"}
    assert by_kind["TRITON_SMEM"] == {"needed_bytes": 98304, "has_bytes": 65536}
    refused = next(excerpt for excerpt in EXCERPTS if "gpu_memory_utilization" in excerpt.lines)
    told = "CacheConfig gpu_memory_utilization Input should be less than or equal to 1"
    assert told in named(refused, log(refused)).evidence
    assert by_kind["IMPORT"] == {}
    assert by_kind["ARCH"] == {"architecture": "Qwen9VLForConditionalGeneration"}


@pytest.mark.parametrize("dress", DRESSES)
def test_what_a_collector_puts_before_the_lines_does_not_matter(dress: str) -> None:
    for excerpt in EXCERPTS:
        plain = classify_log(log(excerpt, "0.33"))
        dressed = classify_log([DRESSES[dress](line) for line in log(excerpt, "0.33")])
        assert (dressed.kind, dressed.stage) == (plain.kind, plain.stage), f"{excerpt.name}: {dressed.evidence}"
