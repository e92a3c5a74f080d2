"""Isolates a sandbox's programs in namespaces of their own (bubblewrap).

They see the system's folders, read-only, and the sandbox's folders, both at the same paths as outside. The person's
files are not visible.
"""

import ctypes
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from foundation.configs import load_config

#: "host" shares the machine's network; "none" has only a private loopback.
Network: TypeAlias = Literal["none", "host"]

_INSTALL = "Install it: apt-get install --no-install-recommends bubblewrap"
_ALLOW = "Enable unprivileged user namespaces, or use a machine without personal files."
#: Capabilities that programs started by root keep, to change their user and group.
_CAPABILITIES_OF_ROOT = ("CAP_SETUID", "CAP_SETGID", "CAP_CHOWN")
#: The uid and gid of root inside if it must be an ordinary user.
_NOBODY = "1000"
#: Timeout of one attempt in seconds; it normally takes 20 ms.
_TIMEOUT = 10.0


def why_not(network: Network, *, ordinary: bool = False) -> tuple[str, str] | None:
    """Return why programs cannot be isolated here, and what to do; None if they can.

    Tries it once with everything that a sandbox needs, because files and kernel settings are not reliable, especially
    in containers.
    """
    return _tried(network, ordinary)[1]


@cache
def _tried(network: Network, ordinary: bool) -> tuple[list[str], tuple[str, str] | None]:
    """Return the bubblewrap arguments that create the namespaces, or why all variants fail."""
    if shutil.which("bwrap") is None:
        return [], ("bubblewrap is not installed.", _INSTALL)
    reason = ""
    for words in _namespaces(network, ordinary=ordinary):
        try:
            done = subprocess.run(
                [*words, *_system(), "--", "true"],
                capture_output=True, text=True, timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            return [], (f"bubblewrap cannot be run ({error}).", _INSTALL)
        if done.returncode == 0:
            return words, None
        reason = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
    return [], (f"This system does not let programs be isolated ({reason[:200].removesuffix('.')}).", _ALLOW)


def isolated(folder: Path, network: Network, also: tuple[str, ...] = (), *, ordinary: bool = False) -> list[str]:
    """Return the command prefix that isolates a command and its children.

    In the sandbox's folder, `home`, `run` and `tmp` are writable, and `cookie` is readable. The folders in `also` are
    readable too. With `ordinary`, root is an ordinary user inside.
    """
    own: list[str] = ["--bind", f"{folder}/tmp", "/tmp"]  # noqa: S108 -- the sandbox's own /tmp
    for part in ("home", "run"):
        own += ["--bind", f"{folder}/{part}", f"{folder}/{part}"]
    for path in (f"{folder}/cookie", *also):
        own += ["--ro-bind", path, path]
    if ordinary and os.geteuid() == 0:
        own += ["--ro-bind", str(_accounts(folder)), "/etc/passwd"]
    return [*_tried(network, ordinary)[0], *_system(), *own, "--remount-ro", "/", "--"]


def _accounts(folder: Path) -> Path:
    """Write a passwd file with an account for root's uid inside, because a bus does not start without one."""
    lines = Path("/etc/passwd").read_text(encoding="utf-8", errors="replace").splitlines()
    others = [line for line in lines if line.split(":")[2:3] != [_NOBODY]]
    path = folder / "passwd"
    somebody = f"somebody:x:{_NOBODY}:{_NOBODY}::{folder}/home:{pwd.getpwuid(0).pw_shell}"
    path.write_text("\n".join([*others, somebody, ""]), encoding="utf-8")
    return path


@cache
def open_sockets() -> str:
    """Return a warning about abstract sockets, which programs on the host network can reach; "" if Linux blocks them.

    Abstract sockets belong to the network namespace. Linux 6.12 can block them for a program (Landlock ABI 6).
    """
    create, version = 444, 1
    try:
        if ctypes.CDLL(None).syscall(create, None, 0, version) >= 6:
            return ""
    except (OSError, AttributeError):
        pass
    return (
        "The programs in this sandbox share your network, and on this Linux (before 6.12) also sockets without a file, "
        "such as your display's: --sandbox-network none keeps them out."
    )


def python_inside() -> tuple[list[str], tuple[str, ...]]:
    """Return the command of a Python for inside the sandbox, and the folders that it needs there."""
    shown = tuple(load_config("sandbox.toml")["isolation"]["system"])
    program = os.path.realpath(sys.executable)
    own = os.path.realpath(sys.base_prefix)
    seen = any(Path(program).is_relative_to(folder) for folder in shown)
    return [program, "-I", "-S"], () if seen else (own,)


def _namespaces(network: Network, *, ordinary: bool) -> Iterator[list[str]]:
    """Yield bubblewrap arguments that isolate users, processes, IPC and host name, the best first.

    For root, a user namespace comes last: xterm started by root sets its groups, which do not exist in one.
    """
    apart = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"]
    apart += ["--unshare-net"] if network == "none" else []
    if os.geteuid() == 0 and ordinary:
        yield ["bwrap", "--unshare-user", "--uid", _NOBODY, "--gid", _NOBODY, *apart]
        return
    if os.geteuid() == 0:
        yield ["bwrap", *apart, *(word for name in _CAPABILITIES_OF_ROOT for word in ("--cap-add", name))]
    yield ["bwrap", "--unshare-user", *apart]


def _system() -> list[str]:
    """Return the arguments that mount the system's folders, without those only root may read."""
    table = load_config("sandbox.toml")["isolation"]
    # Root could write the kernel's settings even without capabilities.
    words = ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    words += ["--dir", "/run", "--symlink", "/run", "/var/run"]
    words += ["--symlink", "/tmp", "/var/tmp"]  # noqa: S108 -- as above
    for path in map(Path, table["system"]):
        if path.is_symlink():
            words += ["--symlink", os.fspath(path.readlink()), str(path)]
        elif path.exists():
            words += ["--ro-bind", str(path), str(path)]
    servers = os.path.realpath("/etc/resolv.conf")  # of DNS; many systems keep them in /run next to system sockets
    words += ["--ro-bind", servers, servers] if servers.startswith("/run/") and Path(servers).is_file() else []
    hidden = (path for pattern in table["hidden"] for path in sorted(Path("/").glob(pattern.removeprefix("/"))))
    for path in hidden:
        if not path.is_symlink():
            words += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
    return words
