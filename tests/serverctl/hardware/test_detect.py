"""What is in a machine is found from its tools' outputs; what cannot be found out is said, never guessed."""

import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import DATA, Memory, Nvml, Replay, look

from serverctl.hardware.detect import detect, detect_cpu, run_tool
from serverctl.hardware.facts import MIB
from serverctl.hardware.nvidia import ask_nvml
from serverctl.plan.group import Group

# Machine: cards as (name, compute capability, GiB that programs see, drives a display).
ONE_CARD = [
    ("t4", "Tesla T4", 75, 14.7, False),
    ("l4", "NVIDIA L4", 89, 22.0, False),
    ("a10g", "NVIDIA A10G", 86, 22.0, False),
    ("a100-40", "NVIDIA A100-SXM4-40GB", 80, 39.4, False),
    ("a100-80", "NVIDIA A100 80GB PCIe", 80, 79.4, False),
    ("h100", "NVIDIA H100 80GB HBM3", 90, 79.1, False),
    ("h200", "NVIDIA H200", 90, 139.8, False),
    ("b200", "NVIDIA B200", 100, 178.3, False),
    ("rtx-3060-desktop", "NVIDIA GeForce RTX 3060", 86, 11.7, True),
    ("rtx-4090", "NVIDIA GeForce RTX 4090", 89, 23.6, True),
    ("rtx-5090", "NVIDIA GeForce RTX 5090", 120, 31.4, True),
]


@pytest.mark.parametrize(("machine", "name", "sm", "gib", "display"), ONE_CARD)
def test_a_card_is_found_with_what_programs_see_of_its_memory(
    machine: str, name: str, sm: int, gib: float, display: bool
) -> None:
    found = look(machine)
    [gpu] = found.gpus
    assert (gpu.name, gpu.sm, gpu.display, gpu.vendor, gpu.mig) == (name, sm, display, "nvidia", False)
    assert gpu.total_gib == pytest.approx(gib, abs=0.06)
    assert gpu.free_bytes is not None
    assert 0 < gpu.free_bytes <= gpu.total_bytes
    assert gpu.uuid.startswith("GPU-")
    assert found.problems == ()
    assert found.vendor == "nvidia"


@pytest.mark.parametrize(
    ("machine", "count", "nvlinked", "bus"),
    [
        ("h100-8-nvlink", 8, 28, 0),
        ("a100-80-8-nvlink", 8, 28, 0),
        ("v100-4-nvlink", 4, 6, 0),
        ("rtx-3090-2-nvlink", 2, 1, 0),
        ("rtx-4090-2", 2, 0, 1),
        ("mixed-4090-3060", 2, 0, 1),
        ("l40s-2", 2, 0, 1),
        ("l40s-4", 4, 0, 6),
    ],
)
def test_cards_know_how_they_reach_each_other(machine: str, count: int, nvlinked: int, bus: int) -> None:
    found = look(machine)
    assert len(found.gpus) == count
    kinds = [kind for _, _, kind in found.links]
    assert (kinds.count("nvlink"), kinds.count("pcie")) == (nvlinked, bus)
    assert Group(found.gpus).all_nvlink(found) is (bus == 0)
    assert found.link(1, 0) == found.link(0, 1)
    assert found.link(0, 99) is None


@pytest.mark.parametrize(
    ("output", "told"), [("\n\n", "exit status 139"), ("Segmentation fault\n", "Segmentation fault")]
)
def test_a_tool_that_fails_with_words_nobody_knows_is_quoted(output: str, told: str) -> None:
    [problem] = detect(lambda command: (139, output) if command[0] == "nvidia-smi" else None, lambda: None).problems
    assert told in problem


def test_an_answer_that_is_no_text_of_a_card_is_left_out_of_a_longer_one() -> None:
    replay = Replay("l40s-2")
    noise = "\x00\x01, WARNING: infoROM is corrupted at gpu 0000:81:00.0\r\n\r0,1\n²,a,b,c,d,e,f,g,h,i\n"

    def run(command: Any) -> tuple[int, str] | None:
        answer = replay(command)
        return (answer[0], noise + answer[1] + noise) if answer else None

    assert len(detect(run, lambda: None).gpus) == 2


def test_the_driver_is_known_with_the_cuda_it_serves() -> None:
    driver = look("rtx-3060-desktop").driver
    assert driver is not None
    assert (driver.version, driver.major, driver.cuda) == ("570.172.08", 570, (12, 8))


def test_cells_without_a_value_are_not_taken_for_one() -> None:
    [gpu] = look("gtx-1080-na").gpus
    assert gpu.total_bytes == 11264 * MIB
    assert gpu.sm == 61
    assert gpu.mig is False


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("driver-not-loaded", "the NVIDIA driver is not loaded"),
        ("driver-mismatch", "updated while it ran: restart the machine"),
        ("no-permission", "this user may not use the NVIDIA devices"),
        ("no-devices", "works but sees no card"),
        ("lost-devices", "restart the container"),
        ("card-lost", "fell off the bus"),
        ("gb10", "does not say how much memory NVIDIA GB10 has, so nothing can be planned for it."),
        ("h100-mig-empty", "is in MIG mode and has no instances"),
    ],
)
def test_a_card_that_cannot_be_used_is_a_problem_and_not_the_absence_of_a_card(machine: str, said: str) -> None:
    found = look(machine)
    assert found.gpus == ()
    assert found.vendor == "cpu"
    [problem] = found.problems
    assert said in problem
    assert problem.startswith(("nvidia-smi", "Card 0"))


def test_a_machine_without_any_tool_has_no_cards_and_no_problem() -> None:
    found = look("there-is-no-such-folder")
    assert (found.gpus, found.driver, found.links, found.problems) == ((), None, (), ())
    assert found.vendor == "cpu"


def test_a_lost_card_beside_a_good_one_is_said() -> None:
    replay = Replay("t4")
    lost = "Unable to determine the device handle for GPU1: 0000:41:00.0: Unknown Error\n"

    def run(command: Any) -> tuple[int, str] | None:
        answer = replay(command)
        return (15, answer[1] + lost) if answer and "--query" in " ".join(command) else answer

    found = detect(run, lambda: None)
    assert [gpu.name for gpu in found.gpus] == ["Tesla T4"]
    assert "cannot talk to a card" in found.problems[0]


def test_the_instances_of_a_split_card_take_its_place_with_their_own_memory() -> None:
    first, second, whole = look("a100-mig").gpus
    assert [first.name, second.name] == ["NVIDIA A100-SXM4-80GB MIG 3g.40gb", "NVIDIA A100-SXM4-80GB MIG 2g.20gb"]
    assert (first.total_bytes, first.free_bytes) == (40192 * MIB, 40155 * MIB)
    assert (second.total_bytes, second.free_bytes) == (19968 * MIB, 10752 * MIB)
    assert first.mig
    assert second.mig
    assert first.uuid.startswith("MIG-")
    assert first.sm == 80
    assert first.display is False
    assert (whole.name, whole.mig) == ("NVIDIA A100-SXM4-80GB", False)


@pytest.mark.parametrize(
    ("machine", "count", "name", "gib"),
    [
        ("gaudi-2", 8, "Gaudi 2 (HL-225)", 96),
        ("gaudi-3", 8, "Gaudi 3 (HL-325L)", 128),
        ("amd-mi300x", 12, "AMD Instinct MI300X OAM", 192),
        ("amd-rx7900", 1, "Radeon RX 7900 XTX", 24),
    ],
)
def test_other_makers_cards_are_found_in_the_order_of_their_numbers(
    machine: str, count: int, name: str, gib: float
) -> None:
    found = look(machine)
    assert found.vendor == machine.partition("-")[0]
    assert [gpu.index for gpu in found.gpus] == list(range(count))
    assert {gpu.name for gpu in found.gpus} == {name}
    assert found.gpus[0].total_gib == pytest.approx(gib, abs=0.1)
    assert found.gpus[0].compute_capability is None
    assert machine != "amd-mi300x" or found.gpus[0].free_bytes == 206141652992 - 297869312
    assert found.vendor == "amd" or (found.driver is not None and found.driver.version.startswith("1.2"))


@pytest.mark.parametrize(("tool", "output"), [("hl-smi", "hl-smi: driver is not loaded"), ("rocm-smi", "{}")])
def test_another_makers_tool_that_finds_nothing_is_quoted(tool: str, output: str) -> None:
    found = detect(lambda command: (1, output) if command[0] == tool else None, lambda: None)
    assert found.gpus == ()
    [problem] = found.problems
    assert tool in problem
    assert output in problem


class TestVisibleDevices:
    """CUDA_VISIBLE_DEVICES hides cards from every program; a person who set it meant it."""

    def names(self, monkeypatch: pytest.MonkeyPatch, wish: str, machine: str = "mixed-4090-3060") -> list[str]:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", wish)
        return [gpu.name.removeprefix("NVIDIA GeForce RTX ") for gpu in look(machine).gpus]

    @pytest.mark.parametrize(
        ("wish", "seen"),
        [
            ("0", ["3060"]),
            ("1", ["4090"]),
            ("1,0", ["4090", "3060"]),
            (" 1 , 0 ", ["4090", "3060"]),
            ("1,7,0", ["4090"]),
            ("1,1", ["4090"]),
            ("", []),
            ("-1", []),
            ("NoDevFiles", []),
        ],
    )
    def test_by_number(self, monkeypatch: pytest.MonkeyPatch, wish: str, seen: list[str]) -> None:
        assert self.names(monkeypatch, wish) == seen

    def test_what_it_hides_is_said_and_other_makers_cards_do_not_heed_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        assert look("mixed-4090-3060").problems == ("CUDA_VISIBLE_DEVICES=1 hides 1 of 2 cards.",)
        assert len(look("gaudi-2").gpus) == 8

    def test_by_uuid_whole_or_its_beginning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        uuid = look("mixed-4090-3060").gpus[1].uuid
        assert self.names(monkeypatch, uuid) == ["4090"]
        assert self.names(monkeypatch, uuid[:12]) == ["4090"]
        assert self.names(monkeypatch, "GPU-00000000-0000-0000-0000-000000000000") == []
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        instance = look("a100-mig").gpus[1].uuid
        assert self.names(monkeypatch, instance, "a100-mig") == ["NVIDIA A100-SXM4-80GB MIG 2g.20gb"]


CARD: dict[str, Any] = {
    "handle": True,
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-1",
    "memory": Memory(81559, 81004),
    "memory_v2": Memory(81559, 81004, 551),
    "mig": [0, 0],
    "display": 0,
    "capability": (9, 0),
}


class TestNvml:
    """NVML is asked first; where it cannot answer, nvidia-smi is, which says why."""

    def test_it_is_believed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nvml = Nvml(CARD | {"p2p1": 0}, CARD | {"uuid": "GPU-2", "display": 1}).install(monkeypatch)
        found = detect(lambda command: None)
        first, second = found.gpus
        assert (first.name, first.uuid, first.sm, first.display) == ("NVIDIA H100 80GB HBM3", "GPU-1", 90, False)
        assert first.total_bytes == (81559 - 551) * MIB
        assert first.free_bytes == 81004 * MIB
        assert second.display is True
        assert found.links == ((0, 1, "nvlink"),)
        assert found.driver is not None
        assert (found.driver.version, found.driver.cuda) == ("580.95.05", (13, 0))
        assert nvml.shut == 1

    def test_a_question_without_an_answer_costs_only_that_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bare = {name: CARD[name] for name in ("handle", "name", "memory")}
        Nvml(bare, bare | {"p2p1": 9}).install(monkeypatch)
        found = detect(lambda command: None)
        first = found.gpus[0]
        assert (first.uuid, first.display, first.mig) == ("", None, False)
        assert first.compute_capability == (9, 0), "by its name"
        assert first.total_bytes == 81559 * MIB
        assert found.links == ()

    def test_a_card_that_fell_off_the_bus_costs_only_that_card(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Nvml({"handle": Nvml.NVMLError("GPU is lost")}, CARD).install(monkeypatch)
        assert [gpu.index for gpu in detect(lambda command: None).gpus] == [1]

    @pytest.mark.parametrize("trouble", [Nvml.NVMLError("Driver Not Loaded"), OSError("no such library")])
    def test_a_failing_one_leaves_the_word_to_nvidia_smi(
        self, monkeypatch: pytest.MonkeyPatch, trouble: Exception
    ) -> None:
        Nvml(init=trouble).install(monkeypatch)
        assert ask_nvml() is None
        assert [gpu.name for gpu in detect(Replay("l4")).gpus] == ["NVIDIA L4"]
        assert "not loaded" in detect(Replay("driver-not-loaded")).problems[0]

    def test_one_that_fails_half_way_is_shut_and_not_believed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nvml = Nvml(CARD | {"name": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")}).install(monkeypatch)
        assert ask_nvml() is None
        assert nvml.shut == 1

    def test_a_split_card_is_looked_up_by_the_tool(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Nvml(CARD | {"name": "NVIDIA A100-SXM4-80GB", "mig": [1, 1]}).install(monkeypatch)
        gpus = detect(Replay("a100-mig")).gpus
        assert [gpu.name.rsplit(" ", 1)[1] for gpu in gpus] == ["3g.40gb", "2g.20gb"]
        assert gpus[0].sm == 90, "NVML's word"


def script(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


class TestRunTool:
    """Real programs are run with a limit, and nothing they do reaches the caller as an exception."""

    def test_output_and_errors_come_together_and_a_missing_one_is_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script(tmp_path, "tool", "import sys; print('a'); sys.stderr.write('b\\n'); sys.exit(3)")
        monkeypatch.setenv("PATH", str(tmp_path))
        assert run_tool(["tool", "-x"]) == (3, "a\nb\n")
        assert run_tool(["nvidia-smi"]) is None

    def test_one_that_cannot_be_run_says_why(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "tool").write_bytes(b"\x00\x01 no program")
        (tmp_path / "tool").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        answer = run_tool(["tool"])
        assert answer is not None
        assert answer[0] == 126

    def test_one_that_hangs_is_ended_with_its_children(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        note = tmp_path / "child"
        script(
            tmp_path,
            "tool",
            "import signal, subprocess, sys, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            f"open({str(note)!r}, 'w').write(str(child.pid))\n"
            "time.sleep(600)\n",
        )
        monkeypatch.setenv("PATH", str(tmp_path))
        answer = None
        while not note.exists() or not note.read_text():  # a slow machine needs longer to come as far as the child
            answer = run_tool(["tool"], 1.0)
        assert answer == (124, "tool did not answer within 1 s")
        while _runs(int(note.read_text())):  # the test's own time limit is what ends this when the child lives on
            time.sleep(0.01)

    def test_a_hanging_nvidia_smi_is_a_problem_and_no_wait_without_end(self) -> None:
        found = detect(lambda command: (124, "nvidia-smi did not answer within 5 s"), lambda: None)
        assert found.gpus == ()
        assert "the driver hangs" in found.problems[0]


def _runs(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


class TestProcessor:
    """The processor and its memory, within a container's limits."""

    def root(self, tmp_path: Path, cpuinfo: str, **cgroup: str) -> Path:
        (tmp_path / "proc").mkdir(parents=True)
        (tmp_path / "proc" / "cpuinfo").write_text((DATA / "cpuinfo" / cpuinfo).read_text(encoding="utf-8"))
        for name, text in cgroup.items():
            path = tmp_path / "sys/fs/cgroup" / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    @pytest.mark.parametrize(
        ("cpuinfo", "name", "features"),
        [
            (
                "xeon.txt",
                "Intel(R) Xeon(R) Platinum 8480+",
                ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16"),
            ),
            ("graviton.txt", "", ("asimd", "bf16", "sve")),
            ("old.txt", "Intel(R) Core(TM) i7-2600 CPU @ 3.40GHz", ()),
        ],
    )
    def test_its_name_and_instructions(
        self, tmp_path: Path, cpuinfo: str, name: str, features: tuple[str, ...]
    ) -> None:
        found = detect_cpu(self.root(tmp_path, cpuinfo))
        assert (found.name, found.features) == (name, features)

    def test_a_containers_limit_bounds_its_memory(self, tmp_path: Path) -> None:
        limits = {"memory_dot_max": f"{256 * MIB}\n", "memory_dot_current": f"{56 * MIB}\n"}
        found = detect_cpu(self.root(tmp_path, "xeon.txt", **limits))
        assert (found.memory_bytes, found.free_bytes) == (256 * MIB, 200 * MIB)

    @pytest.mark.parametrize("limit", ["max\n", "", "what", "-1"])
    def test_no_limit_is_no_limit_and_without_these_files_there_is_still_a_processor(
        self, tmp_path: Path, limit: str
    ) -> None:
        bare = detect_cpu(tmp_path)
        assert bare.cores == len(os.sched_getaffinity(0))
        assert bare.memory_bytes > MIB
        assert detect_cpu(self.root(tmp_path, "xeon.txt", memory_dot_max=limit)).memory_bytes == bare.memory_bytes


@given(answers=st.dictionaries(st.sampled_from(["nvidia-smi", "hl-smi", "rocm-smi", "sysctl"]), st.text(max_size=400)))
def test_whatever_the_tools_say_detection_ends_with_hardware(answers: dict[str, str]) -> None:
    found = detect(lambda command: (0, answers[command[0]]) if command[0] in answers else None, lambda: None)
    assert all(gpu.total_bytes >= 0 for gpu in found.gpus)
    if "nvidia-smi" in answers and not found.gpus:
        assert found.problems
