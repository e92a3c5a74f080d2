"""`mai-server install`: an environment of its own for the right vLLM."""

from pathlib import Path

from foundation.command_line import Parser
from foundation.errors import ExitStatus, UsageError
from foundation.printing import put, put_json
from serverctl.commands.progress import InstallProgress
from serverctl.hardware.detect import detect
from serverctl.hardware.facts import usable_cards
from serverctl.vllm.builds import Build, build_for, builds, environment_folder, read_mark
from serverctl.vllm.install import Installed, check_machine, check_space, install, remove, with_version

_EXAMPLES = """examples:
  mai-server install                    the right build for this machine's driver
  mai-server install --list             what there is, and what is installed
  mai-server install --build cpu        for trying things out without a card
  mai-server install --again            afresh, when an installation is broken
  mai-server install --remove --build cuda12

What fails or is interrupted leaves nothing behind; pip keeps whole downloads in its own cache for another try."""


def main(arguments: list[str]) -> int:
    """Install vLLM."""
    parser = Parser(
        "mai-server install",
        description="Make an environment of its own for the vLLM that suits this machine. Nothing else is changed.",
        epilog=_EXAMPLES,
    )
    names = [build.name for build in builds()]
    parser.add_argument("--build", choices=names, help=f"one of {', '.join(names)} (default: by the driver)")
    parser.add_argument("--version", metavar="V", help="another version of vLLM than the supported one")
    parser.add_argument("--into", type=Path, metavar="DIR", help="another place; name it later with --vllm-python DIR")
    parser.add_argument("--again", action="store_true", help="begin afresh")
    parser.add_argument("--remove", action="store_true", help="remove the environment")
    parser.add_argument("--list", action="store_true", help="list builds and what is installed")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if options.list:
        return _list(options.json)
    build = _chosen(options.build)
    if options.version:
        build = with_version(build, options.version)
    if options.remove:
        removed = remove(build)
        if options.json:
            put_json({"removed": removed})
        else:
            put("Removed." if removed else "It was not installed.")
        return ExitStatus.DONE
    folder = options.into.resolve() if options.into else environment_folder(build)
    if options.into and folder.exists() and any(folder.iterdir()) and not (folder / "pyvenv.cfg").is_file():
        raise UsageError(f"{folder} holds other things.", "Name an empty folder.")
    if options.dry_run:
        check_machine(build)
        check_space(folder, build)
        if options.json:
            packages = {"packages": list(build.packages), "gib": build.disk_gib}
            put_json({**_json(build, folder), **packages})
        else:
            summary = f"{', '.join(build.packages)} into {folder}: {build.about}; about {build.disk_gib:.0f} GiB."
            put(f"Would install {summary}")
        return ExitStatus.DONE
    with InstallProgress(quiet=options.json) as bar:
        if options.again or read_mark(folder) is None:
            bar.say(
                f"Installing {', '.join(build.packages)}: {build.about}. About {build.disk_gib:.0f} GiB in {folder}."
            )
        done = install(build, bar.report, options.again, folder)
    return _done(done, build, options.json)


def _chosen(name: str | None) -> Build:
    """Return the build by name or for this machine's driver. Raises before any download."""
    if name:
        return next(build for build in builds() if build.name == name)
    hardware = detect()
    usable_cards(hardware)
    return build_for(hardware)


def _done(done: Installed, build: Build, as_json: bool) -> int:
    if as_json:
        places = {"folder": str(done.folder), "python": str(done.python)}
        put_json({**places, "versions": done.versions, "already": done.already})
        return ExitStatus.DONE
    state = "is installed already" if done.already else "is installed and works"
    put(f"vLLM {done.versions.get('vllm', build.version)} {state}: {done.folder}")
    for name in done.versions.get("devices") or ():
        put(f"  it sees {name}")
    put("`mai-server up` starts a server.")
    return ExitStatus.DONE


def _json(build: Build, folder: Path) -> dict[str, object]:
    installed = read_mark(folder) is not None
    return {"build": build.name, "version": build.version, "folder": str(folder), "installed": installed}


def _list(as_json: bool) -> int:
    found = [{**_json(build, environment_folder(build)), "about": build.about} for build in builds()]
    if as_json:
        put_json(found, indent=1)
        return ExitStatus.DONE
    for entry in found:
        put(f"{'*' if entry['installed'] else ' '} {entry['build']:<8} vLLM {entry['version']:<8} {entry['about']}")
    put("* installed")
    return ExitStatus.DONE
