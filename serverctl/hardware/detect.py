"""Detects this machine's hardware. This module runs the tools; other modules parse their output."""

import contextlib
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from serverctl.hardware import nvidia, other_vendors
from serverctl.hardware.catalogue import with_data_sheet
from serverctl.hardware.facts import Cpu, Driver, Gpu, Hardware
from serverctl.hardware.nvidia import NvmlAnswer, ask_nvml

#: Timeout of a tool, seconds: ten times what it needs. With a broken driver it can hang for minutes.
TOOL_SECONDS = 5.0

#: Runs a tool and returns its exit status and output; None if the tool is not installed.
RunTool = Callable[[Sequence[str]], tuple[int, str] | None]


def run_tool(command: Sequence[str], seconds: float = TOOL_SECONDS) -> tuple[int, str] | None:
    """Run a program, and return its exit status and combined output; None if it is not installed.

    The status is 124 after a timeout, 126 if it cannot be executed.
    """
    path = shutil.which(command[0])
    if path is None:
        return None
    try:
        process = subprocess.Popen(
            [path, *command[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return 126, str(error)
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _abandon(process)
        return 124, f"{command[0]} did not answer within {seconds:.0f} s"
    return process.returncode, output + errors


def _abandon(process: "subprocess.Popen[str]") -> None:
    """Kill a program that hangs and its children. A program stuck in its driver cannot be killed and stays."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def detect(run: RunTool = run_tool, nvml: Callable[[], NvmlAnswer | None] | None = None) -> Hardware:
    """Detect the hardware. Never raises: failures are listed in `problems`."""
    cpu = detect_cpu()
    problems: list[str] = []
    gpus, driver, links = (nvml or ask_nvml)() or ((), None, ())
    if not gpus:
        gpus, driver, links = _nvidia_by_tool(run, problems)
    if any(gpu.mig for gpu in gpus):
        gpus = _split(gpus, run, problems)
    if not gpus:
        gpus, driver = _others(run, problems)
    if not gpus and platform.system() == "Darwin" and (brand := run(["sysctl", "-n", "machdep.cpu.brand_string"])):
        gpus = other_vendors.apple_gpus(brand[1].strip(), cpu.memory_bytes)
    usable = tuple(with_data_sheet(gpu) for gpu in _visible(gpus, problems))
    return Hardware(usable, cpu, driver, links, tuple(problems), platform.system())


def _nvidia_by_tool(run: RunTool, problems: list[str]) -> NvmlAnswer:
    answer = run(["nvidia-smi", f"--query-gpu={','.join(nvidia.FIELDS)}", "--format=csv,noheader,nounits"])
    if answer is None:
        return (), None, ()
    status, text = answer
    gpus, driver = nvidia.parse_query(text)
    silent = nvidia.unmeasured(text)
    problems += [
        f"nvidia-smi does not say how much memory {name} has, so nothing can be planned for it." for name in silent
    ]
    if (not gpus and not silent) or (gpus and "Unable to determine the device handle" in text):
        problems.append(nvidia.explain_trouble(text if text.strip() else f"nothing (exit status {status})"))
    if not gpus:
        return (), None, ()
    banner = run(["nvidia-smi"])
    if driver is not None and banner is not None:
        driver = replace(driver, cuda=nvidia.parse_cuda(banner[1]))
    topology = run(["nvidia-smi", "topo", "-m"]) if len(gpus) > 1 else None
    return gpus, driver, nvidia.parse_topology(topology[1]) if topology else ()


def _split(gpus: tuple[Gpu, ...], run: RunTool, problems: list[str]) -> tuple[Gpu, ...]:
    """Replace cards in MIG mode by their instances. A card without instances is unusable and left out."""
    listing, banner = run(["nvidia-smi", "-L"]), run(["nvidia-smi"])
    instances = nvidia.parse_mig(listing[1]) if listing else {}
    memory = nvidia.parse_mig_memory(banner[1]) if banner else {}
    parts: list[Gpu] = []
    for gpu in gpus:
        found = [*nvidia.mig_gpus(gpu, instances.get(gpu.index, ()), memory)] if gpu.mig else [gpu]
        if not found:
            problems.append(
                f"Card {gpu.index} ({gpu.name}) is in MIG mode and has no instances: make some with "
                "`nvidia-smi mig -cgi ... -C`, or switch the mode off with `nvidia-smi -mig 0`."
            )
        parts.extend(found)
    return tuple(parts)


def _others(run: RunTool, problems: list[str]) -> tuple[tuple[Gpu, ...], Driver | None]:
    for command, device, parse in (
        (other_vendors.GAUDI_QUERY, "accelerator", other_vendors.parse_gaudi),
        (other_vendors.ROCM_QUERY, "card", lambda text: (other_vendors.parse_rocm(text), None)),
    ):
        answer = run(command)
        if answer is None:
            continue
        gpus, driver = parse(answer[1])
        if gpus:
            return gpus, driver
        problems.append(f"{command[0]} found no {device} and said: {answer[1].strip()[:200]}")
    return (), None


def _visible(gpus: tuple[Gpu, ...], problems: list[str]) -> tuple[Gpu, ...]:
    """Return the cards that the user's CUDA_VISIBLE_DEVICES allows, in its order."""
    wish = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wish is None or not gpus or gpus[0].vendor != "nvidia":
        return gpus
    chosen: list[Gpu] = []
    for name in (part.strip() for part in wish.split(",") if part.strip()):
        found = [gpu for gpu in gpus if name == str(gpu.index) or (not name.isdigit() and gpu.uuid.startswith(name))]
        if not found or found[0] in chosen:
            break  # like CUDA: devices after an unknown one are not visible
        chosen.append(found[0])
    if len(chosen) < len(gpus):
        problems.append(f"CUDA_VISIBLE_DEVICES={wish} hides {len(gpus) - len(chosen)} of {len(gpus)} cards.")
    return tuple(chosen)


def detect_cpu(root: Path = Path("/")) -> Cpu:
    """Return the CPU and memory of this machine, within the limits of a container."""
    import psutil

    memory = psutil.virtual_memory()
    total, free = int(memory.total), int(memory.available)
    name, features = other_vendors.parse_cpuinfo(_read(root / "proc/cpuinfo"))
    files = (root / "sys/fs/cgroup" / name for name in ("memory.max", "memory.current"))
    limit, used = (other_vendors.parse_memory_limit(_read(file)) or 0 for file in files)
    if limit:
        total, free = min(total, limit), max(0, min(free, limit - used))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Cpu(name or platform.processor(), cores, platform.machine(), features, total, free)


def _read(path: Path) -> str:
    """Return a small file's text; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
