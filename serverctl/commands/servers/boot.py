"""`mai-server boot`: starts the last server unchanged when the machine boots, by a unit of the user's systemd."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from foundation.command_line import Parser
from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError, UsageError
from foundation.files import cannot_write
from foundation.printing import put, put_json
from serverctl.export.systemd import command_line, quote
from serverctl.process import control
from serverctl.process.request import read_request
from serverctl.process.state import Folder

#: Variables that say where a server's files are.
_CARRIED = (
    "MAI_SERVER_STATE", "MAI_AGENT_CONFIG", "MAI_SERVER_VLLM_PYTHON", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE",
    "VLLM_CACHE_ROOT",
)  # fmt: skip
#: Works from a checkout, too.
_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[3])!r}); "
    "from serverctl.cli import main; sys.exit(main())"
)
# `mai-server` restarts vLLM by itself, and gives up for good reasons, so systemd restarts it only after a kill. The
# guardian ends vLLM when the main process is gone.
_UNIT = """[Unit]
Description=mai-server {name}: the last server as it was

[Service]
Type=exec
{environment}
ExecStart={start}
Restart=on-abnormal
RestartSec=15
KillMode=mixed
TimeoutStopSec=40
LimitNOFILE=65536
UMask=0077

[Install]
WantedBy=default.target
"""


def main(arguments: list[str]) -> int:
    """Switch the start at boot on or off."""
    parser = Parser(
        "mai-server boot",
        description="Start the last server with the machine, as it was: model, settings, port, key.",
        epilog="examples:\n  mai-server boot\n  mai-server boot --name second\n  mai-server boot --off",
    )
    parser.add_argument("--name", help="which server (default: the one that was started last)")
    parser.add_argument("--off", action="store_true", help="do not start it with the machine any more")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    name = options.name or control.last_started() or control.DEFAULT_NAME
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    unit = settings / "systemd" / "user" / f"mai-server-{Folder(name).name}.service"
    if shutil.which("systemctl") is None:
        raise EnvironmentLacksError(
            "This machine has no systemd.", "Add `mai-server up --again` to its startup programs."
        )
    if options.off:
        _switch_off(unit)
    else:
        _switch_on(name, unit)
    lingers = options.off or _lingers()
    if options.json:
        put_json({"name": name, "unit": str(unit), "on": not options.off, "before_login": not options.off and lingers})
        return ExitStatus.DONE
    put(
        f"The server {name!r} starts with the machine: {unit}." if not options.off else f"{name!r} starts by hand only."
    )
    if not lingers:
        put("It starts when you log in; `loginctl enable-linger` lets it start before.")
    return ExitStatus.DONE


def _switch_on(name: str, unit: Path) -> None:
    if not Folder(name).request_file.is_file():
        raise UsageError(f"No server {name!r} has been started yet.", "`mai-server up` starts one; then this keeps it.")
    request = read_request(Folder(name).request_file)
    for goal in (request.goal, *(each.goal for each in request.models)):
        _refuse_temporary(goal.model)
    carried = [f"{each}={os.environ[each]}" for each in _CARRIED if os.environ.get(each)]
    environment = [f"Environment={quote(each, variables=False)}" for each in carried]
    start = command_line([[sys.executable, "-c", _PROGRAM], ["up", "--again", "--name", name, "--foreground"]])
    try:
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text(_UNIT.format(name=name, environment="\n".join(environment), start=start), encoding="utf-8")
    except OSError as error:
        raise cannot_write(unit, error) from error
    _systemctl("daemon-reload")
    _systemctl("enable", unit.name)


def _switch_off(unit: Path) -> None:
    if not unit.is_file():
        raise MaiError(f"There is no {unit}.", "Nothing starts it with the machine.")
    _systemctl("disable", unit.name)
    unit.unlink(missing_ok=True)
    _systemctl("daemon-reload")


def _refuse_temporary(model: str | None) -> None:
    """Raise UsageError if a model's folder does not survive a reboot."""
    folder = Path(model or "").resolve()
    for temporary in {Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/run"), Path("/dev/shm")}:  # noqa: S108
        if model and folder.is_relative_to(temporary):
            raise UsageError(
                f"The model lies in {temporary}, which is emptied when the machine starts.",
                f"Move {folder} elsewhere, and `mai-server up --model` it from there.",
            )


def _systemctl(*words: str) -> None:
    """Run `systemctl --user`. Raises EnvironmentLacksError if it fails."""
    done = subprocess.run(["systemctl", "--user", *words], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise EnvironmentLacksError(
            f"systemctl failed: {reason.rstrip('.')}.", "`systemctl --user status` says whether yours runs."
        )


def _lingers() -> bool:
    """Return whether the user's systemd runs without a login."""
    if shutil.which("loginctl") is None:
        return False
    words = ["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"]
    return subprocess.run(words, check=False, capture_output=True, text=True).stdout.strip() == "yes"
