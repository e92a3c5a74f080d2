"""The person's own vLLM flags: settings of ours are planned with, others passed on, refused ones explained."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning import NEW, OLD, command, plan

from foundation.configs import load_config
from foundation.errors import MaiError, UsageError
from serverctl.hardware.catalogue import imagine
from serverctl.plan.goal import Goal
from serverctl.plan.settings import KNOBS, parse_assignments
from serverctl.plan.user_flags import absorbed, check_extra
from serverctl.planning import resolve
from serverctl.vllm.capabilities import snapshot


def refusal(*extra: str, vllm: str = NEW) -> UsageError:
    with pytest.raises(UsageError) as caught:
        check_extra(extra, snapshot(vllm))
    return caught.value


class TestPassedOn:
    @pytest.mark.parametrize(
        "extra",
        [
            ("--seed", "0"),
            ("--seed=-1",),
            ("--seed", "-1"),
            ("--no-enable-chunked-prefill",),
            ("--compilation-config", '{"mode":3}'),
            ("-cc.cudagraph_mode=none",),
            ("-O3",),
            ("-O", "2"),
            ("--override-generation-config.temperature", "0.5"),
            ("--limit-mm-per-prompt.audio", "0"),
            ("--lora-modules", "a=b", "c=d", "e=f"),
            ("--trust-remote-code",),
            ("--attention-backend", "flash_attn"),
            ("--distributed-executor-backend", "mine.module.Executor"),
            ("--max-model-len", "32k"),
            ("--max-model-len=auto",),
            ("--kv-cache-memory-bytes", "4G"),
            ("--optimization-level", "2"),
            ("--kv-cache-dtype", "mine", "--reasoning-parser-plugin", "mine.py"),
        ],
    )
    def test_flags_and_values_that_this_vllm_has_come_through_as_they_are(self, extra: tuple[str, ...]) -> None:
        assert check_extra(extra, snapshot(NEW)) == extra
        if absorbed(Goal(extra=extra)).extra == extra:  # no setting of ours is among them
            made = plan("h100", "MAI-UI-2B", extra=extra)
            assert tuple(command(made).flags[-len(extra) :]) == extra

    def test_a_value_of_a_plugin_is_passed_on(self) -> None:
        own = {"reasoning_parser": "mine"}
        made = plan("l40s", overrides=own, extra=("--reasoning-parser-plugin", "mine.py"))
        assert "mine" in command(made).flags

    def test_theirs_takes_the_place_of_ours_and_remote_code_is_warned_of(self) -> None:
        made = plan("h100", "MAI-UI-2B", extra=("--generation-config", "auto", "--trust-remote-code"))
        found = command(made).flags
        assert found.count("--generation-config") == 1
        assert found[found.index("--generation-config") + 1] == "auto"
        assert any("runs code from the model's repository" in text for text in made.warnings)
        assert not any("remote" in text for text in plan("h100", "MAI-UI-2B").warnings)

    def test_dotted_entries_do_not_throw_ours_away(self) -> None:
        """vLLM merges dotted flags among themselves only, and they replace a whole JSON value given before."""
        extra = ("--mm-processor-kwargs.do_rescale", "true")
        made = plan("h100", "MAI-UI-2B", extra=extra)
        words = command(made).flags
        assert "--mm-processor-kwargs" not in words
        assert words[words.index("--mm-processor-kwargs.size.longest_edge") + 1] == str(made.settings.longest_edge)
        assert words[words.index("--mm-processor-kwargs.size.shortest_edge") + 1] == "65536"
        assert tuple(words[-2:]) == extra

    @pytest.mark.parametrize(
        ("given", "edge", "passed"),
        [
            ('{"do_rescale":true}', None, {"do_rescale": True}),
            ('{"max_pixels":1003520,"fps":1}', 1_003_520, {"fps": 1}),
            ('{"size":{"longest_edge":1003520,"shortest_edge":3136}}', 1_003_520, {"size": {"shortest_edge": 3136}}),
        ],
    )
    @pytest.mark.parametrize("form", ["two words", "one word"])
    def test_a_json_value_of_theirs_keeps_the_entries_of_ours_that_it_does_not_name(
        self, given: str, edge: int | None, passed: dict[str, Any], form: str
    ) -> None:
        flag = "--mm-processor-kwargs"
        made = plan("h100", "MAI-UI-2B", extra=(flag, given) if form == "two words" else (f"{flag}={given}",))
        edge = edge or plan("h100", "MAI-UI-2B").settings.longest_edge
        words = " ".join(command(made).flags).replace(f"{flag}=", f"{flag} ").split()
        assert words.count(flag) == 1
        assert made.settings.longest_edge == edge
        value = json.loads(words[words.index(flag) + 1])
        size = {"shortest_edge": 65_536, "longest_edge": edge, **passed.get("size", {})}
        assert value == {**passed, "size": size}


class TestRefused:
    @pytest.mark.parametrize(
        ("flag", "instead"),
        [
            ("--host", "loopback"),
            ("--port", "--port of `mai-server up`"),
            ("--api-key", "A key is made"),
            ("--served-model-name", "--name-as"),
            ("--model", "--model of mai-server"),
            ("--uds", "port"),
            ("--ssl-keyfile", "reverse proxy"),
            ("--ssl-certfile", "reverse proxy"),
            ("--headless", "multi-node"),
        ],
    )
    @pytest.mark.parametrize("form", ["{}", "{}=value", "{}"])
    def test_what_is_the_controllers_is_explained(self, flag: str, instead: str, form: str) -> None:
        found = refusal(form.format(flag), *(() if "=" in form else ("value",)))
        assert f"{flag} cannot be passed on" in found.what
        assert instead in found.remedy

    @pytest.mark.parametrize(
        ("flag", "near"),
        [
            ("--max-model-length", "--max-model-len"),
            ("--enable-prefix-cache", "--enable-prefix-caching"),
            ("--gpu-memory-utilisation", "--gpu-memory-utilization"),
        ],
    )
    def test_a_misspelt_flag_is_answered_with_near_ones(self, flag: str, near: str) -> None:
        found = refusal(flag, "1")
        assert flag in found.what
        assert near in found.remedy

    @pytest.mark.parametrize(
        ("flag", "vllm", "said"),
        [
            ("--disable-cuda-graph", NEW, "--enforce-eager"),
            ("--swap-space", NEW, "--kv-offloading-size"),
            ("--num-speculative-tokens", NEW, "--spec-tokens"),
            ("--spec-method", OLD, ""),
            ("--zzzzzzzzzz", NEW, "--help"),
        ],
    )
    def test_a_flag_that_this_version_lacks_is_refused_with_what_is_there(
        self, flag: str, vllm: str, said: str
    ) -> None:
        found = refusal(flag, "1", vllm=vllm)
        assert found.what == f"vLLM {vllm} has no flag {flag}."
        assert said in found.remedy
        assert ("Did you mean" in found.remedy) == (not said)

    def test_what_is_said_to_be_gone_is_gone_and_its_successor_is_there(self) -> None:
        data, newest = load_config("vllm/gone.toml"), snapshot(NEW)
        for flag, now in data["flags"].items():
            assert not newest.has(flag), flag
            assert all(newest.has(word.split(".")[0]) for word in re.findall(r"--[a-z][a-z0-9.-]+", now.split("`")[0])
                       if word not in ("--preset", flag)), now  # fmt: skip
        for name in data["variables"]:
            assert not newest.reads(name), name

    def test_a_variable_that_vllm_no_longer_reads_is_answered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VLLM_ATTENTION_BACKEND", "TORCH_SDPA")
        monkeypatch.setenv("VLLM_FP32_SOFTMAX_VISION", "1")
        made = resolve("MAI-UI-2B", hardware=imagine("t4")).plan()
        told = [text for text in made.warnings if "is set, and vLLM 0.33.0 does not read it" in text]
        assert len(told) == 2
        assert "--set attention_backend=NAME" in told[0]
        gaudi = resolve("MAI-UI-2B", hardware=imagine("gaudi3")).plan()
        assert not any("VLLM_FP32_SOFTMAX_VISION" in text for text in gaudi.warnings)

    @pytest.mark.parametrize(
        ("level", "preset", "told"),
        [("WARNING", None, True), ("error", None, True), ("DEBUG", None, False), ("WARNING", "debug", False)],
    )
    def test_a_level_that_hides_the_stages_is_answered(
        self, monkeypatch: pytest.MonkeyPatch, level: str, preset: str | None, told: bool
    ) -> None:
        monkeypatch.setenv("VLLM_LOGGING_LEVEL", level)
        warnings = resolve("MAI-UI-2B", preset, hardware=imagine("l4")).plan().warnings
        assert any("VLLM_LOGGING_LEVEL" in text for text in warnings) is told

    @pytest.mark.parametrize(
        ("text", "said"),
        [("disable_cuda_graph=true", "--enforce-eager"), ("swap-space=4", "--kv-offloading-size"),
         ("max_num_seq=4", "Did you mean max_num_seqs"), ("zzz=1", "Settings are: dtype")],
    )  # fmt: skip
    def test_a_setting_that_does_not_exist_is_answered_with_what_is_meant(self, text: str, said: str) -> None:
        with pytest.raises(UsageError) as refused:
            parse_assignments([text])
        assert said in refused.value.remedy

    @pytest.mark.parametrize(
        "extra", [("stray",), ("--enforce-eager", "true"), ("--seed", "0", "1"), ("--seed=0", "1")]
    )
    def test_a_word_that_belongs_to_no_flag_is_refused(self, extra: tuple[str, ...]) -> None:
        assert "belongs to no flag" in refusal(*extra).what


class TestSettings:
    @pytest.mark.parametrize(
        ("extra", "settings"),
        [
            (("--max-model-len", "16384"), {"max_model_len": 16_384}),
            (("--max-model-len=16384",), {"max_model_len": 16_384}),
            (("--max-model-len", "auto"), {"max_model_len": "auto"}),
            (("--max-model-len", "-1"), {"max_model_len": "auto"}),
            (("--gpu-memory-utilization", "0.8"), {"gpu_memory_utilization": 0.8}),
            (("-q", "fp8_per_tensor"), {"quantization": "fp8_per_tensor"}),
            (("--enforce-eager",), {"enforce_eager": True}),
            (("--no-enforce-eager",), {"enforce_eager": False}),
            (("--limit-mm-per-prompt.image", "2"), {"images": 2}),
            (("--limit-mm-per-prompt", '{"image": 2, "video": 0}'), {"images": 2}),
            (("--mm-processor-kwargs", '{"max_pixels": 2097152}'), {"longest_edge": 2_097_152}),
            (("--mm-processor-kwargs", '{"size": {"longest_edge": 2097152}}'), {"longest_edge": 2_097_152}),
            (("--seed", "0", "--max-num-seqs", "3", "--seed", "1"), {"max_num_seqs": 3}),
            (("--gpu_memory_utilization", "0.8"), {"gpu_memory_utilization": 0.8}),
            (("--limit_mm_per_prompt.image=2", "--max_logprobs", "5"), {"images": 2}),
            (("--block-size", "32"), {"block_size": 32}),
        ],
    )
    def test_flags_that_are_settings_are_planned_with(self, extra: tuple[str, ...], settings: dict[str, Any]) -> None:
        made = plan("a100-80", "MAI-UI-8B", extra=extra)
        for name, value in settings.items():
            assert made.settings.get(name) == value
            assert made.reasons[name].automatic is False
        flag = KNOBS[next(iter(settings))].flag
        assert [word.split("=")[0].split(".")[0] for word in command(made).flags].count(flag) <= 1

    @pytest.mark.parametrize(
        "extra",
        [
            ("--max-model-len",),
            ("--max-num-seqs", "None"),
            ("--enforce-eager=1",),
            ("--limit-mm-per-prompt", "{"),
            ("--limit-mm-per-prompt", '{"image": {"count": 2, "width": 640, "height": 480}}'),
            ("--mm-processor-kwargs", '{"fps": 1}'),
        ],
    )
    def test_what_is_no_value_of_a_setting_is_left_as_it_is(self, extra: tuple[str, ...]) -> None:
        assert absorbed(Goal(extra=extra)).extra == extra

    @pytest.mark.parametrize(
        ("flag", "value", "setting"),
        [
            ("--gpu-memory-utilization", "1", "gpu_memory_utilization"),
            ("--gpu-memory-utilization", "1.5", "gpu_memory_utilization"),
            ("--max-num-seqs", "0", "max_num_seqs"),
            ("--max-model-len", "32.5K", "max_model_len"),
            ("--kv-cache-memory-bytes", "4Gi", "kv_cache_memory_bytes"),
            ("--block-size", "8", "block_size"),
            ("--block-size", "24", "block_size"),
        ],
    )
    def test_a_flag_is_checked_as_its_setting_is(self, flag: str, value: str, setting: str) -> None:
        with pytest.raises(UsageError) as by_flag:
            absorbed(Goal(extra=(flag, value)))
        with pytest.raises(UsageError) as by_setting:
            parse_assignments([f"{setting}={value}"])
        assert by_flag.value.what.partition(": ")[2] == by_setting.value.what.partition(": ")[2]
        assert by_flag.value.remedy == by_setting.value.remedy

    @pytest.mark.parametrize(
        ("flag", "value"),
        [("--mm-processor-kwargs", '{"max_pixels": "many", "fps": 1}'), ("--limit-mm-per-prompt", '{"image": 100}')],
    )
    def test_settings_in_json_are_checked_too(self, flag: str, value: str) -> None:
        with pytest.raises(UsageError, match="cannot be"):
            absorbed(Goal(extra=(flag, value)))

    def test_a_flag_wins_over_a_setting_as_it_does_in_vllm(self) -> None:
        goal = absorbed(Goal(overrides={"max_num_seqs": 2}, extra=("--max-num-seqs", "5")))
        assert (goal.overrides["max_num_seqs"], goal.extra) == (5, ())

    @given(words=st.lists(st.one_of(st.text(max_size=6), st.sampled_from([*KNOBS, "-tp", "=", "1", "{}"])), max_size=6))
    def test_any_words_are_taken_or_kept_and_none_is_lost_in_silence(self, words: list[str]) -> None:
        try:
            goal = absorbed(Goal(extra=tuple(words)))
            if not goal.overrides and not any("_" in word for word in words):
                assert goal.extra == tuple(words)
            check_extra(goal.extra, snapshot(NEW))
        except MaiError as found:
            assert found.remedy


@pytest.mark.parametrize(
    ("overrides", "extra", "said"),
    [
        ({"quantization": "fp8_per_chanel"}, (), "Did you mean fp8_per_channel"),
        ({"quantization": "gguf"}, (), "vLLM 0.33.0 has no quantisation 'gguf'"),
        ({}, ("--mamba-cache-dtype", "foo"), "It takes: auto, bfloat16, float16, float32"),
        ({"kv_cache_dtype": "foo"}, (), "--kv-cache-dtype of vLLM 0.33.0 cannot be 'foo'. It takes: auto, bfloat16"),
        ({"attention_backend": "FLASH_ATN"}, (), "Did you mean FLASH_ATTN"),
        ({"attention_backend": "torch_sdpa"}, (), "leave"),
        ({}, ("--attention-backend", "XFORMERS"), "leave"),
        ({}, ("--attention-backend", "FLASH_ATTN_VLLM_V1"), "FLASH_ATTN now"),
        ({}, ("--kv-cache-dtype=foo",), "cannot be 'foo'"),
        ({}, ("--tokenizer-mode", "foo"), "It takes: alpamayo2_super, auto"),
        ({}, ("--seed", "abc"), "--seed of vLLM 0.33.0 cannot be 'abc'. It takes a whole number."),
        ({}, ("-tp", "two"), "tensor_parallel_size cannot be 'two'"),
        ({}, ("--gpu-memory-utilization=most",), "It takes a number from 0.05 to 0.99"),
        ({}, ("--compilation-config", "{bad"), "It takes JSON."),
        ({}, ("--enforce-eager=yes",), "--enforce-eager takes no value"),
        ({}, ("--max-num-seqs",), "--max-num-seqs has no value"),
        ({}, ("--seed", "--enforce-eager"), "--seed has no value"),
        ({}, ("--no-such-flag",), "vLLM 0.33.0 has no flag --no-such-flag"),
        ({}, ("--scheduling-policy=fifo",), "--scheduling-policy of vLLM 0.33.0 cannot be 'fifo'"),
    ],
)
def test_a_value_that_vllm_does_not_know_is_refused_before_a_start(
    overrides: dict[str, Any], extra: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        command(plan("l40s", "MAI-UI-8B", overrides=overrides, extra=extra))
    assert said in f"{refused.value.what} {refused.value.remedy}"


@pytest.mark.parametrize(
    ("text", "number"),
    [("4K", 4096), ("32k", 32_000), ("25.6k", 25_600), ("32_768", 32_768), ("1M", 1_048_576), ("auto", "auto")],
)
@pytest.mark.parametrize("form", ["flag", "setting"])
def test_suffixes_of_numbers_are_read_as_vllm_reads_them(text: str, number: object, form: str) -> None:
    goal = (
        Goal(extra=("--max-model-len", text))
        if form == "flag"
        else Goal(overrides=parse_assignments([f"max_model_len={text}"]))
    )
    assert absorbed(goal).overrides["max_model_len"] == number
