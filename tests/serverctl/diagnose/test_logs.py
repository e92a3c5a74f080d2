"""Whole logs: recorded ones of a real vLLM, good starts, deaths while serving, several starts, broken files."""

import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from excerpts import EXCERPTS, OOM, STAGES, TRACE, log, until

from serverctl.diagnose.classify import classify_log
from serverctl.diagnose.failures import Kind, group_of
from serverctl.diagnose.stages import Stage
from serverctl.hardware.facts import GIB

LOGS = Path(__file__).resolve().parents[1] / "data" / "logs"
KV_SHORT = next(excerpt for excerpt in EXCERPTS if excerpt.kind == "KV_SHORT")
#: class, kind, stage, and what the evidence says, of every recorded failure.
RECORDED = {
    "bad-attention-backend": ("VALUE", "ATTENTION", Stage.CONFIGURED, "Unknown attention backend: 'XFORMERS'"),
    "kv-too-short": ("KV_SHORT", "KV_SHORT", Stage.KV_CACHE, "estimated maximum model length is 32640"),
    "max-model-len-too-long": ("VALUE", "MAX_LEN", Stage.CONFIGURED, "User-specified max_model_len (300000)"),
    "model-not-found": ("MODEL", "OFFLINE", Stage.IMPORTED, "LocalEntryNotFoundError"),
    "no-memory-for-cache": ("NO_KV", "NO_KV", Stage.LOADING, "less than requested memory for kv (-0.56/0.15 GiB)"),
    "port-in-use": ("PORT", "PORT", Stage.IMPORTED, "[Errno 98] Address already in use"),
    "removed-flag": ("FLAG", "FLAG", Stage.LAUNCHED, "unrecognized arguments: --disable-cuda-graph"),
    "unknown-quantization": ("VALUE", "QUANT_UNKNOWN", Stage.CONFIGURED, "Unknown quantization method: bitsandbytes"),
    "unknown-reasoning-parser": ("VALUE", "REASONING_PARSER", Stage.CONFIGURED, "'deepseek-r1' not found"),
    # Starts of a real vLLM 0.32 on the processor whose files were broken on purpose; their tracebacks are shortened.
    "weights-are-lfs-pointer": ("CORRUPT", "CORRUPT", Stage.CONFIGURED, "in parse_safetensors_file_metadata"),
    "shard-missing": ("CORRUPT", "CORRUPT", Stage.LOADING, "Weight files referenced in index but missing"),
    "shard-cut-off": ("CORRUPT", "CORRUPT", Stage.LOADING, "incomplete metadata, file not fully covered"),
    "weights-wider-than-config": ("CORRUPT", "CORRUPT", Stage.LOADING, "exceeds dimension size"),
    "weights-lack-a-layer": ("CORRUPT", "CORRUPT", Stage.LOADED, "not initialized from checkpoint"),
    "tokenizer-cut-off": ("CORRUPT", "CORRUPT", Stage.CONFIGURED, "JSONDecodeError"),
    "kv-of-one-mib": ("KV_SHORT", "KV_SHORT", Stage.KV_CACHE, "estimated maximum model length is 384"),
    "healthy-start-max-len-auto": ("ENGINE_DIED", "ENGINE_DIED", Stage.SERVING, "EngineDeadError"),  # killed at its end
}
GOOD = {
    "healthy-start": ("0.32.0", 131_072, 8192, 16.0, 1),
    "healthy-start-data-parallel-2": ("0.32.0", 32_768, 8192, 4.0, 2),
    "healthy-start-max-len-auto": ("0.32.0", 32_768, 32_640, 1.0, 1),
    "cpu-good-start": ("0.32.0", 524_288, 8192, 64.0, 1),
    "good-start-h200": ("0.25.1", 806_992, 131_072, 6.16, 1),  # on a card, with kernels compiled while it serves
}
DEATH = (
    "(APIServer pid=1) ERROR 06-26 23:10:17 [async_llm.py:420] AsyncLLM output_handler failed.",
    *(f"(APIServer pid=1) ERROR 06-26 23:10:17 [async_llm.py:420] {line}" for line in TRACE),
    "(APIServer pid=1) ERROR 06-26 23:10:17 [async_llm.py:420] vllm.v1.engine.exceptions.EngineDeadError: EngineCore"
    " encountered an issue. See stack trace (above) for the root cause.",
    '(APIServer pid=1) INFO:     172.18.0.1:38700 - "POST /v1/chat/completions HTTP/1.0" 500 Internal Server Error',
    "(APIServer pid=1) INFO:     Shutting down",
)
REQUESTS = (
    '(APIServer pid=1) INFO:     127.0.0.1:45736 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
    "(APIServer pid=1) ERROR 11-21 00:25:58 [serving.py:274] Error with model error=ErrorInfo(message='no', code=404)",
    "(APIServer pid=1) ERROR 11-21 00:25:59 [serving_chat.py:200] Error in preprocessing prompt inputs",
    *(f"(APIServer pid=1) ERROR 11-21 00:25:59 [serving_chat.py:200] {line}" for line in TRACE),
    "(APIServer pid=1) ERROR 11-21 00:25:59 [serving_chat.py:200] aiohttp.client_exceptions.ClientConnectorDNSError:"
    " Cannot connect to host x:443 [Temporary failure in name resolution]",
    "(APIServer pid=1) ERROR 11-21 00:26:00 [serving_chat.py:200] ValueError: The decoder prompt (length 9000) is"
    " longer than the maximum model length of 8192.",
)


def core(*lines: str) -> list[str]:
    return [f"(EngineCore_DP0 pid=7) ERROR 06-26 23:10:16 [core.py:588] {line}" for line in (*TRACE, *lines)]


def recorded(name: str) -> list[str]:
    return (LOGS / f"{name}.log").read_text(encoding="utf-8").split("\n")


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_failure_is_explained(name: str) -> None:
    found = classify_log(recorded(name))
    group, kind, stage, says = RECORDED[name]
    assert (group_of(found.kind), found.kind.name, found.stage) == (group, kind, stage)
    assert says in found.evidence
    assert found.words.remedy


def test_an_exception_whose_words_begin_on_the_next_line_is_told_with_them() -> None:
    """As Python writes it where a `vllm` script starts processes without asking for its own name first."""
    told = [
        "(APIServer pid=7) Traceback (most recent call last):",
        "(APIServer pid=7) RuntimeError: ",
        "(APIServer pid=7)         An attempt has been made to start a new process before the",
        "(APIServer pid=7)         current process has finished its bootstrapping phase.",
    ]
    found = classify_log([*until("configured"), *told], exit_status=1)
    assert found.evidence.startswith("RuntimeError: An attempt has been made to start a new process")


def test_a_small_cache_is_told_in_tokens_and_never_as_nothing() -> None:
    found = classify_log(recorded("kv-of-one-mib"))
    assert found.numbers == {"max_model_len": 8192, "needed_gib": 0.02, "fits": 384}
    assert "8,192 tokens" in found.words.cause
    assert "room for 384" in found.words.cause
    assert "max_model_len=384" in found.words.remedy


@pytest.mark.parametrize("name", GOOD)
def test_a_good_start_gives_its_numbers(name: str) -> None:
    found = classify_log(recorded(name))
    report = found.report
    assert report.stage is Stage.SERVING
    said = (report.version, report.kv_tokens, report.max_model_len, report.concurrency, report.engines)
    assert said == GOOD[name]
    if name not in RECORDED:
        assert (found.kind, found.evidence) == (Kind.NONE, "")


@pytest.mark.parametrize("stage", STAGES)
def test_a_log_that_breaks_off_tells_how_far_it_came_and_no_failure(stage: str) -> None:
    found = classify_log(until(stage))
    assert found.kind is Kind.NONE
    assert found.stage.name.lower() == stage


def test_a_recorded_good_start_is_none_wherever_it_is_cut_off() -> None:
    lines = recorded("healthy-start")
    before = Stage.LAUNCHED
    for count in range(0, len(lines), 7):
        found = classify_log(lines[:count])
        assert found.kind is Kind.NONE, found.evidence
        assert found.stage >= before
        before = found.stage


def test_the_numbers_of_a_start_on_a_card_are_read() -> None:
    lines = [
        *until("profiling"),
        "node:1:1 [0] NCCL INFO NCCL version 2.27.5+cuda12.9",
        "INFO 11-21 00:25:29 [cuda.py:480] Using FLASH_ATTN attention backend out of potential backends: ['X']",
        "INFO 11-21 00:25:30 [gpu_worker.py:1044] Free memory on device (22.2/23.6 GiB) on startup. Desired GPU memory"
        " utilization is (0.92, 21.7 GiB). Actual usage is 17.2 GiB for consumed memory, 1.31 GiB for peak activation,"
        " and 0.4 GiB for CUDAGraph memory.",
        "INFO 11-21 00:25:30 [gpu_worker.py:300] Available KV cache memory: 3.61 GiB",
        "INFO 11-21 00:25:30 [kv_cache_utils.py:864] GPU KV cache size: 26,288 tokens",
        "INFO 11-21 00:25:30 [kv_cache_utils.py:868] Maximum concurrency for 8,192 tokens per request: 3.21x",
        "INFO 11-21 00:25:39 [gpu_model_runner.py:2] Graph capturing finished in 9 secs, took 0.42 GiB",
        *STAGES["serving"],
    ]
    report = classify_log(lines).report
    assert (report.weights, report.kv) == (round(16.78 * GIB), round(3.61 * GIB))
    assert (report.kv_tokens, report.max_model_len, report.concurrency) == (26_288, 8192, 3.21)
    assert (report.free_at_start, report.consumed) == (round(22.2 * GIB), round(17.2 * GIB))
    assert (report.activations, report.graphs) == (round(1.31 * GIB), round(0.42 * GIB))
    assert (report.attention, report.version) == ("FLASH_ATTN", "0.33.0"), "NCCL's version is not vLLM's"


def test_a_ready_line_under_the_name_of_its_process_counts() -> None:
    found = classify_log([*until("listening"), "(APIServer pid=1) INFO:     Application startup complete."])
    assert found.stage is Stage.SERVING


def test_scary_lines_of_a_good_start_are_no_failure() -> None:
    found = classify_log([
        "ERROR 05-26 07:50:26 [fa_utils.py:57] Cannot use FA version 2 is not supported due to FA2 is only supported"
        " on devices with compute capability >= 8",
        *until("loading"),
        "WARNING 11-21 00:25:01 [x.py:1] Failed to import vllm._C: ImportError('libcuda.so.1: cannot open')",
        *core("ImportError: No module named 'flashinfer'"),
        "host:12:12 [0] NCCL WARN Could not find: ibv_get_device_list",
        "Runtime error during autotuning: No valid triton configs. OutOfMemoryError: out of resource: triton_mm"
        " Required: 147456 Hardware limit:101376. Ignoring this choice.",
        *until("serving")[1:],
        *REQUESTS,
    ])  # fmt: skip
    assert found.kind is Kind.NONE, found.evidence


def test_an_error_that_a_start_goes_on_after_is_no_failure() -> None:
    for error in (
        "RuntimeError: an optional thing of no name is missing",
        "ImportError: No module named 'flashinfer'",
        "host:12:12 [0] NCCL WARN Could not find: ibv_get_device_list",
    ):
        lines = [*until("loading"), *core(error), *STAGES["loaded"]]
        assert classify_log(lines).kind is Kind.NONE
    lines = [*until("loading"), *core("RuntimeError: an optional thing of no name is missing"), *STAGES["loaded"]]
    assert classify_log([*until("loaded"), *lines[-6:-1]]).kind is Kind.EXITED


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ((OOM,), "RUNTIME_OOM"),
        (("RuntimeError: CUDA error: an illegal memory access was encountered",), "CUDA"),
        (("torch.AcceleratorError: CUDA error: unspecified launch failure",), "CUDA"),
        (("RuntimeError: NCCL error: remote process exited or there was a network error",), "NCCL"),
        (("TimeoutError: RPC call to execute_model timed out.",), "STALLED"),
        (("IndexError: something new",), "ENGINE_DIED"),
    ],
)
@pytest.mark.parametrize("noise", [(), REQUESTS], ids=["quiet", "after failed requests"])
def test_a_death_while_serving_is_explained_by_what_stands_before_it(
    lines: tuple[str, ...], kind: str, noise: tuple[str, ...]
) -> None:
    found = classify_log([*until("serving"), *noise, *core("EngineCore encountered a fatal error.", *lines), *DEATH])
    assert (found.kind.name, found.serving) == (kind, True)
    assert found.evidence[:40] in lines[0] or kind == "ENGINE_DIED"


def test_an_engine_that_vanishes_while_serving_died() -> None:
    found = classify_log([*until("serving"), *DEATH])
    assert (found.kind, found.serving) == (Kind.ENGINE_DIED, True)
    assert found.evidence.startswith("vllm.v1.engine.exceptions.EngineDeadError")
    early = core("ModuleNotFoundError: No module named 'flash_attn'", "RuntimeError: CUDA error: early and harmless")
    late = [*until("engine"), *early, *until("serving")[3:], *DEATH]
    assert classify_log(late).kind is Kind.ENGINE_DIED, "an error before the server was ready does not explain it"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(-9, "KILLED"), (137, "KILLED"), (-15, "KILLED"), (-11, "CRASHED"), (-4, "CRASHED"), (-7, "SHM")],
)
def test_a_signal_is_told_from_the_exit_status(status: int, kind: str) -> None:
    found = classify_log(until("loading"), status)
    assert found.kind.name == kind
    assert str(found.numbers["signal"]).startswith("SIG")


PORT = next(excerpt for excerpt in EXCERPTS if excerpt.kind == "PORT")
#: Two starts of ours in one log.
OURS = (
    "2026-11-21T00:24:41.123Z mai-server: start 1: vllm serve m --max-model-len 262144",
    *log(KV_SHORT),
    "2026-11-21T00:25:41.123Z mai-server: No available memory for the cache blocks: shrinks.",
    "2026-11-21T00:25:42.123Z mai-server: start 2: vllm serve m --max-model-len 33792",
)
GOOD_LOG = tuple(until("serving"))
ASKED = "(APIServer pid=1) INFO 11-21 00:26:37 [launcher.py:254] [shutdown] API server: shutdown triggered"
IN_JSON = '{"log":"(APIServer pid=1) OSError: [Errno 98] Address already in use\\n","stream":"stderr","time":"t"}'
NONSENSE = ("", "\n", "\r\n", "\x00\x01\x02", "{", '{"a":', "[" * 2000, '{"message": null}')


@pytest.mark.parametrize(
    ("lines", "status", "kind", "stage"),
    [
        # Of several starts in one file the last one counts.
        (OURS[:-1], None, "KV_SHORT", Stage.PROFILING),
        (OURS, None, "NONE", Stage.LAUNCHED),
        ((*OURS, *GOOD_LOG), None, "NONE", Stage.SERVING),
        ((*OURS, *log(PORT)), None, "PORT", Stage.IMPORTED),
        # A container that is restarted goes on in the same log.
        ((*log(KV_SHORT), *GOOD_LOG), None, "NONE", Stage.SERVING),
        ((*GOOD_LOG, *DEATH, *GOOD_LOG), None, "NONE", Stage.SERVING),
        ((*GOOD_LOG, *GOOD_LOG, *log(KV_SHORT)), None, "KV_SHORT", Stage.PROFILING),
        # The noise of an end that was asked for is no failure, an exit without a cause is one whatever its status.
        ((*GOOD_LOG, ASKED, *DEATH), None, "NONE", Stage.SERVING),
        ((*GOOD_LOG, ASKED, *DEATH), 0, "EXITED", Stage.SERVING),
        (until("loading"), 0, "EXITED", Stage.LOADING),
        (until("loading"), 1, "EXITED", Stage.LOADING),
        ((), 0, "EXITED", Stage.LAUNCHED),
        (log(KV_SHORT), -9, "KV_SHORT", Stage.PROFILING),  # a known cause is worth more than the status
        # Nothing, nonsense, and Docker's own JSON.
        ((), None, "NONE", Stage.LAUNCHED),
        (NONSENSE, None, "NONE", Stage.LAUNCHED),
        (("{" + '"a":{' * 30_000,), None, "NONE", Stage.LAUNCHED),
        ((IN_JSON,), None, "PORT", Stage.LAUNCHED),
    ],
)  # fmt: skip
def test_what_a_whole_log_says(lines: Sequence[str], status: int | None, kind: str, stage: Stage) -> None:
    found = classify_log(lines, status)
    assert (found.kind.name, found.stage) == (kind, stage)


def test_a_restart_begins_to_count_engines_anew_and_an_exit_is_shown_by_the_last_line() -> None:
    assert classify_log([*GOOD_LOG, *GOOD_LOG, *log(KV_SHORT)]).report.engines == 0
    assert "Starting to load model" in classify_log(until("loading"), 0).evidence


def test_a_traceback_within_one_line_of_json_is_read() -> None:
    text = "\\n".join((*TRACE, f"RuntimeError: x{'y' * 40_000}", OOM)).replace('"', "'")
    line = f'{{"levelname": "ERROR", "message": "EngineCore failed to start.", "exc_info": "{text}"}}'
    assert classify_log([*until("loading"), line]).kind is Kind.LOAD_OOM


def test_a_huge_log_takes_little_memory() -> None:
    def huge() -> Iterator[str]:
        yield from until("serving")
        for number in range(20_000):
            yield f"(EngineCore pid=7) ERROR 06-26 23:10:16 [core.py:588] request {number} {'x' * 200}"
        yield "y" * 20_000_000
        yield from core(OOM)
        yield from DEATH

    tracemalloc.start()
    try:
        found = classify_log(huge())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.kind is Kind.RUNTIME_OOM
    assert peak < 80_000_000
