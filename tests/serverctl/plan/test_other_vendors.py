"""Gaudi, AMD, Apple and the plain processor: a plan with the right knobs, or a refusal that names the ways out."""

from dataclasses import replace
from typing import Any

import pytest
from planning import CPU, GIB, card, env, flags, machine, plan

from foundation.errors import UsageError
from serverctl.cli import main
from serverctl.hardware.catalogue import imagine
from serverctl.hardware.facts import CannotPlanError, Cpu, Driver, Hardware, usable_cards
from serverctl.plan.render import render
from serverctl.planning import resolve, snapshot_for
from serverctl.vllm.builds import build_for, builds
from serverctl.vllm.capabilities import snapshot


class TestGaudi:
    def test_the_real_screen_is_named_beforehand(self) -> None:
        made = plan("gaudi-3", "MAI-UI-8B")
        found = flags(made)
        assert found["--limit-mm-per-prompt"] == {"image": {"count": 3, "width": 1920, "height": 1080}, "video": 0}
        assert (found["--dtype"], found["--max-model-len"]) == ("bfloat16", "16384")
        assert (found["--max-num-seqs"], found["--max-num-batched-tokens"]) == ("4", "8192")
        assert env(made)["VLLM_MULTIMODAL_RESOLUTIONS"] == "1920x1080x1-3"
        assert env(made)["HABANA_VISIBLE_MODULES"] == "0"
        assert "CUDA_VISIBLE_DEVICES" not in env(made)
        for flag in (
            "--performance-mode",
            "--max-cudagraph-capture-size",
            "--gpu-memory-utilization",
            "--quantization",
        ):
            assert flag not in found, "these are of CUDA cards"

    def test_a_large_model_shares_as_many_cards_as_it_needs(self) -> None:
        made = plan("gaudi-2", "MAI-UI-32B")  # 62 of 95 GiB are weights: the rest holds the context
        assert made.budget.kv_tokens > made.context
        made = plan("gaudi-2*8", "MAI-UI-32B", overrides={"max_model_len": 131_072})
        assert made.settings.tensor_parallel_size == len(made.gpus) == 2
        assert env(made)["HABANA_VISIBLE_MODULES"] == "0,1"
        with pytest.raises(CannotPlanError, match="does not fit"):
            plan("gaudi-2", "MAI-UI-32B", overrides={"max_model_len": 131_072})

    def test_a_cache_of_fixed_size_shares_more_cards_or_is_refused(self) -> None:
        fixed = {"kv_cache_memory_bytes": 60 << 30}
        assert len(plan("gaudi-2*8", "MAI-UI-32B", overrides=fixed).gpus) == 2
        with pytest.raises(CannotPlanError, match="its weights take 62 and the KV cache 60"):
            plan("gaudi-2", "MAI-UI-32B", overrides=fixed)

    def test_the_cache_is_what_the_plugins_own_rule_leaves(self) -> None:
        budget = plan("gaudi-2", "MAI-UI-8B").budget
        free = budget.total - budget.weights - budget.activations
        assert budget.kv == pytest.approx(free * 0.9 * 0.9, rel=0.001)

    def test_the_plugins_own_variables_are_kept_by_a_command(self) -> None:
        made = plan("gaudi-3", "MAI-UI-8B")
        assert "VLLM_MULTIMODAL_RESOLUTIONS" in render(made, snapshot("0.33.0"), 8000).env
        assert "0.33.0" in snapshot_for(imagine("gaudi-3")).parser, "the parser is another's"
        assert snapshot_for(imagine("t4")).parser == "the parser of this version"

    @pytest.mark.parametrize("screen", [(1280, 720), (2560, 1440), (3840, 2160)])
    def test_another_screen_has_other_graphs_and_a_context_that_holds_it(self, screen: tuple[int, int]) -> None:
        made = plan("gaudi-3", "MAI-UI-8B", screen=screen)
        assert env(made)["VLLM_MULTIMODAL_RESOLUTIONS"] == f"{screen[0]}x{screen[1]}x1-3"
        assert made.context >= 3 * made.model.image_tokens(*screen) + 2048

    def test_a_wish_for_cards_is_kept_or_refused(self) -> None:
        made = plan("gaudi-2*8", "MAI-UI-8B", overrides={"tensor_parallel_size": 4})
        assert (made.settings.tensor_parallel_size, len(made.gpus)) == (4, 4)
        with pytest.raises(CannotPlanError):
            plan("gaudi-2*2", "MAI-UI-8B", overrides={"tensor_parallel_size": 4})

    def test_many_agents_have_every_card_as_a_server_with_as_many_slots_as_its_cache_holds(self) -> None:
        made = plan("gaudi-3*8", "MAI-UI-8B", "throughput")
        slots, smallest = made.settings.max_num_seqs, 3 * 2040 + 1024
        assert slots is not None
        assert slots == made.budget.held(smallest) < 256
        assert [[gpu.index for gpu in cards] for cards in made.replicas] == [[number] for number in range(8)]
        assert any("8 independent servers" in note for note in made.notes)
        assert len(plan("gaudi-2*8", "MAI-UI-32B", "throughput").replicas) == 8
        assert len(plan("gaudi-3*8", "MAI-UI-8B").replicas) == 1

    @pytest.mark.parametrize(
        ("name", "model", "listed"),
        [("gaudi-3", "MAI-UI-8B", True), ("gaudi-2", "MAI-UI-8B", False), ("gaudi-2", "Qwen2.5-VL-7B-Instruct", False)],
    )
    def test_what_the_plugins_makers_did_not_list_is_said(self, name: str, model: str, listed: bool) -> None:
        warnings = plan(name, model).warnings
        assert any("were not run" in text for text in warnings)
        assert any("list no" in text for text in warnings) is not listed

    def test_the_users_share_for_graphs_is_followed_and_passed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        usual = plan("gaudi-3").budget
        monkeypatch.setenv("VLLM_GRAPH_RESERVED_MEM", "0.4")
        made = plan("gaudi-3")
        assert made.budget.kv == pytest.approx(usual.kv * 0.6 / 0.9, rel=1e-6)
        assert env(made)["VLLM_GRAPH_RESERVED_MEM"] == "0.4"
        for wrong in ("1", "-0.1", "nan", "much"):
            monkeypatch.setenv("VLLM_GRAPH_RESERVED_MEM", wrong)
            with pytest.raises(UsageError, match="VLLM_GRAPH_RESERVED_MEM cannot be"):
                plan("gaudi-3")

    def test_the_users_sizes_of_pictures_are_followed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VLLM_MULTIMODAL_RESOLUTIONS", "1280x720x1-3,1920x1080x1-3")
        made = plan("gaudi-3")
        assert env(made)["VLLM_MULTIMODAL_RESOLUTIONS"] == "1280x720x1-3,1920x1080x1-3"
        assert flags(made)["--limit-mm-per-prompt"]["image"] == {"count": 3, "width": 1920, "height": 1080}
        monkeypatch.setenv("VLLM_MULTIMODAL_RESOLUTIONS", "large")
        with pytest.raises(UsageError, match="cannot be 'large'"):
            flags(plan("gaudi-3"))

    def test_slots_bring_no_cuda_graphs(self) -> None:
        made = plan("gaudi-2", "Qwen2.5-VL-3B-Instruct", extra=("--max-num-seqs", "128"))
        assert made.settings.max_cudagraph_capture_size is None

    def test_thoughts_have_room_and_hybrids_their_flags(self) -> None:
        made = plan("gaudi-3", "Qwen3-VL-8B-Thinking")
        assert made.context >= 5 * 2040 + 2048 + 32_768
        assert env(plan("gaudi-3", "Qwen3.5-9B"))["ENABLE_EXPERIMENTAL_FLAGS"] == "true"
        assert "ENABLE_EXPERIMENTAL_FLAGS" not in env(made)

    @pytest.mark.parametrize(
        ("name", "said"), [("gaudi-3", "vllm-gaudi plugin"), ("mi300x", "ROCm"), ("l4", "mai-server install")]
    )
    def test_a_plan_says_how_its_vllm_is_installed(
        self, name: str, said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["plan", "--gpu", name, "--model", "MAI-UI-8B"]) == 0
        last = " ".join(capsys.readouterr().out.split("not installed")[-1].split())
        assert said in last
        assert ("mai-server install" in last) == (name == "l4")

    @pytest.mark.parametrize(
        "own",
        [{"images": 64}, {"max_model_len": 5000}, {"max_model_len": 1_000_000}, {"images": 3, "max_model_len": 4096}],
    )
    def test_wishes_that_do_not_fit_are_refused(self, own: dict[str, Any]) -> None:
        with pytest.raises(CannotPlanError, match=r"do(es)? not fit"):
            plan("gaudi-3", "MAI-UI-8B", overrides=own)


def processor(free: float = 40, features: tuple[str, ...] = ("avx2", "avx512f")) -> Hardware:
    return Hardware((), Cpu("a processor", 16, "x86_64", features, 64 * GIB, round(free * GIB)))


class TestProcessor:
    def test_the_small_model_can_be_tried_out_slowly(self) -> None:
        made = plan(processor(), "MAI-UI-2B", vllm=CPU)
        found = flags(made, CPU)
        assert (found["--dtype"], found["--kv-cache-memory-bytes"]) == ("bfloat16", "2147483648")
        assert (found["--max-model-len"], found["--max-num-seqs"]) == ("16384", "1")
        assert "--enforce-eager" in found
        assert found["--mm-processor-kwargs"]["size"]["longest_edge"] == 1_003_520
        for flag in ("--gpu-memory-utilization", "--performance-mode", "--max-cudagraph-capture-size"):
            assert flag not in found
        assert made.replicas == ((),)
        assert made.budget.block == 128
        assert any("slow" in text for text in made.warnings)
        assert any("shrunk" in text for text in made.warnings)

    def test_larger_models_are_refused_unless_forced(self) -> None:
        with pytest.raises(CannotPlanError, match="would take minutes") as refusal:
            plan(processor(), "MAI-UI-8B", vllm=CPU)
        assert "--engine literal" in refusal.value.remedy
        with pytest.raises(CannotPlanError, match=r"has 3\.8 billion"):
            plan(processor(), "Qwen2.5-VL-3B-Instruct", vllm=CPU)
        assert plan(processor(), "MAI-UI-8B", vllm=CPU, force=True).model.name == "MAI-UI-8B"

    def test_too_little_memory_is_refused_with_numbers_and_an_old_processor_is_warned_of(self) -> None:
        with pytest.raises(CannotPlanError, match=r"about 9\.0 GiB of memory, and 4\.0 GiB are free"):
            plan(processor(4), "MAI-UI-2B", vllm=CPU)
        for features, old in (((), True), (("asimd",), False), (("avx2",), False)):
            warnings = plan(processor(features=features), "MAI-UI-2B", vllm=CPU).warnings
            assert any("lacks AVX2" in text for text in warnings) is old

    def test_a_larger_kv_cache_takes_a_longer_context(self) -> None:
        own = {"kv_cache_memory_bytes": 12 * GIB, "max_model_len": 100_000}
        assert plan(processor(), "MAI-UI-2B", vllm=CPU, overrides=own).context == 100_000
        auto = plan(processor(), "MAI-UI-2B", vllm=CPU, overrides={"max_model_len": "auto"})
        assert auto.context == auto.budget.longest_context == 18_688 - 128

    def test_without_a_name_the_small_model_is_chosen(self) -> None:
        assert plan(processor(), None, vllm=CPU).model.name == "MAI-UI-2B"

    def test_a_wished_pixel_budget_decides_how_many_screenshots_fit(self) -> None:
        small = plan(processor(), "MAI-UI-2B", vllm=CPU)
        large = plan(processor(), "MAI-UI-2B", vllm=CPU, overrides={"longest_edge": 2_097_152})
        assert (small.settings.images, large.settings.images) == (12, 7)
        huge = plan(processor(), "MAI-UI-2B", vllm=CPU, overrides={"longest_edge": 6_553_600}, screen=(2560, 1440))
        assert huge.settings.images == 3

    @pytest.mark.parametrize(
        ("own", "said"),
        [
            ({"images": 20}, "do not fit into a context"),
            ({"max_model_len": 1024}, "do not fit into a context"),
            ({"max_model_len": 100_000}, "kv_cache_memory_bytes=11"),
            ({"max_model_len": 1_000_000}, "was made for 262,144 tokens"),
        ],
    )
    def test_wishes_that_do_not_fit_are_refused(self, own: dict[str, Any], said: str) -> None:
        with pytest.raises(CannotPlanError, match=said):
            plan(processor(), "MAI-UI-2B", vllm=CPU, overrides=own)


class TestAmd:
    def test_its_cards_serve_in_16_bits(self) -> None:
        amd = card(192, 191.7, sm=None, vendor="amd", name="AMD Instinct MI300X", uuid="0x1")
        made = plan(machine(amd), "MAI-UI-8B")
        assert (made.vendor, made.precision) == ("amd", "16-bit")
        assert "CUDA_VISIBLE_DEVICES" not in env(made)
        assert made.context == 131_072
        with pytest.raises(CannotPlanError, match="even with 16-bit weights"):  # 8 bits are not made on its cards
            plan(machine(card(16, sm=None, vendor="amd", name="Radeon")), "MAI-UI-8B")


class TestApple:
    def test_it_is_refused_with_what_serves_there(self) -> None:
        mac = replace(machine(card(64, sm=None, vendor="apple", name="Apple M2 Max")), system="Darwin")
        for attempt in (lambda: plan(mac, "MAI-UI-2B"), lambda: usable_cards(mac), lambda: build_for(mac)):
            with pytest.raises(CannotPlanError, match="Apple M2 Max") as refusal:
                attempt()
            assert "MLX" in refusal.value.remedy
            assert "--endpoint" in refusal.value.remedy


class TestBuilds:
    """Which vLLM a machine gets, by its driver."""

    @pytest.mark.parametrize(("vendor", "said"), [("gaudi", "vllm-gaudi"), ("amd", "ROCm")])
    def test_other_makers_vllm_is_installed_by_hand(self, vendor: str, said: str) -> None:
        with pytest.raises(CannotPlanError) as refusal:
            build_for(machine(card(96, vendor=vendor, sm=None, name="a card")))
        assert said in refusal.value.remedy
        assert "--vllm-python" in refusal.value.remedy

    def test_a_card_that_no_build_serves_is_said_before_its_driver(self) -> None:
        old = replace(machine(card(16, sm=70, name="Tesla V100")), driver=Driver("450.80.02", (11, 0)))
        with pytest.raises(CannotPlanError, match="Tesla V100"):
            build_for(old)

    @pytest.mark.parametrize(
        ("driver", "build"),
        [
            (Driver("580.95.05", (13, 0)), "cuda13"),
            (Driver("580.95.05"), "cuda13"),
            (Driver("590.44.01", (13, 1)), "cuda13"),
            (Driver("570.172.08", (12, 8)), "cuda12"),
            (Driver("575.57", (12, 9)), "cuda12"),
            (Driver("550.54.15", (12, 4)), "cuda12"),
            (Driver("525.60.13", (12, 0)), "cuda12"),
            (Driver("535.104.05"), "cuda12"),
        ],
    )
    def test_the_newest_that_the_driver_serves_is_chosen(self, driver: Driver, build: str) -> None:
        assert build_for(replace(machine(card(24)), driver=driver)).name == build

    @pytest.mark.parametrize(
        ("driver", "said"),
        [(None, "driver's version is not known"), (Driver("470.82.01", (11, 4)), r"driver 470\.82\.01 is too old")],
    )
    def test_an_old_or_unknown_driver_is_said_before_anything_is_downloaded(
        self, driver: Driver | None, said: str
    ) -> None:
        with pytest.raises(CannotPlanError, match=said) as caught:
            build_for(replace(machine(card(24)), driver=driver))
        assert driver is None or ("525" in caught.value.remedy and "--endpoint" in caught.value.remedy)
        assert build_for(processor()).name == "cpu"

    @pytest.mark.parametrize(
        ("driver", "told"), [("550.54.15", True), ("525.60.13", True), ("570.86.15", False), ("580.95.05", False)]
    )
    def test_a_driver_that_nobody_tried_is_told_and_not_called_too_old(self, driver: str, told: bool) -> None:
        """Colab's free T4 has driver 550.54 with CUDA 12.4."""
        colab = replace(machine(card(14.6, sm=75, name="Tesla T4")), driver=Driver(driver))
        made = resolve("MAI-UI-2B", hardware=colab).plan()
        assert any("nobody tried it here" in text for text in made.warnings) is told

    def test_every_build_has_a_snapshot_of_its_parser(self) -> None:
        for build in builds():
            version = f"{build.version}-cpu" if build.name == "cpu" else build.version
            assert snapshot(version).version == build.version
            made = plan(processor(), "MAI-UI-2B", vllm=CPU)
            assert render(made, snapshot(version), 8000).argv()
