"""`mai-server diagnose` from end to end: a file, standard input, the server's own log, and what cannot be read."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from serverctl.cli import main

LOGS = Path(__file__).resolve().parents[1] / "data" / "logs"


def diagnosis(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> dict[str, Any]:
    assert main(["diagnose", *map(str, arguments), "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize(
    ("name", "group", "kind"),
    [
        ("kv-too-short", "KV_SHORT", "KV_SHORT"),
        ("unknown-reasoning-parser", "VALUE", "REASONING_PARSER"),
        ("removed-flag", "FLAG", "FLAG"),
        ("healthy-start", "NONE", "NONE"),
    ],
)
def test_a_file_is_explained_as_json(capsys: pytest.CaptureFixture[str], name: str, group: str, kind: str) -> None:
    document = diagnosis(capsys, LOGS / f"{name}.log")
    assert (document["class"], document["kind"], document["failed"]) == (group, kind, kind != "NONE")
    assert bool(document["remedy"]) is bool(document["evidence"]) is document["failed"]
    assert {"title", "cause", "numbers", "stage", "stage_words", "report", "exit_status"} <= document.keys()


def test_the_explanation_for_a_person_says_why_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(LOGS / "kv-too-short.log")]) == 0
    text = capsys.readouterr().out
    assert "[KV_SHORT, while setting up the KV cache]" in text
    assert "what to do" in text
    assert "32640" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Free memory on device cuda:0 (10.20/14.56 GiB) on startup is less than desired GPU memory utilization "
         "(0.9, 13.11 GiB).", "gpu_memory_utilization=0.67."),
        ("Free memory on device cuda:0 (9.10/22.03 GiB) on startup is less than desired GPU memory utilization "
         "(0.9, 19.83 GiB).", "gpu_memory_utilization=0.39."),
        ("Free memory on device cuda:0 (0.40/22.03 GiB) on startup is less than desired GPU memory utilization "
         "(0.9, 19.83 GiB).", "below free / total"),
        ("vllm: error: unrecognized arguments: --disable-cuda-graph", "--enforce-eager"),
        ("vllm: error: unrecognized arguments: --speculative-model tiny --swap-space=4", "--kv-offloading-size"),
        ("vllm: error: unrecognized arguments: --no-such-flag", "Leave it out"),
        ("vllm serve: error: argument --limit-mm-per-prompt: Value image=4,video=0 cannot be converted to <function "
         "loads at 0x7f>.", "--limit-mm-per-prompt '{\"NAME\":VALUE}'"),
        ("vllm serve: error: argument --hf-overrides/--hf-o: invalid loads value: 'a=1'", "JSON (--hf-overrides '"),
        ("python3: No module named vllm.benchmarks.benchmark", "vllm bench serve"),
        ("/opt/venv/bin/python3.12: No module named vllm.entrypoints.api_server", "vllm serve MODEL"),
        ("ModuleNotFoundError: No module named 'vllm._C'", "install --again"),
        ("python3: No module named vllm", "install --again"),
    ],
)  # fmt: skip
def test_the_remedy_is_of_the_evidence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, said: str
) -> None:
    log = tmp_path / "vllm.log"
    log.write_text(f"{line}\n", encoding="utf-8")
    assert said in diagnosis(capsys, log)["remedy"]


def test_standard_input_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    raw = (LOGS / "port-in-use.log").read_bytes() + b"\xff\xfe not utf-8\r\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
    assert diagnosis(capsys, "-")["kind"] == "PORT"


def test_an_exit_status_helps_where_the_log_says_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    silent = tmp_path / "vllm.log"
    silent.write_text("INFO 11-21 00:24:41 [api_utils.py:347] vLLM server version 0.33.0\n", encoding="utf-8")
    assert diagnosis(capsys, silent)["failed"] is False
    assert diagnosis(capsys, silent, "--exit-status", "-9")["kind"] == "KILLED"
    assert diagnosis(capsys, silent, "--exit-status", "1", status=1)["kind"] == "EXITED"


@pytest.mark.parametrize(
    "raw", [b"", b"\x00\x01\x02\xff" * 5000, b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, b"\r\n\r\n"]
)
def test_a_file_of_anything_is_answered(capsys: pytest.CaptureFixture[str], tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(raw)
    found = diagnosis(capsys, file)
    assert (found["failed"], found["of_vllm"]) == (False, False)
    assert main(["diagnose", str(file)]) == 2
    assert "Nothing in it was printed by vLLM" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["not-there.log", "."])
def test_what_cannot_be_read_is_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    assert main(["diagnose", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert "cannot be read" in said
    assert "Traceback" not in said


def test_without_a_log_of_our_own_it_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    assert main(["diagnose", "--name", "nobody"]) == 3
    assert "There is no log of a server named 'nobody'" in capsys.readouterr().err


def report_of_load(running: int, waiting: int, used: float) -> str:
    """A line of vLLM's own report while it serves."""
    return (
        "(APIServer pid=7) INFO 11-21 00:30:49 [loggers.py:335] Engine 000: Avg prompt throughput: 735.8 tokens/s, Avg "
        f"generation throughput: 0.7 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: "
        f"{used}%, Prefix cache hit rate: 0.0%, MM cache hit rate: 0.0%"
    )


@pytest.mark.parametrize(
    ("seen", "what", "remedy"),
    [
        (
            [(3, 0, 9.0), (34, 62, 99.0), (0, 0, 0.0)],
            "cache is full: 34 requests run, 62 wait",
            "--set max_num_seqs=34",
        ),
        ([(8, 20, 20.0)], "20 requests wait although the KV cache has room", "--set max_num_seqs=24"),
        ([(2, 0, 0.4), (8, 0, 1.6)], "hardly used: 1.6% by 8 requests", "about 300 such requests"),
        ([(8, 20, 85.0)], "cache is full: 8 requests run, 20 wait", "--set max_num_seqs=8"),
        ([(8, 20, 84.9)], "", ""),
        ([(2, 0, 29.9)], "hardly used: 30% by 2 requests", "about 4 such requests"),
        ([(2, 0, 30.0)], "", ""),
        ([(1, 0, 1.6)], "", ""),
        ([(0, 0, 0.0)], "", ""),
    ],
)
@pytest.mark.parametrize("start", ["", "INFO 11-21 00:24:41 [api_utils.py:347] vLLM server version 0.33.0\n"])
def test_slots_that_do_not_suit_the_cache_are_told_though_nothing_failed(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    seen: list[tuple[int, int, float]],
    what: str,
    remedy: str,
    start: str,
) -> None:
    file = tmp_path / "vllm.log"
    file.write_text(start + "\n".join(report_of_load(*each) for each in seen) + "\n", encoding="utf-8")
    document = diagnosis(capsys, file)
    assert (document["kind"], document["stage"]) == ("NONE", "serving")
    assert bool(document["slots"]) is bool(what)
    assert main(["diagnose", str(file)]) == 0
    text = capsys.readouterr().out
    assert what in text
    assert remedy in text
