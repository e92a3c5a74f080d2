"""`mai-server models`: the models on this machine: list, get and delete them."""

import argparse
import re
from pathlib import Path
from typing import Any

from foundation.command_line import Parser
from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError, UsageError
from foundation.printing import put, put_json, remark
from serverctl.hardware.facts import size_in_words
from serverctl.models.find import cache_folder, known_models
from serverctl.process import control

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def main(arguments: list[str]) -> int:
    """List, get or delete models."""
    parser = Parser(
        "mai-server models",
        description="The models on this machine, in the cache of the hub's client. A start gets its model by itself; "
        "`pull` gets it before.",
        epilog="examples:\n  mai-server models\n  mai-server models pull MAI-UI-2B\n  mai-server models rm org/name",
    )
    parser.add_argument("action", nargs="?", choices=("list", "pull", "rm"), default="list", help="default: list")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a known name or a repository (org/name)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if (options.name is None) != (options.action == "list"):
        raise UsageError(
            f"`models {options.action}` and a NAME do not go together.", "pull and rm take one, list none."
        )
    if options.action == "list":
        return _list(options)
    repository = _repository(options.name)
    done = _pull(repository) if options.action == "pull" else _remove(repository)
    if options.json:
        put_json({"action": options.action, "repository": repository, "bytes": done})
    else:
        put(f"{'Deleted' if options.action == 'rm' else 'Here'}: {repository}, {size_in_words(done)}.")
    return ExitStatus.DONE


def _repository(name: str) -> str:
    """Return the repository of a known name, or the name if it is a repository. Raises UsageError."""
    known = next((one.source for one in known_models() if one.name.casefold() == name.casefold()), name)
    if not _REPOSITORY.fullmatch(known):
        raise UsageError(f"There is no model {name!r}.", "Use a known name (MAI-UI-2B) or a repository (org/name).")
    return known


def _cached() -> dict[str, Any]:
    from huggingface_hub import scan_cache_dir

    if not cache_folder().is_dir():
        return {}
    return {repo.repo_id: repo for repo in scan_cache_dir(cache_folder()).repos if repo.repo_type == "model"}


def _list(options: argparse.Namespace) -> int:
    served = {state.source: state.name for state in control.live_servers()}
    known = {one.source: one.name for one in known_models()}
    rows = [
        {"repository": name, "name": known.get(name), "bytes": repo.size_on_disk, "served_by": served.get(name)}
        for name, repo in sorted(_cached().items())
    ]
    if options.json:
        put_json(rows, indent=1)
        return ExitStatus.DONE
    for row in rows:
        by = f"served by {row['served_by']}" if row["served_by"] else ""
        put(f"{row['repository']:<44}{size_in_words(row['bytes']):>10}  {row['name'] or '':<24}{by}".rstrip())
    if not rows:
        put(f"No model in {cache_folder()}: `mai-server models pull NAME`.")
    return ExitStatus.DONE


def _pull(repository: str) -> int:
    """Download a repository, and return its bytes on disk. Raises EnvironmentLacksError."""
    from huggingface_hub import snapshot_download

    remark(f"mai-server: getting {repository} ...")
    try:
        folder = snapshot_download(repository, cache_dir=cache_folder())
    except Exception as error:  # of the hub's client, of the network and of the disk
        reason = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        raise EnvironmentLacksError(
            f"{repository} cannot be got: {reason}", "Is its name right, and the network there?"
        ) from error
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def _remove(repository: str) -> int:
    from huggingface_hub import scan_cache_dir

    if name := next((state.name for state in control.live_servers() if state.source == repository), ""):
        raise MaiError(f"The server {name!r} serves {repository}.", f"`mai-server down --name {name}` stops it first.")
    found = _cached().get(repository)
    if found is None:
        raise UsageError(f"{repository} is not on this machine.", "`mai-server models` lists what is.")
    plan = scan_cache_dir(cache_folder()).delete_revisions(*(one.commit_hash for one in found.revisions))
    plan.execute()
    return int(found.size_on_disk)
