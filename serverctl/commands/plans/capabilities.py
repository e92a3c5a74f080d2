"""`mai-server capabilities`: what a vLLM accepts, and how that differs from a known release."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foundation.command_line import Parser
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.printing import put, put_json, remark
from serverctl.config import load_server_config
from serverctl.hardware.detect import detect
from serverctl.paths import state_root
from serverctl.plan.settings import KNOBS
from serverctl.planning import CPU_SNAPSHOT, NEWEST
from serverctl.vllm.builds import find_environment
from serverctl.vllm.capabilities import installed_document, refreshed_document, snapshot_versions
from serverctl.vllm.releases import NAMES, Drift, Releases, drift

_EXAMPLES = """examples:
  mai-server capabilities                         the installed vLLM against the release that plans know
  mai-server capabilities --refresh               asks its parser anew, and keeps the answer for plans
  mai-server capabilities --release 0.34.0        a release that is not installed: gets its wheel, runs its parser only
  mai-server capabilities --wheel vllm-0.34.0.whl one that was downloaded
  mai-server capabilities --release 0.34.0 --against 0.19.1

exit status: 0 done, 1 a flag that plans use is gone, 3 an installed vLLM is needed, and there is none"""
#: Maximum number of names to print; --json has all.
_MOST_NAMES = 40


def main(arguments: list[str]) -> int:
    """Say what a vLLM accepts and what differs."""
    options = _parser().parse_args(arguments)
    now, origin = _asked(options)
    against = options.against or _nearest(str(now["vllm"]), origin)
    if against not in snapshot_versions():
        versions = ", ".join(snapshot_versions())
        raise UsageError(f"Nothing is known of vLLM {against}.", f"--against takes one of {versions}.")
    found = drift(load_config(f"vllm/{against}.json"), now)
    missed = {name: knob.flag for name, knob in KNOBS.items() if knob.flag in found.went.get("options", ())}
    if options.json:
        document = {"vllm": now["vllm"], "origin": origin, "options": len(now["options"]), "against": against}
        put_json({**document, **asdict(found), "plans_use": missed}, indent=1)
    else:
        put(f"vLLM {now['vllm']}, {origin}: {len(now['options'])} flags. Against {against}:")
        put(*_lines(found, missed))
    return ExitStatus.NOT_DONE if missed else ExitStatus.DONE


def _parser() -> Parser:
    parser = Parser("mai-server capabilities", description=(__doc__ or "").split(": ", 1)[1], epilog=_EXAMPLES)
    add = parser.add_argument
    add("--refresh", action="store_true", help="ask the installed parser anew, and keep what it says")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--release", metavar="V", help="a release that is not installed; its wheel is fetched with pip")
    which.add_argument("--wheel", type=Path, metavar="FILE", help="a wheel of vLLM that was downloaded")
    add("--against", metavar="V", help="what to compare with (default: the same release, else the newest known)")
    add("--vllm-python", metavar="FILE", help="the Python of an environment that has vLLM")
    add("--json", action="store_true", help="print JSON")
    return parser


def _asked(options: argparse.Namespace) -> tuple[Mapping[str, Any], str]:
    """Return the dump of the parser that was asked for, and its origin."""
    if options.release in snapshot_versions() and not options.refresh:
        return load_config(f"vllm/{options.release}.json"), f"as plans know it (configs/vllm/{options.release}.json)"
    hardware = detect()
    environment = find_environment(options.vllm_python or load_server_config().vllm_python, hardware)
    other = options.release is not None or options.wheel is not None
    if environment is None and not other and not options.refresh:
        version = CPU_SNAPSHOT if hardware.vendor == "cpu" else NEWEST
        return load_config(f"vllm/{version}.json"), f"not installed: as plans know it (configs/vllm/{version}.json)"
    if environment is None:
        lack = "Another release's parser needs what an installed vLLM needs, and none is."
        remedy = "`mai-server install` makes one; --vllm-python FILE names one of your own."
        raise EnvironmentLacksError(lack if other else "There is no vLLM to ask.", remedy)
    if not other:
        if options.refresh:
            return refreshed_document(environment.python), f"the vLLM of {environment.python}, asked now"
        return installed_document(environment.python)
    say = (lambda _: None) if options.json else (lambda text: remark(f"mai-server: {text}"))
    releases = Releases(state_root() / "releases", environment.python, say)
    if options.wheel is not None:
        return releases.document(releases.open_wheel(options.wheel)), f"the parser in {options.wheel.name}"
    return releases.document(releases.fetch(options.release)), "the parser in its wheel"


def _nearest(version: str, origin: str) -> str:
    """Return the snapshot to compare with: the same release if it is known, else the newest."""
    same = [name for name in snapshot_versions() if name.removesuffix("-cpu") == version]
    return next((name for name in same if f"({name})" in origin), same[0] if same else NEWEST)


def _lines(found: Drift, missed: Mapping[str, str]) -> list[str]:
    if not found:
        return ["  nothing came, went or changed."]
    lines = [
        f"  {NAMES[part]} that {word}: {_listed(names)}"
        for word, parts in (("went", found.went), ("came", found.came))
        for part, names in parts.items()
        if names
    ]
    lines += [f"  changed: {each}" for each in found.changed]
    lines += [
        f"! plans use {flag} ({name}): it is left out of every plan, which says so." for name, flag in missed.items()
    ]
    return lines


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more (--json)" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
