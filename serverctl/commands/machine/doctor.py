"""`mai-server doctor`: what this machine has and lacks for serving a model."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from foundation.command_line import Parser
from foundation.configs import settings_path
from foundation.errors import ExitStatus, MaiError
from foundation.printing import put, put_json
from serverctl.config import load_server_config
from serverctl.hardware.detect import detect
from serverctl.hardware.facts import GIB, Hardware, usable_cards
from serverctl.models.files import check_files, place_of, unfinished
from serverctl.models.find import cache_folder, cached_snapshot, find_model, known_models
from serverctl.paths import environments_root, free_disk_gib, state_root
from serverctl.process import control
from serverctl.process.state import Folder, cannot_write, current_state, full_disk, has_room
from serverctl.vllm.builds import build_for, find_environment
from serverctl.vllm.capabilities import installed


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    ok: bool
    detail: str


def main(arguments: list[str]) -> int:
    """Look at everything."""
    parser = Parser(
        "mai-server doctor",
        description="Look at everything that serving a model needs: cards, driver, memory, disk, vLLM, settings, "
        "servers.",
        epilog="exit status: 0 a model is or can be served here, 3 something is lacking",
    )
    parser.add_argument("--model", metavar="NAME", help="whose files to look at (default: all that are served here)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    findings = list(look(options.model))
    if options.json:
        put_json([asdict(finding) for finding in findings], indent=1)
    else:
        for finding in findings:
            put(f"{'ok     ' if finding.ok else 'LACKING'}  {finding.name:<10}{finding.detail}")
    serves = options.model is None and any(current_state(Folder(name)).is_ready for name in control.ordered_names())
    return ExitStatus.DONE if serves or all(finding.ok for finding in findings) else ExitStatus.ENVIRONMENT


def look(model: str | None = None) -> Iterator[Finding]:
    """Yield all findings. Check the files of the named model, or of all models that are served here."""
    hardware = detect()
    yield from _cards(hardware)
    cpu = hardware.cpu
    features = f", {', '.join(cpu.features)}" if cpu.features else ""
    memory = f"{cpu.free_bytes / GIB:.1f} of {cpu.memory_bytes / GIB:.1f} GiB free"
    yield Finding("processor", True, f"{cpu.name}, {cpu.cores} cores{features}; memory: {memory}")
    yield _tried("driver", lambda: _build(hardware))
    try:
        config = load_server_config()
    except MaiError as error:
        yield Finding("settings", False, str(error))
        return
    yield Finding("settings", True, str(path) if (path := settings_path()).is_file() else "none of your own")
    yield _tried("vllm", lambda: _vllm(hardware, config.vllm_python))
    for name, path in (("models", cache_folder()), ("disk", environments_root())):
        free = free_disk_gib(path)
        yield Finding(name, free >= 5, f"{free:.0f} GiB free for {path}")
    yield _writable()
    yield from _files(model or config.model, only=model is not None)
    names = control.ordered_names()
    states = [current_state(Folder(name)) for name in names]
    phases = "; ".join(f"{state.name}: {state.phase}" for state in states) or "none"
    yield Finding("servers", all(state.phase != "failed" for state in states), phases)


def _cards(hardware: Hardware) -> Iterator[Finding]:
    for problem in hardware.problems:
        yield Finding("cards", False, problem)
    if not hardware.gpus:
        if not hardware.problems:
            slow = "a model can only be tried out slowly, on the processor (`mai-server up --cpu`)"
            yield Finding("cards", False, f"none: {slow}")
        return
    for gpu in hardware.gpus:
        free = "" if gpu.free_bytes is None else f", {gpu.free_bytes / GIB:.1f} GiB free"
        capability = ", compute capability {}.{}".format(*gpu.compute_capability) if gpu.compute_capability else ""
        display = ", drives a display" if gpu.display else ""
        yield Finding("card", True, f"{gpu.name}: {gpu.total_gib:.1f} GiB{free}{capability}{display}")
    try:
        usable_cards(hardware)
    except MaiError as error:
        yield Finding("cards", False, str(error))


def _tried(name: str, look: Callable[[], str]) -> Finding:
    """Return the finding of a check, or why the check failed."""
    try:
        return Finding(name, True, look())
    except MaiError as error:
        return Finding(name, False, str(error))


def _build(hardware: Hardware) -> str:
    build = build_for(hardware)
    driver = "" if hardware.driver is None else f"driver {hardware.driver.version}: "
    return f"{driver}vLLM {build.version}, {build.about}"


def _vllm(hardware: Hardware, named: str | None) -> str:
    found = find_environment(named, hardware)
    if found is None:
        raise MaiError("not installed: `mai-server install`")
    return f"{installed(found.python).version}, {found.origin}: {found.python}"


def _files(model: str | None, only: bool) -> Iterator[Finding]:
    """Check the files of `model` and, unless `only`, of the servers' models and of downloaded known models."""
    names = [model] if model else []
    if not only:
        names += [state.source for state in map(current_state, map(Folder, control.ordered_names())) if state.source]
        names += [known.name for known in known_models() if cached_snapshot(known.source) is not None]
    seen: set[str] = set()
    for name in names:
        try:
            found = find_model(name, allow_network=False)
        except MaiError as error:
            yield Finding("files", False, str(error))
            continue
        place = place_of(found)
        if found.source in seen:
            continue
        seen.add(found.source)
        if place is None:
            yield Finding("files", True, f"{found.source} is not on this machine: the first start downloads it")
            continue
        if place.repo and (begun := unfinished(place.repo)):
            detail = f"{place.repo}: {begun} unfinished downloads; a start continues them"
            yield Finding("files", True, detail)
        defects = check_files(place)
        for defect in defects:
            yield Finding("files", not defect.stops, str(defect))
        if not defects:
            yield Finding("files", True, f"{place.name}: complete and consistent")


def _writable() -> Finding:
    root = state_root()
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = root / ".probe"
        probe.write_text("", encoding="ascii")
        probe.unlink()
    except OSError as error:
        return Finding("state", False, str(cannot_write(root, error)))
    if not has_room(root):
        return Finding("state", False, str(full_disk(root)))
    return Finding("state", True, f"{root}; Python {sys.version.split()[0]}")
