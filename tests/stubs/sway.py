"""A sway without screens of a test's own, and what can be asked of it."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.desktop.wlroots.windows import GET_TREE, RUN_COMMAND, Sway

#: sway 1.7 refuses to be root, also where that is nobody in particular.
_AS_SOMEBODY = (
    "bwrap",
    "--unshare-user",
    "--uid",
    "1000",
    "--gid",
    "1000",
    "--die-with-parent",
    "--dev-bind",
    "/",
    "/",
)


class PlainSway:
    """A compositor with nothing on it; a context manager.

    Args:
        outputs: for each monitor, what follows its name in sway's configuration.
    """

    def __init__(self, outputs: Sequence[str] = ("resolution 1280x800 position 0 0 scale 1",)) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sway-"))
        lines = [f"output HEADLESS-{number} {words}" for number, words in enumerate(outputs, 1)]
        config = self.folder / "config"
        config.write_text("\n".join([*lines, "xwayland disable", "default_border none", "focus_follows_mouse no", ""]))
        environ = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder), "WLR_BACKENDS": "headless"}
        environ |= {"WLR_LIBINPUT_NO_DEVICES": "1", "WLR_RENDERER": "pixman", "WLR_HEADLESS_OUTPUTS": str(len(outputs))}
        for name in ("WAYLAND_DISPLAY", "DISPLAY", "SWAYSOCK"):
            environ.pop(name, None)
        self.log = self.folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*(_AS_SOMEBODY if os.geteuid() == 0 else ()), "sway", "-c", str(config)],
                env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + 30
        while not (found := self._sockets()):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        self.display, self.control = found
        self.programs: list[subprocess.Popen[bytes]] = []

    def _sockets(self) -> tuple[str, str] | None:
        shown = [one.name for one in self.folder.glob("wayland-*") if not one.name.endswith(".lock")]
        control = [str(one) for one in self.folder.glob("sway-ipc.*.sock")]
        return (shown[0], control[0]) if shown and control else None

    def __enter__(self) -> "PlainSway":
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs:
            program.kill()
            program.wait()
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """The compositor goes away; safe to call twice."""
        self.process.kill()
        self.process.wait()

    @property
    def variables(self) -> dict[str, str]:
        """What names it."""
        return {"WAYLAND_DISPLAY": self.display, "XDG_RUNTIME_DIR": str(self.folder), "SWAYSOCK": self.control}

    @property
    def environ(self) -> dict[str, str]:
        """This process's environment, with this compositor."""
        others = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
        return others | self.variables | {"GDK_BACKEND": "wayland", "NO_AT_BRIDGE": "1"}

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        """A program on it, ended with it."""
        program = subprocess.Popen(
            command, env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.programs.append(program)
        return program

    def do(self, command: str) -> None:
        """One of sway's commands."""
        [done] = self._ask(RUN_COMMAND, command)
        assert done["success"], done

    def tree(self) -> Any:
        """All that sway knows of its windows."""
        return self._ask(GET_TREE)

    def _ask(self, kind: int, payload: str = "") -> Any:
        sway = Sway(self.control)
        try:
            return sway.ask(kind, payload)
        finally:
            sway.close()
